//! Processes that read the engine's memory (`--shared`): a unix socket at which they get its descriptor.
//!
//! A thread of its own answers each reader once, and keeps the connection: that it closes tells the reader that this
//! server has ended, and the server that the reader has. Who says anything else than its one message, or nothing for
//! [`PATIENCE`], is dropped.

use std::io::{self, ErrorKind, IoSlice, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::{UnixListener, UnixStream};
use mio::{Events, Interest, Poll, Token, Waker};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use nuthatch_base::memory::shared::{self, HUGE_PAGES};
use nuthatch_engine::hints::Hints;
use nuthatch_engine::sharing::{Asks, HELLO_BYTES, Sharing, answer, check_hello};
use nuthatch_engine::{AnyEngine, Engine};
use nuthatch_ring::{End, Offer, Served};
use nuthatch_settings::config::{Config, Protocol};
use nuthatch_state::server_state::ServerState;
use nuthatch_state::shutdown::Shutdown;
use nuthatch_state::stream::{Socket, Stream};
use nuthatch_state::telemetry::connections::Peer;
use nuthatch_state::worker::Arrival;
use slab::Slab;

use crate::sys::peer;
use crate::unix_path::{Replaced, UnixPath};

/// How long a client may take for its message.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the server rests when it cannot accept.
const REST: Duration = Duration::from_millis(100);

/// How often the server looks at what its readers use.
const PAUSE_OF_HINTS: Duration = Duration::from_millis(100);

/// Connections that wait to be accepted.
const BACKLOG: i32 = 64;

const LISTENER: Token = Token(usize::MAX);
const WAKE: Token = Token(usize::MAX - 1);

/// The socket of the readers, and those that are connected.
pub(crate) struct Endpoint {
    poll: Poll,
    listener: UnixListener,
    file: UnixPath,
    replaced: Option<Replaced>,
    /// To be read from; sent to each.
    memory: OwnedFd,
    clients: Slab<Client>,
    clients_max: usize,
    /// Each ring pair holds one: a client may have left without its ring.
    permit: Arc<()>,
    /// Clients may wait to be accepted: events are edge-triggered, and none repeats it.
    may_wait: bool,
}

/// A connected process.
struct Client {
    stream: UnixStream,
    /// Of its process.
    user: u32,
    since: Instant,
    /// What it has said so far.
    said: Vec<u8>,
    /// What it tells of the items that it uses, once it is welcome.
    hints: Option<Hints>,
}

impl Endpoint {
    /// Listens where the settings say, if they do. Errors name the flag: the engine's memory is not shared; the socket
    /// cannot be made; another server listens there, whose place this one does not take (`takes_over`).
    pub(crate) fn bind(
        config: &Config,
        engine: &AnyEngine,
        takes_over: bool,
        shutdown: &Shutdown,
    ) -> io::Result<Option<Self>> {
        let Some(path) = &config.shared else {
            return Ok(None);
        };
        let named = |error: io::Error| {
            let words = format!("--shared {}: {error}", path.display());
            io::Error::new(error.kind(), words)
        };
        let sharing = engine.sharing().ok_or_else(|| {
            let words = format!(
                "the memory of the engine {} cannot be shared",
                engine.name()
            );
            named(io::Error::new(ErrorKind::Unsupported, words))
        })?;
        warn_of_small_pages();
        if config.auth_file.is_some() {
            tracing::warn!(
                "--shared: who may connect there reads all items without a password (-Y); stores and commands ask for one"
            );
        }
        let replaced = Replaced::make_room(path, takes_over).map_err(named)?;
        let made = Self::at(path, config, &*sharing, shutdown).map_err(named)?;
        Ok(Some(Self { replaced, ..made }))
    }

    fn at(
        path: &Path,
        config: &Config,
        sharing: &dyn Sharing,
        shutdown: &Shutdown,
    ) -> io::Result<Self> {
        let (socket, file) = UnixPath::listen(path, config.shared_mask, BACKLOG)?;
        let mut listener = UnixListener::from_std(socket.into());
        let poll = Poll::new()?;
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        shutdown.wake_also(Arc::new(Waker::new(registry, WAKE)?))?;
        Ok(Self {
            poll,
            listener,
            file,
            replaced: None,
            memory: sharing.file().to_read()?,
            clients: Slab::new(),
            clients_max: config.shared_clients.get(),
            permit: Arc::new(()),
            may_wait: false,
        })
    }

    /// The socket that had the path before, until this server serves.
    pub(crate) fn take_replaced(&mut self) -> Option<Replaced> {
        self.replaced.take()
    }

    /// Serves readers until the server stops.
    pub(crate) fn run(mut self, shared: &ServerState) -> io::Result<()> {
        let mut events = Events::with_capacity(64);
        while !shared.shutdown.is_requested() {
            match self.poll.poll(&mut events, self.patience()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.may_wait = true,
                    WAKE => {}
                    Token(id) => self.hear(id, shared),
                }
            }
            if self.may_wait {
                self.accept_all(shared);
            }
            self.drop_silent(shared);
            self.heed_hints(shared);
            let readers = self.clients.iter().filter(|(_, client)| client.reads());
            let count = readers.count();
            shared.telemetry.accepting.set_readers(count);
        }
        // A handover has done so earlier, before the other process served.
        end(shared);
        self.file.remove();
        Ok(())
    }

    /// How long to wait for events: until the next look at hints, or until the first client that is silent is dropped.
    fn patience(&self) -> Option<Duration> {
        let patience = |client: &Client| match client.hints {
            Some(_) => PAUSE_OF_HINTS,
            None => PATIENCE.saturating_sub(client.since.elapsed()),
        };
        let clients = self.clients.iter().map(|(_, client)| patience(client));
        clients.chain(self.may_wait.then_some(REST)).min()
    }

    /// Marks the items that readers have used, unless the server pauses.
    fn heed_hints(&self, shared: &ServerState) {
        let Some(_step) = shared.pause.step_behind_the_scenes() else {
            return;
        };
        let all = self
            .clients
            .iter()
            .filter_map(|(_, client)| client.hints.as_ref());
        let mut uses = 0;
        for address in all.flat_map(Hints::take) {
            shared.engine.note_use(address);
            uses += 1;
        }
        shared.telemetry.accepting.shared_uses.add(uses);
    }

    fn accept_all(&mut self, shared: &ServerState) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if let Err(why) = self.enter(stream, shared) {
                        shared.telemetry.accepting.rejected_shared_readers.bump();
                        tracing::warn!("a reader of shared memory is refused: {why}");
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.may_wait = false;
                    return;
                }
                Err(error) => {
                    // No descriptor is left, or the like.
                    tracing::warn!(%error, "accepting readers of shared memory");
                    return;
                }
            }
        }
    }

    /// Admits a client that has not said anything yet. Errors: why not, which it is told as well.
    fn enter(&mut self, mut stream: UnixStream, shared: &ServerState) -> Result<(), String> {
        let user = peer::user(&stream).map_err(|error| error.to_string())?;
        let is_own = user == 0 || user == nix::unistd::geteuid().as_raw();
        let refusal = if !is_own && !shared.live.load().lets_user(user) {
            Some("processes of this user may not read this server's memory (-o unix_peers)")
        } else if self.clients.len() >= self.clients_max {
            Some("too many processes read this server's memory (--shared-clients)")
        } else {
            None
        };
        if let Some(words) = refusal {
            let _ = send(&stream, &answer(Some(words)), &[]);
            return Err(format!("a process of user {user}: {words}"));
        }
        let entry = self.clients.vacant_entry();
        self.poll
            .registry()
            .register(&mut stream, Token(entry.key()), Interest::READABLE)
            .map_err(|error| error.to_string())?;
        entry.insert(Client {
            stream,
            user,
            since: Instant::now(),
            said: Vec::with_capacity(HELLO_BYTES),
            hints: None,
        });
        Ok(())
    }

    /// Reads what a client says.
    fn hear(&mut self, id: usize, shared: &ServerState) {
        let Some(client) = self.clients.get_mut(id) else {
            return;
        };
        let make = || ring(shared, &self.permit, self.clients_max);
        let accepting = &shared.telemetry.accepting;
        loop {
            match client.hear(&self.memory, make) {
                Ok(Heard::All) => return,
                Ok(Heard::Welcome(ring)) => {
                    accepting.total_shared_readers.bump();
                    // Before it is heard on: who has left keeps the ring.
                    if let Some(ring) = ring {
                        hand_on(ring, shared);
                    }
                }
                Err(why) => {
                    let user = client.user;
                    if !why.is_empty() {
                        accepting.rejected_shared_readers.bump();
                        client.refuse(&why);
                        tracing::warn!(user, "a reader of shared memory is dropped: {why}");
                    }
                    self.clients.remove(id);
                    return;
                }
            }
        }
    }

    fn drop_silent(&mut self, shared: &ServerState) {
        self.clients.retain(|_, client| {
            let stays = client.reads() || client.since.elapsed() < PATIENCE;
            if !stays {
                shared.telemetry.accepting.rejected_shared_readers.bump();
                let (user, why) = (client.user, "it said nothing");
                client.refuse(why);
                tracing::warn!(user, "a reader of shared memory is dropped: {why}");
            }
            stays
        });
    }
}

