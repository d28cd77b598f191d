//! What a protocol can use while it takes requests from a turn's input, and how the turn goes on.

use std::cell::Cell;
use std::os::fd::RawFd;
use std::sync::Arc;

use bumpalo::Bump;
use nuthatch_channels::tracking::Tracker;
use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::reply::LastReply;
use nuthatch_engine::{
    AnyHandle, AnyValue, Engine, Expiry, Handle, Inspect, Key, KeyHasher, Op, Present, Replies,
    Reply, Request, Store, StoreMode, Time,
};
use nuthatch_protocol::Limits;
use nuthatch_resp::{Error, Moment, check_key_len};
use nuthatch_security::guesses::{self, Credentials, Origin};
use nuthatch_security::passwords::Role;
use nuthatch_settings::administration::Action;
use nuthatch_state::changes::{self, Changes, Naming};
use nuthatch_state::key_events::Event;
use nuthatch_state::reports::{self as reports, Outcome};
use nuthatch_state::server_state::ServerState;
use nuthatch_state::telemetry::StatSink;
use nuthatch_state::telemetry::connections::Info;
use nuthatch_state::telemetry::counters::WorkerCounters;
use nuthatch_state::telemetry::watch::Kind;
use nuthatch_state::telemetry::watch::line::Lines;
use nuthatch_state::telemetry::watch::replies::{WatchedReplies, look_up};
use nuthatch_state::worker::SharedWorker;

use crate::answers::{self, ReplyFormat};
use crate::batch::{Batch, PendingReply};
use crate::counting::{self, Counted, Counts};
use crate::executing;
use crate::expiry;
use crate::partial::PartialValue;
use crate::turn::Turn;
use crate::work::Work;

/// What a request can use. `'a` is the lifetime of the iteration's inputs.
pub struct Context<'w, 'a> {
    /// The server.
    pub shared: &'w ServerState,
    /// The worker's access to the engine.
    pub handle: &'w mut AnyHandle,
    /// The iteration's batch.
    pub batch: &'w mut Batch<'a>,
    /// The memory for keys that are decoded, because the input does not have them as they are.
    pub decoded: &'a Bump,
    /// The engine's hash function for keys.
    pub hasher: &'w KeyHasher,
    /// The worker's counters.
    pub counters: &'w WorkerCounters,
    /// The socket of the running turn's connection, for logs.
    pub socket: RawFd,
    /// The part of the worker that other threads share.
    pub worker: &'w Arc<SharedWorker>,
    /// The limits on values.
    pub limits: Limits,
    /// The namespace of the running turn's database.
    pub namespace: Namespace,
    /// When the iteration began.
    pub now: Time,
    /// [`Context::present`], once a request has needed it.
    pub present: Cell<Option<Present>>,
    /// The turn that is running.
    pub turn: u32,
    /// The connection of the running turn.
    pub info: &'w Info,
    /// Who is told when what the running turn's request reads has changed.
    pub tracker: Option<Arc<Tracker>>,
    /// The event that what the running turn's request executes at once is.
    pub naming: Naming,
    /// Requests that write wait: see [`hold`](nuthatch_state::hold).
    pub holds_writes: bool,
    /// The request is a script's: nothing that it does is shown as its connection's.
    pub in_script: bool,
    /// The work that was done at once for the running turn and is not taken off its share yet.
    pub work: Work,
}

/// The most bytes of an item's header in any engine.
const ITEM_HEADER_MAX: usize = 64;

