//! What is told of a batch: to clients that track keys (CLIENT TRACKING, see [`nuthatch_channels::tracking`]), and to those
//! that have subscribed to events about keys.

use nuthatch_channels::tracking::Tracking;
use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::{Expiry, Item, Key, Leave, Op, Read, Reply, Request, StoreMode, Time};

use crate::key_events::Event;
use crate::server_state::ServerState;
use crate::telemetry::watch::replies::is_made;

/// The changes of a batch.
pub struct Changes<'t> {
    shared: &'t ServerState,
    /// `None` if nobody tracks.
    tracking: Option<&'t Tracking>,
    /// How events are named. `None` if nobody is told of any.
    naming: Option<Naming>,
    /// What has happened to the keys of which requests.
    events: Vec<(usize, Event)>,
    /// Requests that have changed their key.
    changed: Vec<usize>,
    /// Requests that have read an item which expires.
    expiring: Vec<(usize, Time)>,
}

/// The event that a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// By its operation.
    #[default]
    ByOperation,
    /// This one, if it changes its key: its operation is only the way to do something else.
    As(Event),
    /// None: it is told elsewhere.
    Untold,
}

/// What a reply says that has happened to its key, in the order in which it is told.
fn events_of(op: &Op<'_>, reply: &Reply, now: Time) -> [Option<Event>; 2] {
    let lifetime = |expiry| match expiry {
        Expiry::Never => Event::Persist,
        // As in Redis. That it has expired follows.
        past if past.is_past(now) => Event::Del,
        Expiry::At(_) => Event::Expire,
    };
    let stored = |expiry| match expiry {
        Expiry::Never => [Some(Event::Set), None],
        Expiry::At(_) => [Some(Event::Set), Some(Event::Expire)],
    };
    match (op, reply) {
        (Op::Store(store), Reply::Stored(_)) => match store.mode {
            StoreMode::Append | StoreMode::Prepend => [Some(Event::Append), None],
            StoreMode::Set | StoreMode::Add | StoreMode::Replace => stored(store.expiry),
        },
        (Op::Remove(removal), Reply::Removed) => match removal.leave {
            Leave::Nothing => [Some(Event::Del), None],
            Leave::Empty { .. } => [Some(Event::Set), None],
            Leave::Stale { .. } => [None, None],
        },
        (Op::Delta(delta), Reply::Number(..)) => [Some(Event::IncrBy), delta.touch.map(lifetime)],
        (Op::Delta(_), Reply::Created(..)) => [Some(Event::IncrBy), None],
        // As the watchers' lines know an item that the read has made.
        (
            Op::Read(Read {
                vivify: Some(expiry),
                ..
            }),
            Reply::Found(item),
        ) if is_made(op, item) => stored(*expiry),
        (
            Op::Read(Read {
                touch: Some(expiry),
                ..
            }),
            Reply::Found(_),
        ) => [Some(lifetime(*expiry)), None],
        _ => [None, None],
    }
}

/// The key as clients know it.
fn name<'k>(key: &Key<'k>) -> &'k [u8] {
    Namespace::split(key.bytes()).1
}

/// Those of the requests' keys that clients read.
pub fn reads<'r>(requests: &'r [Request<'_>]) -> impl Iterator<Item = &'r [u8]> {
    let reads = requests.iter();
    let reads = reads.filter(|request| matches!(request.op, Op::Get | Op::Read(_)));
    reads.map(|request| name(&request.key))
}

/// Tells the clients that track a request's key that it has changed. Returns how many are told.
pub fn tell(tracking: &Tracking, request: &Request<'_>, writer: Option<usize>) -> usize {
    match tracking.is_used() {
        true => tracking.changed(name(&request.key), writer),
        false => 0,
    }
}

impl<'t> Changes<'t> {
    /// None yet.
    pub fn new(shared: &'t ServerState, naming: Naming) -> Self {
        Self {
            shared,
            tracking: Some(&*shared.tracking).filter(|it| it.is_used()),
            naming: Some(naming).filter(|_| shared.key_events.is_used()),
            events: Vec::new(),
            changed: Vec::new(),
            expiring: Vec::new(),
        }
    }

    /// A read has found an item.
    pub fn read(&mut self, index: usize, op: &Op<'_>, item: &Item, now: Time) {
        self.happened(index, op, &Reply::Found(*item), now);
        self.track_read(index, op, item);
    }

    fn happened(&mut self, index: usize, op: &Op<'_>, reply: &Reply, now: Time) {
        let Some(naming) = self.naming else {
            return;
        };
        let events = events_of(op, reply, now);
        let named = match naming {
            Naming::ByOperation => events,
            Naming::As(event) => [events[0].map(|_| event), None],
            Naming::Untold => [None, None],
        };
        let named = named.into_iter().flatten();
        self.events.extend(named.map(|event| (index, event)));
    }

    fn track_read(&mut self, index: usize, op: &Op<'_>, item: &Item) {
        if self.tracking.is_none() {
            return;
        }
        if let Op::Read(read) = op
            && (read.touch.is_some() || read.vivify.is_some())
        {
            self.changed.push(index);
        } else if let Expiry::At(end) = item.expiry {
            self.expiring.push((index, end));
        }
    }

    /// A request has this reply, which has no value.
    pub fn replied(&mut self, index: usize, op: &Op<'_>, reply: &Reply, now: Time) {
        self.happened(index, op, reply, now);
        match (op, reply) {
            (Op::Get | Op::Read(_), Reply::Found(item)) => self.track_read(index, op, item),
            (
                _,
                Reply::Miss
                | Reply::NotFound
                | Reply::NotStored
                | Reply::Exists
                | Reply::NotNumeric
                | Reply::TooLarge
                | Reply::OutOfMemory
                | Reply::Unavailable,
            ) => {}
            _ if self.tracking.is_some() => self.changed.push(index),
            _ => {}
        }
    }

    /// Tells them of these requests, each by the number of its writer. `told` gets how many are told of a request.
    pub fn tell(
        &self,
        requests: &[Request<'_>],
        writer: impl Fn(usize) -> usize,
        mut told: impl FnMut(usize, usize),
    ) {
        self.tell_events(requests, &mut told);
        let Some(tracking) = self.tracking else {
            return;
        };
        for &index in &self.changed {
            let key = name(&requests[index].key);
            told(index, tracking.changed(key, Some(writer(index))));
        }
        for &(index, end) in &self.expiring {
            tracking.expire(name(&requests[index].key), end.0.into());
        }
    }

    fn tell_events(&self, requests: &[Request<'_>], told: &mut impl FnMut(usize, usize)) {
        if self.naming.is_none() {
            return;
        }
        let (events, databases) = (&self.shared.key_events, &self.shared.databases);
        // First what these requests have found expired, or have evicted.
        events.tell_waiting(databases);
        for &(index, event) in &self.events {
            told(
                index,
                events.tell(databases, event, requests[index].key.bytes()),
            );
        }
    }
}
