//! A store as a program's PE has it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nuthatch_cluster::{Cluster, ClusterHandle, ConfigError, Member, OnPanic, Serving};
use nuthatch_engine::request::KEY_LEN_MAX;
use nuthatch_engine::{
    Clock, Delta, Engine, Expiry, Handle, Key, Op, Removal, Reply, Request, StoreMode,
};
use nuthatch_fabric::{Address, Fabric};
use nuthatch_sync::mutex::Mutex;

use crate::answers::{Answer, Answers};
use crate::options::Options;

/// Words of symmetric memory of its own: a line.
pub const OWN: usize = 8;

/// How often a PE that waits for the others to close looks.
const LOOK: Duration = Duration::from_millis(1);

/// Why an operation was refused. It changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A key has 1 to 250 bytes.
    Key,
    /// The item is larger than the largest.
    TooLarge,
    /// The server is full, and nothing of it may go.
    OutOfMemory,
    /// What is there is no decimal number of 64 bits.
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

/// A PE's part of a store. Any thread may use it, one at a time: they take turns.
pub struct Store<F: Fabric> {
    fabric: Arc<F>,
    member: Member<F>,
    engine: Arc<Cluster<F>>,
    session: Mutex<ClusterHandle<F>>,
    clock: Clock,
    /// How many PEs have closed it: a word of each PE, to which each adds.
    closed: Address,
    /// The thread that serves, where every PE serves.
    serving: Option<Serving>,
    servers: usize,
    co_located: bool,
}

impl<F: Fabric> Store<F> {
    /// Opens a store. Collective: all PEs give the same options.
    pub fn open(fabric: Arc<F>, options: &Options) -> Result<Self, ConfigError> {
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

    /// Serves until every client has closed the store. Panics on a PE that is no server of its own.
    pub fn serve(&self) {
        assert!(self.is_server(), "only the first PEs serve");
        let stop = AtomicBool::new(false);
        let clients = self.fabric.pes() - self.servers;
        thread::scope(|scope| {
            // It makes no call of the fabric: with OpenSHMEM, all are this thread's.
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
        // Acquire: what the others asked lies before.
        self.fabric.local(self.closed, 1)[0].load(Ordering::Acquire)
    }

    /// Closes the store: collective, and what it held is gone. Nobody's symmetric memory is freed by it.
    pub fn close(self) {
        for pe in 0..self.fabric.pes() {
            // Who is gone has closed.
            let _ = self.fabric.fetch_add(pe, self.closed, 1);
        }
        // Others may still ask this PE's server, or wait for this PE's help.
        while self.closed() < self.fabric.pes() as u64 {
            self.fabric.pause(0);
            thread::sleep(LOOK);
        }
        drop(self.serving);
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.multi_get(&[key])?.pop().flatten())
    }

    /// The values of many keys, in their order: what can travel together does.
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
                Answer::Value(value) => Some(value),
                Answer::Done(_) => None,
            })
            .collect())
    }

    /// Stores a value, for so long or until it is evicted.
    pub fn set(&self, key: &[u8], value: &[u8], live: Option<Duration>) -> Result<(), Error> {
        self.store(StoreMode::Set, key, value, live).map(|_| ())
    }

    /// Stores a value unless the key has one. True if it was stored.
    pub fn add(&self, key: &[u8], value: &[u8], live: Option<Duration>) -> Result<bool, Error> {
        self.store(StoreMode::Add, key, value, live)
    }

    /// Removes a key. True if it was there.
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        let reply = self.change(key, Op::Remove(Removal::default()))?;
        Ok(matches!(reply, Reply::Removed))
    }

    /// Adds to a decimal number, and returns the sum; `None` if the key is not there.
    pub fn incr(&self, key: &[u8], by: u64) -> Result<Option<u64>, Error> {
        match self.change(key, Op::Delta(Delta::up(by)))? {
            Reply::Number(number, _) => Ok(Some(number)),
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
        let expiry = live.map_or(Expiry::Never, |live| {
            Expiry::At(self.clock.now().after(live))
        });
        let store = nuthatch_engine::Store {
            mode,
            expiry,
            ..nuthatch_engine::Store::set(value)
        };
        let reply = refused(self.change(key, Op::Store(store))?)?;
        Ok(matches!(reply, Reply::Stored(_)))
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
            Some(Answer::Value(_)) | None => unreachable!("a change is answered by a reply"),
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

/// Replies that say that it could not be.
fn refused(reply: Reply) -> Result<Reply, Error> {
    match reply {
        Reply::TooLarge => Err(Error::TooLarge),
        Reply::OutOfMemory => Err(Error::OutOfMemory),
        reply => Ok(reply),
    }
}

/// Ends the process: after a server's panic everybody would wait for its answers for ever, and a launcher ends a job that
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

    /// Opens a store on so many PEs; clients do `work`, with their number.
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

    #[test]
    fn every_operation_beside_servers_and_among_them() {
        job(&options(1), 3, everything);
        job(&options(0), 2, everything);
    }

    #[test]
    fn a_store_without_clients_cannot_be() {
        assert!(options(2).symmetric_words(2).is_err());
    }
}
