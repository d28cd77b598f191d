//! Requests, as bytes.

use std::io::Write;

use super::command::{Command, Verb};
use crate::key::Key;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'a> {
    /// Asks for an item.
    Get { key: Key<'a>, want: Want },
    /// Stores one.
    Store {
        key: Key<'a>,
        value: &'a [u8],
        mode: Mode,
        flags: u32,
        /// The protocol's number of a lifetime.
        lifetime: i64,
        /// Only if the item has this number.
        cas: Option<u64>,
    },
    /// Deletes one.
    Delete { key: Key<'a>, cas: Option<u64> },
    /// Leaves one as stale for so many seconds: the next get wins the right to renew it.
    MakeStale { key: Key<'a>, lifetime: i64 },
    /// Adds to a number, or subtracts from it.
    Count {
        key: Key<'a>,
        delta: u64,
        is_down: bool,
    },
    /// A meta command of the caller's own.
    Meta(Command<'a>, Key<'a>),
    /// Asks for a reply, and nothing else.
    Nothing,
    /// Removes all items, after so many seconds.
    Flush { delay: u64 },
    /// Asks for the server's version.
    Version,
    /// Asks for the server's statistics: those of this kind, all if it is empty.
    Stats { kind: &'a str },
    /// Logs in.
    Login { name: &'a [u8], password: &'a [u8] },
}

/// What a get asks for beside the value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Want {
    /// Not the value, only whether there is one.
    pub no_value: bool,
    /// The number for `cas`.
    pub cas: bool,
    /// The time that is left.
    pub left: bool,
    /// Gives the item this lifetime.
    pub touch: Option<i64>,
    /// If there is no item, makes an empty one for so many seconds, and says that this client won.
    pub vivify: Option<u64>,
    /// Says that this client won if no more than so many seconds are left, and nobody did.
    pub recache: Option<u64>,
}

/// When a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Set,
    /// Only if there is none.
    Add,
    /// Only if there is one.
    Replace,
    /// Behind the one there is.
    Append,
    /// In front of the one there is.
    Prepend,
}

impl Request<'_> {
    /// Adds the request to what will be sent. The server gives the number back with what it answers to a meta command, so that
    /// a reply to another request is noticed.
    pub fn write(&self, out: &mut Vec<u8>, opaque: u16) {
        match *self {
            Self::Get { key, want } => get(out, key, want, opaque),
            Self::Store { key, value, .. } => {
                begin(out, b"ms ", key);
                text(out, format_args!(" {}", value.len()));
                key.write_flag(out);
                self.store_flags(out);
                end(out, opaque);
                out.extend_from_slice(value);
                out.extend_from_slice(b"\r\n");
            }
            Self::Delete { key, cas } => {
                begin(out, b"md ", key);
                key.write_flag(out);
                if let Some(cas) = cas {
                    text(out, format_args!(" C{cas}"));
                }
                end(out, opaque);
            }
            Self::MakeStale { key, lifetime } => {
                begin(out, b"md ", key);
                key.write_flag(out);
                text(out, format_args!(" I T{lifetime}"));
                end(out, opaque);
            }
            Self::Count {
                key,
                delta,
                is_down,
            } => {
                begin(out, b"ma ", key);
                key.write_flag(out);
                text(
                    out,
                    format_args!(" v D{delta}{}", if is_down { " MD" } else { "" }),
                );
                end(out, opaque);
            }
            Self::Meta(command, key) => meta(out, &command, key, opaque),
            Self::Nothing => out.extend_from_slice(b"mn\r\n"),
            Self::Flush { delay: 0 } => out.extend_from_slice(b"flush_all\r\n"),
            Self::Flush { delay } => text(out, format_args!("flush_all {delay}\r\n")),
            Self::Version => out.extend_from_slice(b"version\r\n"),
            Self::Stats { kind: "" } => out.extend_from_slice(b"stats\r\n"),
            Self::Stats { kind } => text(out, format_args!("stats {kind}\r\n")),
            Self::Login { name, password } => {
                text(
                    out,
                    format_args!("set login 0 0 {}\r\n", name.len() + 1 + password.len()),
                );
                for part in [name, b" ", password, b"\r\n"] {
                    out.extend_from_slice(part);
                }
            }
        }
    }

    fn store_flags(&self, out: &mut Vec<u8>) {
        let Self::Store {
            mode,
            flags,
            lifetime,
            cas,
            ..
        } = *self
        else {
            return;
        };
        if flags != 0 {
            text(out, format_args!(" F{flags}"));
        }
        if lifetime != 0 {
            text(out, format_args!(" T{lifetime}"));
        }
        if let Some(cas) = cas {
            text(out, format_args!(" C{cas}"));
        }
        out.extend_from_slice(match mode {
            Mode::Set => b"",
            Mode::Add => b" ME",
            Mode::Replace => b" MR",
            Mode::Append => b" MA",
            Mode::Prepend => b" MP",
        });
    }

    /// The length of its value.
    pub fn value_length(&self) -> usize {
        match self {
            Self::Store { value, .. } => value.len(),
            Self::Meta(command, _) => command.value.len(),
            _ => 0,
        }
    }

    /// Whether its reply brings the number back.
    pub fn has_opaque(&self) -> bool {
        !matches!(
            self,
            Self::Nothing
                | Self::Flush { .. }
                | Self::Version
                | Self::Stats { .. }
                | Self::Login { .. }
        )
    }

    /// The key of the place that the server keeps for who asked, if it finds no item there.
    pub fn place(&self) -> Option<Key<'_>> {
        match *self {
            Self::Get { key, want } if want.vivify.is_some() => Some(key),
            _ => None,
        }
    }

    /// Whether it may be sent again if the first reply did not come: it changes nothing.
    pub fn is_read(&self) -> bool {
        match self {
            Self::Get { want, .. } => want.vivify.is_none() && want.recache.is_none(),
            Self::Meta(command, _) => command.is_read,
            Self::Nothing | Self::Version | Self::Stats { .. } => true,
            _ => false,
        }
    }
}

