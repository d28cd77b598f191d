//! Gets from a Nuthatch server on the same machine, without asking it: this process reads the server's memory.
//!
//! The server is started with `--shared PATH`. A [`Direct`] connects there once and gets the memory, which it can read and
//! not change. A get takes about as long as one in the server's own process, and makes no system call.
//!
//! ```no_run
//! use nuthatch_direct::Direct;
//!
//! let mut cache = Direct::connect("/run/nuthatch/shared".as_ref())?;
//! let mut value = Vec::new();
//! match cache.get(b"key", &mut value) {
//!     Ok(Some(meta)) => println!("{} bytes, flags {}", value.len(), meta.flags),
//!     Ok(None) => println!("no such item"),
//!     // The server was stopped, killed or replaced.
//!     Err(_) => cache.reconnect()?,
//! }
//! # std::io::Result::Ok(())
//! ```
//!
//! Reads are those of one moment each, as if the server had answered: a get that begins after a store was answered finds
//! that store or a later one. They do not count in the server's statistics. That an item is in use is noted in memory that
//! the server looks at ten times a second, so that it stays when memory is short.
//!
//! Keys are those of memcached's protocols, and of database 0 of Redis'.
//!
//! [`Direct::connect_with_ring`] brings a ring pair, too: a pair of byte streams to the same server, for its commands.
#![cfg(all(
    target_os = "linux",
    not(any(loom, miri, nuthatch_unix, nuthatch_portable))
))]

mod connection;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nuthatch_base::memory::shared::SharedView;
use nuthatch_cuckoo::{ForeignTable, NotRead};
use nuthatch_engine::hints::Hints;
use nuthatch_engine::sharing::Asks;
use nuthatch_engine::{Expiry, Item, Key};
use nuthatch_ring::{End, Offer};

use connection::{Connection, PATIENCE};

/// Keys whose buckets are loaded side by side in [`Direct::get_many`].
const AHEAD: usize = 16;

/// A server's memory, to read. Threads share it by reference.
pub struct Direct {
    path: PathBuf,
    table: ForeignTable,
    connection: Connection,
}

const _: fn() = || {
    fn is_shared_by_threads<T: Send + Sync>() {}
    is_shared_by_threads::<Direct>();
};

/// What an item has beside its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The flags of whoever stored it.
    pub flags: u32,
    /// Changes with every change of the item.
    pub cas: u64,
    /// Marked stale: usable, but somebody should refresh it.
    pub stale: bool,
    expiry: Expiry,
}

impl From<Item> for Meta {
    fn from(item: Item) -> Self {
        Self {
            flags: item.flags,
            cas: item.cas,
            stale: item.stale,
            expiry: item.expiry,
        }
    }
}

/// Why a key was not looked up. After each of these but the last [`Direct::reconnect`] helps, if a server is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The server has stopped, was killed, or another one has taken its place.
    Ended,
    /// This process is a child of the one that had connected, and has no connection of its own.
    Forked,
    /// The key was being changed for as long as the reader tried (a fifth of a second): the server may have been stopped in
    /// the middle of a change (`SIGSTOP`).
    Spoiled,
}

impl fmt::Display for Gone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => NotRead::Ended.fmt(out),
            Self::Forked => out.write_str("this process has forked since it connected"),
            Self::Spoiled => NotRead::Spoiled.fmt(out),
        }
    }
}

impl std::error::Error for Gone {}

