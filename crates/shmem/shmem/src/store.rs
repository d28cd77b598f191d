//! One PE's part of a store, and its operations.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_cluster::{Cluster, ClusterHandle, ConfigError, Member, OnPanic, Serving, agree};
use nuthatch_engine::request::KEY_LEN_MAX;
use nuthatch_engine::{
    Clock, Condition, Delta, Engine, Expiry, Handle, Key, Op, Read, Removal, Reply, Request,
    StoreMode,
};
use nuthatch_fabric::{Address, Fabric};

use crate::answers::{Answer, Answers};
use crate::options::Options;

/// Words of symmetric memory that it takes beside the store's: a line.
pub const OWN: usize = 8;

/// How often a PE that waits for the others to close checks.
const LOOK: Duration = Duration::from_millis(1);

/// Why an operation was refused. It changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A key has 1 to 250 bytes.
    Key,
    /// The item is larger than the largest.
    TooLarge,
    /// The server is full, and nothing may be evicted.
    OutOfMemory,
    /// The value is not a decimal number of 64 bits.
    NotNumeric,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "a key has 1 to 250 bytes",
            Self::TooLarge => "the item is larger than the largest",
            Self::OutOfMemory => "the server is full",
            Self::NotNumeric => "what is there is no decimal number of 64 bits",
        })
    }
}

impl std::error::Error for Error {}

/// The result of a [`compare_and_set`](Store::compare_and_set).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swapped {
    /// The value is stored.
    Stored,
    /// The key has another value by now.
    Changed,
    /// The key is not there.
    Missing,
}

/// Items and bytes of all servers, and counts of this PE's operations since it opened the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Items of all servers; expired ones count until their memory is needed.
    pub items: u64,
    /// Bytes of their blocks.
    pub item_bytes: u64,
    /// Bytes that the servers may use.
    pub memory_limit: u64,
    /// Bytes that they use.
    pub memory_used: u64,
    /// Live items that were evicted to make room.
    pub evictions: u64,
    /// Expired and flushed items whose memory came back.
    pub expired: u64,
    /// Stores that were refused because a server was full.
    pub out_of_memory: u64,
    /// Gets of this PE for which its directory led to the item.
    pub directory_hits: u64,
    /// Gets of this PE for which its directory did not.
    pub directory_misses: u64,
    /// Gets that this PE answered itself, without a message.
    pub direct_gets: u64,
    /// Sets that this PE carried out itself.
    pub direct_sets: u64,
    /// Operations for which this PE sent a message to a server.
    pub messages: u64,
}

/// A PE's part of a store. Any thread may use it, one at a time: they take turns.
pub struct Store<F: Fabric> {
    fabric: Arc<F>,
    member: Member<F>,
    engine: Arc<Cluster<F>>,
    session: Mutex<ClusterHandle<F>>,
    clock: Clock,
    /// How many PEs have closed it: a word of each PE, to which each adds.
    closed: Address,
    /// The thread that serves, if every PE serves.
    serving: Option<Serving>,
    servers: usize,
    co_located: bool,
}

impl<F: Fabric> Store<F> {
    /// Opens a store. Collective: all PEs give the same options. If one gives others, all get the same error.
    pub fn open(fabric: Arc<F>, options: &Options) -> Result<Self, ConfigError> {
        // First of all: options that are the same are valid on all PEs or on none.
        agree(&*fabric, options.settings())?;
        let config = options.config(fabric.pes())?;
        config.symmetric_words(fabric.pes())?;
        let closed = fabric.allocate(OWN)?;
        let member = Member::open(Arc::clone(&fabric), &config)?;
        let engine = member.engine();
        let co_located = options.is_co_located();
        Ok(Self {
            session: Mutex::new(engine.handle()),
            engine,
            clock: Clock::start(),
            closed,
            serving: co_located.then(|| Serving::start(&member, end_process)),
            servers: config.servers,
            co_located,
            member,
            fabric,
        })
    }

    /// True for a PE that is to call [`serve`](Self::serve) and nothing else.
    pub fn is_server(&self) -> bool {
        !self.co_located && self.member.is_server()
    }