fn get(out: &mut Vec<u8>, key: Key<'_>, want: Want, opaque: u16) {
    begin(out, b"mg ", key);
    key.write_flag(out);
    if !want.no_value {
        out.extend_from_slice(b" v f");
    }
    for (is_wanted, flag) in [(want.cas, b" c"), (want.left, b" t")] {
        if is_wanted {
            out.extend_from_slice(flag);
        }
    }
    if let Some(lifetime) = want.touch {
        text(out, format_args!(" T{lifetime}"));
    }
    if let Some(seconds) = want.vivify {
        text(out, format_args!(" N{seconds}"));
    }
    if let Some(seconds) = want.recache {
        text(out, format_args!(" R{seconds}"));
    }
    end(out, opaque);
}

fn meta(out: &mut Vec<u8>, command: &Command<'_>, key: Key<'_>, opaque: u16) {
    begin(out, command.verb.word(), key);
    if command.verb == Verb::Set {
        text(out, format_args!(" {}", command.value.len()));
    }
    key.write_flag(out);
    out.extend_from_slice(command.flags.written());
    end(out, opaque);
    if command.verb == Verb::Set {
        out.extend_from_slice(command.value);
        out.extend_from_slice(b"\r\n");
    }
}

fn begin(out: &mut Vec<u8>, command: &[u8], key: Key<'_>) {
    out.extend_from_slice(command);
    key.write(out);
}

fn end(out: &mut Vec<u8>, opaque: u16) {
    text(out, format_args!(" O{opaque:x}\r\n"));
}

fn text(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes all bytes");
}

#[cfg(test)]
mod tests {
    use super::super::command::Flags;
    use super::*;

    fn written(request: Request<'_>) -> String {
        let mut out = Vec::new();
        request.write(&mut out, 0x1f);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn gets_ask_for_what_is_wanted() {
        let key = Key::new(b"k").unwrap();
        let get = |want| written(Request::Get { key, want });
        assert_eq!(get(Want::default()), "mg k v f O1f\r\n");
        let all = Want {
            no_value: false,
            cas: true,
            left: true,
            touch: Some(60),
            vivify: Some(5),
            recache: Some(9),
        };
        assert_eq!(get(all), "mg k v f c t T60 N5 R9 O1f\r\n");
        let none = Want {
            no_value: true,
            touch: Some(-1),
            ..Want::default()
        };
        assert_eq!(get(none), "mg k T-1 O1f\r\n");
        let key = Key::new(b"a b").unwrap();
        let get = written(Request::Get {
            key,
            want: Want::default(),
        });
        assert_eq!(get, "mg YSBi b v f O1f\r\n");
    }

    #[test]
    fn stores_have_their_mode_and_conditions() {
        let store = |mode, flags, lifetime, cas| {
            written(Request::Store {
                key: Key::new(b"k").unwrap(),
                value: b"va\r\n",
                mode,
                flags,
                lifetime,
                cas,
            })
        };
        assert_eq!(store(Mode::Set, 0, 0, None), "ms k 4 O1f\r\nva\r\n\r\n");
        assert_eq!(
            store(Mode::Append, 7, 60, Some(3)),
            "ms k 4 F7 T60 C3 MA O1f\r\nva\r\n\r\n"
        );
        assert!(store(Mode::Add, 0, 0, None).contains(" ME "));
        assert!(store(Mode::Replace, 0, 0, None).contains(" MR "));
        assert!(store(Mode::Prepend, 0, 0, None).contains(" MP "));
    }

    #[test]
    fn commands_of_the_caller_have_their_flags_as_they_are() {
        let command = |verb, flags: &Flags, value| {
            let command = Command {
                verb,
                key: b"a b",
                flags,
                value,
                is_read: false,
            };
            written(Request::Meta(command, Key::new(b"a b").unwrap()))
        };
        assert_eq!(
            command(Verb::Get, Flags::default().bare("vt").number('N', 30), b""),
            "mg YSBi b v t N30 O1f\r\n"
        );
        assert_eq!(
            command(Verb::Delete, &Flags::default(), b""),
            "md YSBi b O1f\r\n"
        );
        assert_eq!(
            command(Verb::Arithmetic, Flags::default().mode('D'), b""),
            "ma YSBi b MD O1f\r\n"
        );
        assert_eq!(
            command(Verb::Set, Flags::default().bare("c"), b"value"),
            "ms YSBi 5 b c O1f\r\nvalue\r\n"
        );
    }

    #[test]
    fn the_other_requests() {
        let key = Key::new(b"k").unwrap();
        for (request, bytes) in [
            (Request::Delete { key, cas: Some(9) }, "md k C9 O1f\r\n"),
            (
                Request::MakeStale { key, lifetime: 30 },
                "md k I T30 O1f\r\n",
            ),
            (
                Request::Count {
                    key,
                    delta: 2,
                    is_down: true,
                },
                "ma k v D2 MD O1f\r\n",
            ),
            (Request::Nothing, "mn\r\n"),
            (Request::Flush { delay: 0 }, "flush_all\r\n"),
            (Request::Flush { delay: 3 }, "flush_all 3\r\n"),
            (Request::Version, "version\r\n"),
            (
                Request::Login {
                    name: b"me",
                    password: b"secret",
                },
                "set login 0 0 9\r\nme secret\r\n",
            ),
        ] {
            assert_eq!(written(request), bytes);
        }
    }
}
