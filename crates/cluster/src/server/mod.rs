//! A server: it takes messages out of its rings, carries them out on its shard, and answers.
//!
//! * [`shard`]: the shard, and how blocks are changed beside clients
//! * [`pages`], [`evict`], [`retire`]: memory, who goes, and how a page changes its class
//! * [`index`]: the table; [`operate`]: the operations; [`audit`]: the invariants

mod audit;
mod evict;
mod index;
mod operate;
mod pages;
mod retire;
mod shard;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nuthatch_engine::{Reply, Time};
use nuthatch_fabric::{Fabric, Gone};

use crate::block;
use crate::config::Config;
use crate::control;
use crate::layout::{LINE, Layout};
use crate::message::{Ask, Asked, REPLY_MAX, Told};
use crate::ring::{Receiver, Sender};
use crate::stats::ServerStats;
use operate::Outcome;
pub(crate) use shard::Shard;
use shard::Wait;

/// Messages of a session that are taken in its turn.
const TURN: usize = 64;

/// How often an operation that waits for memory is tried before it is refused.
const TRIES: u32 = 20_000;

/// Buckets that are swept in a turn in which there is nothing else to do.
const SWEPT_IDLE: usize = 1;

/// Flushes after which the sweep is brought to its end, so that no generation comes round again.
const FLUSHES_MAX: u32 = 30_000;

