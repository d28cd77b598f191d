//! CLIENT REPLY OFF and SKIP: requests whose answers the client does not want.
//!
//! Such a request is executed at once, in a batch of its own, and its answer is cut off the output. So the answers of
//! all other requests need not know of this. A pipeline without answers goes slower than one with them.

use super::{Phase, RequestReader, advance, isolated};
use crate::batch::BatchBuffers;
use crate::slice::Slice;
use crate::stage::{Flow, Stage};
use crate::work::Work;

/// Requests of a batch: keys of one request.
const BATCH: usize = 64;

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
    fn switch_on(&mut self) {
        (self.all, self.this) = (false, false);
    }

    /// A request begins, or goes on. If one before it sent SKIP and was answered, that one is over.
    pub fn begin(&mut self) {
        if self.next {
            self.end();
        }
    }

    /// The request is over.
    fn end(&mut self) {
        self.this = std::mem::take(&mut self.next);
    }

    /// True if the request that is under way gets no answer.
    pub fn is_muted(self) -> bool {
        self.all || self.this
    }
}

/// Like [`advance`], and drops the answer if the client does not want it.
#[cold]
pub fn advance_unheard<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
) -> Flow {
    if !phase.is_muted() {
        return advance(stage, slice, phase, reader);
    }
    if slice.in_batch > 0 {
        return Flow::Barrier;
    }
    let mark = slice.output.mark();
    // An EXEC executes the other requests of its transaction, and began to answer before them.
    let outer = phase.session().unheard;
    phase.session().unheard = outer.or(Some(mark));
    let mut batch = BatchBuffers::default().take(BATCH);
    let mut own = stage.with_batch(&mut batch);
    let flow = advance(&mut own, slice, phase, reader);
    let before = slice.output.end();
    isolated::finish(&mut own, slice);
    // What is dropped was made all the same.
    slice.spend(Work::of_bytes(slice.output.end() - before));
    // CLIENT REPLY ON has cut off what was before it, and is answered itself. RESET, which is answered too, ends the
    // session.
    if let Some(session) = &mut phase.session
        && session.unheard.is_some()
    {
        slice.output.cut(mark);
        session.unheard = outer;
    }
    // A transaction's requests, and one that was typed by hand, are queued, and belong to the request that is under
    // way.
    if flow == Flow::Next
        && phase.is_at_request()
        && let Some(session) = &mut phase.session
        && !session.has_replay()
        && !session.more
    {
        session.unwanted.end();
    }
    flow
}

/// CLIENT REPLY ON: all answers are wanted from here on.
pub fn unmute(slice: &mut Slice, phase: &mut Phase) {
    let session = phase.session();
    session.unwanted.switch_on();
    if let Some(mark) = session.unheard.take() {
        slice.output.cut(mark);
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
