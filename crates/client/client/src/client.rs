//! The client for threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::address::Address;
use crate::key::Key;
use crate::link::Link;
use crate::many::{Many, Parts};
use crate::operation::{self, Item, Operation, Outcome};
use crate::ring::Ring;
use crate::site::Site;
use crate::wire::{Mode, Request};
use crate::{Error, Keep, Options};

/// A client of one server or several, for threads.
///
/// All threads share it, by reference or by its clones. It has one connection to each server, on which the calls of all threads
/// travel together: a thread that finds nobody sending sends what waits, and nobody waits for others. A connection is made when a
/// call needs it, and made anew when it ended.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    links: Vec<Link>,
    ring: Ring,
    options: Options,
}

impl Client {
    /// A client of the servers at this address:
    ///
    /// * `tcp://HOST[:PORT][*WEIGHT],…` one server or several; 11211 if no port is named
    /// * `tls://…` the same under TLS; it needs `ca=FILE` (feature `tls`)
    /// * `unix:///PATH` a socket in the file system
    ///
    /// Behind `?` there may be options, with `&` between them, by the names in [`Options`] and with times in milliseconds:
    /// `timeout_ms`, `connect_timeout_ms`, `late_max_ms`, `requests_max`, `bytes_max`, `when_full=wait|fail`, `value_max`,
    /// `retry_least_ms`, `retry_most_ms`, `eject_after`, `distribution=ketama|ketama_unweighted|rendezvous`, `ca`, `cert` and
    /// `key` (files in PEM), and `login_file`, whose first line is `NAME:PASSWORD`.
    ///
    /// Nothing is connected yet. Errors: [`Error::Address`].
    pub fn connect(address: &str) -> Result<Self, Error> {
        Self::connect_with(address, Options::default())
    }

    /// The same, with options that the address does not name.
    pub fn connect_with(address: &str, options: Options) -> Result<Self, Error> {
        let address = Address::parse(address, options)?;
        Ok(Self {
            shared: Arc::new(Shared {
                links: Site::all(&address)?.into_iter().map(Link::new).collect(),
                ring: Ring::new(&address.servers, address.options.distribution),
                options: address.options,
            }),
        })
    }

