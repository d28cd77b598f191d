//! The start of a server, and the handle of a running one.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use mio::{Poll, Waker};
use nuthatch_base::memory::reserve;
use nuthatch_engine::{AnyEngine, Engine, Inspect};
use nuthatch_settings::config::{Config, ListenAddress, Protocol, Verify};
use nuthatch_snapshot::Summary;
use nuthatch_state::limits;
use nuthatch_state::live::Controls;
use nuthatch_state::server_state::{ServerState, addresses_of};
use nuthatch_state::shutdown::Shutdown;
use nuthatch_state::telemetry::Address;
use nuthatch_state::telemetry::sizes::SizeClasses;
use nuthatch_state::worker::SharedWorker;

use crate::acceptor::Acceptor;
use crate::datagrams::DatagramSocket;
use crate::handover::Named;
use crate::handover::giving::{Alive, Control};
use crate::handover::taking::Successor;
use crate::listen::{self, Listener};
use crate::maintenance;
use crate::metrics::Endpoint;
use crate::persistence::{self, Claim};
use crate::port_file::PortFile;
use crate::sharing;
use crate::threads::Threads;
use crate::unix_path::Replaced;
use crate::watchdog::{self, Signs};
use crate::worker::{WAKE, Worker};

/// Address space that is given up when the system refuses memory: for what must be allocated until connections have
/// given some back. An iteration of a worker makes 1 MiB of output and that of a batch, in buffers that double.
const RESERVE: usize = 8 << 20;
const RESERVE_OF_WORKER: usize = 4 << 20;

/// A memcached-compatible server.
pub struct Server;

impl Server {
    /// Binds all listeners and starts the threads. When this returns, clients can connect.
    pub fn start(config: Config, engine: Arc<AnyEngine>) -> io::Result<ServerHandle> {
        Self::start_unless(config, engine, Shutdown::default())
    }

    /// Like [`Server::start`], unless `shutdown` is requested meanwhile, which also ends the running server later: to
    /// take many items needs a while, and a start that is given up takes none from another process or a file. It is
    /// then an error of the kind [`io::ErrorKind::Interrupted`].
    pub fn start_unless(
        mut config: Config,
        engine: Arc<AnyEngine>,
        shutdown: Shutdown,
    ) -> io::Result<ServerHandle> {
        config.check()?;
        config.persistence.check()?;
        config.persistence.try_to_write()?;
        limits::keep_to(&mut config, engine.stats().memory_limit);
        if !reserve::fill(RESERVE + config.threads.get() * RESERVE_OF_WORKER) {
            tracing::warn!("the system gives less memory than this server keeps in reserve");
        }
        let ask = |path| Successor::ask(path, &shutdown);
        let successor = config.handover.as_deref().map(ask).transpose()?;
        let mut successor = successor.flatten();
        // Steps that may fail come before steps that take something from a running server: it keeps all that it has
        // until this one serves.
        config.read_certificates()?;
        if let Some(tls) = &config.certificates {
            tls.warn();
        }
        config.read_passwords()?;
        let restart = config.persistence.restart.as_deref();
        let claim = restart.map(|path| Claim::of(path, successor.as_mut()));
        let claim = claim.transpose()?;
        let mut listeners = bind_all(&config, successor.as_mut())?;
        let replaced = listeners.iter_mut().filter_map(Listener::take_replaced);
        let mut replaced: Vec<Replaced> = replaced.collect();
        let mut readers =
            sharing::Endpoint::bind(&config, &engine, successor.is_some(), &shutdown)?;
        replaced.extend(readers.as_mut().and_then(sharing::Endpoint::take_replaced));
        let (datagrams, udp) = bind_datagrams(&config, successor.as_mut())?;
        let tcp = listeners
            .iter()
            .map(|listener| (listener.address().clone(), listener.protocol()));
        let addresses: Vec<(Address, Protocol)> = tcp.chain(udp).collect();
        let secured = listeners.iter().filter_map(|listener| {
            let verify = listener.tls()?;
            Some((listener.address().clone(), verify))
        });
        let secured = secured.collect();

        let mut polls = Vec::new();
        let mut workers = Vec::new();
        for _ in 0..config.threads.get() {
            let poll = Poll::new()?;
            let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
            shutdown.wake_also(Arc::clone(&waker))?;
            workers.push(Arc::new(SharedWorker::new(waker, SizeClasses::of(&engine))));
            polls.push(poll);
        }
        let shared = ServerState::new(config, engine, addresses.clone(), workers, shutdown.clone());
        let shared = Arc::new(shared);
        shared.engine.report_evictions(shared.witness());
        let mut copies = match shared.config.handover {
            Some(_) => copy_all(&listeners, &datagrams)?,
            None => Vec::new(),
        };
        let acceptor = Acceptor::new(Arc::clone(&shared), listeners)?;
        let metrics = &shared.config.metrics;
        let metrics = Endpoint::bind(metrics, successor.as_mut(), &shutdown)?;
        let control = shared.config.handover.as_deref();
        let control = control.map(|path| Control::bind(path, successor.as_mut(), &shutdown));
        let (mut control, alive) = control.transpose()?.unzip();
        if control.is_some()
            && let Some(metrics) = &metrics
        {
            copies.extend(metrics.copies()?);
        }
        let metrics_addresses = metrics.as_ref().map(Endpoint::addresses).transpose()?;
        let port_file = shared.config.port_file.as_deref();
        let port_file = port_file.map(|path| PortFile::begin(path, &shared.addresses));
        let port_file = port_file.transpose()?;
        if let Some(control) = &mut control {
            control.offer(copies, claim.as_ref().map(Claim::copy).transpose()?);
        }
        let signs = watchdog::spawn(shared.config.failure_patience)?;
        let mut threads = Threads::new(shutdown.clone(), signs.clone());
        spawn_all(&mut threads, &shared, acceptor, polls, datagrams)?;
        spawn_beside(&mut threads, &shared, metrics, control, readers)?;
        // The last step that may fail: once the items are taken, they exist nowhere else.
        take_items(&shared, claim.as_ref(), successor)?;
        sharing::begin(&shared);
        replaced.into_iter().for_each(Replaced::give_up);
        if let Some(Err(error)) = port_file.map(PortFile::finish) {
            // The items are taken by now, so a missing port file must not end the start.
            tracing::error!("{error}");
        }
        let threads = threads.begin();
        Ok(ServerHandle {
            addresses,
            secured,
            metrics_addresses: metrics_addresses.unwrap_or_default(),
            items: Arc::clone(&shared),
            controls: Controls::new(shared),
            shutdown,
            threads,
            signs,
            claim,
            alive,
        })
    }
}