    /// Serves until every client has closed the store. Panics on a PE that is not a dedicated server.
    pub fn serve(&self) {
        assert!(self.is_server(), "only the first PEs serve");
        let stop = AtomicBool::new(false);
        let clients = self.fabric.pes() - self.servers;
        thread::scope(|scope| {
            // This thread makes no call of the fabric: with OpenSHMEM, only the serving thread does.
            scope.spawn(|| {
                while self.closed() < clients as u64 {
                    thread::sleep(LOOK);
                }
                // Relaxed: the flag is all there is to see.
                stop.store(true, Ordering::Relaxed);
            });
            let _on_panic = OnPanic::new(end_process);
            self.member.server().run(&stop);
        });
    }

    fn closed(&self) -> u64 {
        // Acquire: the others' requests lie before.
        self.fabric.local(self.closed, 1)[0].load(Ordering::Acquire)
    }

    /// Closes the store. Collective; its content is lost. It frees no PE's symmetric memory.
    pub fn close(self) {
        for pe in 0..self.fabric.pes() {
            // A PE that is gone counts as closed.
            let _ = self.fabric.fetch_add(pe, self.closed, 1);
        }
        // Others may still use this PE's server, or need this PE's calls of the fabric.
        while self.closed() < self.fabric.pes() as u64 {
            self.fabric.pause(0);
            thread::sleep(LOOK);
        }
        drop(self.serving);
    }