    /// The value under a key. None: there is none.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        self.run(key.as_ref(), operation::get)
    }

    /// The value under a key, and what else the server knows of it.
    pub fn get_item(&self, key: impl AsRef<[u8]>) -> Result<Option<Item>, Error> {
        self.run(key.as_ref(), operation::get_item)
    }

    /// The value under a key, which from now on has this lifetime. None: without an end.
    pub fn get_and_touch(
        &self,
        key: impl AsRef<[u8]>,
        lifetime: Option<Duration>,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.run(key.as_ref(), |key| operation::get_and_touch(key, lifetime))
    }

    /// The values under these keys. All servers are asked at once. What a server that failed has is missing, and said.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Many {
        let deadline = self.shared.options.deadline();
        let mut many = Many::new(keys.len());
        let mut parts = Parts::new(
            keys,
            self.shared.options.requests_max,
            |key| self.link(key),
            &mut many,
        );
        while let Some(round) = parts.next_round() {
            let sent: Vec<_> = round
                .iter()
                .map(|part| self.shared.links[part.server].start(&part.requests, deadline))
                .collect();
            for (part, sent) in round.iter().zip(sent) {
                let link = &self.shared.links[part.server];
                let replies = link.finish(sent, &part.requests, deadline);
                if let Some(reason) = many.take(part, replies) {
                    link.end(&reason);
                }
            }
        }
        many
    }

    /// Stores a value, whatever there was.
    pub fn set(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        keep: impl Into<Keep>,
    ) -> Result<(), Error> {
        self.run(key.as_ref(), |key| {
            operation::set(key, value.as_ref(), keep.into())
        })
    }

    /// Stores a value if there is none.
    pub fn add(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        keep: impl Into<Keep>,
    ) -> Result<Outcome, Error> {
        self.store(key.as_ref(), value.as_ref(), Mode::Add, keep.into(), None)
    }

    /// Stores a value if there is one.
    pub fn replace(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        keep: impl Into<Keep>,
    ) -> Result<Outcome, Error> {
        self.store(
            key.as_ref(),
            value.as_ref(),
            Mode::Replace,
            keep.into(),
            None,
        )
    }

    /// Adds bytes behind the value there is. Flags and lifetime stay.
    pub fn append(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Outcome, Error> {
        self.store(
            key.as_ref(),
            value.as_ref(),
            Mode::Append,
            Keep::FOREVER,
            None,
        )
    }

    /// Adds bytes in front of the value there is. Flags and lifetime stay.
    pub fn prepend(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Outcome, Error> {
        self.store(
            key.as_ref(),
            value.as_ref(),
            Mode::Prepend,
            Keep::FOREVER,
            None,
        )
    }

    /// Stores a value if nobody has changed the item since [`Client::get_item`] gave this number.
    pub fn cas(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        keep: impl Into<Keep>,
        cas: u64,
    ) -> Result<Outcome, Error> {
        self.store(
            key.as_ref(),
            value.as_ref(),
            Mode::Set,
            keep.into(),
            Some(cas),
        )
    }

    /// Adds to a number, which is stored as decimal digits, and returns the sum. It wraps around at 2^64. None: there is no item.
    pub fn incr(&self, key: impl AsRef<[u8]>, delta: u64) -> Result<Option<u64>, Error> {
        self.run(key.as_ref(), |key| operation::count(key, delta, false))
    }

    /// Subtracts from a number, down to 0. None: there is no item.
    pub fn decr(&self, key: impl AsRef<[u8]>, delta: u64) -> Result<Option<u64>, Error> {
        self.run(key.as_ref(), |key| operation::count(key, delta, true))
    }

    /// Gives an item this lifetime. None: without an end.
    pub fn touch(
        &self,
        key: impl AsRef<[u8]>,
        lifetime: Option<Duration>,
    ) -> Result<Outcome, Error> {
        self.run(key.as_ref(), |key| operation::touch(key, lifetime))
    }

    /// Removes an item.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<Outcome, Error> {
        self.run(key.as_ref(), |key| operation::delete(key, None))
    }

    /// Keeps an item as out of date for this long. Of those that ask with `get_or_compute`, one computes it anew, and the others
    /// get the old value meanwhile.
    pub fn make_stale(&self, key: impl AsRef<[u8]>, lifetime: Duration) -> Result<Outcome, Error> {
        self.run(key.as_ref(), |key| operation::make_stale(key, lifetime))
    }

    /// Removes all items of all servers, after a delay in whole seconds. All servers are asked, and the first error is returned.
    pub fn flush_all(&self, delay: Duration) -> Result<(), Error> {
        let flushed = self.each(&operation::flush(delay));
        flushed.into_iter().try_for_each(|(_, outcome)| outcome)
    }

    /// Each server's address and version.
    pub fn version(&self) -> Vec<(String, Result<String, Error>)> {
        self.each(&operation::version())
    }

    fn store(
        &self,
        key: &[u8],
        value: &[u8],
        mode: Mode,
        keep: Keep,
        cas: Option<u64>,
    ) -> Result<Outcome, Error> {
        self.run(key, |key| operation::store(key, value, mode, keep, cas))
    }

    /// Carries out an operation on a key, at the key's server.
    pub(crate) fn run<'a, T>(
        &self,
        key: &'a [u8],
        operation: impl FnOnce(Key<'a>) -> Operation<'a, T>,
    ) -> Result<T, Error> {
        let deadline = self.shared.options.deadline();
        let operation = operation(Key::new(key)?);
        let mut server = self.link(key);
        for _ in 1..self.shared.links.len() {
            let outcome = self.ask(server, &operation, deadline);
            // The server was tried, and with this failure has no keys any more: nothing was sent, so the next one has it.
            let next = self.link(key);
            if !matches!(outcome, Err(Error::Down { .. })) || next == server {
                return outcome;
            }
            server = next;
        }
        self.ask(server, &operation, deadline)
    }

    fn ask<T>(
        &self,
        server: usize,
        operation: &Operation<'_, T>,
        deadline: Instant,
    ) -> Result<T, Error> {
        let link = &self.shared.links[server];
        let requests: &[Request<'_>] = std::slice::from_ref(&operation.request);
        let outcome = link
            .call(requests, deadline)
            .and_then(|replies| operation.read(replies));
        if let Err(Error::Unexpected(reason)) = &outcome {
            link.end(reason);
        }
        outcome
    }

    fn each<T>(&self, operation: &Operation<'_, T>) -> Vec<(String, Result<T, Error>)> {
        let deadline = self.shared.options.deadline();
        let asked = |(server, link): (usize, &Link)| {
            (
                link.site().name.to_string(),
                self.ask(server, operation, deadline),
            )
        };
        self.shared.links.iter().enumerate().map(asked).collect()
    }

    /// The server that has the key now. If all are ejected, the one that would have it.
    fn link(&self, key: &[u8]) -> usize {
        let Shared { links, ring, .. } = &*self.shared;
        let now = Instant::now();
        let found = ring.server(key, |server| links[server].is_ejected(now));
        found.or_else(|| ring.server(key, |_| false)).unwrap_or(0)
    }
}