/// Copies of all sockets, for a successor.
fn copy_all(listeners: &[Listener], datagrams: &[Vec<DatagramSocket>]) -> io::Result<Vec<Named>> {
    let streams = listeners.iter().map(Listener::copy);
    let datagrams = datagrams.iter().flatten().map(DatagramSocket::copy);
    streams.chain(datagrams).collect()
}

/// Takes the items that the server begins with: those of another process, else those that a stop left, else those of a
/// copy. Each source is newer than the next. An older source has items that have been changed or deleted since.
fn take_items(
    shared: &ServerState,
    claim: Option<&Claim>,
    successor: Option<Successor>,
) -> io::Result<()> {
    let ServerState { engine, clock, .. } = shared;
    let taken = match (successor, &shared.config.handover) {
        (Some(successor), Some(path)) => {
            let taken = persistence::take_over(&successor, path, engine, clock, &shared.shutdown)?;
            // A server that is stopped amid the handover leaves its items, as at any stop.
            let left = claim.filter(|claim| taken.is_none() && claim.was_left_since());
            if let Some(claim) = claim
                && left.is_none()
            {
                claim.pass_over();
            }
            if taken.is_some() {
                taken
            } else {
                if left.is_none() {
                    tracing::error!(
                        "the server that was handing over was killed: its items are lost"
                    );
                }
                // Some items may have come that the other process changed before it ended. Whose items are copies took none.
                let now = clock.now();
                if !engine.holds_copies() {
                    engine.flush(now, now);
                }
                items_of_before(shared, left)?
            }
        }
        _ => items_of_before(shared, claim)?,
    };
    if let Some(taken) = &taken {
        shared.databases.note_loaded(taken.databases);
    }
    // A flush that is to come is of the items that were taken. The servers that copies are of have been told, if they were to be.
    if let Some(left) = taken.and_then(|taken| taken.flush)
        && !engine.holds_copies()
    {
        let now = clock.now();
        // Items of its own are always reached.
        let _ = shared.flush(now, now.after(left));
    }
    Ok(())
}

/// Takes the items that a stop left, else those of a copy.
fn items_of_before(shared: &ServerState, claim: Option<&Claim>) -> io::Result<Option<Summary>> {
    let (engine, clock, shutdown) = (&shared.engine, &shared.clock, &shared.shutdown);
    let persistence = &shared.config.persistence;
    let left = claim.map(|claim| claim.take(engine, clock, shutdown));
    let left = left.transpose()?.flatten();
    match &persistence.load {
        Some(path) if left.is_some() => {
            let path = path.display();
            tracing::info!("--load {path}: not read, for what the last stop left is newer");
            Ok(left)
        }
        Some(path) => persistence::begin_with(path, persistence, engine, clock, shutdown),
        None => Ok(left),
    }
}