impl<'a> Context<'_, 'a> {
    /// The engine's key of a client's key, with its hash.
    #[inline]
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k>
    where
        'a: 'k,
    {
        match self.namespace.leaves(bytes) {
            true => Key::new(bytes, self.hasher),
            false => self.prefixed(bytes),
        }
    }

    /// The same, where they differ. The copy lives as long as the batch.
    #[inline(never)]
    fn prefixed(&self, bytes: &[u8]) -> Key<'a> {
        self.shared.databases.note_use(self.namespace);
        let prefix = self.namespace.prefix();
        let len = prefix.bytes().len() + bytes.len();
        let stored = self.decoded.alloc_slice_fill_copy(len, 0);
        let (front, name) = stored.split_at_mut(prefix.bytes().len());
        front.copy_from_slice(prefix.bytes());
        name.copy_from_slice(bytes);
        Key::new(stored, self.hasher)
    }

    /// Adds a request of the running turn to the batch.
    #[inline]
    pub fn push(&mut self, turn: &mut Turn, key: &'a [u8], op: Op<'a>, format: ReplyFormat) {
        let pending = PendingReply {
            turn: self.turn,
            format,
        };
        let key = self.key(key);
        self.handle.prefetch(&key);
        self.batch.push(key, op, pending);
        turn.in_batch += 1;
    }

    /// The same with a batch of its own, for requests of the running turn that are executed at once: the iteration's
    /// batch holds requests of other turns.
    pub fn with_batch<'s>(&'s mut self, batch: &'s mut Batch<'a>) -> Context<'s, 'a> {
        Context {
            shared: self.shared,
            handle: &mut *self.handle,
            batch,
            turn: 0,
            present: self.present.clone(),
            work: Work::default(),
            tracker: self.tracker.clone(),
            ..*self
        }
    }

    /// The same for a request of a script, with inputs of its own, which live shorter than the iteration's.
    pub fn apart<'s, 'b>(
        &'s mut self,
        batch: &'s mut Batch<'b>,
        decoded: &'b Bump,
    ) -> Context<'s, 'b> {
        Context {
            shared: self.shared,
            handle: &mut *self.handle,
            batch,
            decoded,
            hasher: self.hasher,
            counters: self.counters,
            socket: self.socket,
            worker: self.worker,
            limits: self.limits,
            namespace: self.namespace,
            now: self.now,
            present: self.present.clone(),
            turn: 0,
            info: self.info,
            tracker: self.tracker.clone(),
            naming: self.naming,
            // What runs apart has begun, and nobody else has a turn before its end.
            holds_writes: false,
            in_script: true,
            work: Work::default(),
        }
    }

    /// The present from which the lifetimes of the running turn's requests count: read once, after its input has
    /// arrived, because the exact clock costs as much as a get.
    #[inline]
    pub fn present(&self) -> Present {
        self.present.get().unwrap_or_else(|| {
            let present = self.shared.clock.present();
            self.present.set(Some(present));
            present
        })
    }

    /// The expiry that a number of memcached's clients means at the present time.
    pub fn expiry(&self, seconds: impl Into<i64>) -> Expiry {
        let clock = &self.shared.clock;
        expiry::memcached::expiry(seconds.into(), || self.present(), || clock.wall())
    }

    /// The expiry that a moment of Redis' clients means at the present time.
    pub fn expiry_at(&self, moment: Moment) -> Expiry {
        expiry::resp::expiry(moment, self.present(), &self.shared.clock)
    }

    /// No room for another request of the running turn.
    #[inline]
    pub fn batch_is_full(&self, turn: &Turn) -> bool {
        self.batch.is_full() || turn.in_batch >= turn.in_batch_max
    }

    /// Takes the work that was done at once off the running turn's share.
    pub fn charge(&mut self, turn: &mut Turn) {
        turn.spend(std::mem::take(&mut self.work));
    }

    /// Takes what a store in the batch will cost beyond its own bytes off the running turn's share: an append copies
    /// the value that is there, and a batch of them may do so a thousand times. A value that the same batch makes
    /// longer is not longer than the input.
    #[inline]
    pub fn weigh(&mut self, turn: &mut Turn, key: &[u8], store: &Store<'_>) {
        if extends(store) {
            let old_len = self.old_len(key);
            turn.spend(Work::of_bytes(old_len));
        }
    }

    /// Bytes of the value that is there.
    pub fn old_len(&mut self, key: &[u8]) -> usize {
        let key = self.key(key);
        let _lock = self.worker.lock.take();
        look_up(self.handle, self.now, key).unwrap_or_default()
    }

    /// True if an engine could refuse a value that replaces any existing one: then the old value must be removed before
    /// its connection's next request, so that request waits until the batch is over. If the engine evicts, a store
    /// finds no memory only if readers pin all of it. Then the old value is removed after the batch, and requests in
    /// between may still see it.
    #[inline]
    pub fn may_refuse(&self, key: &[u8], value: &[u8]) -> bool {
        let len = key.len() + value.len() + ITEM_HEADER_MAX;
        len > self.limits.value_max || !self.shared.engine.evicts()
    }

    /// True if the name and password admit the running turn's client. For a peer that has guessed too often they are
    /// not checked, and the connection is closed.
    #[cold]
    pub fn login(&self, turn: &mut Turn, said: Credentials<'_>) -> bool {
        self.counters.auth_cmds.bump();
        let origin = Origin::of(self.info.peer().ip());
        if !self.shared.security.guesses.are_left(origin, self.now) {
            self.counters.auth_errors.bump();
            self.counters.auth_limited.bump();
            turn.closing = true;
            return false;
        }
        match said.and_then(|(name, password)| self.shared.security.admits(name, password)) {
            Some(role) => {
                self.info.set_administrator(role == Role::Administrator);
                true
            }
            None => {
                self.counters.auth_errors.bump();
                turn.closing |= self.note_failure(origin, said);
                false
            }
        }
    }

    /// True if the running turn's client may do this to the server.
    #[cold]
    pub fn may(&self, action: Action) -> bool {
        let live = self.shared.live.load();
        live.lets(action, self.info.is_administrator())
    }

    /// True if the memory limit may become this for the running turn's client. Where nobody may flush, a limit below
    /// the memory in use is refused: it would evict items, and a small one nearly all.
    #[cold]
    pub fn may_limit_memory_to(&self, bytes: usize) -> bool {
        let used = || self.shared.engine.stats().memory_used;
        self.shared.live.load().allow_flush || bytes as u64 >= used()
    }

    /// Counts a wrong password as a guess, and logs it. True if the peer may try no other password for now.
    fn note_failure(&self, origin: Origin, said: Credentials<'_>) -> bool {
        tracing::warn!(peer = %self.info.peer(), "a login failed");
        let was_last = self.shared.security.guesses.spend(origin, said, self.now);
        if was_last {
            tracing::warn!(
                peer = %origin,
                seconds = guesses::SPAN.as_secs(),
                "too many wrong passwords: no login of this peer is looked at for a while"
            );
        }
        was_last
    }

    /// Tells the statistics of a topic to the running turn's client.
    pub fn report_stats(&self, topic: &[u8], sink: &mut StatSink<'_>) -> Outcome {
        reports::write(self.shared, self.info, self.now, topic, sink)
    }

    /// Counts a request of a Redis client that no item can fulfil. Frameworks swallow such an error: then this count
    /// alone shows it.
    pub fn count_refusal(&self, error: &Error<'_>) {
        if matches!(error, Error::KeyTooLong(_)) {
            self.counters.key_too_long.bump();
        } else if *error == Error::TOO_LARGE {
            self.counters.store_too_large.bump();
        }
    }

    /// Checks the length of a Redis client's key that no parser has checked, and counts a refusal.
    pub fn check_key(&self, key: &[u8]) -> Result<(), Error<'static>> {
        check_key_len(key.len(), self.limits.key_max).inspect_err(|error| self.count_refusal(error))
    }

    /// Counts a request of the running turn that is in no batch.
    pub fn count(&self, counted: impl Into<Counted>, request: counting::Request<'_>) {
        let counted = counted.into();
        let of_worker = &self.worker.prefixes;
        let prefixes = match counted.by_prefix {
            true => self
                .shared
                .telemetry
                .prefixes
                .recorder(of_worker, self.hasher),
            false => None,
        };
        let counters = self.counters;
        Counts { counters, prefixes }.count(counted, request);
    }

    /// True if another worker's script of Lua runs for long. Until then its caller waits here, so that what it does next does not
    /// sleep behind the script: this worker still has to hear SCRIPT KILL.
    #[inline]
    pub fn is_script_in_the_way(&self) -> bool {
        self.shared.config.lua
            && self.shared.scripting.running.is_there()
            && self.is_script_longer()
    }

    #[cold]
    fn is_script_longer(&self) -> bool {
        let taken = self.worker.lock.take_unless(|| self.shared.is_busy());
        taken.is_none()
    }

    /// Makes all items of all databases that exist at `at` expire then. Waits while another worker has the engine to itself.
    /// Errors: those of [`Engine::try_flush`].
    pub fn flush(&mut self, at: Time) -> Result<(), Reply> {
        let lock = self.worker.lock.take();
        let (told, done) = self.shared.flush(self.now, at);
        drop(lock);
        self.work.add(Work::of_places(told));
        done
    }

    /// [`executing::forget`] of a key of the running turn's database.
    pub fn forget(&mut self, key: &[u8]) {
        let key = self.key(key);
        let lock = self.worker.lock.take();
        let told = executing::forget(self.shared, self.handle, key, self.now);
        drop(lock);
        self.work.add(Work::of_places(told));
    }

    /// Executes requests of the running turn on the engine at once. Watchers are told.
    pub fn execute<R: Replies<AnyValue>>(&mut self, requests: &[Request<'_>], replies: &mut R) {
        let stored = requests.iter().map(|request| match &request.op {
            Op::Store(store) => store.value.len(),
            _ => 0,
        });
        self.work.add(Work::of_bytes(stored.sum()));
        self.worker.hot.look(requests, self.hasher);
        let _lock = self.worker.lock.take();
        if !self.shared.is_watched() {
            return self.handle.execute(self.now, requests, replies);
        }
        let number = self.shared.number_of(self.info);
        let engine = &self.shared.engine;
        let hub = &self.shared.telemetry.watchers;
        if let Some(tracker) = &self.tracker {
            let tracking = &self.shared.tracking;
            tracking.remember(tracker, changes::reads(requests));
        }
        let mut watched = WatchedReplies {
            inner: replies,
            lines: Lines::new(hub),
            changes: Changes::new(self.shared, self.naming),
            requests,
            connection: &|_| number,
            removal: &|_| answers::REMOVAL,
            footprint: &|key_len, value_len| engine.footprint(key_len, value_len),
            now: self.now,
            value_len: None,
            item: None,
        };
        watched.execute(self.handle);
        let mut told = 0;
        watched.publish(hub, |_, _, count| told += count);
        self.work.add(Work::of_places(told));
    }

    /// Does something whose changes are told as events of another name.
    pub fn named<T>(&mut self, naming: Naming, body: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.naming, naming);
        let result = body(self);
        self.naming = before;
        result
    }

    /// Tells subscribers what has happened to a key of the running turn's database.
    pub fn tell_event(&mut self, event: Event, key: &[u8]) {
        let events = &self.shared.key_events;
        if events.is_used() {
            let told = events.tell(&self.shared.databases, event, self.key(key).bytes());
            self.work.add(Work::of_places(told));
        }
    }

    /// Begins a store whose value is too long to await in a buffer. Errors: those of [`Handle::reserve`], counted.
    pub fn reserve(&mut self, key: &[u8], value_len: usize) -> Result<PartialValue, Reply> {
        self.reserve_beside(key, value_len, 0)
    }

    /// The same for a value that is made from another, of which the engine keeps `pinned` bytes meanwhile.
    pub fn reserve_beside(
        &mut self,
        key: &[u8],
        value_len: usize,
        pinned: usize,
    ) -> Result<PartialValue, Reply> {
        let reserved = self.try_reserve(key, value_len, pinned);
        reserved.inspect_err(|reply| self.counters.count_failure(reply))
    }

    fn try_reserve(
        &mut self,
        key: &[u8],
        value_len: usize,
        pinned: usize,
    ) -> Result<PartialValue, Reply> {
        // Before the engine reserves: to make room it may evict.
        let share = self.shared.begin_upload(value_len, pinned);
        let share = share.ok_or(Reply::OutOfMemory)?;
        let key = self.key(key);
        self.work.add(Work::of_room(value_len));
        let reservation = self.handle.reserve(self.now, key, value_len)?;
        Ok(PartialValue::new(
            reservation,
            share,
            self.namespace,
            self.now,
        ))
    }

    /// Stores a complete value that was reserved for `key`, and counts that. Watchers are told.
    pub fn commit(
        &mut self,
        key: &[u8],
        value: PartialValue,
        store: &Store<'_>,
        counted: impl Into<Counted>,
    ) -> Reply {
        let value_len = value.value_len();
        let lock = self.worker.lock.take();
        let lookup = (self.shared.telemetry.watchers.wanted().has(Kind::Fetches))
            .then(|| look_up(self.handle, self.now, self.key(key)));
        let reply = self.handle.commit(self.now, value.reservation, store);
        drop(lock);
        self.shared.databases.note_stored(value.namespace);
        if let (true, Reply::Stored(item)) = (extends(store), &reply) {
            self.work.add(Work::of_bytes(item.value_len));
        }
        drop(value.share);
        let request = Request {
            key: self.key(key),
            op: Op::Store(*store),
        };
        self.worker.hot.look(&[request], self.hasher);
        let told = self.notify(request, lookup, &reply);
        self.work.add(Work::of_places(told));
        let request = counting::Request::replied(key, value_len, &reply);
        self.count(counted, request);
        reply
    }

    /// Tells watchers of a store that was refused before its value was read.
    pub fn notify_refused(&self, key: &[u8], store: &Store<'_>, reply: &Reply) {
        let request = Request {
            key: self.key(key),
            op: Op::Store(*store),
        };
        self.notify(request, None, reply);
    }

    /// Tells watchers, if there are any, of a request that is in no batch, and of its lookup if there was one.
    /// Returns how many clients are told that its key has changed.
    fn notify(&self, request: Request<'_>, lookup: Option<Option<usize>>, reply: &Reply) -> usize {
        if !self.shared.is_watched() {
            return 0;
        }
        let engine = &self.shared.engine;
        let mut watched = WatchedReplies {
            inner: &mut LastReply(Reply::Miss),
            lines: Lines::new(&self.shared.telemetry.watchers),
            changes: Changes::new(self.shared, self.naming),
            requests: &[request],
            connection: &|_| self.shared.number_of(self.info),
            removal: &|_| answers::REMOVAL,
            footprint: &|key_len, value_len| engine.footprint(key_len, value_len),
            now: self.now,
            value_len: None,
            item: None,
        };
        if let Some(found) = lookup {
            watched.fetch(0, found);
        }
        watched.note(0, reply);
        let mut told = 0;
        watched.publish(&self.shared.telemetry.watchers, |_, _, count| told += count);
        told
    }
}

/// True if a store copies the value that is there.
#[inline]
fn extends(store: &Store<'_>) -> bool {
    matches!(store.mode, StoreMode::Append | StoreMode::Prepend)
}