/// A session as its server sees it.
struct Session {
    requests: Receiver,
    replies: Sender,
    /// How often its first message was tried in vain.
    tries: u32,
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
                gone: false,
            }
        };
        Self {
            sessions: (0..layout.all_sessions).map(session).collect(),
            shard: Shard::new(fabric, layout, config),
            message: Vec::new(),
            reply: Vec::new(),
            now: Time::default(),
        }
    }

    /// Serves until `stop` is true.
    pub fn run(&mut self, stop: &AtomicBool) {
        // Relaxed: the flag is all there is to see.
        self.run_until(|| stop.load(Ordering::Relaxed));
    }

    /// Serves until `stopped` returns true.
    pub fn run_until(&mut self, mut stopped: impl FnMut() -> bool) {
        let mut idle = 0;
        self.tell();
        while !stopped() {
            match self.turn() {
                true => idle = 0,
                false => {
                    let fabric = Arc::clone(&self.shard.fabric);
                    fabric.pause(idle);
                    idle = idle.saturating_add(1);
                }
            }
        }
    }

    /// Looks at every session once. True if there was anything to do.
    fn turn(&mut self) -> bool {
        let mut served = false;
        for session in 0..self.sessions.len() {
            if self.sessions[session].gone {
                continue;
            }
            match self.serve(session) {
                Ok(some) => served |= some,
                Err(Gone { .. }) => self.lose(session),
            }
        }
        let now = self.now;
        self.shard.advance_retirement(now);
        self.shard.advance_epoch(now);
        if !served {
            self.shard.sweep(now, SWEPT_IDLE);
        }
        self.tell();
        served
    }

    /// Takes some of a session's messages.
    fn serve(&mut self, session: usize) -> Result<bool, Gone> {
        let mut served = false;
        for _ in 0..TURN {
            let Session {
                requests, replies, ..
            } = &mut self.sessions[session];
            let fabric = &*self.shard.fabric;
            if !requests.has_message(fabric) {
                break;
            }
            if !replies.has_room(fabric, REPLY_MAX) || !requests.read(fabric, &mut self.message) {
                break;
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
            served = true;
        }
        if served {
            let fabric = &*self.shard.fabric;
            let Session {
                requests, replies, ..
            } = &mut self.sessions[session];
            replies.flush(fabric)?;
            requests.acknowledge(fabric)?;
        }
        Ok(served)
    }

    /// Carries out a session's message and lays down the reply. False if it is to be tried again.
    fn answer(&mut self, session: usize) -> bool {
        let message = std::mem::take(&mut self.message);
        let asked = Asked::decode(&message).expect("a peer sent no message");
        self.now = self.now.max(asked.now);
        self.shard.advance_epoch(self.now);
        let done = self.carry_out(session, asked);
        if let Err(wait) = done {
            let tries = &mut self.sessions[session].tries;
            *tries += 1;
            if wait == Wait::Memory && *tries > TRIES {
                self.shard.counts.out_of_memory += 1;
                if let Ask::Commit(_, _, _, pointer) = asked.ask {
                    // As after any other refusal, the block is the session's no more.
                    self.shard.unpin(pointer, session);
                }
                Told::Reply(Reply::OutOfMemory, None).encode(&mut self.reply);
                self.message = message;
                return true;
            }
        }
        self.message = message;
        done.is_ok()
    }

    fn carry_out(&mut self, session: usize, asked: Asked<'_>) -> Result<(), Wait> {
        let (now, shard, reply) = (asked.now, &mut self.shard, &mut self.reply);
        let outcome = match asked.ask {
            Ask::Op(request) => shard.operate(now, &request, session)?,
            Ask::Snapshot(key) => shard.snapshot(now, &key, session)?,
            Ask::Commit(key, store, value_len, pointer) => {
                shard.commit(now, &key, &store, value_len, pointer, session)?
            }
            Ask::Reserve(key, value_len) => {
                match shard.reserve(now, &key, value_len, session)? {
                    Ok(pointer) => Told::Reserved(pointer).encode(reply),
                    Err(refusal) => Told::Reply(refusal, None).encode(reply),
                }
                return Ok(());
            }
            Ask::Release(pointer) => {
                shard.unpin(pointer, session);
                Told::Done(false).encode(reply);
                return Ok(());
            }
            Ask::Maintain(budget) => {
                let round = shard.sweep(now, budget.clamp(1, shard.layout.buckets));
                Told::Done(!round && shard.counts.items > 0).encode(reply);
                return Ok(());
            }
            Ask::Flush(at) => {
                self.flush(now, at);
                Told::Done(false).encode(&mut self.reply);
                return Ok(());
            }
            Ask::Limit(bytes) => {
                shard.set_limit(bytes);
                Told::Done(false).encode(reply);
                return Ok(());
            }
            Ask::Stats => {
                let words = ServerStats::of(shard).words();
                Told::Words(bytemuck::cast_slice(&words)).encode(reply);
                return Ok(());
            }
            Ask::Classes => {
                let words = shard.classes();
                Told::Words(bytemuck::cast_slice(&words)).encode(reply);
                return Ok(());
            }
            Ask::Reset => {
                shard.reset_counts();
                Told::Done(false).encode(reply);
                return Ok(());
            }
            Ask::Audit => {
                let text = shard.audit().err().unwrap_or_default();
                let text = &text.as_bytes()[..text.len().min(1000)];
                Told::Text(text).encode(reply);
                return Ok(());
            }
            Ask::Overflow(bucket, from) => {
                Told::Words(&shard.overflow_of(bucket, from)).encode(reply);
                return Ok(());
            }
        };
        match outcome {
            Outcome::Value(item, known, header) => {
                let value = block::value_bytes(&shard.scratch, &header);
                Told::Value(item, known, value).encode(reply);
            }
            Outcome::Copy(item, pointer) => Told::Copy(item, pointer).encode(reply),
            Outcome::At(item, known) => Told::At(item, known).encode(reply),
            Outcome::Done(done, known) => Told::Reply(done, known).encode(reply),
        }
        Ok(())
    }

    /// Begins another generation, and returns when every client knows it.
    fn flush(&mut self, now: Time, at: Time) {
        let shard = &mut self.shard;
        shard.flushes.flush(now, at);
        shard.flushes_unswept += 1;
        if shard.flushes_unswept > FLUSHES_MAX {
            while !shard.sweep(now, shard.layout.buckets) {}
        }
        self.tell();
        // Something lost with a PE that is gone is no loss.
        let _ = self.shard.fabric.quiet();
    }

    /// Tells all clients what has changed.
    fn tell(&mut self) {
        let shard = &mut self.shard;
        if shard.flushes.settle(self.now) {
            shard.flushes_unswept += 1;
        }
        let control = shard.control();
        if control == shard.told {
            return;
        }
        shard.told = control;
        let words: [u64; control::WORDS] = control.words();
        // Behind what was told before.
        shard.fabric.fence();
        for pe in 0..shard.fabric.pes() {
            // A PE that is gone need not know.
            let _ = shard
                .fabric
                .put(pe, shard.layout.control(shard.server), &words);
        }
    }

    /// A session's PE is gone: its blocks are free.
    fn lose(&mut self, session: usize) {
        self.sessions[session].gone = true;
        let pins = self.shard.pins.iter();
        let pinned: Vec<_> = pins
            .filter(|(_, owner)| **owner == session)
            .map(|(block, _)| self.shard.pages.pointer(*block))
            .collect();
        for pointer in pinned {
            self.shard.unpin(pointer, session);
        }
    }
}

