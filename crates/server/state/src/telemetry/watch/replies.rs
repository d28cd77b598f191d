//! Passes the answers of a batch on to their clients, and makes lines for watchers.

use std::mem::MaybeUninit;

use nuthatch_engine::{
    AnyHandle, AnyValue, Condition, Expiry, Footprint, Handle, Item, Key, Leave, Op, Read, Replies,
    Reply, Request, StoreMode, Time,
};

use super::line::{self, Lines};
use super::{Hub, Kind};
use crate::changes::Changes;

/// Passes answers on to `inner`, and makes a line of each answer that is watched.
pub struct WatchedReplies<'w, 'a, R> {
    /// The receiver of the replies.
    pub inner: &'w mut R,
    /// The lines made so far.
    pub lines: Lines<'w>,
    /// What clients that track keys are to be told.
    pub changes: Changes<'w>,
    /// The requests of these replies.
    pub requests: &'w [Request<'a>],
    /// The number of a request's connection, as `stats conns` has it.
    pub connection: &'w dyn Fn(usize) -> usize,
    /// The name of a removal: `delete`, or `md`.
    pub removal: &'w dyn Fn(usize) -> &'static str,
    /// The footprint of an item, by the lengths of key and value.
    pub footprint: &'w dyn Fn(usize, usize) -> Footprint,
    /// The time of the batch.
    pub now: Time,
    /// Bytes of the value that the engine is writing. `None` if the read has made the item.
    pub value_len: Option<usize>,
    /// The item whose value that is.
    pub item: Option<Item>,
}

/// True if a read has made this item, because it found none.
pub fn is_made(op: &Op<'_>, item: &Item) -> bool {
    let makes = matches!(op, Op::Read(read) if read.vivify.is_some());
    // An empty item that another client made is recognised by `won`: another client has won it.
    makes && item.won && !item.stale && !item.fetched && item.value_len == 0
}

/// Looks for an item as memcached does at the beginning of a change: bytes of the value, if there is one.
pub fn look_up(handle: &mut AnyHandle, now: Time, key: Key<'_>) -> Option<usize> {
    /// The outcome of a look at an item.
    #[derive(Default)]
    struct Look(Option<usize>);

    impl Replies<AnyValue> for Look {
        fn begin(&mut self, _: usize, _: &Item) -> &mut [MaybeUninit<u8>] {
            &mut []
        }
        fn commit(&mut self, _: usize) {}
        fn retract(&mut self, _: usize) {}
        fn large(&mut self, _: usize, _: &Item, _: AnyValue) {}
        fn done(&mut self, _: usize, reply: Reply) {
            if let Reply::Found(item) = reply {
                self.0 = Some(item.value_len);
            }
        }
    }

    let op = Op::Read(Read {
        value: false,
        bump: false,
        ..Read::default()
    });
    let mut look = Look::default();
    handle.execute(now, &[Request { key, op }], &mut look);
    look.0
}

/// Answers to one request of a batch, which is executed by itself.
struct One<'r, R> {
    replies: &'r mut R,
    index: usize,
}

impl<R: Replies<AnyValue>> Replies<AnyValue> for One<'_, R> {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.replies.begin(self.index, item)
    }

    fn commit(&mut self, _: usize) {
        self.replies.commit(self.index);
    }

    fn retract(&mut self, _: usize) {
        self.replies.retract(self.index);
    }

    fn large(&mut self, _: usize, item: &Item, value: AnyValue) {
        self.replies.large(self.index, item, value);
    }

    fn done(&mut self, _: usize, reply: Reply) {
        self.replies.done(self.index, reply);
    }
}

impl<R: Replies<AnyValue>> WatchedReplies<'_, '_, R> {
    /// Executes the requests. If lookups are watched, each change begins with one, as in memcached, and so the requests
    /// are executed one by one.
    pub fn execute(&mut self, handle: &mut AnyHandle) {
        let requests = self.requests;
        if !self.lines.wants(Kind::Fetches) {
            return handle.execute(self.now, requests, self);
        }
        for (index, request) in requests.iter().enumerate() {
            if !matches!(request.op, Op::Get | Op::Read(_)) {
                let found = look_up(handle, self.now, request.key);
                self.fetch(index, found);
            }
            let now = self.now;
            let mut one = One {
                replies: self,
                index,
            };
            handle.execute(now, std::slice::from_ref(request), &mut one);
        }
    }
}

impl<R> WatchedReplies<'_, '_, R> {
    /// Tells everybody of what has happened. `told` gets the receiver of the replies, a request, and how many clients were told
    /// that its key has changed.
    pub fn publish(&mut self, hub: &Hub, mut told: impl FnMut(&mut R, usize, usize)) {
        hub.publish(&self.lines);
        let told = |index, count| told(self.inner, index, count);
        self.changes.tell(self.requests, self.connection, told);
    }

    /// The outcome of a read, or of the lookup with which a change begins: bytes of the value, if there was one.
    pub fn fetch(&mut self, index: usize, value_len: Option<usize>) {
        let status = if value_len.is_some() {
            "found"
        } else {
            "not_found"
        };
        self.line(index, Kind::Fetches, "item_get", value_len, |out| {
            line::write(out, format_args!(" status={status}"));
        });
    }

