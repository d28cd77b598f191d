//! The client by which cases call engines.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

use nuthatch_engine::{
    AnyEngine, AnyHandle, AnyValue, Audit, Delta, Engine, Expiry, Handle, Item, Key, Op, Read,
    Removal, Replies, Reply, Request, Store, Time, TouchIf, Value,
};

use crate::answer::{self, Answer};

/// An engine, a handle, and a clock that a case sets by hand.
pub struct Client {
    /// The engine.
    pub engine: Arc<AnyEngine>,
    /// The client's own handle to it.
    pub handle: AnyHandle,
    /// The moment at which the next requests happen.
    pub now: Time,
}

/// A read that returns no value and leaves no trace.
pub(super) const PEEK: Read = Read {
    value: false,
    touch: None,
    vivify: None,
    recache_below: None,
    unless_cas: None,
    details: true,
    touch_if: TouchIf::Always,
    new_cas: None,
    may_win: false,
    bump: false,
    idle: false,
};

impl Client {
    /// A client with a handle of its own.
    pub fn new(engine: Arc<AnyEngine>) -> Self {
        Self {
            handle: engine.handle(),
            engine,
            now: Time(100),
        }
    }

    /// Panics if an invariant of the engine does not hold.
    pub fn audit(&self) {
        if let Err(broken) = self.engine.audit() {
            panic!("audit: {broken}");
        }
    }

    /// Lets time pass.
    pub fn wait(&mut self, seconds: u64) {
        self.now = self.now.after(Duration::from_secs(seconds));
    }

    /// The expiry of an item that lives for this many seconds from now.
    pub fn in_seconds(&self, seconds: u64) -> Expiry {
        Expiry::At(self.now.after(Duration::from_secs(seconds)))
    }

    /// One operation.
    pub fn ask(&mut self, key: &[u8], op: Op<'_>) -> Answer {
        let hasher = self.engine.hasher();
        answer::ask_one(&mut self.handle, hasher, self.now, key, op)
    }

    /// A batch.
    pub fn ask_all(&mut self, batch: &[(&[u8], Op<'_>)]) -> Vec<Answer> {
        let hasher = self.engine.hasher();
        let requests = batch.iter().map(|&(key, op)| Request {
            key: Key::new(key, hasher),
            op,
        });
        let batch: Vec<_> = requests.collect();
        answer::ask(&mut self.handle, self.now, &batch)
    }

    /// A plain get.
    pub fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        match self.ask(key, Op::Get) {
            Answer::Value(item, value) => {
                assert_eq!(item.value_len, value.len());
                Some(value)
            }
            Answer::Done(Reply::Miss) => None,
            other => panic!("a get of {key:?} was answered {other:?}"),
        }
    }

    /// A get of a value that is too long to be copied: it is read in place, and stays there until it is dropped.
    pub fn keep(&mut self, key: &[u8]) -> AnyValue {
        let mut keeper = Keeper(None);
        let key = Key::new(key, self.engine.hasher());
        let get = Request { key, op: Op::Get };
        self.handle.execute(self.now, &[get], &mut keeper);
        keeper.0.expect("a large value is handed out")
    }

    /// A read.
    pub fn read(&mut self, key: &[u8], read: Read) -> Answer {
        self.ask(key, Op::Read(read))
    }

    /// A read that must hit; returns the metadata.
    pub fn meta(&mut self, key: &[u8], read: Read) -> Item {
        match self.read(key, read) {
            Answer::Value(item, _) | Answer::Done(Reply::Found(item)) => item,
            other => panic!("a read of {key:?} was answered {other:?}"),
        }
    }

    /// The item's metadata, read without a trace.
    pub fn peek(&mut self, key: &[u8]) -> Item {
        self.meta(key, PEEK)
    }

    /// A store.
    pub fn store(&mut self, key: &[u8], store: Store<'_>) -> Reply {
        self.done(key, Op::Store(store))
    }

    /// A plain set, which must succeed.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Item {
        self.must_store(key, Store::set(value))
    }

    /// A store that must succeed.
    pub fn must_store(&mut self, key: &[u8], store: Store<'_>) -> Item {
        match self.store(key, store) {
            Reply::Stored(item) => item,
            other => panic!("a store of {key:?} was answered {other:?}"),
        }
    }

    /// A removal.
    pub fn remove(&mut self, key: &[u8], removal: Removal) -> Reply {
        self.done(key, Op::Remove(removal))
    }

    /// A plain delete.
    pub fn delete(&mut self, key: &[u8]) -> Reply {
        self.remove(key, Removal::default())
    }

    /// An incr or decr.
    pub fn delta(&mut self, key: &[u8], delta: Delta) -> Reply {
        self.done(key, Op::Delta(delta))
    }

    /// An incr or decr that must succeed: the number.
    pub fn number(&mut self, key: &[u8], delta: Delta) -> u64 {
        match self.delta(key, delta) {
            Reply::Number(number, _) | Reply::Created(number, _) => number,
            other => panic!("a delta of {key:?} was answered {other:?}"),
        }
    }

    fn done(&mut self, key: &[u8], op: Op<'_>) -> Reply {
        match self.ask(key, op) {
            Answer::Done(reply) => reply,
            other => panic!("{op:?} of {key:?} was answered {other:?}"),
        }
    }
}

/// Keeps a large value instead of copying it.
struct Keeper<V>(Option<V>);

impl<V: Value> Replies<V> for Keeper<V> {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        panic!("{} bytes are too many to copy", item.value_len);
    }

    fn commit(&mut self, _: usize) {
        panic!("nothing was begun");
    }

    fn retract(&mut self, _: usize) {
        panic!("nothing was begun");
    }

    fn large(&mut self, _: usize, _: &Item, value: V) {
        self.0 = Some(value);
    }

    fn done(&mut self, _: usize, reply: Reply) {
        panic!("a get was answered {reply:?}");
    }
}
