//! Commands that take an item from one key to another, in the same database or in another one: RENAME, RENAMENX, COPY,
//! MOVE. The worker has the engine to itself while it looks at both keys and changes them. A long value is copied before
//! that, piece by piece, with other connections' turns in between. If other clients change it again and again, it is
//! copied in one step, and each attempt is a step of its own.

use nuthatch_commands::answers::resp::failure;
use nuthatch_commands::context::Context;
use nuthatch_commands::counting::Kind;
use nuthatch_commands::partial::PartialValue;
use nuthatch_commands::work::Work;
use nuthatch_engine::namespace::{DATABASES, Namespace};
use nuthatch_engine::{Condition, Item, Op, Removal, Reply, Store, StoreMode};
use nuthatch_resp::{Copying, Error};
use nuthatch_settings::config::Config;
use nuthatch_state::changes::Naming;
use nuthatch_state::key_events::Event;

use crate::busy;
use crate::edit::{CUT_ATTEMPTS, LONG, STEP};
use crate::spot::{ATTEMPTS, Content, Found, ask, find, look};

/// How many databases this server has.
pub fn databases(config: &Config) -> usize {
    if config.has_one_database {
        1
    } else {
        DATABASES
    }
}

/// The database with this number, if the server has it.
pub fn numbered(config: &Config, number: i64) -> Option<usize> {
    let number = usize::try_from(number).ok();
    number.filter(|&it| it < databases(config))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Rename,
    RenameAbsent,
    Copy,
    Move,
}

/// An item on its way.
pub struct Transfer {
    verb: Verb,
    key: Box<[u8]>,
    to: Box<[u8]>,
    /// The databases of the two.
    databases: [usize; 2],
    /// An item that is there is replaced.
    replace: bool,
    /// How often it began.
    attempts: usize,
    draft: Option<Draft>,
}

/// A long value of which a part is copied, into an item that is not stored yet.
struct Draft {
    found: Found,
    /// Those of the databases when it began.
    namespaces: [Namespace; 2],
    new: PartialValue,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    Done,
    /// There is no item.
    Missing,
    /// There is one already where it should go.
    Taken,
}

impl Transfer {
    /// Of an item of this database.
    fn new(verb: Verb, own: usize, key: &[u8], to: &[u8]) -> Self {
        Self {
            verb,
            key: key.into(),
            to: to.into(),
            databases: [own; 2],
            replace: verb == Verb::Rename,
            attempts: 0,
            draft: None,
        }
    }

    /// RENAME, RENAMENX.
    pub fn rename(own: usize, key: &[u8], to: &[u8], only_absent: bool) -> Self {
        let verb = match only_absent {
            true => Verb::RenameAbsent,
            false => Verb::Rename,
        };
        Self::new(verb, own, key, to)
    }