    /// The value of a key and the number that tells it from every other value that the key has or had.
    pub fn gets(&self, key: &[u8]) -> Result<Option<(Vec<u8>, u64)>, Error> {
        let key = self.key(key)?;
        let answer = self.ask(&[Request { key, op: Op::Get }]).pop();
        Ok(match answer {
            Some(Answer::Value(value, unique)) => Some((value, unique)),
            _ => None,
        })
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.multi_get(&[key])?.pop().flatten())
    }

    /// The values of many keys, in their order. Requests that can travel together do.
    pub fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let keys: Vec<_> = keys
            .iter()
            .map(|key| self.key(key))
            .collect::<Result<_, _>>()?;
        let batch: Vec<_> = keys
            .into_iter()
            .map(|key| Request { key, op: Op::Get })
            .collect();
        let answers = self.ask(&batch).into_iter();
        Ok(answers
            .map(|answer| match answer {
                Answer::Value(value, _) => Some(value),
                Answer::Done(_) => None,
            })
            .collect())
    }

    /// Stores a value, which lives for `live`, or without that until it is evicted.
    pub fn set(&self, key: &[u8], value: &[u8], live: Option<Duration>) -> Result<(), Error> {
        self.store(StoreMode::Set, key, value, live).map(|_| ())
    }

    /// Stores a value unless the key has one. True if it was stored.
    pub fn add(&self, key: &[u8], value: &[u8], live: Option<Duration>) -> Result<bool, Error> {
        self.store(StoreMode::Add, key, value, live)
    }

    /// Stores a value if the key has one. True if it was stored.
    pub fn replace(&self, key: &[u8], value: &[u8], live: Option<Duration>) -> Result<bool, Error> {
        self.store(StoreMode::Replace, key, value, live)
    }

    /// Adds bytes behind the value of a key. False if the key has none.
    pub fn append(&self, key: &[u8], bytes: &[u8]) -> Result<bool, Error> {
        self.store(StoreMode::Append, key, bytes, None)
    }

    /// Adds bytes before the value of a key. False if the key has none.
    pub fn prepend(&self, key: &[u8], bytes: &[u8]) -> Result<bool, Error> {
        self.store(StoreMode::Prepend, key, bytes, None)
    }

    /// Stores a value if the key still has the value for which [`gets`](Self::gets) gave this number.
    pub fn compare_and_set(
        &self,
        key: &[u8],
        unique: u64,
        value: &[u8],
        live: Option<Duration>,
    ) -> Result<Swapped, Error> {
        let store = nuthatch_engine::Store {
            condition: Condition::Cas(unique),
            ..self.store_of(StoreMode::Set, value, live)
        };
        Ok(match refused(self.change(key, Op::Store(store))?)? {
            Reply::Stored(_) => Swapped::Stored,
            Reply::Exists => Swapped::Changed,
            _ => Swapped::Missing,
        })
    }

    /// Stores many values. Requests that can travel together do. Returns the result of each, in their order. An error
    /// of the whole call is that of a key, and then nothing was stored.
    pub fn multi_set(
        &self,
        pairs: &[(&[u8], &[u8])],
        live: Option<Duration>,
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let request = |&(key, value): &(_, _)| {
            let op = Op::Store(self.store_of(StoreMode::Set, value, live));
            Ok(Request {
                key: self.key(key)?,
                op,
            })
        };
        let batch: Vec<_> = pairs.iter().map(request).collect::<Result<_, _>>()?;
        let answers = self.ask(&batch).into_iter();
        Ok(answers
            .map(|answer| match answer {
                Answer::Done(reply) => refused(reply).map(|_| ()),
                Answer::Value(..) => unreachable!("a store is answered by a reply"),
            })
            .collect())
    }

    /// Gives a value another time to live, from now on. False if the key is not there.
    pub fn touch(&self, key: &[u8], live: Option<Duration>) -> Result<bool, Error> {
        let read = Read {
            value: false,
            touch: Some(self.expiry(live)),
            ..Read::default()
        };
        let reply = self.change(key, Op::Read(read))?;
        Ok(matches!(reply, Reply::Found(_)))
    }

    /// Removes everything, for all PEs.
    pub fn flush(&self) {
        let now = self.clock.now();
        self.engine.flush(now, now);
    }

    /// The statistics of all servers, and of this PE's operations.
    pub fn statistics(&self) -> Statistics {
        let (servers, own) = (self.engine.stats(), self.engine.client_stats());
        Statistics {
            items: servers.items,
            item_bytes: servers.item_bytes,
            memory_limit: servers.memory_limit,
            memory_used: servers.memory_used,
            evictions: servers.evictions,
            expired: servers.expired,
            out_of_memory: servers.out_of_memory,
            directory_hits: own.directory_hits,
            directory_misses: own.directory_misses,
            direct_gets: own.direct_gets + own.direct_misses,
            direct_sets: own.direct_sets,
            messages: own.active,
        }
    }

    /// Removes a key. True if it was there.
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        let reply = self.change(key, Op::Remove(Removal::default()))?;
        Ok(matches!(reply, Reply::Removed))
    }

    /// Adds to a decimal number, modulo 2^64, and returns the sum; `None` if the key is not there.
    pub fn incr(&self, key: &[u8], by: u64) -> Result<Option<u64>, Error> {
        self.count(key, Delta::up(by))
    }

    /// Subtracts from a decimal number, down to 0, and returns the rest; `None` if the key is not there.
    pub fn decr(&self, key: &[u8], by: u64) -> Result<Option<u64>, Error> {
        self.count(key, Delta::down(by))
    }

    fn count(&self, key: &[u8], delta: Delta) -> Result<Option<u64>, Error> {
        match self.change(key, Op::Delta(delta))? {
            Reply::Number(number, _) | Reply::Created(number, _) => Ok(Some(number)),
            Reply::NotNumeric => Err(Error::NotNumeric),
            reply => refused(reply).map(|_| None),
        }
    }

    fn store(
        &self,
        mode: StoreMode,
        key: &[u8],
        value: &[u8],
        live: Option<Duration>,
    ) -> Result<bool, Error> {
        let store = self.store_of(mode, value, live);
        let reply = refused(self.change(key, Op::Store(store))?)?;
        Ok(matches!(reply, Reply::Stored(_)))
    }

    fn store_of<'v>(
        &self,
        mode: StoreMode,
        value: &'v [u8],
        live: Option<Duration>,
    ) -> nuthatch_engine::Store<'v> {
        nuthatch_engine::Store {
            mode,
            expiry: self.expiry(live),
            ..nuthatch_engine::Store::set(value)
        }
    }

    fn expiry(&self, live: Option<Duration>) -> Expiry {
        live.map_or(Expiry::Never, |live| {
            Expiry::At(self.clock.present().end(live))
        })
    }

    fn key<'a>(&self, key: &'a [u8]) -> Result<Key<'a>, Error> {
        match (1..=KEY_LEN_MAX).contains(&key.len()) {
            true => Ok(Key::new(key, self.engine.hasher())),
            false => Err(Error::Key),
        }
    }

    /// One change and its reply.
    fn change(&self, key: &[u8], op: Op<'_>) -> Result<Reply, Error> {
        let key = self.key(key)?;
        match self.ask(&[Request { key, op }]).pop() {
            Some(Answer::Done(reply)) => Ok(reply),
            Some(Answer::Value(..)) | None => unreachable!("a change is answered by a reply"),
        }
    }

    fn ask(&self, batch: &[Request<'_>]) -> Vec<Answer> {
        let mut answers = Answers::default();
        self.session
            .lock()
            .execute(self.clock.now(), batch, &mut answers);
        answers.into_vec()
    }
}

