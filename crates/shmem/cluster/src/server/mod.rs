//! A server: it takes messages out of its rings, carries them out on its shard, and answers.
//!
//! * [`shard`]: the shard, and how blocks are changed beside clients
//! * [`pages`], [`evict`], [`retire`]: memory, eviction, and how a page changes its class
//! * [`notices`], [`watch`]: how all PEs are told of changes, and the wait until they act on them
//! * [`backoff`]: how it waits for messages
//! * [`validate`]: what is checked of a message before it is carried out
//! * [`index`]: the table; [`operate`]: the operations; [`audit`]: the invariants

mod audit;
mod backoff;
mod copies;
mod evict;
mod index;
#[cfg(loom)]
pub mod models;
mod notices;
mod operate;
mod pages;
#[cfg(test)]
mod quiescence;
mod retire;
mod shard;
#[cfg(test)]
mod standstill;
mod validate;
#[cfg(test)]
mod visits;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nuthatch_engine::{AuditError, Reply, Time};
use nuthatch_fabric::{Fabric, Gone};

use crate::bars::Bars;
use crate::block;
use crate::config::Config;
use crate::control;
use crate::layout::{LINE, Layout, TALLY};
use crate::message::{REPLY_MAX, ServerReply, ServerRequest, TimedRequest};
use crate::ring::{Broken, Receiver, Sender};
use crate::stats::{self, ServerStats};
use backoff::{Activity, IdleBackoff};
use operate::Outcome;
use shard::{Shard, Wait};
use watch::Watch;

/// Messages of a session that an iteration of the event loop takes.
const MESSAGES_MAX: usize = 64;

/// How often an operation that waits for memory is tried before it is refused, and the least time that it waits: the
/// session that it waits for may be kept from its core in the middle of direct operations.
const TRIES: u32 = 20_000;
const WAITED: Duration = Duration::from_secs(1);

/// How far a message's moment may be ahead of the first server's clock, if that clock decides. Sessions adjust their
/// moments to it, and a session that receives nothing of it goes on by its own clock: for far less than this. A moment
/// that is further ahead is a word that was written over. It would have every pair with an expiry swept, now and for
/// ever.
const AHEAD_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Buckets that are swept in an iteration in which there is nothing else to do.
const SWEPT_IDLE: usize = 1;

/// Flushes after which the sweep is brought to its end, so that no generation comes round again.
const FLUSHES_MAX: u32 = 30_000;

/// A session as its server sees it.
struct Session {
    requests: Receiver,
    replies: Sender,
    /// How often its first message found no memory, and when it first did, by the fabric's clock.
    tries: u32,
    since: u64,
    /// Its flush is among the notices up to this number. It is answered when all PEs have received these.
    flushed: Option<u64>,
    /// Its PE is gone, or its ring is broken: nothing more is read from it.
    gone: bool,
}

/// A server PE.
pub struct Server<F: Fabric> {
    shard: Shard<F>,
    sessions: Vec<Session>,
    message: Vec<u64>,
    reply: Vec<u64>,
    /// The latest moment of any message.
    now: Time,
    /// The latest moment that a message may have, if the first server's clock decides.
    latest: Option<Time>,
    /// The epoch in which holders of blocks were last searched for.
    searched: u32,
    /// Sessions that a flush waits for.
    flush_watch: Watch,
}

impl<F: Fabric> Server<F> {
    /// The server of this PE, in memory that is allocated and zero.
    pub fn new(fabric: Arc<F>, layout: Layout, config: &Config) -> Self {
        let server = fabric.pe();
        let session = |session| {
            let (pe, layout) = (layout.pe(session), &layout);
            Session {
                requests: Receiver::new(
                    pe,
                    layout.requests(session),
                    layout.requests_staged(session, server),
                ),
                replies: Sender::new(
                    pe,
                    layout.replies(session, server),
                    layout.replies_staged(session),
                ),
                tries: 0,
                since: 0,
                flushed: None,
                gone: false,
            }
        };
        Self {
            sessions: (0..layout.all_sessions).map(session).collect(),
            shard: Shard::new(fabric, layout, config),
            message: Vec::new(),
            reply: Vec::new(),
            now: Time::default(),
            latest: None,
            searched: 0,
            flush_watch: Watch::new(1),
        }
    }

    /// Serves until `stop` is true.
    pub fn run(&mut self, stop: &AtomicBool) {
        // Relaxed: the flag is all there is to see.
        self.run_until(|| stop.load(Ordering::Relaxed));
    }

    /// Serves until `stopped` returns true.
    pub fn run_until(&mut self, mut stopped: impl FnMut() -> bool) {
        let mut backoff = IdleBackoff::new(self.is_reachable());
        self.tell();
        while !stopped() {
            let activity = self.iterate();
            backoff.after(activity, &*self.shard.fabric);
        }
    }

    /// Checks every invariant. No session may access its blocks meanwhile.
    pub fn audit(&mut self) -> Result<(), AuditError> {
        self.shard.audit()
    }

    /// Its statistics.
    pub fn stats(&self) -> ServerStats {
        self.shard.stats()
    }

    /// True if every PE can load and store this PE's words. That is so if this PE can load and store the words of every
    /// PE.
    fn is_reachable(&self) -> bool {
        let (fabric, at) = (&*self.shard.fabric, self.shard.layout.bucket(0));
        (0..fabric.pes()).all(|pe| fabric.direct(pe, at, 1).is_some())
    }

    /// One iteration of the event loop: polls every session once.
    fn iterate(&mut self) -> Activity {
        let mut activity = Activity::Idle;
        if let Some(told) = self.shard.told_time() {
            self.now = self.now.max(told);
            self.latest = Some(told.after(AHEAD_MAX));
            // No client needs to send a message for that.
            self.shard.advance_epoch(self.now);
        }
        for session in 0..self.sessions.len() {
            if self.sessions[session].gone {
                continue;
            }
            match self.serve(session) {
                Ok(some) => activity = activity.max(some),
                Err(Gone { .. }) => self.lose(session),
            }
        }
        let now = self.now;
        self.shard.advance_retirement(now);
        self.look_after_holders();
        if self.shard.retirement.is_some() {
            activity = activity.max(Activity::Waiting);
        }
        if activity != Activity::Served {
            self.shard.sweep(now, SWEPT_IDLE);
        }
        self.tell();
        activity
    }

