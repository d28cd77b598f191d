//! Servers that a trace is replayed on: started for each size, or running already.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_bench::os;
use nuthatch_bench::started::Started;
use nuthatch_program::Failure;

use super::report::Cell;
use crate::live::{Cache, ServerCache, read_through};
use crate::trace::Trace;

/// Held while a server is started.
static STARTING: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);

/// How long items that were flushed may still be counted.
const FLUSHING: Duration = Duration::from_secs(2);

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// A server to be started: its command line, with places for its size and port.
#[derive(Clone, Debug, PartialEq)]
pub struct SpawnCommand {
    name: String,
    command: String,
}

impl FromStr for SpawnCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let program = text.split_whitespace().next().ok_or("no command")?;
        // A name in front, unless that is part of a path.
        let (name, command) = match text.split_once('=') {
            Some((name, command)) if !name.contains(['/', ' ']) => (name, command),
            _ => {
                let name = Path::new(program).file_name().unwrap_or_default();
                (name.to_str().unwrap_or(program), text)
            }
        };
        for place in ["{mib}", "{port}"] {
            if !command.contains(place) {
                return Err(format!("`{command}`: {place} is missing"));
            }
        }
        let (name, command) = (name.to_owned(), command.trim().to_owned());
        Ok(Self { name, command })
    }
}

impl SpawnCommand {
    /// Its name in tables.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts it on a free port with the size that is closest in whole MiB. It ends when the returned value is dropped.
    pub fn start(&self, bytes: u64, stop: &AtomicBool) -> Result<Started, String> {
        let mib = whole_mib(bytes) / MIB;
        let command = self.command.replace("{mib}", &mib.to_string());
        // One after the other: otherwise two servers may get the same free port before one of them listens.
        let _starting = STARTING.lock();
        Started::start(&command, &os::cores(), stop)
    }
}

/// Replays a trace on a server that has just been started.
pub fn replay(server: &Started, trace: &Trace, stop: &AtomicBool) -> Result<Cell, String> {
    let replay = || {
        let mut cache = ServerCache::connect(server.address(), Some(server.pid()))?;
        let hits = read_through(trace, &mut cache, stop)?;
        Ok(Cell::live(hits, cache.memory()))
    };
    replay().map_err(|error: String| format!("{}: {error}", server.command()))
}

/// The nearest size in whole MiB, at least one: servers take no other.
pub fn whole_mib(bytes: u64) -> u64 {
    (bytes.saturating_add(MIB / 2) / MIB).max(1) * MIB
}

/// A server that runs already.
#[derive(Clone, Debug)]
pub struct RunningServer {
    /// As it was typed.
    pub name: String,
    address: SocketAddr,
}

impl RunningServer {
    /// Finds the server, and checks that it is empty: a replay stores items and then flushes all.
    #[expect(clippy::disallowed_methods, reason = "a bench may wait for a name")]
    pub fn find(name: &str) -> Result<Self, Failure> {
        let addresses = name.to_socket_addrs().ok();
        let address = addresses.and_then(|mut addresses| addresses.next());
        let address =
            address.ok_or_else(|| Failure::usage(format!("--servers {name}: not a HOST:PORT")))?;
        match items_left(address)? {
            Some(0) => {}
            items => {
                let items = items.map_or("it does not say how many".to_owned(), |n| n.to_string());
                return Err(Failure::run(format!(
                    "--servers {name}: items held: {items}; the replay would throw them away, so it must be empty"
                )));
            }
        }
        let name = name.to_owned();
        Ok(Self { name, address })
    }

    /// Replays a trace, and flushes all items afterwards. Returns the server's memory limit in bytes too.
    pub fn replay(&self, trace: &Trace, stop: &AtomicBool) -> Result<(u64, Cell), String> {
        let named = |error: String| format!("{}: {error}", self.name);
        let replay = || {
            let mut cache = ServerCache::connect(self.address, None)?;
            let pid = match self.address.ip().is_loopback() {
                true => cache.stat("pid")?.and_then(|pid| u32::try_from(pid).ok()),
                false => None,
            };
            let mut cache = ServerCache::connect(self.address, pid)?;
            let limit = cache.stat("limit_maxbytes")?.unwrap_or(0);
            let hits = read_through(trace, &mut cache, stop)?;
            let cell = Cell::live(hits, cache.memory());
            cache.flush()?;
            Ok((limit, cell))
        };
        replay().map_err(named)
    }
}

/// The number of a server's items. It is asked again for a moment while there are any: those that a run before this one
/// flushed are counted until the server has removed them.
fn items_left(address: SocketAddr) -> Result<Option<u64>, String> {
    let mut cache = ServerCache::connect(address, None)?;
    let end = Instant::now() + FLUSHING;
    loop {
        let items = cache.stat("curr_items")?;
        if items.is_none_or(|items| items == 0) || Instant::now() > end {
            return Ok(items);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_as_typed() {
        let parse = |text: &str| text.parse::<SpawnCommand>();
        let plain = parse("/usr/bin/memcached -m {mib} -p {port} -o a=b").unwrap();
        assert_eq!(plain.name(), "memcached");
        assert!(plain.command.ends_with("-o a=b"));
        let named = parse("old=/usr/bin/memcached -m {mib} -p {port}").unwrap();
        assert_eq!(named.name(), "old");
        assert!(named.command.starts_with("/usr/bin/memcached "));
        for wrong in ["", "memcached", "memcached -m {mib}", "memcached -p {port}"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn servers_have_whole_mibs() {
        assert_eq!(whole_mib(1), MIB);
        assert_eq!(whole_mib(MIB * 5 / 2), 3 * MIB);
        assert_eq!(whole_mib(MIB * 5 / 2 - 1), 2 * MIB);
    }
}
