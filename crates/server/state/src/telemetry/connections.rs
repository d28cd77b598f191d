//! The open connections, and `stats conns`, which lists them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::Time;
use slab::Slab;

use crate::telemetry::Address;
use crate::telemetry::Report;
use crate::telemetry::front::Front;

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub enum Peer {
    /// By TCP.
    Tcp(SocketAddr),
    /// All senders of datagrams to this socket of the server.
    Udp(SocketAddr),
    /// By a unix socket.
    Unix,
    /// By a ring in shared memory.
    Ring,
}

impl Peer {
    /// Its address, or for datagrams the address of the server's socket. `None` for a unix socket.
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Tcp(address) | Self::Udp(address) => Some(address.ip()),
            Self::Unix | Self::Ring => None,
        }
    }

    /// True if it has no connection.
    pub fn is_udp(self) -> bool {
        matches!(self, Self::Udp(_))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Tcp(address) => Address::Tcp(*address).fmt(out),
            Peer::Udp(address) => Address::Udp(*address).fmt(out),
            Peer::Unix => out.write_str("unix:"),
            Peer::Ring => out.write_str("shared:"),
        }
    }
}

/// What a Redis client says of itself. Empty: nothing.
#[derive(Clone, Default)]
pub struct Told {
    /// Its name.
    pub name: Arc<[u8]>,
    /// The user who has logged in. Empty: the default one.
    pub user: Arc<[u8]>,
    /// Its library.
    pub library: Arc<[u8]>,
    /// The library's version.
    pub library_version: Arc<[u8]>,
}

/// The information about a connection that statistics show. Its worker writes it, `stats conns` reads it.
pub struct Info {
    id: usize,
    /// The number of the connection. No other connection of the server has or had it.
    serial: u64,
    /// The second in which it began.
    since: u32,
    peer: Peer,
    /// The address of this side. `None` for a unix socket.
    local: Option<SocketAddr>,
    listener: usize,
    /// The second of the last command.
    active: AtomicU32,
    /// True while its output waits for the client.
    blocked: AtomicBool,
    /// True if its user administrates the server.
    administrator: AtomicBool,
    /// The number of channels, patterns and channels of shards to which it has subscribed.
    subscriptions: [AtomicU16; 3],
    seat: Mutex<Seat>,
    /// The database that its client has selected.
    database: AtomicU8,
    /// The version of Redis' protocol.
    version: AtomicU8,
    /// The last request of a Redis client.
    request: Front,
    told: Mutex<Told>,
}

/// Where a connection is.
#[derive(Default)]
struct Seat {
    /// The number of its worker, and its id there.
    place: Option<(usize, usize)>,
    /// Another client has ended it.
    is_ended: bool,
}

impl Info {
    /// The information about a peer that is not in the registry of connections.
    pub fn unregistered(peer: Peer, now: Time) -> Self {
        Self::new(usize::MAX, 0, peer, None, usize::MAX, now)
    }

    fn new(
        id: usize,
        serial: u64,
        peer: Peer,
        local: Option<SocketAddr>,
        listener: usize,
        now: Time,
    ) -> Self {
        Self {
            id,
            serial,
            since: now.seconds(),
            peer,
            local,
            listener,
            active: AtomicU32::new(now.seconds()),
            blocked: AtomicBool::new(false),
            administrator: AtomicBool::new(false),
            subscriptions: Default::default(),
            seat: Mutex::default(),
            database: AtomicU8::new(0),
            version: AtomicU8::new(2),
            request: Front::default(),
            told: Mutex::default(),
        }
    }

    /// The other end of the connection.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Its number, which no other connection has or had.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Its place among the open connections. `None` if it is not in the registry.
    pub fn place(&self) -> Option<usize> {
        (self.id != usize::MAX).then_some(self.id)
    }

    /// The address of this side. `None` for a unix socket.
    pub fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    /// What its client says of itself.
    pub fn told(&self) -> Told {
        self.told.lock().clone()
    }