/// Binds every listener.
fn bind_all(config: &Config, mut successor: Option<&mut Successor>) -> io::Result<Vec<Listener>> {
    let streams = config.listeners.iter();
    let streams = streams.filter(|listen| !listen.address.is_udp());
    listen::bind_and_warn(streams, |listen| {
        Listener::bind(listen, config.backlog, successor.as_deref_mut())
    })
}

/// Binds every UDP address: the sockets of each worker, and the addresses.
#[expect(clippy::type_complexity, reason = "it is taken apart at once")]
fn bind_datagrams(
    config: &Config,
    mut successor: Option<&mut Successor>,
) -> io::Result<(Vec<Vec<DatagramSocket>>, Vec<(Address, Protocol)>)> {
    let workers = config.threads.get();
    let datagrams = config.listeners.iter();
    let datagrams = datagrams.filter(|listen| listen.address.is_udp());
    let bound = listen::bind_and_warn(datagrams, |listen| {
        let protocol = listen.protocol;
        let bound = match listen.address {
            ListenAddress::Udp(address) => {
                DatagramSocket::bind(address, workers, protocol, successor.as_deref_mut())
            }
            ListenAddress::InheritedUdp(fd) => listen::inherit(fd)
                .and_then(|socket| DatagramSocket::inherit(&socket, workers, protocol)),
            _ => Err(io::Error::other("clients come by connections")),
        };
        let (sockets, address) = bound
            .map_err(|error| listen::named(&listen.address, listen.name.as_deref(), &error))?;
        Ok((sockets, (Address::Udp(address), protocol)))
    })?;
    let mut sockets: Vec<Vec<DatagramSocket>> = (0..workers).map(|_| Vec::new()).collect();
    let mut addresses = Vec::new();
    for (of_workers, address) in bound {
        for (worker, socket) in sockets.iter_mut().zip(of_workers) {
            worker.push(socket);
        }
        addresses.push(address);
    }
    Ok((sockets, addresses))
}

/// The threads of what the settings ask for beside the workers.
fn spawn_beside(
    threads: &mut Threads,
    shared: &Arc<ServerState>,
    metrics: Option<Endpoint>,
    control: Option<Control>,
    readers: Option<sharing::Endpoint>,
) -> io::Result<()> {
    if let Some(endpoint) = metrics {
        let reported = Arc::clone(shared);
        threads.spawn("metrics".to_owned(), move || endpoint.run(&reported))?;
    }
    if let Some(control) = control {
        let given = Arc::clone(shared);
        threads.spawn("handover".to_owned(), move || control.run(&given))?;
    }
    if let Some((path, every)) = shared.config.persistence.save.clone() {
        let saved = Arc::clone(shared);
        threads.spawn("save".to_owned(), move || {
            persistence::save_now_and_then(&saved, &path, every);
            Ok(())
        })?;
    }
    if let Some(endpoint) = readers {
        let read = Arc::clone(shared);
        threads.spawn("readers".to_owned(), move || endpoint.run(&read))?;
    }
    Ok(())
}

fn spawn_all(
    threads: &mut Threads,
    shared: &Arc<ServerState>,
    acceptor: Acceptor,
    polls: Vec<Poll>,
    datagrams: Vec<Vec<DatagramSocket>>,
) -> io::Result<()> {
    for (number, (poll, sockets)) in polls.into_iter().zip(datagrams).enumerate() {
        let own = Arc::clone(&shared.workers[number]);
        let worker = Worker::new(Arc::clone(shared), own, poll, sockets);
        threads.spawn(format!("worker-{number}"), move || worker.run())?;
    }
    if shared.security.tls.is_some() {
        let refreshed = Arc::clone(shared);
        threads.spawn_apart("certificates".to_owned(), move || {
            let ServerState {
                security,
                telemetry,
                shutdown,
                ..
            } = &*refreshed;
            // Unwind safe: new certificates take the place of the old ones in one step, or do not.
            security.refreshes.serve(shutdown, || {
                let read = AssertUnwindSafe(|| security.refresh_newest_certificates(telemetry));
                catch_unwind(read).unwrap_or(false)
            });
            Ok(())
        })?;
    }
    let maintained = Arc::clone(shared);
    threads.spawn("maintenance".to_owned(), move || {
        maintenance::run(&maintained);
        Ok(())
    })?;
    threads.spawn("acceptor".to_owned(), move || acceptor.run())
}