/// What a client has said.
enum Heard {
    /// Its message, which was answered: with a ring, if it has asked for one.
    Welcome(Option<Served>),
    /// No more than that.
    All,
}

impl Client {
    /// Reads what has come, and answers the message once it is whole. Errors: it leaves, or is to leave, and why.
    fn hear(
        &mut self,
        memory: &OwnedFd,
        make: impl Fn() -> Result<(Served, Offer), String>,
    ) -> Result<Heard, String> {
        loop {
            let mut bytes = [0; HELLO_BYTES + 1];
            let room = HELLO_BYTES - self.said.len();
            let len = match self.stream.read(&mut bytes[..=room]) {
                Ok(0) => return Err(String::new()),
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Heard::All),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.to_string()),
            };
            self.said.extend(&bytes[..len.min(room)]);
            let Some(said) = self.said.first_chunk() else {
                continue;
            };
            // First: another version's message may be longer.
            let asks = check_hello(said)?;
            if len > room {
                return Err("it says what nobody asked".to_owned());
            }
            let ring = match asks {
                Asks::Reads => None,
                Asks::Ring => Some(make()?),
            };
            let (ring, offer) = ring.unzip();
            self.welcome(memory, offer)
                .map_err(|error| error.to_string())?;
            tracing::info!(user = self.user, "a process reads the memory");
            return Ok(Heard::Welcome(ring));
        }
    }

    /// True if it has got the memory.
    fn reads(&self) -> bool {
        self.hints.is_some()
    }

    /// Tells it why it is not welcome. Who was welcome before is told nothing more.
    fn refuse(&self, why: &str) {
        if !self.reads() {
            let _ = send(&self.stream, &answer(Some(why)), &[]);
        }
    }

    /// Sends it the memory, hints of its own, and a ring pair if it has asked for one.
    fn welcome(&mut self, memory: &OwnedFd, offer: Option<Offer>) -> io::Result<()> {
        let (hints, file) = Hints::new()?;
        let mut descriptors = vec![memory.as_raw_fd(), file.as_raw_fd()];
        if let Some(offer) = &offer {
            descriptors.extend([offer.memory.as_raw_fd(), offer.bell.as_raw_fd()]);
        }
        send(&self.stream, &answer(None), &descriptors)?;
        self.hints = Some(hints);
        Ok(())
    }
}