    /// Changes what its client says of itself. The caller limits the memory that it takes.
    pub fn tell(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.told.lock());
    }

    /// The last request of a Redis client.
    pub fn request(&self) -> &Front {
        &self.request
    }

    /// Records the database that its client has selected.
    pub fn set_database(&self, database: u8) {
        // Relaxed: a statistic.
        self.database.store(database, Ordering::Relaxed);
    }

    /// The database that its client has selected.
    pub fn database(&self) -> u8 {
        // Relaxed: a statistic.
        self.database.load(Ordering::Relaxed)
    }

    /// Records the version of Redis' protocol.
    pub fn set_version(&self, version: u8) {
        // Relaxed, here and below: a statistic.
        self.version.store(version, Ordering::Relaxed);
    }

    /// The version of Redis' protocol.
    pub fn version(&self) -> u8 {
        self.version.load(Ordering::Relaxed)
    }

    /// Records whether its user administrates the server.
    pub fn set_administrator(&self, is_one: bool) {
        // Relaxed, here and below: the connection's worker alone uses it.
        self.administrator.store(is_one, Ordering::Relaxed);
    }

    /// True if its user administrates the server.
    pub fn is_administrator(&self) -> bool {
        self.administrator.load(Ordering::Relaxed)
    }

    /// Its age in seconds.
    pub fn age(&self, now: Time) -> u64 {
        now.seconds().saturating_sub(self.since).into()
    }

    /// The seconds since its last command.
    pub fn idle(&self, now: Time) -> u64 {
        // Relaxed: a statistic.
        let active = self.active.load(Ordering::Relaxed);
        now.seconds().saturating_sub(active).into()
    }

    /// Records to how many channels, patterns and channels of shards it has subscribed.
    pub fn set_subscriptions(&self, numbers: [usize; 3]) {
        for (place, number) in self.subscriptions.iter().zip(numbers) {
            // Relaxed, here and below: a statistic.
            place.store(number.try_into().unwrap_or(u16::MAX), Ordering::Relaxed);
        }
    }

    /// To how many channels, patterns and channels of shards it has subscribed.
    pub fn subscriptions(&self) -> [u16; 3] {
        self.subscriptions
            .each_ref()
            .map(|number| number.load(Ordering::Relaxed))
    }

    /// True if it has subscribed to channels.
    pub fn is_subscriber(&self) -> bool {
        self.subscriptions() != [0; 3]
    }

    /// Another client ends it: `send` gets where it is, to send an [`Errand`](crate::worker::Errand) there. If no worker has
    /// taken it yet, who takes it closes it. False if it is ended already.
    pub fn end(&self, send: impl FnOnce(usize, usize)) -> bool {
        let mut seat = self.seat.lock();
        if let (false, Some((worker, id))) = (seat.is_ended, seat.place) {
            send(worker, id);
        }
        !std::mem::replace(&mut seat.is_ended, true)
    }

    /// The worker with this number takes it, and knows it by this id. True if it is ended already: the worker closes it.
    pub fn sit(&self, worker: usize, id: usize) -> bool {
        let mut seat = self.seat.lock();
        seat.place = Some((worker, id));
        seat.is_ended
    }

    /// The number of its worker, and its id there. `None` if no worker has taken it yet.
    pub fn seat(&self) -> Option<(usize, usize)> {
        self.seat.lock().place
    }

    /// True if another client has ended it.
    pub fn is_ended(&self) -> bool {
        self.seat.lock().is_ended
    }

    /// Records the time of a command.
    pub fn set_active(&self, now: Time) {
        // Relaxed: a statistic.
        self.active.store(now.seconds(), Ordering::Relaxed);
    }

    /// Records whether its output waits for the client.
    pub fn set_blocked(&self, blocked: bool) {
        // Relaxed: a statistic.
        self.blocked.store(blocked, Ordering::Relaxed);
    }
}

