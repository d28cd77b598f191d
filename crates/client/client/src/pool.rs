//! All servers of a client.

use crate::address::Address;
use crate::attempts::Ends;
use crate::key::Key;
use crate::many::Known;
use crate::near::Near;
use crate::ring::Ring;
use crate::site::Site;
use crate::way::Way;
use crate::{Error, Item, Options};

/// All servers of a client, by their numbers.
#[derive(Debug)]
pub(crate) struct Pool<C, N> {
    pub links: Vec<Way<C, N>>,
    ring: Ring,
    pub options: Options,
    pub near: Near,
}

impl<C: Ends, N: Default> Pool<C, N> {
    pub fn new(address: &str, options: Options) -> Result<Self, Error> {
        let address = Address::parse(address, options)?;
        Ok(Self {
            links: Site::all(&address)?.into_iter().map(Way::new).collect(),
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

    /// What the server's memory says of a key. None: nothing, it has to be asked. With several servers there is no memory.
    #[inline]
    pub fn read(&self, key: &[u8], with_left: bool) -> Result<Option<Option<Item>>, Error> {
        let link = match self.links.as_slice() {
            [link] if link.site().endpoint.shared().is_some() => link,
            _ => return Ok(None),
        };
        Key::new(key)?;
        let read = link.memory().get(key, with_left);
        let is_too_long = |item: &Item| item.value.len() > self.options.value_max;
        match read {
            None => link.leave_ended(),
            // The error of one that was sent.
            Some(Some(item)) if is_too_long(&item) => return Ok(None),
            read => return Ok(read),
        }
        Ok(None)
    }

    /// The same of many keys: what `make` makes of the items of those of which it says something.
    pub fn read_many<K: AsRef<[u8]>, T: Clone>(
        &self,
        keys: &[K],
        with_left: bool,
        make: impl Fn(Item) -> T,
    ) -> Known<Option<T>> {
        let mut known = Known::nothing(keys.len());
        let link = match self.links.as_slice() {
            [link] if link.site().endpoint.shared().is_some() => link,
            _ => return known,
        };
        known.is_known.resize(keys.len(), false);
        let is_key = |&(_, key): &(usize, &[u8])| Key::new(key).is_ok();
        let keys = keys.iter().map(AsRef::as_ref).enumerate();
        let (places, keys): (Vec<usize>, Vec<&[u8]>) = keys.filter(is_key).unzip();
        let is_short = |item: &Item| item.value.len() <= self.options.value_max;
        link.memory().get_many(&keys, with_left, |number, found| {
            if found.as_ref().is_none_or(is_short) {
                known.many.values[places[number]] = found.map(&make);
                known.is_known[places[number]] = true;
            }
        });
        link.leave_ended();
        known
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