    /// A change's outcome. `ttl` is 0 for one that never expires.
    fn store(
        &mut self,
        index: usize,
        status: &str,
        command: &str,
        value_len: Option<usize>,
        ttl: u64,
    ) {
        self.line(index, Kind::Mutations, "item_store", value_len, |out| {
            line::write(
                out,
                format_args!(" status={status} cmd={command} ttl={ttl}"),
            );
        });
    }

    /// A removal of an item that existed. An item that it leaves behind is told as a store. An item that it only marks
    /// still exists, and is not told.
    fn removed(&mut self, index: usize, leave: Leave) {
        if let Leave::Empty { expiry, .. } = leave {
            let ttl = expiry.map_or(0, |expiry| self.seconds_left(expiry));
            self.store(index, "stored", "set", Some(0), ttl);
        }
        if let Leave::Nothing | Leave::Empty { stale: false, .. } = leave {
            let command = (self.removal)(index);
            let key = self.requests[index].key.bytes();
            self.lines.add(Kind::Deletions, |out| {
                line::write(out, format_args!("type=deleted key="));
                line::key(out, key);
                line::write(out, format_args!(" cmd={command} clsid=0 size=0"));
            });
        }
    }

    /// A line about a request's key. Class and size are 0 if there is no item.
    fn line(
        &mut self,
        index: usize,
        kind: Kind,
        event: &str,
        value_len: Option<usize>,
        middle: impl FnOnce(&mut Vec<u8>),
    ) {
        let key = self.requests[index].key.bytes();
        let class = value_len.map_or(0, |len| (self.footprint)(key.len(), len).class);
        let number = (self.connection)(index);
        self.lines.add(kind, |out| {
            line::write(out, format_args!("type={event} key="));
            line::key(out, key);
            middle(out);
            let size = value_len.unwrap_or(0);
            line::write(out, format_args!(" clsid={class} cfd={number} size={size}"));
        });
    }

    fn seconds_left(&self, expiry: Expiry) -> u64 {
        match expiry {
            Expiry::Never => 0,
            Expiry::At(moment) => moment.since(self.now).as_secs().max(1),
        }
    }

    /// Makes the line of a reply, if it has one.
    pub fn note(&mut self, index: usize, reply: &Reply) {
        let op = &self.requests[index].op;
        self.changes.replied(index, op, reply, self.now);
        let (status, item) = match reply {
            Reply::Stored(item)
            | Reply::Number(_, item)
            | Reply::Created(_, item)
            | Reply::Found(item) => ("stored", Some(item)),
            Reply::Exists => ("exists", None),
            Reply::NotFound | Reply::Miss => ("not_found", None),
            Reply::TooLarge => ("too_large", None),
            Reply::OutOfMemory => ("no_memory", None),
            Reply::Unavailable => ("unavailable", None),
            Reply::NotStored | Reply::NotNumeric | Reply::Removed => ("not_stored", None),
        };
        let ttl = item.map_or(0, |item| self.seconds_left(item.expiry));
        match self.requests[index].op {
            op @ (Op::Get | Op::Read(_)) => {
                let found = item.filter(|item| !is_made(&op, item));
                self.fetch(index, found.map(|item| item.value_len));
            }
            Op::Remove(removal) if *reply == Reply::Removed => self.removed(index, removal.leave),
            Op::Remove(_) => {}
            Op::Store(store) => {
                let command = match (store.mode, store.condition) {
                    (StoreMode::Set | StoreMode::Replace, condition)
                        if condition != Condition::None =>
                    {
                        "cas"
                    }
                    (StoreMode::Set, _) => "set",
                    (StoreMode::Add, _) => "add",
                    (StoreMode::Replace, _) => "replace",
                    (StoreMode::Append, _) => "append",
                    (StoreMode::Prepend, _) => "prepend",
                };
                let len = match reply {
                    reply if reply.is_failure() => None,
                    _ => Some(item.map_or(store.value.len(), |item| item.value_len)),
                };
                self.store(index, status, command, len, ttl);
            }
            Op::Delta(delta) => {
                let command = if delta.down { "decr" } else { "incr" };
                let len = item.map_or(0, |item| item.value_len);
                self.store(index, status, command, Some(len), ttl);
            }
        }
    }
}

impl<R: Replies<AnyValue>> Replies<AnyValue> for WatchedReplies<'_, '_, R> {
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        let op = &self.requests[index].op;
        let is_made = is_made(op, item);
        self.item = Some(*item);
        self.value_len = (!is_made).then_some(item.value_len);
        self.inner.begin(index, item)
    }

    fn commit(&mut self, index: usize) {
        self.inner.commit(index);
        if let Some(item) = self.item.take() {
            let op = &self.requests[index].op;
            self.changes.read(index, op, &item, self.now);
        }
        self.fetch(index, self.value_len);
    }

    fn retract(&mut self, index: usize) {
        self.inner.retract(index);
        self.item = None;
    }

    fn large(&mut self, index: usize, item: &Item, value: AnyValue) {
        self.inner.large(index, item, value);
        let op = &self.requests[index].op;
        self.changes.read(index, op, item, self.now);
        self.fetch(index, Some(item.value_len));
    }

    fn done(&mut self, index: usize, reply: Reply) {
        self.note(index, &reply);
        self.inner.done(index, reply);
    }
}
