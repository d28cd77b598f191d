//! The parser of CLIENT KILL.

use std::net::SocketAddr;

use crate::arguments::{Arguments, Stop};
use crate::error::Error;
use crate::names::{NAME_LEN_MAX, small};
use crate::number::integer;

/// The connections that CLIENT KILL closes: those that fulfil all conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kill<'a> {
    /// The address alone was given, in Redis' old form: the answer is OK, or an error.
    pub by_address: bool,
    /// The peer.
    pub address: Option<SocketAddr>,
    /// The address of our side.
    pub local: Option<SocketAddr>,
    /// The user who has logged in.
    pub user: Option<&'a [u8]>,
    /// The connection's number.
    pub id: Option<u64>,
    /// What it is.
    pub kind: Option<ClientKind>,
    /// It is at least as old, in seconds.
    pub age_min: Option<u64>,
    /// The one that asks is left out.
    pub others_only: bool,
}

/// What a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// It is for requests.
    Normal,
    /// It has subscribed to channels.
    PubSub,
    /// Something that no connection is here: a replica, a master.
    Other,
}

impl ClientKind {
    /// The kind that this word names.
    pub(super) fn named(word: &[u8]) -> Option<Self> {
        let mut room = [0; NAME_LEN_MAX];
        Some(match small(word, &mut room) {
            b"normal" => Self::Normal,
            b"pubsub" => Self::PubSub,
            b"master" | b"replica" | b"slave" => Self::Other,
            _ => return None,
        })
    }
}

/// CLIENT KILL behind its name. An address that is none is nobody's.
pub(super) fn kill<'a>(arguments: &mut Arguments<'a>) -> Result<Kill<'a>, Stop<'a>> {
    let mut kill = Kill {
        others_only: true,
        ..Kill::default()
    };
    match arguments.left {
        0 => return Err(Error::Arity("client|kill").into()),
        1 => {
            kill.address = Some(address(arguments.next()?).ok_or(Error::NO_CLIENT)?);
            return Ok(Kill {
                by_address: true,
                others_only: false,
                ..kill
            });
        }
        _ => {}
    }
    while arguments.left > 0 {
        let option = arguments.next()?;
        if arguments.left == 0 {
            return Err(Error::SYNTAX.into());
        }
        let word = arguments.next()?;
        let mut room = [0; NAME_LEN_MAX];
        match small(option, &mut room) {
            b"id" => {
                let id = integer(word).and_then(above_zero);
                kill.id = Some(id.ok_or(Error::CLIENT_ID_POSITIVE)?);
            }
            b"maxage" => {
                let age = integer(word).ok_or(Error::MAX_AGE_INTEGER)?;
                kill.age_min = Some(above_zero(age).ok_or(Error::MAX_AGE)?);
            }
            b"addr" => match address(word) {
                Some(address) => kill.address = Some(address),
                None => kill.id = Some(0),
            },
            b"laddr" => match address(word) {
                Some(address) => kill.local = Some(address),
                None => kill.id = Some(0),
            },
            b"user" => kill.user = Some(word),
            b"type" => {
                kill.kind = Some(ClientKind::named(word).ok_or(Error::ClientType(word))?);
            }
            b"skipme" if word.eq_ignore_ascii_case(b"yes") => kill.others_only = true,
            b"skipme" if word.eq_ignore_ascii_case(b"no") => kill.others_only = false,
            _ => return Err(Error::SYNTAX.into()),
        }
    }
    Ok(kill)
}

fn above_zero(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|&number| number > 0)
}

fn address(text: &[u8]) -> Option<SocketAddr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{refused, server};
    use crate::{Client, ServerCommand};

    fn parsed(line: &str) -> Kill<'_> {
        match server(line) {
            ServerCommand::Client(Client::Kill(kill)) => kill,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_is_meant() {
        let old = parsed("CLIENT KILL 127.0.0.1:5");
        assert!(old.by_address && !old.others_only);
        let new = parsed("CLIENT KILL ID 7 TYPE pubsub SKIPME no MAXAGE 5");
        assert_eq!((new.id, new.age_min), (Some(7), Some(5)));
        assert_eq!(
            (new.kind, new.others_only),
            (Some(ClientKind::PubSub), false)
        );
        let new = parsed("CLIENT KILL laddr 127.0.0.1:6 USER someone");
        let local = new.local.map(|local| local.port());
        assert_eq!((local, new.user), (Some(6), Some(&b"someone"[..])));
        assert_eq!(parsed("CLIENT KILL LADDR nowhere SKIPME no").id, Some(0));
        for (line, words) in [
            ("CLIENT KILL nobody", "No such client"),
            ("CLIENT KILL ID 0", "client-id should be greater than 0"),
            ("CLIENT KILL ID", "No such client"),
            ("CLIENT KILL ID abc", "client-id should be greater than 0"),
            ("CLIENT KILL MAXAGE 0", "maxage should be greater than 0"),
            (
                "CLIENT KILL MAXAGE abc",
                "maxage is not an integer or out of range",
            ),
            ("CLIENT KILL TYPE x", "Unknown client type 'x'"),
            ("CLIENT KILL ID 1 SKIPME", "syntax error"),
        ] {
            assert_eq!(refused(line), format!("-ERR {words}\r\n"));
        }
    }
}
