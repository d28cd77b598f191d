//! Starting a server, and what one holds of it afterwards.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread::{self, JoinHandle};

use mio::{Poll, Waker};
use nuthatch_engine::{AnyEngine, Clock, Engine};

use crate::acceptor::Acceptor;
use crate::account::{self, Account};
use crate::config::Config;
use crate::listen::{self, Address, Listener, Protocol};
use crate::live::{Controls, Live};
use crate::shared::{Inbox, Shared};
use crate::shutdown::Shutdown;
use crate::stats::connections::Registry;
use crate::stats::counters::AcceptorCounters;
use crate::stats::prefixes::Prefixes;
use crate::worker::{WAKE, Worker};
use crate::{maintenance, system};

/// A memcached-compatible server.
pub struct Server;

impl Server {
    /// Binds all listeners and starts the threads. When this returns, clients can connect.
    pub fn start(config: Config, engine: Arc<AnyEngine>) -> io::Result<ServerHandle> {
        if config.listeners.is_empty() && config.cpserver.is_empty() {
            let error = "a server must listen somewhere";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        system::make_room_for(config.connections_max);
        let listeners = bind_all(&config)?;
        let addresses: Vec<Address> = listeners
            .iter()
            .map(|listener| listener.address().clone())
            .collect();
        let is_memcached = |listener: &&Listener| listener.protocol() == Protocol::Memcached;
        let memcached_listeners = listeners.iter().filter(is_memcached).count();

        let mut polls = Vec::new();
        let mut inboxes = Vec::new();
        let shutdown = Shutdown::default();
        for _ in 0..config.threads.get() {
            let poll = Poll::new()?;
            let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
            shutdown.wake_also(Arc::clone(&waker))?;
            inboxes.push(Arc::new(Inbox::new(waker)));
            polls.push(poll);
        }
        let bound = account::bound(config.connections_max.get(), engine.stats().memory_limit);
        let shared = Arc::new(Shared {
            engine,
            addresses: addresses.clone(),
            memcached_listeners,
            clock: Clock::start(),
            shutdown: shutdown.clone(),
            inboxes,
            live: Live::new(&config),
            account: Account::new(bound),
            accepting: AcceptorCounters::default(),
            registry: Registry::default(),
            prefixes: Prefixes::default(),
            verbosity: AtomicU32::new(config.verbosity),
            dumping: Arc::new(AtomicBool::new(false)),
            crawler_enabled: AtomicBool::new(true),
            config,
        });
        let acceptor = Acceptor::new(Arc::clone(&shared), listeners)?;
        // From here on an error must end the threads that run already.
        let guard = StopOnDrop(shutdown.clone());
        let threads = spawn_all(&shared, acceptor, polls)?;
        if let Some(path) = &shared.config.port_file {
            listen::write_port_file(path, shared.memcached_addresses()).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?;
        }
        std::mem::forget(guard);
        let mut addresses = addresses;
        let cpserver_addresses = addresses.split_off(memcached_listeners);
        Ok(ServerHandle {
            addresses,
            cpserver_addresses,
            controls: Controls::new(shared),
            shutdown,
            threads,
        })
    }
}

/// Binds every listener, memcached's first; only IPv6 may be missing where the machine has none.
fn bind_all(config: &Config) -> io::Result<Vec<Listener>> {
    let memcached = config
        .listeners
        .iter()
        .map(|place| (place, Protocol::Memcached));
    let cpserver = config
        .cpserver
        .iter()
        .map(|place| (place, Protocol::CpServer));
    let mut listeners = Vec::new();
    for (place, protocol) in memcached.chain(cpserver) {
        match Listener::bind(place, protocol, config.backlog) {
            Ok(listener) => listeners.push(listener),
            Err(error) if !listeners.is_empty() && Listener::is_dispensable(place, &error) => {
                tracing::warn!(%error, "going on without");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(listeners)
}

fn spawn_all(
    shared: &Arc<Shared>,
    acceptor: Acceptor,
    polls: Vec<Poll>,
) -> io::Result<Vec<JoinHandle<io::Result<()>>>> {
    let mut threads = Vec::new();
    for (number, poll) in polls.into_iter().enumerate() {
        let inbox = Arc::clone(&shared.inboxes[number]);
        let worker = Worker::new(Arc::clone(shared), inbox, poll);
        let name = format!("worker-{number}");
        threads.push(spawn(name, &shared.shutdown, move || worker.run())?);
    }
    let maintained = Arc::clone(shared);
    threads.push(spawn(
        "maintenance".to_owned(),
        &shared.shutdown,
        move || {
            maintenance::run(&maintained);
            Ok(())
        },
    )?);
    let name = "acceptor".to_owned();
    threads.push(spawn(name, &shared.shutdown, move || acceptor.run())?);
    Ok(threads)
}

/// Starts a thread without which the server cannot be: should it fail, the others stop too.
fn spawn(
    name: String,
    shutdown: &Shutdown,
    body: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let guard = StopOnDrop(shutdown.clone());
    thread::Builder::new().name(name).spawn(move || {
        // A thread ends because the server stops, or else it takes the server with it.
        let _guard = guard;
        body()
    })
}

/// Requests the stop when dropped, by a return or a panic.
struct StopOnDrop(Shutdown);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// A running server. Dropping this does not stop it.
pub struct ServerHandle {
    addresses: Vec<Address>,
    cpserver_addresses: Vec<Address>,
    controls: Controls,
    shutdown: Shutdown,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl ServerHandle {
    /// Where it listens, in the order of [`Config::listeners`], with real ports. The unspecified
    /// IPv6 address is left out on machines without IPv6.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Where it listens for CPServer's clients, in the order of [`Config::cpserver`], likewise.
    pub fn cpserver_addresses(&self) -> &[Address] {
        &self.cpserver_addresses
    }

    /// Begins a graceful stop: no more connections are accepted, what was read is answered, and
    /// within a second everything is closed. Returns at once.
    pub fn shutdown(&self) {
        self.shutdown.request();
    }

    /// What stops this server from anywhere, a signal handler's thread for instance
    /// ([`Signals`](crate::Signals)).
    pub fn stopper(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// What changes settings of this server from anywhere.
    pub fn controls(&self) -> Controls {
        self.controls.clone()
    }

    /// Waits for the end, and says what brought it about if it was not wanted.
    pub fn join(self) -> io::Result<()> {
        let mut outcome = Ok(());
        for thread in self.threads {
            let ended = thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread of the server panicked")));
            outcome = outcome.and(ended);
        }
        outcome
    }
}
