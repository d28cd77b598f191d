//! All servers of a client.

use crate::Error;
use crate::Options;
use crate::address::Address;
use crate::near::Near;
use crate::ring::Ring;
use crate::site::Site;

/// The way to a server.
pub(crate) trait Way {
    fn new(site: Site) -> Self;
    /// Whether the server's keys go to others.
    fn is_ejected(&self) -> bool;
}

/// All servers of a client, by their numbers.
#[derive(Debug)]
pub(crate) struct Pool<L> {
    pub links: Vec<L>,
    ring: Ring,
    pub options: Options,
    pub near: Near,
}

impl<L: Way> Pool<L> {
    pub fn new(address: &str, options: Options) -> Result<Self, Error> {
        let address = Address::parse(address, options)?;
        Ok(Self {
            links: Site::all(&address)?.into_iter().map(L::new).collect(),
            ring: Ring::new(&address.servers, address.options.distribution),
            near: Near::new(&address.options)?,
            options: address.options,
        })
    }

    /// The server that has the key now. If all are ejected, the one that would have it.
    pub fn server(&self, key: &[u8]) -> usize {
        let found = self
            .ring
            .server(key, |server| self.links[server].is_ejected());
        found
            .or_else(|| self.ring.server(key, |_| false))
            .unwrap_or(0)
    }

    /// Where a call goes on that failed at this server: the server was tried, and with this failure has no keys any more; nothing
    /// was sent, so the next one has the key.
    pub fn next<T>(&self, key: &[u8], server: usize, outcome: &Result<T, Error>) -> Option<usize> {
        if !matches!(outcome, Err(Error::Down { .. })) {
            return None;
        }
        let next = self.server(key);
        (next != server).then_some(next)
    }
}