    /// COPY.
    pub fn copy(
        config: &Config,
        own: usize,
        copying: &Copying<'_>,
    ) -> Result<Self, Error<'static>> {
        let mut copy = Self::new(Verb::Copy, own, copying.key, copying.to);
        copy.replace = copying.replace;
        if let Some(number) = copying.database {
            copy.databases[1] = numbered(config, number).ok_or(Error::DATABASE)?;
        }
        match copy.goes_nowhere() {
            true => Err(Error::SAME_OBJECT),
            false => Ok(copy),
        }
    }

    /// MOVE.
    pub fn to_database(
        config: &Config,
        own: usize,
        key: &[u8],
        number: i64,
    ) -> Result<Self, Error<'static>> {
        let mut to_there = Self::new(Verb::Move, own, key, key);
        to_there.databases[1] = numbered(config, number).ok_or(Error::DATABASE)?;
        match to_there.goes_nowhere() {
            true => Err(Error::SAME_OBJECT),
            false => Ok(to_there),
        }
    }

    fn goes_nowhere(&self) -> bool {
        self.key == self.to && self.databases[0] == self.databases[1]
    }

    /// Bytes of memory, without those of values in the engine.
    pub fn memory(&self) -> usize {
        let old = self.draft.as_ref();
        let old = old.map_or(0, |draft| draft.found.value.memory());
        size_of::<Self>() + self.key.len() + self.to.len() + old
    }

    /// Whether it was done, as a client is answered. The first is true if that is OK or an error, not 1 or 0.
    pub fn answer(
        &self,
        outcome: Result<Carried, Error<'static>>,
    ) -> (bool, Result<bool, Error<'static>>) {
        let is_rename = matches!(self.verb, Verb::Rename | Verb::RenameAbsent);
        let outcome = outcome.and_then(|carried| match carried {
            Carried::Missing if is_rename => Err(Error::NO_KEY),
            Carried::Missing | Carried::Taken => Ok(false),
            // A new name that is the old one is there already.
            Carried::Done => Ok(self.verb != Verb::RenameAbsent || !self.goes_nowhere()),
        });
        (self.verb == Verb::Rename, outcome)
    }

    /// Copies some more bytes, or carries the item. The outcome if that was the last step.
    pub fn step(&mut self, cx: &mut Context<'_, '_>) -> Result<Option<Carried>, Error<'static>> {
        let mut draft = match self.draft.take() {
            Some(draft) => draft,
            None if self.attempts == ATTEMPTS => return Err(Error::BUSY),
            None => {
                self.attempts += 1;
                match self.begin(cx)? {
                    Begun::Draft(draft) => draft,
                    Begun::Carried(carried) => return Ok(carried),
                }
            }
        };
        let is_cut = self.attempts <= CUT_ATTEMPTS && draft.found.value.len() > LONG;
        let copied = draft.copy(if is_cut { STEP } else { usize::MAX });
        cx.work.add(Work::of_bytes(copied));
        if draft.new.missing() > 0 {
            self.draft = Some(draft);
            return Ok(None);
        }
        self.carry(cx, draft.namespaces, &draft.found, Some(draft.new))
    }

    /// A SWAPDB between the two looks is found under the isolation.
    fn namespaces(&self, cx: &Context<'_, '_>) -> [Namespace; 2] {
        self.databases.map(|it| cx.shared.databases.namespace(it))
    }

    fn begin(&self, cx: &mut Context<'_, '_>) -> Result<Begun, Error<'static>> {
        let namespaces = self.namespaces(cx);
        cx.namespace = namespaces[0];
        if self.goes_nowhere() {
            let is_there = look(cx, &self.key).is_some();
            let carried = if is_there {
                Carried::Done
            } else {
                Carried::Missing
            };
            return Ok(Begun::Carried(Some(carried)));
        }
        let Some(found) = find(cx, &self.key) else {
            return Ok(Begun::Carried(Some(Carried::Missing)));
        };
        if let Content::Copied(value) = &found.value {
            cx.work.add(Work::of_bytes(value.len()));
            let carried = self.carry(cx, namespaces, &found, None)?;
            return Ok(Begun::Carried(carried));
        }
        let len = found.value.len();
        let new = within(cx, namespaces[1], |cx| {
            cx.reserve_beside(&self.to, len, len)
        });
        let new = new.map_err(|reply| failure(&reply))?;
        Ok(Begun::Draft(Draft {
            found,
            namespaces,
            new,
        }))
    }

    /// Puts an item where it goes. `None` if it is another by now, or in another database.
    fn carry(
        &self,
        cx: &mut Context<'_, '_>,
        namespaces: [Namespace; 2],
        found: &Found,
        long: Option<PartialValue>,
    ) -> Result<Option<Carried>, Error<'static>> {
        let _isolation = busy::isolate(cx)?;
        cx.namespace = namespaces[0];
        let is_still = |item: &Item| (item.cas, item.expiry) == (found.item.cas, found.item.expiry);
        if self.namespaces(cx) != namespaces || !look(cx, &self.key).as_ref().is_some_and(is_still)
        {
            return Ok(None);
        }
        let stored = cx.named(Naming::Untold, |cx| {
            within(cx, namespaces[1], |cx| put(cx, self, found, long))
        });
        if !stored? {
            return Ok(Some(Carried::Taken));
        }
        if self.verb != Verb::Copy {
            let removal = Removal {
                condition: Condition::Cas(found.item.cas),
                ..Removal::default()
            };
            cx.named(Naming::Untold, |cx| {
                ask(cx, &self.key, Op::Remove(removal), Kind::Nothing)
            });
        }
        self.tell(cx, namespaces[1]);
        Ok(Some(Carried::Done))
    }
}

impl Transfer {
    /// Tells subscribers: both names, the old one first, as Redis does.
    fn tell(&self, cx: &mut Context<'_, '_>, to: Namespace) {
        let (from, arrived) = match self.verb {
            Verb::Rename | Verb::RenameAbsent => (Some(Event::RenameFrom), Event::RenameTo),
            Verb::Move => (Some(Event::MoveFrom), Event::MoveTo),
            Verb::Copy => (None, Event::CopyTo),
        };
        if let Some(from) = from {
            cx.tell_event(from, &self.key);
        }
        within(cx, to, |cx| cx.tell_event(arrived, &self.to));
    }
}

/// What an attempt begins with.
enum Begun {
    /// A long value, which is to be copied.
    Draft(Draft),
    /// The end, or nothing if another client was faster.
    Carried(Option<Carried>),
}

impl Draft {
    /// Copies at least this many more bytes, if so many are missing. Returns how many it copied.
    fn copy(&mut self, least: usize) -> usize {
        let before = self.new.missing();
        let len = self.found.value.len();
        while self.new.missing() > 0 && before - self.new.missing() < least {
            let at = len - self.new.missing();
            self.new.write(self.found.value.chunk(at..len));
        }
        before - self.new.missing()
    }
}

/// Does something in another namespace than the connection's.
fn within<'a, T>(
    cx: &mut Context<'_, 'a>,
    namespace: Namespace,
    body: impl FnOnce(&mut Context<'_, 'a>) -> T,
) -> T {
    let own = std::mem::replace(&mut cx.namespace, namespace);
    let result = body(cx);
    cx.namespace = own;
    result
}

/// Stores an item with the value, the expiry and the flags of another. False if there is one that must stay.
fn put(
    cx: &mut Context<'_, '_>,
    transfer: &Transfer,
    found: &Found,
    long: Option<PartialValue>,
) -> Result<bool, Error<'static>> {
    let value = match (&found.value, &long) {
        (Content::Copied(value), None) => value,
        _ => &[][..],
    };
    let store = Store {
        mode: match transfer.replace {
            true => StoreMode::Set,
            false => StoreMode::Add,
        },
        flags: found.item.flags,
        expiry: found.item.expiry,
        ..Store::set(value)
    };
    let reply = match long {
        Some(long) => cx.commit(&transfer.to, long, &store, Kind::Nothing),
        None => ask(cx, &transfer.to, Op::Store(store), Kind::Nothing),
    };
    match reply {
        Reply::Stored(_) => Ok(true),
        reply if reply.is_failure() => Err(failure(&reply)),
        _ => Ok(false),
    }
}