/// A ring pair for one more client. Errors: why there is none.
fn ring(
    shared: &ServerState,
    permit: &Arc<()>,
    clients_max: usize,
) -> Result<(Served, Offer), String> {
    if Arc::strong_count(permit) > clients_max {
        return Err("too many rings are open (--shared-clients)".to_owned());
    }
    if shared.connections() >= shared.live.load().connections_max.get() {
        return Err("the server has too many connections (-c)".to_owned());
    }
    if shared.pause.stops_accepting() {
        return Err("the server pauses".to_owned());
    }
    let (end, offer) = End::new().map_err(|error| error.to_string())?;
    Ok((Served::new(end, Arc::clone(permit)), offer))
}

/// Hands a client's ring to the worker that has the fewest connections, as the acceptor does with sockets. It is admitted
/// by the same passwords.
fn hand_on(ring: Served, shared: &ServerState) {
    let accepting = &shared.telemetry.accepting;
    accepting.total_rings.bump();
    let now = shared.clock.now();
    let registry = &shared.telemetry.registry;
    let workers = shared.workers.iter();
    if let Some(worker) = workers.min_by_key(|worker| worker.connections()) {
        worker.leave(Arrival {
            stream: Stream::new(Socket::Ring(Box::new(ring)), None),
            info: registry.enter(Peer::Ring, None, usize::MAX, now),
            seat: None,
            protocol: Protocol::Any,
            login: shared.security.has_passwords(),
        });
    }
}

/// Sends a message, for which a new connection has room, with descriptors.
fn send(stream: &UnixStream, message: &[u8], descriptors: &[RawFd]) -> io::Result<()> {
    let control = (!descriptors.is_empty()).then_some(ControlMessage::ScmRights(descriptors));
    let sent = sendmsg::<()>(
        stream.as_raw_fd(),
        &[IoSlice::new(message)],
        control.as_slice(),
        MsgFlags::empty(),
        None,
    )?;
    match sent == message.len() {
        true => Ok(()),
        false => Err(ErrorKind::WriteZero.into()),
    }
}

/// Readers may believe what they find from now on.
pub(crate) fn begin(shared: &ServerState) {
    if let Some(sharing) = shared.engine.sharing() {
        sharing.begin(&shared.clock, shared.engine.holds_copies());
    }
}

/// Readers may not any more: this process ends, or another is about to serve.
pub(crate) fn end(shared: &ServerState) {
    if let Some(sharing) = shared.engine.sharing() {
        sharing.end();
    }
}

/// Says so if the kernel gives no huge pages to such memory.
fn warn_of_small_pages() {
    let setting = shared::huge_pages();
    if !matches!(
        setting.as_deref(),
        Some("advise" | "always" | "within_size" | "force")
    ) {
        let setting = setting.as_deref().unwrap_or("nothing");
        tracing::warn!(
            "--shared: the kernel gives no huge pages to shared memory ({HUGE_PAGES} says {setting}), and misses of the \
             processor's caches take longer; `advise` there gives them"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use nuthatch_check::naive::{Naive, Options};

    use super::*;
    use crate::{Listen, Server};

    #[test]
    fn an_engine_whose_memory_is_its_own_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shared");
        let config = Config {
            listeners: vec![Listen::tcp((Ipv4Addr::LOCALHOST, 0))],
            shared: Some(path.clone()),
            ..Config::default()
        };
        let engine = Naive::new(Options::default()).any();
        let error = Server::start(config, engine).err().unwrap().to_string();
        assert!(
            error.starts_with("--shared") && error.contains("cannot be shared"),
            "{error}"
        );
        assert!(!path.exists());
    }
}