/// A running server. Dropping this does not stop it.
pub struct ServerHandle {
    addresses: Vec<(Address, Protocol)>,
    /// The addresses with TLS, and how they verify clients.
    secured: Vec<(Address, Verify)>,
    metrics_addresses: Vec<SocketAddr>,
    controls: Controls,
    shutdown: Shutdown,
    threads: Vec<JoinHandle<io::Result<()>>>,
    /// For the watchdog, which bounds the end after a panic.
    signs: Signs,
    /// For the items, which go to files at the end.
    items: Arc<ServerState>,
    /// The right to the file of a restart.
    claim: Option<Claim>,
    /// Tells successors that this server has not ended.
    alive: Option<Alive>,
}

impl ServerHandle {
    /// The addresses at which it listens and their protocols, in the order of [`Config::listeners`], with real ports.
    /// The unspecified IPv6 address is left out on machines without IPv6.
    pub fn addresses(&self) -> &[(Address, Protocol)] {
        &self.addresses
    }

    /// The addresses at which it listens for clients of the protocols that `is_it` accepts.
    pub fn addresses_of(&self, is_it: impl Fn(Protocol) -> bool) -> impl Iterator<Item = &Address> {
        addresses_of(&self.addresses, is_it)
    }

    /// How it verifies clients at this address, if they use TLS.
    pub fn tls_at(&self, address: &Address) -> Option<Verify> {
        let mut secured = self.secured.iter();
        secured
            .find(|(secured, _)| secured == address)
            .map(|(_, verify)| *verify)
    }

    /// The addresses of its metrics, with real ports.
    pub fn metrics_addresses(&self) -> &[SocketAddr] {
        &self.metrics_addresses
    }

    /// Begins a graceful stop: the server accepts no more connections, answers the requests that it has read, and
    /// closes everything within a second. Returns at once.
    pub fn shutdown(&self) {
        self.shutdown.request();
    }

    /// A handle that stops this server from any thread, a signal handler's for instance ([`Signals`](crate::Signals)).
    pub fn stopper(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// A handle that changes settings of this server from any thread.
    pub fn controls(&self) -> Controls {
        self.controls.clone()
    }

    /// Waits for the end. Then leaves the items for the next server, and a last copy, if the settings ask for these:
    /// also after a failure, then within bounded time. If the end makes no progress after a panic, the process ends with
    /// exit code 3: a lock of the engine may be held for ever.
    ///
    /// Errors: the failure that ended the server, if it was no requested stop; items that could not be written.
    pub fn join(self) -> io::Result<()> {
        let mut outcome = Ok(());
        for thread in self.threads {
            let ended = thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread of the server panicked")));
            outcome = outcome.and(ended);
        }
        let items = &self.items;
        // After a handover the other process has them.
        if items.pause.is_handed_over() {
            return outcome;
        }
        let has_failed = outcome.is_err();
        if has_failed {
            tracing::error!("the server has failed, and saves the items that it can");
            self.signs.send();
        }
        let mut patience = persistence::patience();
        let mut progress = || {
            patience();
            if has_failed {
                self.signs.send();
            }
        };
        let mut leave = |claim: &Claim| claim.leave(items, &mut progress);
        let left = unless_it_panics(|| self.claim.as_ref().map_or(Ok(()), &mut leave));
        // Try this also if the other file could not be written: this one may be on another disk.
        let saved = unless_it_panics(|| persistence::save_at_the_end(items, &mut progress));
        drop(self.alive);
        outcome.and(left).and(saved)
    }
}

/// Saves, if what a panic may have left of the engine allows that.
///
/// What a panic inside of an engine leaves, by engine:
///
/// * `cuckoo`, `chained`: stripes and locks are released by their guards. A value is complete before its slot refers to
///   it, and a slot is one word: so an item is the old one or the new one. A change of several words (a displacement, a
///   swap of pages) keeps the item reachable at each step, for readers do not lock. A page that was being moved may stay
///   pinned. Counts may be off by what was under way.
/// * `lockhash`: the guards of a partition and of a bucket release both, and there is no poison. A new element is linked when
///   it is complete.
/// * `cphash`: a client that panics waits for its answers and drops them. A server thread that panics releases its leases and
///   raises an alarm, at which every call panics instead of waiting: so may this save, and that is caught here.
///
/// A file under construction that is given up stays unfinished, and the one of before as it was. A save that waits for ever
/// is the watchdog's.
fn unless_it_panics(save: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // Unwind safe: nothing looks at the items afterwards but another save, of which the same holds.
    catch_unwind(AssertUnwindSafe(save))
        .unwrap_or_else(|_| Err(io::Error::other("the save of the items panicked")))
}