/// All open connections.
#[derive(Default)]
pub struct Registry {
    open: Mutex<Slab<Arc<Info>>>,
    /// The number of connections entered since the start.
    entered: AtomicU64,
}

impl Registry {
    /// Enters a connection that was accepted by the listener with this number, at this address.
    pub fn enter(
        &self,
        peer: Peer,
        local: Option<SocketAddr>,
        listener: usize,
        now: Time,
    ) -> Arc<Info> {
        let mut open = self.open.lock();
        let slot = open.vacant_entry();
        // Relaxed: it only has to be another number each time.
        let serial = self.entered.fetch_add(1, Ordering::Relaxed) + 1;
        let info = Arc::new(Info::new(slot.key(), serial, peer, local, listener, now));
        slot.insert(Arc::clone(&info));
        info
    }

    /// True if some connection has or had this number: if it is not in the registry, it is closed.
    pub fn had(&self, serial: u64) -> bool {
        // Relaxed: the number is counted under the lock, so who looks for it later finds it.
        (1..=self.entered.load(Ordering::Relaxed)).contains(&serial)
    }

    /// Removes a closed connection.
    pub fn leave(&self, info: &Info) {
        let mut open = self.open.lock();
        open.try_remove(info.id);
    }

    /// Calls `show` for the connections in up to `budget` places from this one on, and returns where to go on, or `None`
    /// at the end. A connection that is open meanwhile is shown once.
    pub fn some(&self, from: usize, budget: usize, mut show: impl FnMut(&Info)) -> Option<usize> {
        let open = self.open.lock();
        let end = from.saturating_add(budget);
        for place in from..end.min(open.capacity()) {
            if let Some(info) = open.get(place) {
                show(info);
            }
        }
        (end < open.capacity()).then_some(end)
    }

    /// Writes `stats conns` for the client `asker`: the listeners first, then the connections.
    pub fn report<'l>(
        &self,
        report: &mut Report<'_, '_>,
        addresses: impl Iterator<Item = &'l Address>,
        asker: &Info,
        now: Time,
    ) {
        let addresses: Vec<_> = addresses.collect();
        for (number, address) in addresses.iter().enumerate() {
            if matches!(address, Address::Udp(_)) {
                report.line_of(number, "UDP", "UDP");
            }
            report.line_of(number, "addr", address);
            let state = match address {
                Address::Udp(_) => "conn_read",
                Address::Tcp(_) | Address::Unix(_) => "conn_listening",
            };
            report.line_of(number, "state", state);
            report.line_of(number, "secs_since_last_cmd", now.seconds());
        }
        let open = self.open.lock();
        for (slot, info) in open.iter() {
            let number = addresses.len() + slot;
            report.line_of(number, "addr", info.peer);
            if let Some(address) = addresses.get(info.listener) {
                report.line_of(number, "listen_addr", address);
            }
            // Relaxed: statistics.
            let state = if info.id == asker.id {
                "conn_parse_cmd"
            } else if info.blocked.load(Ordering::Relaxed) {
                "conn_mwrite"
            } else {
                "conn_read"
            };
            report.line_of(number, "state", state);
            let silent = now
                .seconds()
                .saturating_sub(info.active.load(Ordering::Relaxed));
            report.line_of(number, "secs_since_last_cmd", silent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_ended_is_closed_by_whoever_has_it() {
        let registry = Registry::default();
        let enter = || registry.enter(Peer::Unix, None, 0, Time(0));
        let (early, late) = (enter(), enter());
        assert!(early.end(|_, _| unreachable!("no worker has it")));
        assert!(early.sit(1, 7));
        assert!(!late.sit(1, 8));
        let mut sent = None;
        assert!(late.end(|worker, id| sent = Some((worker, id))));
        assert_eq!(sent, Some((1, 8)));
        assert!(!late.end(|_, _| unreachable!("it is ended already")));
    }
}
