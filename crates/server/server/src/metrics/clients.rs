//! The clients of the endpoint. They have a bound: one more takes the place of another, which is closed at once. So a
//! client that connects and sends nothing, does not read its answer, or does not close afterwards, keeps no other out.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use nuthatch_engine::has_unwound;
use nuthatch_security::guesses::Origin;
use nuthatch_state::server_state::ServerState;
use nuthatch_state::system::METRICS_CLIENTS_MAX;
use slab::Slab;

use super::client::{Client, Turn};

/// Clients, each under the number of its events.
pub(super) struct Clients {
    all: Slab<Entry>,
    /// How many there have been.
    came: u64,
}

struct Entry {
    client: Client,
    /// The number of clients that came before.
    number: u64,
}

impl Clients {
    pub(super) fn new() -> Self {
        Self {
            all: Slab::with_capacity(METRICS_CLIENTS_MAX),
            came: 0,
        }
    }

    /// Takes a client. Errors: the system cannot watch it.
    pub(super) fn enter(
        &mut self,
        stream: TcpStream,
        origin: Origin,
        registry: &Registry,
        shared: &ServerState,
    ) -> io::Result<()> {
        if self.all.len() == METRICS_CLIENTS_MAX
            && let Some(displaced) = displaced(&self.all)
        {
            self.all.remove(displaced);
        }
        let mut client = Client::new(stream, origin, Instant::now());
        let id = self.all.vacant_key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.register(client.stream(), Token(id), interest)?;
        let number = self.came;
        self.all.insert(Entry { client, number });
        self.came += 1;
        // Its request may have arrived with it: then the clients behind it do not displace it before it is read.
        self.advance(id, shared);
        Ok(())
    }

    /// Goes on with a client: its socket is ready, or its time may be over. An event may be of one that has left.
    pub(super) fn advance(&mut self, id: usize, shared: &ServerState) {
        let Some(entry) = self.all.get_mut(id) else {
            return;
        };
        // Unwind safe: a client whose turn panics is closed, and what it reads of the server is not its own.
        let turn = catch_unwind(AssertUnwindSafe(|| {
            let turn = entry.client.advance(shared, Instant::now());
            turn.unwrap_or_else(|error| {
                tracing::debug!(%error, "a scrape");
                Turn::Over
            })
        }));
        match turn {
            Ok(Turn::Waits) => return,
            Ok(Turn::Over) => {}
            // The engine's state is every connection's: the server ends.
            Err(panic) if has_unwound() => resume_unwind(panic),
            Err(_) => tracing::error!("a scrape met a fault of the server; please report it"),
        }
        self.all.remove(id);
    }

    /// Goes on with the clients that need no event: health checks, and those whose patience is over.
    pub(super) fn advance_due(&mut self, shared: &ServerState) {
        let now = Instant::now();
        let is_due = |client: &Client| client.is_checked() || client.patience(now).is_zero();
        let due = self.all.iter().filter(|(_, entry)| is_due(&entry.client));
        let due: Vec<usize> = due.map(|(id, _)| id).collect();
        due.into_iter().for_each(|id| self.advance(id, shared));
    }

    /// How long to wait for events. `None` if there is no client.
    pub(super) fn patience(&self) -> Option<Duration> {
        let now = Instant::now();
        let all = self.all.iter();
        all.map(|(_, entry)| entry.client.patience(now)).min()
    }
}

/// The client whose place another takes: of the origin that has most of them, the one that came first. So a health check
/// is displaced by its own origin's clients at the earliest, and not while the workers are asked, unless all are.
fn displaced(all: &Slab<Entry>) -> Option<usize> {
    let of_origin = |origin: Origin| {
        let same = all.iter().filter(|(_, it)| it.client.origin == origin);
        same.count()
    };
    let rank = |entry: &Entry| {
        let client = &entry.client;
        let count = of_origin(client.origin);
        (client.is_checked(), usize::MAX - count, entry.number)
    };
    let first = all.iter().min_by_key(|(_, entry)| rank(entry));
    first.map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// A client of this address, and the number of clients before it.
    fn entry(address: u8, number: u64) -> Entry {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let origin = Origin::V4(Ipv4Addr::new(127, 0, 0, address));
        let client = Client::new(stream, origin, Instant::now());
        Entry { client, number }
    }

    #[test]
    fn who_has_most_places_loses_the_oldest() {
        let mut all = Slab::new();
        assert_eq!(displaced(&all), None);
        let first = all.insert(entry(1, 0));
        assert_eq!(displaced(&all), Some(first));
        let second = all.insert(entry(2, 1));
        assert_eq!(displaced(&all), Some(first), "none has more: the oldest");
        all.insert(entry(2, 2));
        assert_eq!(displaced(&all), Some(second));
    }
}