const _: () = assert!(control::WORDS <= LINE);

// A pair may be older by as many flushes as there are in two sweeps.
const _: () = assert!(2 * (FLUSHES_MAX + 1) < (1 << 16) - block::YOUNGER_MAX as u32);

#[cfg(test)]
mod tests {
    use nuthatch_engine::{Key, Op, Request, Store, StoreMode};
    use nuthatch_fabric::threads::{Network, ThreadsFabric};

    use super::*;
    use crate::block::Tail;
    use crate::bucket::Pointer;

    const NOW: Time = Time(1000);

    /// A server of three PEs, whose sessions only their messages are there of.
    fn server() -> (Arc<Network>, Server<ThreadsFabric>) {
        let config = Config {
            memory: 128 << 10,
            memory_max: 128 << 10,
            item_size_max: 32 << 10,
            buckets: Some(8),
            ..Config::default()
        };
        let layout = Layout::new(&config, 3).unwrap();
        let network = Network::free(3, layout.words());
        let end = network.ends().swap_remove(0);
        let server = Server::new(end, layout, &config);
        (network, server)
    }

    /// Has a session's message tried once.
    fn try_once(server: &mut Server<ThreadsFabric>, session: usize, ask: Ask<'_>) -> bool {
        Asked { now: NOW, ask }.encode(&mut server.message);
        server.answer(session)
    }

    fn told(server: &Server<ThreadsFabric>) -> Told<'_> {
        Told::decode(&server.reply).unwrap()
    }

    fn set(server: &mut Server<ThreadsFabric>, name: &[u8]) {
        let key = Key::new(name, &server.shard.hasher);
        let op = Op::Store(Store::set(b"a value"));
        assert!(try_once(server, 0, Ask::Op(Request { key, op })));
        assert!(matches!(told(server), Told::Reply(Reply::Stored(_), _)));
    }

    fn find(server: &mut Server<ThreadsFabric>, name: &[u8]) -> Pointer {
        let key = Key::new(name, &server.shard.hasher);
        let words = Shard::<ThreadsFabric>::key_words(&key);
        server.shard.find(&key, &words).unwrap()
    }

    #[test]
    fn a_commit_that_waits_for_memory_in_vain_gives_its_block_back() {
        let (_network, mut server) = server();
        server.shard.pages.limit = 2;
        let key = Key::new(b"key", &server.shard.hasher);
        let mut reserved = Vec::new();
        // All blocks of a page.
        for _ in 0..3 {
            assert!(try_once(&mut server, 1, Ask::Reserve(key, 10_000)));
            let Told::Reserved(pointer) = told(&server) else {
                panic!("there is room");
            };
            reserved.push(pointer);
        }
        set(&mut server, b"key");
        // No memory until the other page has changed its class, which takes longer than anybody waits.
        let pair = find(&mut server, b"key");
        let page = server.shard.layout.page_of(pair);
        assert!(server.shard.retire(page));
        let store = Store {
            mode: StoreMode::Append,
            ..Store::set(b"")
        };
        let commit = Ask::Commit(key, store, 10_000, reserved[0]);
        assert!(!try_once(&mut server, 1, commit));
        server.sessions[1].tries = TRIES;
        assert!(try_once(&mut server, 1, commit));
        assert_eq!(told(&server), Told::Reply(Reply::OutOfMemory, None));
        assert_eq!(server.shard.pins.len(), 2);
    }

    #[test]
    fn two_blocks_of_dead_writers_that_are_met_in_turn_are_recovered() {
        let (network, mut server) = server();
        let names = [&b"one"[..], b"other"];
        for name in names {
            set(&mut server, name);
            let pointer = find(&mut server, name);
            let tail = server.shard.tail(pointer);
            let locked = Tail::new(tail.version() + 1, 1, true);
            let last = server.shard.layout.block_words(pointer) - 1;
            server
                .shard
                .word(pointer, last)
                .store(locked.0, Ordering::Relaxed);
        }
        network.stop(1);
        let mut answered = [false; 2];
        for _ in 0..1000 {
            for (index, name) in names.into_iter().enumerate() {
                let key = Key::new(name, &server.shard.hasher);
                let ask = Ask::Op(Request { key, op: Op::Get });
                answered[index] |= try_once(&mut server, 2 * index, ask);
            }
        }
        assert_eq!(answered, [true; 2]);
        assert_eq!(server.shard.counts.recovered, 2);
        assert_eq!(server.shard.audit(), Ok(()));
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
