//! Answers in the binary protocol.

use nuthatch_engine::{Item, Reply};
use nuthatch_protocol::binary::{Head, Opcode, Status, encode};

use super::context::{AnswerContext, Answers, OldValue};
use crate::counting::{Counted, Kind};

/// A storage request in the statistics.
pub const fn counted_store(is_cas: bool) -> Counted {
    Counted::with_prefix(Kind::Store { is_cas })
}

/// The parts of a request that its answer repeats, and what follows the answer.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    pub head: Head,
    /// A store that is a compare-and-swap.
    pub is_cas: bool,
    /// The opaque of a noop that follows the request, if one does.
    pub noop: Option<[u8; 4]>,
}

impl Answers for Format {
    #[inline]
    fn counted(self, _: &AnswerContext<'_, '_>, _: usize) -> Counted {
        match self.head.opcode.loud().0 {
            Opcode::GET | Opcode::GETK => Counted::with_prefix(Kind::Get),
            Opcode::GAT | Opcode::GATK | Opcode::TOUCH => Counted::with_prefix(Kind::Touch),
            Opcode::DELETE => Counted::with_prefix(Kind::Delete),
            Opcode::INCREMENT => Counted::only(Kind::Delta { is_down: false }),
            Opcode::DECREMENT => Counted::only(Kind::Delta { is_down: true }),
            _ => counted_store(self.is_cas),
        }
    }

    #[inline]
    fn value_begins(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        item: &Item,
    ) {
        let key = match self.head.opcode.repeats_key() {
            true => context.key(index),
            false => &[],
        };
        encode::value(out, self.head, key, item.flags, item.value_len, item.cas);
    }

    #[inline]
    fn value_ends(self, out: &mut Vec<u8>) {
        self.say_noop(out);
    }

    fn reply(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        reply: &Reply,
    ) -> OldValue {
        let (loud, quiet) = self.head.opcode.loud();
        let mut old = OldValue::AsReplied;
        match loud {
            Opcode::GET | Opcode::GETK | Opcode::GAT | Opcode::GATK | Opcode::TOUCH => {
                self.read_done(out, context, index, reply);
            }
            Opcode::DELETE => {
                self.delete_done(out, reply);
            }
            Opcode::INCREMENT | Opcode::DECREMENT => self.delta_done(out, reply),
            _ => {
                answer_store(out, self.head, quiet, reply);
                let failed = matches!(reply, Reply::TooLarge | Reply::OutOfMemory);
                if loud == Opcode::SET && failed {
                    old = OldValue::Goes;
                }
            }
        }
        self.say_noop(out);
        old
    }
}

impl Format {
    /// Appends the answer of a noop that follows the request.
    #[inline]
    fn say_noop(self, out: &mut Vec<u8>) {
        if let Some(opaque) = self.noop {
            let opcode = Opcode::NOOP;
            encode::done(out, Head { opcode, opaque }, 0);
        }
    }

    /// Answers a read that got no value: a miss, or a touch.
    fn read_done(
        self,
        out: &mut Vec<u8>,
        context: &AnswerContext<'_, '_>,
        index: usize,
        reply: &Reply,
    ) {
        let (head, (_, quiet)) = (self.head, self.head.opcode.loud());
        if *reply == Reply::Unavailable {
            return encode::error(out, head, Status::Unavailable);
        }
        let Reply::Found(item) = reply else {
            return match (quiet, head.opcode.repeats_key()) {
                (true, _) => {}
                (false, true) => encode::miss_of(out, head, context.key(index)),
                (false, false) => encode::error(out, head, Status::NotFound),
            };
        };
        encode::value(out, head, &[], item.flags, 0, item.cas);
    }

    fn delete_done(self, out: &mut Vec<u8>, reply: &Reply) {
        match reply {
            Reply::Removed if self.head.opcode.loud().1 => {}
            Reply::Removed => encode::done(out, self.head, 0),
            Reply::Exists => encode::error(out, self.head, Status::Exists),
            Reply::Unavailable => encode::error(out, self.head, Status::Unavailable),
            _ => encode::error(out, self.head, Status::NotFound),
        }
    }

    fn delta_done(self, out: &mut Vec<u8>, reply: &Reply) {
        let (_, quiet) = self.head.opcode.loud();
        match reply {
            Reply::Number(..) | Reply::Created(..) if quiet => {}
            Reply::Number(number, item) | Reply::Created(number, item) => {
                encode::number(out, self.head, *number, item.cas)
            }
            Reply::NotNumeric => encode::error(out, self.head, Status::NonNumeric),
            Reply::Exists => encode::error(out, self.head, Status::Exists),
            Reply::Unavailable => encode::error(out, self.head, Status::Unavailable),
            Reply::TooLarge | Reply::OutOfMemory => {
                encode::error(out, self.head, Status::OutOfMemory);
            }
            _ => encode::error(out, self.head, Status::NotFound),
        }
    }
}

/// Answers a storage request.
pub fn answer_store(out: &mut Vec<u8>, head: Head, quiet: bool, reply: &Reply) {
    let status = match (reply, head.opcode.loud().0) {
        (Reply::Stored(_), _) if quiet => return,
        (Reply::Stored(item), _) => return encode::done(out, head, item.cas),
        (Reply::Exists, _) | (Reply::NotStored, Opcode::ADD) => Status::Exists,
        (Reply::NotFound, _) | (Reply::NotStored, Opcode::REPLACE) => Status::NotFound,
        (Reply::TooLarge, Opcode::SET | Opcode::ADD | Opcode::REPLACE) => Status::TooLarge,
        (Reply::OutOfMemory, _) => Status::OutOfMemory,
        (Reply::Unavailable, _) => Status::Unavailable,
        // An append that makes a value too large gets memcached's answer.
        _ => Status::NotStored,
    };
    encode::error(out, head, status);
}
