//! SETRANGE and APPEND of long values: the engine reserves an item for the new value, the bytes of the old one are copied
//! there piece by piece, with other connections' turns in between, and the new value takes the place of the old one if
//! that is still the same. If other clients change it again and again, it is copied in one step.

use nuthatch_commands::answers::resp::failure;
use nuthatch_commands::context::Context;
use nuthatch_commands::counting::{Change, Kind};
use nuthatch_commands::partial::PartialValue;
use nuthatch_commands::work::Work;
use nuthatch_engine::{Condition, Expiry, Item, Reply, Store, StoreMode};
use nuthatch_resp::Error;
use nuthatch_state::changes::Naming;
use nuthatch_state::key_events::Event;

use crate::spot::{ATTEMPTS, Content, Found, find};

/// A longer value is copied piece by piece. A shorter one is copied in one turn in any case, and an EXEC with WATCH keeps
/// others out meanwhile.
pub const LONG: usize = 1 << 20;

/// Bytes that a step copies.
pub const STEP: usize = 32 << 10;

/// How often it is copied piece by piece.
pub const CUT_ATTEMPTS: usize = 2;

const ZEROS: [u8; 4 << 10] = [0; 4 << 10];

/// Where bytes are put into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this position. A shorter value becomes longer.
    At(usize),
    /// Behind it.
    End,
}

/// A change of a long value.
pub struct Edit {
    key: Box<[u8]>,
    place: Place,
    piece: Vec<u8>,
    /// How often it began.
    attempts: usize,
    draft: Option<Draft>,
}

/// A new value of which a part is written.
struct Draft {
    /// The item that it is made from.
    item: Option<Item>,
    old: Content,
    /// Where the piece begins.
    at: usize,
    new: PartialValue,
    new_len: usize,
}

impl Edit {
    /// Puts a piece into a key's value.
    pub fn new(key: &[u8], place: Place, piece: Vec<u8>) -> Self {
        Self {
            key: key.into(),
            place,
            piece,
            attempts: 0,
            draft: None,
        }
    }

    /// Bytes of memory, without those of values in the engine.
    pub fn memory(&self) -> usize {
        let old = self.draft.as_ref().map_or(0, |draft| draft.old.memory());
        size_of::<Self>() + self.key.len() + self.piece.capacity() + old
    }

    /// Copies some more bytes. The new length if that was the last step.
    pub fn step(&mut self, cx: &mut Context<'_, '_>) -> Result<Option<usize>, Error<'static>> {
        let is_cut = self.attempts <= CUT_ATTEMPTS;
        let mut draft = match self.draft.take() {
            Some(draft) => draft,
            None if self.attempts == ATTEMPTS => return Err(Error::BUSY),
            None => {
                self.attempts += 1;
                self.begin(cx)?
            }
        };
        let copied = draft.copy(&self.piece, if is_cut { STEP } else { usize::MAX });
        cx.work.add(Work::of_bytes(copied));
        if draft.new.missing() > 0 {
            self.draft = Some(draft);
            return Ok(None);
        }
        let event = match self.place {
            Place::At(_) => Event::SetRange,
            Place::End => Event::Append,
        };
        cx.named(Naming::As(event), |cx| draft.commit(cx, &self.key))
    }

    fn begin(&self, cx: &mut Context<'_, '_>) -> Result<Draft, Error<'static>> {
        let (item, old) = match find(cx, &self.key) {
            Some(Found { item, value }) => (Some(item), value),
            None => (None, Content::Copied(Vec::new())),
        };
        let at = match self.place {
            Place::At(at) => at,
            Place::End => old.len(),
        };
        let new_len = old.len().max(at + self.piece.len());
        let new = cx.reserve_beside(&self.key, new_len, old.len());
        let new = new.map_err(|reply| failure(&reply))?;
        Ok(Draft {
            item,
            old,
            at,
            new,
            new_len,
        })
    }
}

impl Draft {
    /// Writes at least this many more bytes, if so many are missing. Returns how many it wrote.
    fn copy(&mut self, piece: &[u8], least: usize) -> usize {
        let before = self.new.missing();
        while self.new.missing() > 0 && before - self.new.missing() < least {
            let from = self.new_len - self.new.missing();
            let (kept, end) = (self.at.min(self.old.len()), self.at + piece.len());
            let part = if from < kept {
                self.old.chunk(from..kept)
            } else if from < self.at {
                &ZEROS[..ZEROS.len().min(self.at - from)]
            } else if from < end {
                &piece[from - self.at..]
            } else {
                self.old.chunk(from..self.old.len())
            };
            self.new.write(part);
        }
        before - self.new.missing()
    }

    /// Puts the new value in the place of the old one. `None` if that is another by now, or in another database.
    fn commit(self, cx: &mut Context<'_, '_>, key: &[u8]) -> Result<Option<usize>, Error<'static>> {
        if self.new.namespace() != cx.namespace {
            return Ok(None);
        }
        let store = match self.item {
            Some(item) => Store {
                flags: item.flags,
                expiry: item.expiry,
                condition: Condition::Cas(item.cas),
                ..Store::set(&[])
            },
            None => Store {
                mode: StoreMode::Add,
                expiry: Expiry::Never,
                ..Store::set(&[])
            },
        };
        drop(self.old);
        let reply = cx.commit(key, self.new, &store, Kind::Change(Change::Store));
        match reply {
            Reply::Stored(_) => Ok(Some(self.new_len)),
            reply if reply.is_failure() => Err(failure(&reply)),
            _ => Ok(None),
        }
    }
}
