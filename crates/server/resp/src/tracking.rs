//! The parsers of CLIENT TRACKING and CLIENT CACHING.

use crate::arguments::{Arguments, Stop, Values};
use crate::error::Error;
use crate::names::{NAME_LEN_MAX, small};

/// CLIENT TRACKING.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tracking<'a> {
    /// ON, not OFF.
    pub on: bool,
    /// BCAST.
    pub broadcast: bool,
    /// OPTIN.
    pub opt_in: bool,
    /// OPTOUT.
    pub opt_out: bool,
    /// NOLOOP.
    pub no_loop: bool,
    /// REDIRECT: the number of a connection.
    pub redirect: Option<i64>,
    /// All words behind ON or OFF.
    words: Values<'a>,
}

impl<'a> Tracking<'a> {
    /// The prefixes.
    pub fn prefixes(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut words = self.words;
        std::iter::from_fn(move || {
            loop {
                let word = words.next()?;
                let mut room = [0; NAME_LEN_MAX];
                match small(word, &mut room) {
                    b"prefix" => return words.next(),
                    b"redirect" => {
                        words.next();
                    }
                    _ => {}
                }
            }
        })
    }

    /// Why the prefix at this place cannot be set beside these and those behind it: none may begin another.
    pub fn overlap(&self, at: usize, prefix: &'a [u8], set: &'a [Box<[u8]>]) -> Option<Error<'a>> {
        let overlaps = |other: &&[u8]| other.starts_with(prefix) || prefix.starts_with(other);
        let before = set.iter().map(|it| &**it).find(overlaps);
        let other = before.or_else(|| self.prefixes().skip(at + 1).find(overlaps))?;
        Some(Error::Overlap {
            prefix,
            other,
            is_set: before.is_some(),
        })
    }
}

/// CLIENT TRACKING behind its name.
pub(super) fn tracking<'a>(arguments: &mut Arguments<'a>) -> Result<Tracking<'a>, Stop<'a>> {
    if arguments.left == 0 {
        return Err(Error::Arity("client|tracking").into());
    }
    let switch = arguments.next()?;
    let on = switch.eq_ignore_ascii_case(b"on");
    let words = arguments.values()?;
    let mut tracking = Tracking {
        on,
        broadcast: false,
        opt_in: false,
        opt_out: false,
        no_loop: false,
        redirect: None,
        words,
    };
    let mut rest = words;
    while let Some(word) = rest.next() {
        let mut room = [0; NAME_LEN_MAX];
        match small(word, &mut room) {
            b"bcast" => tracking.broadcast = true,
            b"optin" => tracking.opt_in = true,
            b"optout" => tracking.opt_out = true,
            b"noloop" => tracking.no_loop = true,
            b"prefix" if rest.len() > 0 => {
                rest.next();
            }
            b"redirect" if rest.len() > 0 => {
                if tracking.redirect.is_some() {
                    return Err(Error::REDIRECT_TWICE.into());
                }
                let id = rest.next().and_then(crate::integer);
                tracking.redirect = Some(id.ok_or(Error::NOT_INTEGER)?);
            }
            _ => return Err(Error::SYNTAX.into()),
        }
    }
    if !on && !switch.eq_ignore_ascii_case(b"off") {
        return Err(Error::SYNTAX.into());
    }
    if on {
        check(&tracking)?;
    }
    Ok(tracking)
}

/// Refuses options that contradict each other.
fn check(tracking: &Tracking<'_>) -> Result<(), Error<'static>> {
    if !tracking.broadcast && tracking.prefixes().next().is_some() {
        return Err(Error::PREFIX_WITHOUT_BROADCAST);
    }
    if tracking.broadcast && (tracking.opt_in || tracking.opt_out) {
        return Err(Error::OPTIONS_OF_BROADCAST);
    }
    if tracking.opt_in && tracking.opt_out {
        return Err(Error::OPT_IN_AND_OUT);
    }
    Ok(())
}

/// CLIENT CACHING behind its name: YES, not NO.
pub(super) fn caching<'a>(arguments: &mut Arguments<'a>) -> Result<bool, Stop<'a>> {
    if arguments.left != 1 {
        return Err(Error::Arity("client|caching").into());
    }
    let word = arguments.next()?;
    match (
        word.eq_ignore_ascii_case(b"yes"),
        word.eq_ignore_ascii_case(b"no"),
    ) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(Error::SYNTAX.into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{refused, server};
    use crate::{Client, ServerCommand};

    #[test]
    fn options_and_prefixes() {
        let ServerCommand::Client(Client::Tracking(tracking)) =
            server("CLIENT TRACKING on BCAST PREFIX a REDIRECT 7 prefix prefix NOLOOP")
        else {
            panic!();
        };
        assert!(tracking.on && tracking.broadcast && tracking.no_loop);
        assert_eq!(tracking.redirect, Some(7));
        let prefixes: Vec<_> = tracking.prefixes().collect();
        assert_eq!(prefixes, [&b"a"[..], b"prefix"]);
        for (line, words) in [
            ("CLIENT TRACKING maybe", "syntax error"),
            ("CLIENT TRACKING ON foo", "syntax error"),
            (
                "CLIENT TRACKING ON PREFIX a",
                "PREFIX option requires BCAST mode to be enabled",
            ),
            (
                "CLIENT TRACKING ON BCAST OPTIN",
                "OPTIN and OPTOUT are not compatible with BCAST",
            ),
            (
                "CLIENT TRACKING ON OPTIN OPTOUT",
                "You can't specify both OPTIN mode and OPTOUT mode",
            ),
            (
                "CLIENT TRACKING ON REDIRECT x",
                "value is not an integer or out of range",
            ),
            ("CLIENT CACHING maybe", "syntax error"),
        ] {
            assert_eq!(refused(line), format!("-ERR {words}\r\n"), "{line}");
        }
    }
}
