//! Answers in Redis' protocol.

use nuthatch_engine::{Item, Op, Reply};
use nuthatch_resp::{Error, ExpiryForm, Version, Writer};

use super::context::{AnswerContext, Answers, OldValue};
use crate::counting::{Counted, Kind};
use crate::expiry::resp::shown;

/// A store in the statistics.
pub const STORE: Kind = Kind::Store { is_cas: false };

/// The kind of answer, and the version of the protocol.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// If not 0, the header of an array with this many elements precedes the answer.
    array: u32,
    verb: Verb,
    version: Version,
}

/// The kind of answer.
#[derive(Clone, Copy, Debug)]
pub enum Verb {
    /// A value or null.
    Value,
    /// OK, or null.
    Status,
    /// 1 if the item was stored or found, else 0.
    Number,
    /// 1 if the item was removed, else 0.
    Removed,
    /// The value's length, 0 if there is none.
    Length,
    /// The name of the item's type.
    Type,
    /// The time that the item has left.
    Life {
        /// In milliseconds, not seconds.
        millis: bool,
    },
}

impl Verb {
    /// How a request is answered like this.
    #[inline]
    pub fn of(self, version: Version) -> Format {
        self.behind_array(0, version)
    }

    /// The same as the first element of an array with this many elements, unless that is 0.
    #[inline]
    pub fn behind_array(self, array: u32, version: Version) -> Format {
        Format {
            array,
            verb: self,
            version,
        }
    }
}

impl Format {
    /// Answers an error, in place of what the engine was asked for.
    #[cold]
    pub fn refuse(self, out: &mut Vec<u8>, error: &Error<'_>) {
        let mut writer = Writer::new(out, self.version);
        if self.array > 0 {
            writer.array(self.array as usize);
        }
        writer.error(error);
    }
}

impl Answers for Format {
    #[inline]
    fn counted(self, context: &AnswerContext<'_, '_>, index: usize) -> Counted {
        Counted::only(match (&context.requests[index].op, self.verb) {
            (Op::Store(_), _) => STORE,
            (Op::Remove(_), _) => Kind::Delete,
            (_, Verb::Value) => Kind::Get,
            // EXPIRE and TOUCH.
            (Op::Read(read), Verb::Number) if read.touch.is_some() || read.bump => Kind::Touch,
            _ => Kind::Look,
        })
    }

    #[inline]
    fn value_begins(self, out: &mut Vec<u8>, _: &AnswerContext<'_, '_>, _: usize, item: &Item) {
        let mut writer = Writer::new(out, self.version);
        if self.array > 0 {
            writer.array(self.array as usize);
        }
        writer.bulk_header(item.value_len);
    }

    #[inline]
    fn value_ends(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n");
    }

    fn reply(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        _: usize,
        reply: &Reply,
    ) -> OldValue {
        let mut writer = Writer::new(out, self.version);
        if reply.is_failure() {
            writer.error(&failure(reply));
            return OldValue::AsReplied;
        }
        match self.verb {
            Verb::Value => {
                if self.array > 0 {
                    writer.array(self.array as usize);
                }
                writer.null();
            }
            Verb::Status => match reply {
                Reply::Stored(_) => writer.ok(),
                _ => writer.null(),
            },
            Verb::Number => writer.flag(matches!(reply, Reply::Stored(_) | Reply::Found(_))),
            Verb::Removed => writer.flag(matches!(reply, Reply::Removed)),
            Verb::Length => writer.integer(match reply {
                Reply::Stored(item) | Reply::Found(item) => item.value_len as i64,
                _ => 0,
            }),
            Verb::Type => writer.status(match reply {
                Reply::Found(_) => "string",
                _ => "none",
            }),
            Verb::Life { millis } => {
                let absolute = false;
                writer.integer(match reply {
                    Reply::Found(item) => {
                        shown(item.expiry, ExpiryForm { absolute, millis }, context.clock)
                    }
                    _ => -2,
                });
            }
        }
        OldValue::AsReplied
    }
}

/// The error of a failed store.
pub fn failure(reply: &Reply) -> Error<'static> {
    match reply {
        Reply::TooLarge => Error::TOO_LARGE,
        Reply::Unavailable => Error::UNAVAILABLE,
        _ => Error::OUT_OF_MEMORY,
    }
}
