//! What a server is told: checked values, with every default written here and nowhere else.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// memcached's port.
pub const PORT: u16 = 11211;

/// The version of the memcached whose protocol this is.
pub const MEMCACHED_VERSION: &str = "1.6.45";

/// What `version` answers. Clients judge by it what a server understands, so it begins with the
/// version of the memcached whose protocol this is.
pub const VERSION: &str = concat!("1.6.45-nuthatch-", env!("CARGO_PKG_VERSION"));

/// Everything a server needs to know besides its engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen for memcached's clients (`-l`, `-p`, `-s`).
    pub listeners: Vec<Listen>,
    /// Where to listen for CPServer's clients (`--cpserver`). There must be a listener of either kind.
    pub cpserver: Vec<Listen>,
    /// Worker threads (`-t`).
    pub threads: NonZeroUsize,
    /// Connections held at once (`-c`); one more is told so and closed.
    pub connections_max: NonZeroUsize,
    /// Connections that the kernel queues before they are accepted (`-b`).
    pub backlog: u32,
    /// Commands that a connection may run before the others get their slice (`-R`).
    pub commands_per_slice: NonZeroU32,
    /// Requests, of all connections of a worker together, that go to the engine at a time.
    pub batch_max: NonZeroUsize,
    /// TCP connections by which no byte went either way for so long are closed (`-o idle_timeout`).
    pub idle_timeout: Option<Duration>,
    /// Where to write the ports that were bound (`MEMCACHED_PORT_FILENAME`).
    pub port_file: Option<PathBuf>,
    /// The `shutdown` command works (`-A`).
    pub allow_shutdown: bool,
    /// `flush_all` works (not `-F`).
    pub allow_flush: bool,
    /// `stats cachedump`, `stats detail`, `metadump` and `mgdump` work (not `-X`).
    pub allow_dump: bool,
    /// What `stats settings` says of cas (not `-C`). Items have one in any case.
    pub cas: bool,
    /// What the engine was built from: lines that `stats settings` shows behind its own.
    pub engine_settings: Vec<(&'static str, String)>,
    /// What `version` answers, and what stands in `stats`.
    pub version: String,
    /// How much is logged at first (`-v`); the `verbosity` command changes it.
    pub verbosity: u32,
    /// Told when it does.
    pub on_verbosity: OnVerbosity,
}

/// What hears of a new verbosity: who set the logging up can turn it up and down. Nobody by default.
#[derive(Clone)]
pub struct OnVerbosity(Arc<dyn Fn(u32) + Send + Sync>);

impl OnVerbosity {
    /// Calls `hear` with each new level, on the thread of the worker that got the command.
    pub fn new(hear: impl Fn(u32) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    pub(crate) fn tell(&self, level: u32) {
        (self.0)(level);
    }
}

impl Default for OnVerbosity {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for OnVerbosity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("OnVerbosity")
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listeners: vec![
                Listen::Tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT))),
                Listen::Tcp(SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT))),
            ],
            cpserver: Vec::new(),
            threads: const { NonZeroUsize::new(4).unwrap() },
            connections_max: const { NonZeroUsize::new(1024).unwrap() },
            backlog: 1024,
            // memcached yields after 20 because it answers one by one; here a slice is one batch,
            // and cutting it short costs everybody.
            commands_per_slice: const { NonZeroU32::new(1024).unwrap() },
            // Well above what an engine needs to overlap its memory misses. More would only make
            // replies wait, where no messages have to be packed.
            batch_max: const { NonZeroUsize::new(256).unwrap() },
            idle_timeout: None,
            port_file: None,
            allow_shutdown: false,
            allow_flush: true,
            allow_dump: true,
            cas: true,
            engine_settings: Vec::new(),
            version: VERSION.to_owned(),
            verbosity: 0,
            on_verbosity: OnVerbosity::default(),
        }
    }
}

/// A place to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A TCP address; port 0 lets the system pick one.
    Tcp(SocketAddr),
    /// A unix socket, made with these permission bits (`-s`, `-a`).
    Unix {
        /// Where.
        path: PathBuf,
        /// Permission bits, as in chmod: memcached's default is 0o700.
        mode: u32,
    },
}

impl Listen {
    /// All addresses of this machine: those of IPv6 only where it has any.
    pub fn everywhere(port: u16) -> Vec<Self> {
        let ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
        let all: [(bool, IpAddr); 2] = [
            (true, Ipv4Addr::UNSPECIFIED.into()),
            (ipv6, Ipv6Addr::UNSPECIFIED.into()),
        ];
        all.into_iter()
            .filter_map(|(has, address)| has.then_some(Self::Tcp((address, port).into())))
            .collect()
    }

    /// The addresses of a place as typed, if there are any: `127.0.0.1`, `127.0.0.1:11212`, `::1`, `[::1]:11212`,
    /// `localhost`, `localhost:11212`.
    pub fn resolve(place: &str, port: u16) -> Option<Vec<Self>> {
        if let Ok(address) = place.parse::<IpAddr>() {
            return Some(vec![Self::Tcp((address, port).into())]);
        }
        let found = match place.rsplit_once(':') {
            Some(_) => place.to_socket_addrs().ok()?,
            None => (place, port).to_socket_addrs().ok()?,
        };
        let found: Vec<_> = found.map(Self::Tcp).collect();
        (!found.is_empty()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_memcacheds_version() {
        assert!(VERSION.starts_with(&format!("{MEMCACHED_VERSION}-")));
    }
}
