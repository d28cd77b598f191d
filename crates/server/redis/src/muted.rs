//! CLIENT REPLY OFF and SKIP: requests whose answers the client does not want.
//!
//! Such a request is executed at once, in a batch of its own, and its answer is cut off the output. So the answers of
//! all other requests need not know of this. A pipeline without answers goes slower than one with them.

/// The answers that a client does not want. Redis' three flags: requests of one transaction can set several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwanted {
    /// All.
    all: bool,
    /// That of the request that is under way.
    this: bool,
    /// That of the request behind it.
    next: bool,
}

impl Unwanted {
    /// True if the client wants all answers from here on.
    #[inline]
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }

    /// The client sends CLIENT REPLY OFF.
    pub fn switch_off(&mut self) {
        self.all = true;
    }

    /// The client sends CLIENT REPLY SKIP.
    pub fn skip(&mut self) {
        self.next |= !self.all;
    }

    /// The client sends CLIENT REPLY ON. A SKIP before it in the same transaction stays.
    pub fn switch_on(&mut self) {
        (self.all, self.this) = (false, false);
    }

    /// A request begins, or goes on. If one before it sent SKIP and was answered, that one is over.
    pub fn begin(&mut self) {
        if self.next {
            self.end();
        }
    }

    /// The request is over.
    pub fn end(&mut self) {
        self.this = std::mem::take(&mut self.next);
    }

    /// True if the request that is under way gets no answer.
    pub fn is_muted(self) -> bool {
        self.all || self.this
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_for_the_next_request() {
        let mut unwanted = Unwanted::default();
        unwanted.skip();
        assert!(!unwanted.is_muted(), "SKIP itself has no answer to drop");
        unwanted.begin();
        assert!(unwanted.is_muted());
        unwanted.begin();
        unwanted.skip();
        unwanted.end();
        assert!(unwanted.is_muted(), "it was skipped, and skips");
        unwanted.end();
        assert!(unwanted.is_nothing());
        unwanted.switch_off();
        unwanted.skip();
        unwanted.end();
        assert!(unwanted.is_muted());
        unwanted.switch_on();
        assert!(unwanted.is_nothing());
    }
}
