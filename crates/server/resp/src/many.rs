//! Commands of many keys: their arguments are taken one by one, so the server never holds all of them.

use nuthatch_protocol::Awaited;
use nuthatch_protocol::Limits;

use crate::arguments::{Arguments, Stop};
use crate::command::{Body, Many};
use crate::error::Error;
use crate::names::Verb;
use crate::parse::body;
use crate::rest::Rest;

/// The command of many keys that `verb` is, if it is one.
pub(super) fn verb(verb: Verb) -> Option<Many> {
    Some(match verb {
        Verb::Mget => Many::Mget,
        Verb::Mset => Many::Mset,
        Verb::Del => Many::Del,
        Verb::Exists => Many::Exists,
        Verb::Touch => Many::Touch,
        _ => return None,
    })
}

/// The next key of such a command, or the next pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// Not complete yet: parse again when this has arrived.
    Incomplete(Awaited),
    /// A key, and for [`Many::Mset`] its value.
    Item {
        /// The key.
        key: &'a [u8],
        /// The value; empty for all other verbs.
        value: &'a [u8],
        /// Bytes to drop from the input.
        consumed: usize,
    },
    /// A pair whose value has not arrived completely.
    Body(Body<'a>),
    /// No item has this key, or this value.
    Refused {
        /// Why.
        error: Error<'a>,
        /// Bytes to drop from the input now.
        consumed: usize,
        /// The rest of the element, which is to be dropped after those.
        rest: Rest,
    },
    /// The input behind it cannot be parsed.
    Broken(Error<'a>),
}

/// The element at the front of `input`.
#[inline]
pub fn element<'a>(verb: Many, input: &'a [u8], limits: &Limits) -> Element<'a> {
    let words = if verb == Many::Mset { 2 } else { 1 };
    let mut arguments = Arguments::at(input, 0, words).within(limits);
    let mut key: &[u8] = &[];
    match taken(verb, &mut arguments, &mut key, limits) {
        Ok(value) => Element::Item {
            key,
            value,
            consumed: arguments.at,
        },
        Err(Stop::More(length)) => Element::Incomplete(Awaited::bytes(length)),
        Err(Stop::Refused(error)) => Element::Refused {
            error,
            consumed: arguments.at.min(input.len()),
            rest: arguments.rest(),
        },
        Err(Stop::Broken(error)) => Element::Broken(error),
        Err(Stop::Body {
            line, value_len, ..
        }) => Element::Body(body(&arguments, key, line, value_len)),
    }
}

#[inline]
fn taken<'a>(
    verb: Many,
    arguments: &mut Arguments<'a>,
    key: &mut &'a [u8],
    limits: &Limits,
) -> Result<&'a [u8], Stop<'a>> {
    *key = arguments.key()?;
    if verb == Many::Mset {
        return arguments.value(limits.value_max);
    }
    Ok(&[])
}

/// The front of a request, or of an element, with an announced length of 0 for its value. With the bytes behind the
/// value ([`Body::rest`]) it is complete, and can be parsed again.
pub fn emptied(input: &[u8], body: &Body<'_>) -> Vec<u8> {
    let mut head = input[..body.line].to_vec();
    head.extend_from_slice(b"$0\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parsed, parse};

    const LIMITS: Limits = Limits::of_values(64);

    #[test]
    fn keys_come_one_by_one() {
        let input = b"*4\r\n$4\r\nMGET\r\n$1\r\na\r\n$0\r\n\r\n$1\r\nc\r\n";
        let Parsed::Many {
            verb,
            arguments,
            consumed,
        } = parse(&input[..20], &LIMITS)
        else {
            panic!("the head is here");
        };
        assert_eq!((verb, arguments, consumed), (Many::Mget, 3, 14));
        let mut at = consumed;
        let mut keys = Vec::new();
        for _ in 0..arguments {
            match element(verb, &input[at..], &LIMITS) {
                Element::Item { key, consumed, .. } => {
                    keys.push(Some(key));
                    at += consumed;
                }
                Element::Refused {
                    consumed, mut rest, ..
                } => {
                    keys.push(None);
                    at += consumed;
                    at += rest.pass(&input[at..]).unwrap();
                    assert!(rest.is_over());
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(
            (keys, at),
            (vec![Some(&b"a"[..]), None, Some(b"c")], input.len())
        );
    }

    #[test]
    fn a_value_is_announced() {
        let input = b"$1\r\nk\r\n$12\r\nabcdefghijkl\r\n";
        for cut in 1..input.len() {
            match element(Many::Mset, &input[..cut], &LIMITS) {
                Element::Incomplete(_) => assert!(cut < 12),
                Element::Body(body) => {
                    assert_eq!((body.key, body.head, body.value_len), (&b"k"[..], 12, 12));
                    let whole = [&emptied(input, &body)[..], b"\r\n"].concat();
                    let Element::Item { value, .. } = element(Many::Mset, &whole, &LIMITS) else {
                        panic!("{whole:?}");
                    };
                    assert!(value.is_empty());
                }
                other => panic!("{other:?}"),
            }
        }
        let too_large = element(Many::Mset, b"$1\r\nk\r\n$65\r\n", &LIMITS);
        assert!(matches!(too_large, Element::Refused { consumed: 12, .. }));
    }
}