/// Turns a reply that is a refusal into an error.
fn refused(reply: Reply) -> Result<Reply, Error> {
    match reply {
        Reply::TooLarge => Err(Error::TooLarge),
        Reply::OutOfMemory => Err(Error::OutOfMemory),
        reply => Ok(reply),
    }
}

/// Ends the process: after a server's panic all PEs would wait for its answers for ever, and a launcher ends a job that
/// has lost a PE.
fn end_process() {
    std::process::abort();
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_fabric::threads::{Network, ThreadsFabric};

    fn options(servers: usize) -> Options {
        Options {
            servers,
            memory: 4 << 20,
            item_size_max: 64 << 10,
            directory: 1024,
            ..Options::default()
        }
    }

    /// Opens a store on `pes` PEs; clients do `work`, with their number.
    fn job(options: &Options, pes: usize, work: impl Fn(usize, &Store<ThreadsFabric>) + Sync) {
        let words = options.symmetric_words(pes).unwrap() + 64;
        thread::scope(|scope| {
            for end in Network::free(pes, words).ends() {
                let work = &work;
                scope.spawn(move || {
                    let pe = end.pe();
                    let store = Store::open(end, options).unwrap();
                    match store.is_server() {
                        true => store.serve(),
                        false => work(pe, &store),
                    }
                    store.close();
                });
            }
        });
    }

    #[test]
    fn other_options_on_one_pe_are_an_error_on_all() {
        let usual = options(0);
        // As many servers as PEs is not valid: that PE must not give up before the other has heard of it.
        for (says, other) in [
            ("servers 2", options(2)),
            (
                "directory 16",
                Options {
                    directory: 16,
                    ..options(0)
                },
            ),
        ] {
            let words = usual.symmetric_words(2).unwrap() + 64;
            let ends = Network::free(2, words).ends();
            thread::scope(|scope| {
                for end in ends {
                    let options = if end.pe() == 1 { &other } else { &usual };
                    scope.spawn(move || {
                        let Err(error) = Store::open(end, options) else {
                            panic!("it opens in spite of {says}");
                        };
                        assert!(
                            error.to_string().contains(&format!("{says} instead of")),
                            "{error}"
                        );
                    });
                }
            });
        }
    }

    fn everything(pe: usize, store: &Store<ThreadsFabric>) {
        let key = format!("key {pe}").into_bytes();
        assert_eq!(store.get(&key), Ok(None));
        store.set(&key, b"1", None).unwrap();
        assert_eq!(store.add(&key, b"2", None), Ok(false));
        assert_eq!(store.incr(&key, 41), Ok(Some(42)));
        assert_eq!(store.get(&key), Ok(Some(b"42".to_vec())));
        assert_eq!(
            store.multi_get(&[&key, b"none"]),
            Ok(vec![Some(b"42".to_vec()), None])
        );
        let large = vec![7; 50_000];
        store
            .set(&key, &large, Some(Duration::from_secs(100)))
            .unwrap();
        assert_eq!(store.get(&key), Ok(Some(large)));
        assert_eq!(store.incr(&key, 1), Err(Error::NotNumeric));
        assert_eq!(store.delete(&key), Ok(true));
        assert_eq!(store.delete(&key), Ok(false));
        assert_eq!(store.incr(&key, 1), Ok(None));
        assert_eq!(store.set(&key, &[0; 70_000], None), Err(Error::TooLarge));
        assert_eq!(store.get(&[b'k'; 251]), Err(Error::Key));
        assert_eq!(store.set(&key, b"", Some(Duration::ZERO)), Ok(()));
        assert_eq!(store.get(&key), Ok(None));
    }

    fn the_rest(pe: usize, store: &Store<ThreadsFabric>) {
        let key = format!("other {pe}").into_bytes();
        let other = format!("another {pe}").into_bytes();
        assert_eq!(store.replace(&key, b"x", None), Ok(false));
        assert_eq!(store.append(&key, b"x"), Ok(false));
        assert_eq!(store.touch(&key, None), Ok(false));
        assert_eq!(
            store.compare_and_set(&key, 1, b"x", None),
            Ok(Swapped::Missing)
        );
        let pairs: [(&[u8], &[u8]); 3] = [(&key, b"b"), (&other, b"9"), (&key, b"bc")];
        assert_eq!(store.multi_set(&pairs, None), Ok(vec![Ok(()); 3]));
        let (value, unique) = store.gets(&key).unwrap().unwrap();
        assert_eq!(value, b"bc");
        assert_eq!(store.prepend(&key, b"a"), Ok(true));
        assert_eq!(
            store.compare_and_set(&key, unique, b"x", None),
            Ok(Swapped::Changed)
        );
        let (_, unique) = store.gets(&key).unwrap().unwrap();
        assert_eq!(
            store.compare_and_set(&key, unique, b"abcd", None),
            Ok(Swapped::Stored)
        );
        assert_eq!(store.append(&key, b"e"), Ok(true));
        assert_eq!(store.get(&key), Ok(Some(b"abcde".to_vec())));
        assert_eq!(store.replace(&key, b"new", None), Ok(true));
        assert_eq!(store.decr(&other, 10), Ok(Some(0)));
        let large = [(&key[..], &[0; 70_000][..]), (&other, b"2")];
        let became = vec![Err(Error::TooLarge), Ok(())];
        assert_eq!(store.multi_set(&large, None), Ok(became));
        assert_eq!(store.multi_set(&[(b"", b"")], None), Err(Error::Key));
        assert_eq!(store.touch(&other, Some(Duration::ZERO)), Ok(true));
        assert_eq!(store.get(&other), Ok(None));
    }

    #[test]
    fn values_are_changed_by_what_they_are() {
        job(&options(1), 3, the_rest);
        job(&options(0), 2, the_rest);
    }

    #[test]
    fn a_flush_is_for_all_keys_and_statistics_are_of_all_servers() {
        job(&options(2), 3, |_, store| {
            let keys: Vec<_> = (0..100_u8).map(|key| [key]).collect();
            let pairs: Vec<_> = keys.iter().map(|key| (&key[..], &b"value"[..])).collect();
            store.multi_set(&pairs, None).unwrap();
            let counted = store.statistics();
            assert_eq!((counted.items, counted.memory_limit), (100, 8 << 20));
            assert!(counted.messages >= 100 && counted.item_bytes > 0);
            store.flush();
            let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
            assert_eq!(store.multi_get(&keys), Ok(vec![None; 100]));
        });
    }

    #[test]
    fn every_operation_beside_servers_and_among_them() {
        job(&options(1), 3, everything);
        job(&options(0), 2, everything);
    }

    #[test]
    fn a_store_without_clients_cannot_be() {
        assert!(options(2).symmetric_words(2).is_err());
        assert!(options(2).advice(2).is_err());
    }

    #[test]
    fn too_little_memory_for_such_large_items_is_told() {
        assert_eq!(Options::default().advice(2), Ok(None));
        let large = Options {
            item_size_max: 16 << 20,
            ..Options::default()
        };
        let advice = large.advice(2).unwrap().unwrap();
        assert!(advice.contains("3 pages"), "{advice}");
    }
}