    /// Takes some of a session's messages.
    fn serve(&mut self, session: usize) -> Result<Activity, Gone> {
        let mut activity = Activity::Idle;
        for _ in 0..MESSAGES_MAX {
            let Session {
                requests, replies, ..
            } = &mut self.sessions[session];
            let fabric = &*self.shard.fabric;
            if !requests.has_message(fabric) {
                break;
            }
            activity = activity.max(Activity::Waiting);
            if !replies.has_room(fabric, REPLY_MAX) {
                self.shard.counts.rings_full += 1;
                break;
            }
            match requests.read(fabric, &mut self.message) {
                Ok(true) => {}
                Ok(false) => break,
                Err(Broken) => return self.close(session),
            }
            if !self.answer(session) {
                break;
            }
            let Session {
                requests,
                replies,
                tries,
                ..
            } = &mut self.sessions[session];
            *tries = 0;
            requests.take(self.message.len());
            replies.stage(&*self.shard.fabric, &self.reply);
            self.shard.counts.messages += 1;
            activity = Activity::Served;
        }
        if activity == Activity::Served {
            let fabric = &*self.shard.fabric;
            let Session {
                requests, replies, ..
            } = &mut self.sessions[session];
            replies.flush(fabric)?;
            requests.acknowledge(fabric)?;
        }
        Ok(activity)
    }