impl Direct {
    /// Connects to the server that listens at `path` (`--shared`). Errors: none listens there; it refuses this process, in
    /// its words; its memory has another version.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Self::connect_within(path, PATIENCE)
    }

    /// The same, for which the server has so long to answer.
    pub fn connect_within(path: &Path, patience: Duration) -> io::Result<Self> {
        Self::open(path, Asks::Reads, patience).map(|(direct, _)| direct)
    }

    /// The same, and a ring pair for commands to the same server. Errors also: the server has no rings (it is older), or no
    /// ring for one more client. The ring goes on when this is dropped.
    pub fn connect_with_ring(path: &Path, patience: Duration) -> io::Result<(Self, End)> {
        let (direct, ring) = Self::open(path, Asks::Ring, patience)?;
        let ring = ring.ok_or(io::ErrorKind::InvalidData)?;
        Ok((direct, End::of(ring)?))
    }

    fn open(path: &Path, asks: Asks, patience: Duration) -> io::Result<(Self, Option<Offer>)> {
        let (connection, files) = Connection::open(path, asks, patience)?;
        let view = SharedView::map(&files.items)?;
        let direct = Self {
            path: path.to_owned(),
            table: ForeignTable::of(&view, Hints::of(&files.hints)?)?,
            connection,
        };
        Ok((direct, files.ring))
    }

    /// True if the server is the sidecar of others (`--upstream`), and its items are copies of theirs: an item that is not found
    /// may be there, so the server has to be asked; and one that is found may have more time left there.
    #[inline]
    pub fn holds_copies(&self) -> bool {
        self.table.holds_copies()
    }

    /// Connects to the server that listens there now, and leaves the one before. Errors: as [`Direct::connect`]; then
    /// everything stays as it was.
    pub fn reconnect(&mut self) -> io::Result<()> {
        *self = Self::connect(&self.path)?;
        Ok(())
    }

    /// Puts the value of a key in the place of what `value` holds. `None` if there is no such item; then `value` is empty,
    /// as after an error.
    #[inline]
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<Option<Meta>, Gone> {
        loop {
            let namespace = self.table.namespace();
            let found = match namespace.leaves(key) {
                true => self.get_stored(key, value),
                false => self.get_stored(&namespace.stored(key), value),
            };
            // SWAPDB or FLUSHDB may have taken it from database 0 meanwhile.
            if self.table.namespace() == namespace {
                return found;
            }
        }
    }

    /// The same of a key as the server's engine has it.
    #[inline]
    fn get_stored(&self, key: &[u8], value: &mut Vec<u8>) -> Result<Option<Meta>, Gone> {
        match self.table.key(key) {
            Some(key) => self.get_key(&key, value),
            None => {
                value.clear();
                self.is_there().map(|()| None)
            }
        }
    }

    /// Gets several keys, faster than one by one if they are not in the processor's caches. Calls `each` with the number of
    /// each key in turn, and what was found. After an error it has been called for those before.
    pub fn get_many(
        &self,
        keys: &[&[u8]],
        mut each: impl FnMut(usize, Option<(Meta, &[u8])>),
    ) -> Result<(), Gone> {
        let mut value = Vec::new();
        for (round, some) in keys.chunks(AHEAD).enumerate() {
            let namespace = self.table.namespace();
            let mut hashed = [None; AHEAD];
            for (hashed, bytes) in hashed.iter_mut().zip(some) {
                *hashed = match namespace.leaves(bytes) {
                    true => self.table.key(bytes),
                    false => None,
                };
                if let Some(key) = hashed {
                    self.table.prefetch(key);
                }
            }
            for (number, key) in hashed[..some.len()].iter().enumerate() {
                let mut found = match key {
                    Some(key) => self.get_key(key, &mut value)?,
                    None => None,
                };
                // The server has it under another key, or database 0 has another namespace now.
                if key.is_none() || self.table.namespace() != namespace {
                    found = self.get(some[number], &mut value)?;
                }
                let found = found.map(|meta| (meta, value.as_slice()));
                each(round * AHEAD + number, found);
            }
        }
        Ok(())
    }

    /// How long the item still lives, in whole seconds, rounded up. `None`: without an end.
    pub fn left(&self, meta: &Meta) -> Option<Duration> {
        let seconds = meta.expiry.seconds_left(self.table.now())?;
        Some(Duration::from_secs(seconds))
    }

    /// True once the server has ended, was killed, or another one has taken its place: gets say [`Gone::Ended`].
    pub fn has_ended(&self) -> bool {
        self.is_there() == Err(Gone::Ended)
    }

    #[inline]
    fn get_key(&self, key: &Key<'_>, value: &mut Vec<u8>) -> Result<Option<Meta>, Gone> {
        if let Err(gone) = self.is_there() {
            value.clear();
            return Err(gone);
        }
        match self.table.get(key, value) {
            Ok(found) => Ok(found.map(Meta::from)),
            Err(why) => Err(self.why(why)),
        }
    }

    /// Why a get found nothing out: a server that was killed in the middle of a change has ended, whatever it left.
    #[cold]
    fn why(&self, why: NotRead) -> Gone {
        match (why, self.connection.is_open()) {
            (NotRead::Spoiled, true) => Gone::Spoiled,
            _ => Gone::Ended,
        }
    }

    /// Errors: the server is not there, or this process is not the one that connected.
    #[inline]
    fn is_there(&self) -> Result<(), Gone> {
        if self.connection.is_childs() {
            return Err(Gone::Forked);
        }
        match self.connection.is_open() && self.table.is_serving() {
            true => Ok(()),
            false => Err(Gone::Ended),
        }
    }
}
