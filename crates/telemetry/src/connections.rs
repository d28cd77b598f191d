//! Which clients are connected: `stats conns`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use nuthatch_engine::Time;
use nuthatch_sync::mutex::Mutex;
use slab::Slab;

use crate::Address;
use crate::Report;

/// The other end.
#[derive(Clone, Copy, Debug)]
pub enum Peer {
    /// By TCP.
    Tcp(SocketAddr),
    /// All who send datagrams to this socket of ours.
    Udp(SocketAddr),
    /// By a unix socket.
    Unix,
}

impl Peer {
    /// Its address, or that of our socket; `None` for a unix socket.
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Tcp(address) | Self::Udp(address) => Some(address.ip()),
            Self::Unix => None,
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
        }
    }
}

/// What is shown of a connection. Written by its worker, read by `stats conns`.
pub struct Info {
    id: usize,
    /// No other connection of the server has or had this number.
    serial: u64,
    /// Second of its beginning.
    since: u32,
    peer: Peer,
    listener: usize,
    /// Second of the last command.
    active: AtomicU32,
    /// Its output waits for the client.
    blocked: AtomicBool,
    /// What its client calls itself.
    name: Mutex<Arc<[u8]>>,
}

impl Info {
    /// Of somebody who is not among the connections.
    pub fn unregistered(peer: Peer, now: Time) -> Self {
        Self::new(usize::MAX, 0, peer, usize::MAX, now)
    }

    fn new(id: usize, serial: u64, peer: Peer, listener: usize, now: Time) -> Self {
        Self {
            id,
            serial,
            since: now.seconds(),
            peer,
            listener,
            active: AtomicU32::new(now.seconds()),
            blocked: AtomicBool::new(false),
            name: Mutex::default(),
        }
    }

    /// Whose connection it is.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Its number, which no other connection has or had.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// As Redis tells it to clients.
    pub fn line(&self, now: Time) -> String {
        let since = |second: u32| now.seconds().saturating_sub(second);
        let address = match self.peer {
            Peer::Tcp(address) | Peer::Udp(address) => address.to_string(),
            Peer::Unix => String::from("unix"),
        };
        // Relaxed: a statistic.
        let active = self.active.load(Ordering::Relaxed);
        let name = Arc::clone(&self.name.lock());
        format!(
            "id={} addr={address} name={} age={} idle={} flags=N db=0",
            self.serial,
            String::from_utf8_lossy(&name),
            since(self.since),
            since(active)
        )
    }

    /// Its client calls itself so. The caller keeps the name too, and answers for its memory.
    pub fn set_name(&self, name: Arc<[u8]>) {
        *self.name.lock() = name;
    }

    /// A command came.
    pub fn set_active(&self, now: Time) {
        // Relaxed: a statistic.
        self.active.store(now.seconds(), Ordering::Relaxed);
    }

    /// Its output waits for the client, or does no longer.
    pub fn set_blocked(&self, blocked: bool) {
        // Relaxed: a statistic.
        self.blocked.store(blocked, Ordering::Relaxed);
    }
}

/// All open connections.
#[derive(Default)]
pub struct Registry {
    open: Mutex<Slab<Arc<Info>>>,
    /// Connections that were ever entered.
    entered: AtomicU64,
}

impl Registry {
    /// Enters a connection that came in by the listener of that number.
    pub fn enter(&self, peer: Peer, listener: usize, now: Time) -> Arc<Info> {
        let mut open = self.open.lock();
        let slot = open.vacant_entry();
        // Relaxed: it only has to be another number each time.
        let serial = self.entered.fetch_add(1, Ordering::Relaxed) + 1;
        let info = Arc::new(Info::new(slot.key(), serial, peer, listener, now));
        slot.insert(Arc::clone(&info));
        info
    }

    /// A connection closed.
    pub fn leave(&self, info: &Info) {
        let mut open = self.open.lock();
        open.try_remove(info.id);
    }

    /// Shows every connection.
    pub fn each(&self, mut show: impl FnMut(&Info)) {
        for (_, info) in self.open.lock().iter() {
            show(info);
        }
    }

    /// Writes `stats conns`, asked for by `asker`: the listeners first, then the connections.
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