    /// Carries out a session's message and lays down the reply. False if it is to be tried again.
    fn answer(&mut self, session: usize) -> bool {
        let message = std::mem::take(&mut self.message);
        let timed = TimedRequest::decode(&message);
        let latest = self.latest.unwrap_or(Time::LAST);
        let is_valid = |timed: &TimedRequest<'_>| {
            timed.now <= latest && self.shard.is_valid(&timed.request, session)
        };
        let Some(timed) = timed.filter(is_valid) else {
            self.refuse(session, &message);
            self.message = message;
            return true;
        };
        self.now = self.now.max(timed.now);
        self.shard.advance_epoch(self.now);
        // A generation that is due begins before the request is carried out.
        self.shard.begin_generation_if_due(self.now);
        let done = self.carry_out(session, timed);
        // A wait for a block has no limit: its writer ends, or is gone.
        if done == Err(Wait::Memory) && self.has_waited(session) {
            self.shard.counts.out_of_memory += 1;
            if let ServerRequest::Commit(_, _, _, pointer) = timed.request {
                // As after any other refusal, the session no longer holds the block.
                self.shard.unpin(pointer, session);
            }
            ServerReply::Reply(Reply::OutOfMemory, None).encode(&mut self.reply);
            self.message = message;
            return true;
        }
        self.message = message;
        done.is_ok()
    }

    /// Counts one more try in vain. True if it was the last.
    fn has_waited(&mut self, session: usize) -> bool {
        let fabric = &*self.shard.fabric;
        let session = &mut self.sessions[session];
        if session.tries == 0 {
            session.since = fabric.nanos();
        }
        session.tries = session.tries.saturating_add(1);
        let waited = || Duration::from_nanos(fabric.nanos().wrapping_sub(session.since));
        session.tries > TRIES && waited() >= WAITED
    }

    fn carry_out(&mut self, session: usize, timed: TimedRequest<'_>) -> Result<(), Wait> {
        let (now, shard) = (timed.now, &mut self.shard);
        let outcome = match timed.request {
            ServerRequest::Op(request) => shard.operate(now, &request)?,
            ServerRequest::Copy(key, read) => shard.copy_value(now, &key, &read, session)?,
            ServerRequest::Commit(key, store, value_len, pointer) => {
                shard.commit(now, &key, &store, value_len, pointer, session)?
            }
            ServerRequest::Reserve(key, value_len) => {
                let told = match shard.reserve(now, &key, value_len, session)? {
                    Ok(pointer) => ServerReply::Reserved(pointer),
                    Err(refusal) => ServerReply::Reply(refusal, None),
                };
                told.encode(&mut self.reply);
                return Ok(());
            }
            ServerRequest::Flush(at) => {
                self.flush(session, now, at)?;
                ServerReply::Done(false).encode(&mut self.reply);
                return Ok(());
            }
            request => {
                self.manage(session, now, request);
                return Ok(());
            }
        };
        let told = match outcome {
            Outcome::Value(item, known, header) => {
                let value = block::value_bytes(&shard.scratch, &header);
                ServerReply::Value(item, known, value)
            }
            Outcome::Long => ServerReply::Long,
            Outcome::Copied(item, known) => ServerReply::Copied(item, known),
            Outcome::At(item, known) => ServerReply::At(item, known),
            Outcome::Done(done, known) => ServerReply::Reply(done, known),
        };
        told.encode(&mut self.reply);
        Ok(())
    }

    /// Carries out a message that is no operation on a key. It never waits.
    fn manage(&mut self, session: usize, now: Time, request: ServerRequest<'_>) {
        let (shard, reply) = (&mut self.shard, &mut self.reply);
        let mut more = false;
        match request {
            ServerRequest::Piece(number) => {
                ServerReply::Words(shard.copies.piece(session, number)).encode(reply);
                if shard.copies.is_last(session, number) {
                    shard.copies.drop_of(session);
                }
                return;
            }
            ServerRequest::Used(words) => shard.note_used(bytemuck::cast_slice(words)),
            ServerRequest::Maintain(budget) => {
                let round = shard.sweep(now, budget.clamp(1, shard.layout.buckets));
                more = !round && shard.counts.items > 0;
            }
            ServerRequest::Limit(bytes) => shard.set_limit(bytes),
            ServerRequest::Reset => shard.reset_counts(),
            ServerRequest::Stats => {
                return ServerReply::Words(bytemuck::bytes_of(&shard.stats())).encode(reply);
            }
            ServerRequest::Classes => {
                return ServerReply::Words(bytemuck::cast_slice(&shard.classes())).encode(reply);
            }
            ServerRequest::Overflow(bucket, from) => {
                let words = shard.overflow_of(bucket, from);
                return ServerReply::Words(bytemuck::cast_slice(&words)).encode(reply);
            }
            ServerRequest::Audit => {
                let broken = shard.audit().err();
                let text = broken.map_or_else(String::new, |broken| broken.to_string());
                let text = &text.as_bytes()[..text.len().min(1000)];
                return ServerReply::Text(text).encode(reply);
            }
            ServerRequest::Op(_)
            | ServerRequest::Copy(..)
            | ServerRequest::Reserve(..)
            | ServerRequest::Commit(..)
            | ServerRequest::Flush(_) => {
                unreachable!("it may have to wait")
            }
        }
        ServerReply::Done(more).encode(&mut self.reply);
    }

    /// Begins another generation, and is done when every client knows it. A flush at once takes two steps: first the
    /// server tells every session to leave pairs of the present generation to it, and waits for those that may not have
    /// heard it; then it changes the generation. So once one PE misses a pair by the flush, no other hits it.
    fn flush(&mut self, session: usize, now: Time, at: Time) -> Result<(), Wait> {
        if self.sessions[session].flushed.is_none() {
            // It would replace a flush whose moment has come, but of which not all PEs have heard yet.
            if self.shard.is_a_flush_late(self.now) {
                return Err(Wait::Block);
            }
            if at <= now {
                self.wait_for_sessions()?;
            }
            self.begin_generation(now, at);
            self.sessions[session].flushed = Some(self.shard.notices.latest());
        }
        let shard = &self.shard;
        let is_delivered =
            |number| shard.notices.is_delivered(number) && shard.all_flushes_are_delivered();
        if !self.sessions[session].flushed.is_none_or(is_delivered) {
            return Err(Wait::Block);
        }
        self.sessions[session].flushed = None;
        Ok(())
    }

    fn begin_generation(&mut self, now: Time, at: Time) {
        let shard = &mut self.shard;
        match at <= now {
            true => shard.flushes.begin(),
            false => shard.flush_later(at),
        }
        shard.flushes_unswept += 1;
        if shard.flushes_unswept > FLUSHES_MAX {
            while !shard.sweep(now, shard.layout.buckets) {}
        }
        self.tell();
        self.shard.flush_was_told();
    }

    /// Waits until no session still reads pairs in the belief that the present generation lasts.
    fn wait_for_sessions(&mut self) -> Result<(), Wait> {
        // A watch that was given up ends first.
        if !self.shard.flushes.under_way && self.advance_flush() {
            self.shard.flushes.under_way = true;
            self.tell();
            let notices = self.shard.notices.latest();
            self.flush_watch
                .begin(notices, self.shard.layout.all_sessions);
        }
        match self.shard.flushes.under_way && self.advance_flush() {
            true => Ok(()),
            false => Err(Wait::Block),
        }
    }

    /// Checks which sessions a flush still waits for. True if there are none.
    fn advance_flush(&mut self) -> bool {
        let Shard {
            fabric,
            layout,
            notices,
            ..
        } = &self.shard;
        self.flush_watch.advance(&**fabric, layout, notices)
    }

    /// Tells all clients what has changed.
    fn tell(&mut self) {
        let shard = &mut self.shard;
        shard.begin_generation_if_due(self.now);
        let (control, latest) = (shard.control(), shard.notices.latest());
        shard.notices.publish(control);
        if shard.notices.latest() != latest {
            let stats = ServerStats {
                tick: self.now.0.into(),
                ..shard.stats()
            };
            let tally = shard.fabric.local(shard.layout.own_tally(), TALLY);
            let (counts, bars) = tally.split_at(stats::WORDS);
            stats.lay(counts);
            Bars::new(bars).lay(shard.pages.bars(shard.epoch));
        }
        shard
            .notices
            .send(&*shard.fabric, &shard.layout, shard.server);
    }

    /// Refuses a message that is invalid.
    #[cold]
    fn refuse(&mut self, session: usize, message: &[u64]) {
        self.shard.counts.refused += 1;
        if let Some(TimedRequest {
            request: ServerRequest::Commit(_, _, _, pointer),
            ..
        }) = TimedRequest::decode(message)
        {
            // As after any other refusal, the session no longer holds the block.
            self.shard.unpin(pointer, session);
        }
        ServerReply::Refused.encode(&mut self.reply);
    }

    /// A session's ring is broken: the server tells the session, and reads nothing more from it.
    #[cold]
    fn close(&mut self, session: usize) -> Result<Activity, Gone> {
        self.shard.counts.refused += 1;
        self.lose(session);
        ServerReply::Closed.encode(&mut self.reply);
        let replies = &mut self.sessions[session].replies;
        replies.stage(&*self.shard.fabric, &self.reply);
        replies.flush(&*self.shard.fabric)?;
        Ok(Activity::Served)
    }

    /// Gives a session up: its PE is gone, or its ring is broken.
    fn lose(&mut self, session: usize) {
        self.sessions[session].gone = true;
        self.shard.forsake(session);
        // It may have asked for the flush that is under way. If another session did, that flush begins again.
        self.flush_watch.give_up();
        self.shard.flushes.under_way = false;
    }

    /// Checks once an epoch whether sessions that hold blocks are gone: a dead session sends no message.
    fn look_after_holders(&mut self) {
        if self.searched == self.shard.epoch {
            return;
        }
        self.searched = self.shard.epoch;
        for session in self.shard.long_holders() {
            if self.shard.fabric.is_gone(self.shard.layout.pe(session)) {
                self.lose(session);
            }
        }
    }
}

const _: () = assert!(control::NUMBER < LINE);

