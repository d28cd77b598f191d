//! Lines for watchers, in the form of memcached's logger: `ts=SECONDS.MICROSECONDS gid=NUMBER type=EVENT ...`.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, SystemTime};

use nuthatch_engine::Evicted;
use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::request::KEY_LEN_MAX;

use super::{Hub, Kind};
use crate::telemetry::connections::Peer;

/// Lines that are sent to watchers together.
pub struct Lines<'w> {
    hub: &'w Hub,
    /// The time since 1970, the same for all lines.
    now: Duration,
    text: Vec<u8>,
    /// The kind of each line, and where the line ends.
    ends: Vec<(Kind, usize)>,
}

impl<'w> Lines<'w> {
    /// No lines yet, for the watchers of `hub`, with this moment's time.
    #[expect(clippy::disallowed_methods, reason = "a line tells the moment")]
    pub fn new(hub: &'w Hub) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            hub,
            now: now.unwrap_or_default(),
            text: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// True if any watcher wants lines of this kind.
    pub fn wants(&self, kind: Kind) -> bool {
        self.hub.wanted().has(kind)
    }

    /// Adds a line if any watcher wants its kind. `rest` writes the text behind the number.
    pub fn add(&mut self, kind: Kind, rest: impl FnOnce(&mut Vec<u8>)) {
        if !self.hub.wanted().has(kind) {
            return;
        }
        let (seconds, micros) = (self.now.as_secs(), self.now.subsec_micros());
        let number = self.hub.number();
        write(
            &mut self.text,
            format_args!("ts={seconds}.{micros:06} gid={number} "),
        );
        rest(&mut self.text);
        self.text.push(b'\n');
        self.ends.push((kind, self.text.len()));
    }

    /// True if there is no line.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The lines, each with its line end.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|&(_, end)| end));
        let lines = starts.zip(&self.ends);
        lines.map(|(start, &(kind, end))| (kind, &self.text[start..end]))
    }
}

/// Writes into memory, which has room.
pub fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes all");
}

/// An evicted item. The line shows the time since its store for the time since its last access, which is not longer.
pub fn eviction(out: &mut Vec<u8>, item: &Evicted<'_>) {
    write(out, format_args!("type=eviction key="));
    key(out, item.key);
    let fetched = if item.fetched { "yes" } else { "no" };
    let ttl = item.left.map_or(-1, |left| left.as_secs() as i64);
    let (age, class, size) = (item.age.as_secs(), item.class, item.value_len);
    write(
        out,
        format_args!(" fetch={fetched} ttl={ttl} la={age} clsid={class} size={size}"),
    );
}

/// Tells watchers what the server itself did: `type=...` and its fields.
pub fn system(hub: &Hub, event: std::fmt::Arguments<'_>) {
    if !hub.wanted().has(Kind::System) {
        return;
    }
    let mut lines = Lines::new(hub);
    lines.add(Kind::System, |line| write(line, event));
    hub.publish(&lines);
}

/// Writes a key as one word: bytes that are not unreserved in a URI are written as %XX. Of a key that is longer than
/// those of memcached's clients this is its front, and a `*`, which stands for itself in no word. Before the key of
/// another database than 0 there is the database's number and a `/`.
pub fn key(out: &mut Vec<u8>, key: &[u8]) {
    let (namespace, key) = Namespace::split(key);
    if namespace.home() != 0 {
        write(out, format_args!("{}/", namespace.home()));
    }
    for &byte in &key[..key.len().min(KEY_LEN_MAX)] {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte),
            _ => write(out, format_args!("%{byte:02X}")),
        }
    }
    if key.len() > KEY_LEN_MAX {
        out.push(b'*');
    }
}

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reason {
    /// The socket failed, or the client broke its protocol.
    Error,
    /// Its client closed, or asked the server to close.
    #[default]
    Normal,
    /// Nothing went either way for too long.
    IdleTimeout,
    /// The server stops.
    Shutdown,
}

/// Tells watchers that a connection was accepted, or with a reason, that it was closed.
pub fn connection(hub: &Hub, peer: Peer, closed: Option<Reason>, number: usize) {
    let kind = Kind::Connections;
    if !hub.wanted().has(kind) {
        return;
    }
    let event = if closed.is_some() {
        "conn_close"
    } else {
        "conn_new"
    };
    let (host, port, transport) = match peer {
        Peer::Tcp(address) => (
            address.ip().to_canonical().to_string(),
            address.port(),
            "tcp",
        ),
        Peer::Udp(address) => (address.ip().to_string(), address.port(), "udp"),
        Peer::Unix => ("unix".to_owned(), 0, "local"),
        Peer::Ring => ("shared".to_owned(), 0, "local"),
    };
    let mut lines = Lines::new(hub);
    lines.add(kind, |line| {
        write(
            line,
            format_args!("type={event} rip={host} rport={port} transport={transport}"),
        );
        let reason = closed.map(|reason| match reason {
            Reason::Error => "error",
            Reason::Normal => "normal",
            Reason::IdleTimeout => "idle_timeout",
            Reason::Shutdown => "shutdown",
        });
        if let Some(reason) = reason {
            write(line, format_args!(" reason={reason}"));
        }
        write(line, format_args!(" cfd={number}"));
    });
    hub.publish(&lines);
}

/// Tells watchers that a client broke TLS.
pub fn tls_error(hub: &Hub, error: &io::Error, socket: BorrowedFd<'_>) {
    if !hub.wanted().has(Kind::Connections) {
        return;
    }
    let mut lines = Lines::new(hub);
    let fd = socket.as_raw_fd();
    lines.add(Kind::Connections, |line| {
        write(line, format_args!("type=conntlserr fd={fd} msg={error}"));
    });
    hub.publish(&lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_word() {
        let mut out = Vec::new();
        key(&mut out, b"a-b_c.d~9 \n\xff%");
        assert_eq!(out, b"a-b_c.d~9%20%0A%FF%25");
    }
}