// A pair may be older by as many flushes as there are in two sweeps.
const _: () = assert!(2 * (FLUSHES_MAX + 1) < (1 << 16) - block::YOUNGER_MAX as u32);

#[cfg(test)]
mod tests {
    use nuthatch_base::sync::clock::TICKS_PER_SECOND;
    use nuthatch_engine::{Expiry, Key, Op, Read, Removal, Request, Store, StoreMode};
    use nuthatch_fabric::threads::{Network, ThreadsFabric};

    use super::*;
    use crate::block::{CHECK, Tail};
    use crate::bucket::{Entry, Pointer};

    use crate::config::Clocks;
    const NOW: Time = Time(1000);

    /// A server on three PEs. Of its sessions only the messages exist.
    fn server() -> (Arc<Network>, Server<ThreadsFabric>) {
        server_of(128 << 10)
    }

    fn server_of(memory: usize) -> (Arc<Network>, Server<ThreadsFabric>) {
        server_with(&Config {
            memory,
            memory_max: memory,
            item_size_max: 32 << 10,
            buckets: Some(8),
            ..Config::default()
        })
    }

    fn server_with(config: &Config) -> (Arc<Network>, Server<ThreadsFabric>) {
        let layout = Layout::new(config, 3).unwrap();
        let network = Network::free(3, layout.words());
        let end = network.ends().swap_remove(0);
        let server = Server::new(end, layout, config);
        (network, server)
    }

    /// Has a session's message tried once.
    fn try_once(
        server: &mut Server<ThreadsFabric>,
        session: usize,
        request: ServerRequest<'_>,
    ) -> bool {
        TimedRequest { now: NOW, request }.encode(&mut server.message);
        server.answer(session)
    }

    fn told(server: &Server<ThreadsFabric>) -> ServerReply<'_> {
        ServerReply::decode(&server.reply).unwrap()
    }

    fn set(server: &mut Server<ThreadsFabric>, name: &[u8]) {
        let key = Key::new(name, &server.shard.hasher);
        let op = Op::Store(Store::set(b"a value"));
        while !try_once(server, 0, ServerRequest::Op(Request { key, op })) {
            // Memory is on its way.
            server.iterate();
        }
        assert!(matches!(
            told(server),
            ServerReply::Reply(Reply::Stored(_), _)
        ));
    }

    fn delete(server: &mut Server<ThreadsFabric>, name: &[u8]) {
        let key = Key::new(name, &server.shard.hasher);
        let op = Op::Remove(Removal::default());
        assert!(try_once(server, 0, ServerRequest::Op(Request { key, op })));
        assert_eq!(told(server), ServerReply::Reply(Reply::Removed, None));
    }

    fn iterate_often(server: &mut Server<ThreadsFabric>) {
        for _ in 0..1000 {
            server.iterate();
        }
    }

    fn find(server: &mut Server<ThreadsFabric>, name: &[u8]) -> Pointer {
        let key = Key::new(name, &server.shard.hasher);
        let words = Shard::<ThreadsFabric>::key_words(&key);
        server.shard.find(&key, &words).unwrap()
    }

    /// Writes a key of up to eight bytes where a session writes the key of a long value.
    fn lay_key(server: &Server<ThreadsFabric>, pointer: Pointer, name: &[u8]) {
        let mut bytes = [0; 8];
        bytes[..name.len()].copy_from_slice(name);
        let word = server.shard.word(pointer, block::KEY);
        word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
    }

    /// Checks that an invalid message is refused and changes nothing.
    fn is_refused(server: &mut Server<ThreadsFabric>, session: usize, words: &[u64]) {
        let before = server.shard.counts;
        server.message = words.to_vec();
        assert!(server.answer(session));
        assert_eq!(told(server), ServerReply::Refused);
        let after = ServerStats {
            refused: before.refused,
            ..server.shard.counts
        };
        assert_eq!(
            (server.shard.counts.refused, after),
            (before.refused + 1, before)
        );
        assert_eq!(server.shard.audit(), Ok(()));
    }

    #[test]
    fn a_message_of_a_moment_far_ahead_is_refused() {
        let (_network, mut server) = server_with(&Config {
            memory: 128 << 10,
            memory_max: 128 << 10,
            item_size_max: 32 << 10,
            clocks: Clocks::FirstServers,
            ..Config::default()
        });
        server.iterate();
        let clock = server.shard.told_time().unwrap();
        let key = Key::new(b"key", &server.shard.hasher);
        let day = AHEAD_MAX + Duration::from_secs(60);
        let store = Store {
            expiry: Expiry::At(clock.after(day / 2)),
            ..Store::set(b"a value")
        };
        let message = |now: Time, op| {
            let request = ServerRequest::Op(Request { key, op });
            let mut words = Vec::new();
            TimedRequest { now, request }.encode(&mut words);
            words
        };
        server.message = message(clock, Op::Store(store));
        while !server.answer(1) {
            server.iterate();
        }
        for now in [clock.after(day), Time::LAST] {
            is_refused(&mut server, 1, &message(now, Op::Get));
        }
        // As far ahead as any session may be.
        server.message = message(clock.after(day / 3), Op::Get);
        assert!(server.answer(1));
        while !server.shard.sweep(server.now, server.shard.layout.buckets) {}
        server.message = message(clock, Op::Get);
        assert!(server.answer(1));
        assert!(matches!(told(&server), ServerReply::Value(..)));
    }

    #[test]
    fn what_is_no_message_is_refused_and_changes_nothing() {
        let (_network, mut server) = server();
        set(&mut server, b"key");
        let key = Key::new(b"key", &server.shard.hasher);
        let encoded = |request| {
            let mut words = Vec::new();
            TimedRequest { now: NOW, request }.encode(&mut words);
            words
        };
        is_refused(&mut server, 1, &[1 << 32]);
        is_refused(&mut server, 1, &[u64::MAX; 40]);
        // A key with another key's hash: no lookup would find its pair.
        let other = Key::hashed(b"other", key.hash());
        let op = Op::Store(Store::set(b"value"));
        for request in [
            ServerRequest::Op(Request { key: other, op }),
            ServerRequest::Op(Request {
                key: other,
                op: Op::Get,
            }),
            ServerRequest::Copy(other, Read::default()),
            ServerRequest::Reserve(other, 5000),
        ] {
            is_refused(&mut server, 1, &encoded(request));
        }
        // With any bit changed, a message is valid or it is not; the server goes on.
        for request in [
            ServerRequest::Op(Request { key, op }),
            ServerRequest::Reserve(key, 5000),
            ServerRequest::Used(&[7; 48]),
            ServerRequest::Piece(3),
            ServerRequest::Overflow(1, 2),
        ] {
            let words = encoded(request);
            for bit in 0..64 * words.len() {
                let mut changed = words.clone();
                changed[bit / 64] ^= 1 << (bit % 64);
                server.message = changed;
                server.answer(1);
                server.iterate();
            }
        }
        assert_eq!(server.shard.audit(), Ok(()));
    }

    #[test]
    fn of_a_reserved_block_no_other_pair_comes_into_the_table() {
        let (_network, mut server) = server();
        let key = Key::new(b"key", &server.shard.hasher);
        let store = Store::set(b"");
        let lives = |server: &mut Server<ThreadsFabric>| {
            assert!(try_once(server, 0, ServerRequest::Reserve(key, 5000)));
            match told(server) {
                ServerReply::Reserved(pointer) => pointer,
                other => panic!("{other:?}"),
            }
        };
        // Longer than the block; of another key; another session's; no block's; one that is not reserved.
        for (name, len, session, of) in [
            (b"key", 1 << 20, 0, 0),
            (b"kez", 5000, 0, 0),
            (b"key", 5000, 1, 0),
            (b"key", 5000, 0, 1 << 39),
            (b"key", 5000, 0, 8),
        ] {
            let pointer = lives(&mut server);
            lay_key(&server, pointer, name);
            let other = Pointer::new(pointer.class(), pointer.place() + of);
            assert!(try_once(
                &mut server,
                session,
                ServerRequest::Commit(key, store, len, other)
            ));
            assert_eq!(told(&server), ServerReply::Refused);
            server.shard.unpin(pointer, 0);
            assert_eq!((server.shard.counts.items, server.shard.pins.len()), (0, 0));
            assert_eq!(server.shard.audit(), Ok(()));
        }
        let pointer = lives(&mut server);
        lay_key(&server, pointer, b"key");
        assert!(try_once(
            &mut server,
            0,
            ServerRequest::Commit(key, store, 5000, pointer)
        ));
        assert!(matches!(
            told(&server),
            ServerReply::Reply(Reply::Stored(_), _)
        ));
        assert_eq!(server.shard.audit(), Ok(()));
    }

    #[test]
    fn a_session_whose_ring_is_broken_is_told_so_and_others_are_served() {
        let (network, mut server) = server();
        let ends = network.ends();
        let layout = server.shard.layout.clone();
        let key = Key::new(b"key", &server.shard.hasher);
        // A PE has written over the word that says how far the first client's messages reach.
        let sent = layout.requests(1);
        ends[0].local(sent, 1)[0].store(u64::MAX, Ordering::Relaxed);
        let mut sender = Sender::new(0, layout.requests(2), layout.requests_staged(2, 0));
        let mut words = Vec::new();
        let request = ServerRequest::Op(Request { key, op: Op::Get });
        TimedRequest { now: NOW, request }.encode(&mut words);
        sender.stage(&*ends[2], &words);
        sender.flush(&*ends[2]).unwrap();
        iterate_often(&mut server);
        let replies = [1, 2].map(|pe| {
            let (at, from) = (layout.replies(pe, 0), layout.replies_staged(pe));
            let receiver = Receiver::new(0, at, from);
            let mut reply = Vec::new();
            assert_eq!(receiver.read(&*ends[pe], &mut reply), Ok(true));
            reply
        });
        assert_eq!(ServerReply::decode(&replies[0]), Some(ServerReply::Closed));
        let miss = ServerReply::Reply(Reply::Miss, None);
        assert_eq!(ServerReply::decode(&replies[1]), Some(miss));
        assert_eq!(server.shard.counts.refused, 1);
    }

    #[test]
    fn a_flush_whose_moment_has_come_is_not_replaced_before_all_have_heard_of_it() {
        let (_network, mut server) = server();
        let try_at = |server: &mut Server<ThreadsFabric>, session, now: u32, at: u32| {
            let request = ServerRequest::Flush(Time(at));
            TimedRequest {
                now: Time(now),
                request,
            }
            .encode(&mut server.message);
            server.answer(session)
        };
        assert!(
            !try_at(&mut server, 0, 1000, 1010),
            "nobody has heard of it"
        );
        // Another, when that one is due.
        assert!(!try_at(&mut server, 1, 1010, 1020));
        iterate_often(&mut server);
        assert!(try_at(&mut server, 0, 1000, 1010));
        assert_eq!(server.shard.control().flushes.generation, 1);
        assert!(!try_at(&mut server, 1, 1010, 1020));
        iterate_often(&mut server);
        assert!(try_at(&mut server, 1, 1010, 1020));
        let flushes = server.shard.control().flushes;
        assert_eq!((flushes.generation, flushes.next), (1, Some(Time(1020))));
    }

    #[test]
    fn a_page_goes_to_the_class_that_has_waited_for_it() {
        let (_network, mut server) = server();
        server.shard.pages.limit = 2;
        let request = |server: &mut Server<ThreadsFabric>, name: u32, len: usize| {
            let name = name.to_le_bytes();
            let key = Key::new(&name, &server.shard.hasher);
            let op = Op::Store(Store::set(&[7; 3000][..len]));
            try_once(server, 0, ServerRequest::Op(Request { key, op }))
        };
        while server.shard.pages.used < 2 {
            let items = server.shard.counts.items as u32;
            assert!(request(&mut server, items, 10));
        }
        // Epochs later.
        for _ in 0..4 {
            server.shard.epoch += 1;
        }
        assert!(!request(&mut server, 1 << 20, 1000));
        while server.shard.retirement.is_some() {
            server.shard.advance_retirement(NOW);
            server.tell();
        }
        // Another class wants the page as well, and asks first.
        request(&mut server, 1 << 21, 3000);
        assert!(request(&mut server, 1 << 20, 1000));
        assert!(matches!(
            told(&server),
            ServerReply::Reply(Reply::Stored(_), _)
        ));
        assert_eq!(server.shard.audit(), Ok(()));
    }

    #[test]
    fn of_few_large_pairs_few_go_at_once() {
        let (_network, mut server) = server();
        for number in 0..200_u32 {
            let name = number.to_le_bytes();
            let key = Key::new(&name, &server.shard.hasher);
            let op = Op::Store(Store::set(&[7; 3000]));
            let gone = server.shard.counts.evictions;
            assert!(try_once(
                &mut server,
                0,
                ServerRequest::Op(Request { key, op })
            ));
            assert!(server.shard.counts.evictions <= gone + 1);
        }
        assert!(server.shard.counts.evictions > 100);
    }

    #[test]
    fn a_commit_that_waits_for_memory_in_vain_gives_its_block_back() {
        let (_network, mut server) = server();
        server.shard.pages.limit = 2;
        let key = Key::new(b"key", &server.shard.hasher);
        let mut reserved = Vec::new();
        // All blocks of a page.
        for _ in 0..3 {
            assert!(try_once(
                &mut server,
                1,
                ServerRequest::Reserve(key, 10_000)
            ));
            let ServerReply::Reserved(pointer) = told(&server) else {
                panic!("there is room");
            };
            lay_key(&server, pointer, b"key");
            reserved.push(pointer);
        }
        set(&mut server, b"key");
        // No memory until the other page has changed its class, which takes longer than anybody waits.
        let pair = find(&mut server, b"key");
        let page = server.shard.layout.page_of(pair);
        assert!(server.shard.retire(page, None));
        let store = Store {
            mode: StoreMode::Append,
            ..Store::set(b"")
        };
        let commit = ServerRequest::Commit(key, store, 10_000, reserved[0]);
        assert!(!try_once(&mut server, 1, commit));
        server.sessions[1].tries = TRIES;
        // By count alone no operation is refused.
        assert!(!try_once(&mut server, 1, commit));
        let long = WAITED.as_nanos() as u64;
        server.sessions[1].since = server.shard.fabric.nanos().wrapping_sub(long);
        assert!(try_once(&mut server, 1, commit));
        assert_eq!(told(&server), ServerReply::Reply(Reply::OutOfMemory, None));
        assert_eq!(server.shard.pins.len(), 2);
    }

    #[test]
    fn two_blocks_of_dead_writers_that_are_met_in_turn_are_recovered() {
        let (network, mut server) = server();
        let names = [&b"one"[..], b"other"];
        for name in names {
            set(&mut server, name);
            lock_as(&mut server, name, 1);
        }
        network.stop(1);
        let mut answered = [false; 2];
        for _ in 0..1000 {
            for (index, name) in names.into_iter().enumerate() {
                let key = Key::new(name, &server.shard.hasher);
                let request = ServerRequest::Op(Request { key, op: Op::Get });
                answered[index] |= try_once(&mut server, 2 * index, request);
            }
        }
        assert_eq!(answered, [true; 2]);
        assert_eq!(server.shard.counts.recovered, 2);
        assert_eq!(server.shard.audit(), Ok(()));
    }

    /// Locks the block of a key as a session that then dies.
    fn lock_as(server: &mut Server<ThreadsFabric>, name: &[u8], session: usize) -> (Pointer, Tail) {
        let pointer = find(server, name);
        let tail = server.shard.tail(pointer);
        let locked = Tail::new(tail.version() + 1, session);
        let last = server.shard.layout.block_words(pointer) - 1;
        let word = server.shard.word(pointer, last);
        word.store(locked.0, Ordering::Relaxed);
        (pointer, locked)
    }

    /// Has a get tried until it is answered. Panics if that takes too long.
    fn get(server: &mut Server<ThreadsFabric>, name: &[u8]) {
        let key = Key::new(name, &server.shard.hasher);
        let request = ServerRequest::Op(Request { key, op: Op::Get });
        let answered = (0..10_000).any(|_| try_once(server, 2, request));
        assert!(answered, "a get waits for ever");
    }

    #[test]
    fn words_of_a_dead_writer_that_arrive_late_hurt_nobody() {
        let (network, mut server) = server();
        set(&mut server, b"key");
        let (pointer, locked) = lock_as(&mut server, b"key", 1);
        network.stop(1);
        get(&mut server, b"key");
        assert_eq!(server.shard.counts.recovered, 1);
        // All of its class, and more: all clients that may have the block have it now.
        for number in 0..5000_u32 {
            set(&mut server, &number.to_le_bytes());
        }
        // What the dead writer had under way: a whole pair, and its head.
        let header = block::Header {
            key_len: 3,
            value_len: 4,
            expiry: u32::MAX,
            ..Default::default()
        };
        let (version, mut content) = (locked.version(), Vec::new());
        let checksum = server.shard.checksum.clone();
        block::lay(
            &mut content,
            &checksum,
            version,
            &header,
            b"key",
            &[b"late"],
        );
        let late = content.into_iter().enumerate();
        for (at, word) in late
            .map(|(at, word)| (CHECK + at, word))
            .chain([(block::HEAD, version)])
        {
            server
                .shard
                .word(pointer, at)
                .store(word, Ordering::Relaxed);
        }
        server.shard.copy(pointer);
        let found = block::judge(&server.shard.scratch, b"key", Some(&checksum));
        assert_eq!(found, block::Found::Torn, "no session believes it");
        for number in 0..5000_u32 {
            get(&mut server, &number.to_le_bytes());
        }
        assert_eq!(server.shard.audit(), Ok(()));
        // The page stays, and others can go on to change their class.
        let page = server.shard.layout.page_of(pointer);
        assert!(!server.shard.retire(page, None));
        server.shard.pages.limit = 1;
        iterate_often(&mut server);
        assert_eq!(server.shard.audit(), Ok(()));
        assert!(server.shard.pages.used <= 2 && server.shard.retirement.is_none());
    }

    #[test]
    fn a_page_whose_writer_dies_while_it_retires_stays() {
        let (network, mut server) = server();
        for number in 0..200_u32 {
            set(&mut server, &number.to_le_bytes());
        }
        let (pointer, _) = lock_as(&mut server, &7_u32.to_le_bytes(), 1);
        let page = server.shard.layout.page_of(pointer);
        assert!(server.shard.retire(page, None));
        network.stop(1);
        iterate_often(&mut server);
        assert_eq!(server.shard.counts.recovered, 1);
        assert!(server.shard.retirement.is_none());
        assert_eq!(server.shard.audit(), Ok(()));
    }

    #[test]
    fn what_a_session_had_in_its_hands_when_it_died_comes_back() {
        let (network, mut server) = server();
        let key = Key::new(b"key", &server.shard.hasher);
        set_long(&mut server, b"key");
        assert!(try_once(
            &mut server,
            1,
            ServerRequest::Copy(key, Read::default())
        ));
        assert!(matches!(told(&server), ServerReply::Copied(..)));
        assert!(try_once(&mut server, 1, ServerRequest::Reserve(key, 5000)));
        assert_eq!(server.shard.pins.len(), 1);
        network.stop(1);
        // It sends nothing any more, and no session asks for what it held.
        for number in 0..1000_u32 {
            set(&mut server, &number.to_le_bytes());
            server.iterate();
        }
        assert_eq!(server.shard.pins.len(), 0);
        assert_eq!(server.shard.copies.held_since(u32::MAX).count(), 0);
        // Words to the reservation may be under way.
        assert_eq!(server.shard.counts.blocks_lost, 1);
        assert_eq!(server.shard.audit(), Ok(()));
    }

    /// Stores a value that is too long for a message.
    fn set_long(server: &mut Server<ThreadsFabric>, name: &[u8]) {
        let key = Key::new(name, &server.shard.hasher);
        let large = Store::set(&[7; 3000]);
        let append = Store {
            mode: StoreMode::Append,
            ..large
        };
        for store in [large, append] {
            let op = Op::Store(store);
            assert!(try_once(server, 0, ServerRequest::Op(Request { key, op })));
            assert!(matches!(
                told(server),
                ServerReply::Reply(Reply::Stored(_), _)
            ));
        }
    }

    #[test]
    fn a_touch_of_a_long_value_needs_no_memory() {
        let (_network, mut server) = server();
        server.shard.config.evicts = false;
        set_long(&mut server, b"key");
        let mut number = 0_u32;
        loop {
            let name = number.to_le_bytes();
            let key = Key::new(&name, &server.shard.hasher);
            let op = Op::Store(Store::set(&[7; 3000]));
            assert!(try_once(
                &mut server,
                0,
                ServerRequest::Op(Request { key, op })
            ));
            if told(&server) == ServerReply::Reply(Reply::OutOfMemory, None) {
                break;
            }
            number += 1;
        }
        let key = Key::new(b"key", &server.shard.hasher);
        let read = Read {
            touch: Some(Expiry::At(Time(5000))),
            ..Read::default()
        };
        let op = Op::Read(read);
        assert!(try_once(
            &mut server,
            0,
            ServerRequest::Op(Request { key, op })
        ));
        // Nothing has changed yet.
        assert_eq!(told(&server), ServerReply::Long);
        let pointer = find(&mut server, b"key");
        assert_eq!(server.shard.header(pointer).expiry, u32::MAX);
        assert!(try_once(&mut server, 0, ServerRequest::Copy(key, read)));
        let ServerReply::Copied(item, _) = told(&server) else {
            panic!("it is there");
        };
        assert_eq!(
            (item.value_len, item.expiry),
            (6000, Expiry::At(Time(5000)))
        );
        for piece in 0..2 {
            assert!(try_once(&mut server, 0, ServerRequest::Piece(piece)));
            let ServerReply::Words(bytes) = told(&server) else {
                panic!("it is there");
            };
            assert!(!bytes.is_empty() && bytes.iter().all(|&byte| byte == 7));
        }
        assert_eq!(server.shard.copies.held_since(u32::MAX).count(), 0);
        assert_eq!(server.shard.audit(), Ok(()));
    }

    #[test]
    fn who_stands_still_with_a_copy_is_not_waited_for() {
        let (_network, mut server) = server();
        set_long(&mut server, b"key");
        let key = Key::new(b"key", &server.shard.hasher);
        let copy = ServerRequest::Copy(key, Read::default());
        assert!(try_once(&mut server, 1, copy));
        assert!(!try_once(&mut server, 2, copy), "it is full");
        server.shard.epoch += 2;
        for session in [2, 1] {
            if session == 2 {
                assert!(try_once(&mut server, 2, copy));
                assert!(matches!(told(&server), ServerReply::Copied(..)));
            }
            // When the first holder goes on, its copy is still there.
            assert!(try_once(&mut server, session, ServerRequest::Piece(1)));
            assert!(matches!(told(&server), ServerReply::Words(bytes) if !bytes.is_empty()));
        }
    }

    #[test]
    fn a_store_that_is_nearly_empty_begins_epochs_by_time() {
        let (_network, mut server) = server_of(8 << 20);
        let first = server.shard.epoch;
        for _ in 0..1000 {
            set(&mut server, b"lock");
            delete(&mut server, b"lock");
        }
        assert!(server.shard.epoch <= first + 1);
    }

    #[test]
    fn how_long_a_pair_was_idle_is_known_after_more_epochs_than_are_remembered() {
        let (_network, mut server) = server();
        let key = Key::new(b"key", &server.shard.hasher);
        let request = |server: &mut Server<ThreadsFabric>, at: u32| {
            let read = Read {
                idle: true,
                bump: false,
                ..Read::default()
            };
            let request = ServerRequest::Op(Request {
                key,
                op: Op::Read(read),
            });
            TimedRequest {
                now: Time(at),
                request,
            }
            .encode(&mut server.message);
            assert!(server.answer(0));
            match told(server) {
                ServerReply::Value(item, ..) => item.idle.as_secs(),
                other => panic!("{other:?}"),
            }
        };
        set(&mut server, b"key");
        for second in 1..100_000 {
            server
                .shard
                .advance_epoch(Time(NOW.0 + TICKS_PER_SECOND * second));
        }
        let told = request(&mut server, NOW.0 + TICKS_PER_SECOND * 100_000);
        assert!((100_000..100_400).contains(&told), "{told}");
    }

    #[test]
    fn a_read_comes_to_its_end_however_fast_writers_are() {
        let (_network, mut server) = server();
        set(&mut server, b"key");
        server.shard.tears = true;
        get(&mut server, b"key");
        assert!(matches!(told(&server), ServerReply::Value(..)));
        assert_eq!(server.shard.audit(), Ok(()));
    }

    #[test]
    fn who_waits_for_a_block_does_not_lose_patience_for_memory() {
        let (_network, mut server) = server();
        set(&mut server, b"key");
        lock_as(&mut server, b"key", 1);
        let key = Key::new(b"key", &server.shard.hasher);
        let request = ServerRequest::Op(Request { key, op: Op::Get });
        for _ in 0..100 {
            assert!(!try_once(&mut server, 2, request));
        }
        assert_eq!(server.sessions[2].tries, 0);
    }

    #[test]
    fn a_lowered_limit_evicts_nothing_where_nothing_may_be() {
        let (_network, mut server) = server();
        server.shard.config.evicts = false;
        let mut stored = 0_u32;
        loop {
            let name = stored.to_le_bytes();
            let key = Key::new(&name, &server.shard.hasher);
            let op = Op::Store(Store::set(b"a value"));
            assert!(try_once(
                &mut server,
                0,
                ServerRequest::Op(Request { key, op })
            ));
            if told(&server) == ServerReply::Reply(Reply::OutOfMemory, None) {
                break;
            }
            stored += 1;
        }
        let pages = server.shard.pages.used;
        server.shard.pages.limit = 1;
        iterate_often(&mut server);
        assert_eq!(server.shard.counts.items, u64::from(stored));
        assert_eq!(server.shard.pages.used, pages);
        // Deleted pairs make room, and the remaining ones move together.
        for number in (0..stored).filter(|number| number % 4 != 0) {
            delete(&mut server, &number.to_le_bytes());
        }
        iterate_often(&mut server);
        assert!(server.shard.pages.used < pages);
        assert_eq!(server.shard.counts.evictions, 0);
        assert_eq!(server.shard.counts.items, u64::from(stored.div_ceil(4)));
        assert_eq!(server.shard.audit(), Ok(()));
    }

    #[test]
    fn a_pair_that_moves_was_not_used_by_it() {
        let (_network, mut server) = server();
        set(&mut server, b"key");
        let pointer = find(&mut server, b"key");
        let epoch = server.shard.recency(pointer).epoch();
        // A page full, and room for most of it in another.
        for number in 0..400_u32 {
            set(&mut server, &number.to_le_bytes());
        }
        (0..200_u32).for_each(|number| delete(&mut server, &number.to_le_bytes()));
        assert!(server.shard.epoch > epoch);
        let before = find(&mut server, b"key");
        let page = server.shard.layout.page_of(before);
        assert!(server.shard.retire(page, None));
        server.iterate();
        let after = find(&mut server, b"key");
        assert_ne!(before, after);
        assert_eq!(server.shard.recency(after).epoch(), epoch);
    }

    #[test]
    fn an_overflow_is_told_whole_while_entries_come_and_go() {
        let (_network, mut server) = server();
        let shard = &mut server.shard;
        // Of one bucket, by the low bits, and of any tags.
        let hash = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) << 16;
        let pointer = |number: u64| Pointer::new(3, number);
        for number in 0..1000 {
            shard.put_entry(hash(number), pointer(number));
        }
        let all: Vec<u64> = shard.overflow[&0].iter().map(|entry| entry.0).collect();
        assert!(all.len() > 900);
        let (mut told, mut from) = (Vec::new(), 0);
        let mut gone = 0;
        loop {
            let more = shard.overflow_of(0, from);
            let Some(&last) = more.last() else { break };
            from = Entry(last).tag() + 1;
            told.extend(more);
            // The last one takes the place of one that goes.
            for number in gone..gone + 40 {
                shard.take_entry(hash(number), pointer(number));
            }
            gone += 40;
        }
        let left = &shard.overflow[&0];
        assert!(left.len() > 500);
        let missed = left.iter().filter(|entry| !told.contains(&entry.0));
        assert_eq!(missed.count(), 0);
    }

    #[test]
    fn an_epoch_is_a_part_of_the_memory_however_few_pairs_fill_it() {
        let (_network, mut server) = server();
        // Not twice as much as there is.
        for number in 0..60_u32 {
            let name = number.to_le_bytes();
            let key = Key::new(&name, &server.shard.hasher);
            let op = Op::Store(Store::set(&[7; 3000]));
            assert!(try_once(
                &mut server,
                0,
                ServerRequest::Op(Request { key, op })
            ));
        }
        assert!(server.shard.epoch >= 16, "{}", server.shard.epoch);
    }

    #[test]
    fn the_last_epoch_lasts() {
        let (_network, mut server) = server();
        server.shard.epoch = u32::MAX - 1;
        for number in 0..400_u32 {
            set(&mut server, &number.to_le_bytes());
        }
        assert_eq!(server.shard.epoch, u32::MAX);
        assert_eq!(server.shard.audit(), Ok(()));
    }
}
