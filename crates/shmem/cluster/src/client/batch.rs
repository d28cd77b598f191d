//! Execution of a batch, in waves of requests with different keys.
//!
//! In a wave the direct operations go first, with all their Gets under way at once, then the messages, with one Put for
//! each server. Replies are delivered in order. A long value is read when it is its turn, one at a time: so a wave
//! holds one.

use nuthatch_engine::{Item, Key, Op, Read, Replies, Reply, Request, Time};
use nuthatch_fabric::{Address, Fabric, Gone};

use super::active::lost;
use super::direct::{Fetched, is_plain_read, is_plain_set};
use super::directory::{At, Hint};
use super::selector::{KINDS, Kind};
use super::{Channel, Client};
use crate::block::{self, Recency};
use crate::bucket::{self, Pointer};
use crate::config::{Clocks, Operations};
use crate::control::Control;
use crate::engine::{COPY_MAX, LargeValue};
use crate::message::{BlockState, ServerRequest, TimedRequest};
use crate::placement;
use crate::stats::Count;

/// Requests of a wave.
const WAVE: usize = 64;

/// Words of the longest block that is read together with others.
const LONG: usize = (64 << 10) / 8;

/// Words of a buffer that a session keeps after a batch.
pub(super) const WORDS_KEPT: usize = (1 << 20) / 8;

/// The working memory of a wave.
#[derive(Default)]
pub struct Wave {
    /// Words that were read: of blocks, of buckets, of replies.
    pub words: Vec<u64>,
    steps: Vec<Step>,
    servers: Vec<usize>,
    /// For each server: how many requests are carried out directly, by [`Kind`] (before the choice: how many can be);
    /// how many are to be messages (before the choice: how many must be); and how many were sent. Stores of large
    /// values are not counted.
    direct: Vec<[u32; KINDS]>,
    chosen: Vec<u32>,
    sent: Vec<u32>,
    fetches: Vec<Fetch>,
    /// Words of the landing zone in use.
    landed: usize,
    /// Recencies that are changed once all is read.
    pub used: Vec<Used>,
    /// Blocks that were written whose words may still be under way, of each server in order: [`WAVE`] at most.
    pub wrote: Vec<Wrote>,
    /// One request is left, so a long block is read, too.
    alone: bool,
    /// Costs are measured.
    timed: bool,
    /// The most words that were in use.
    #[cfg(test)]
    peak: usize,
}

/// A block's recency that is to be changed.
#[derive(Clone, Copy)]
pub struct Used {
    pub server: usize,
    pub pointer: Pointer,
    pub before: Recency,
    pub new: Recency,
}

/// A block that was written, and whose last word unlocks it.
#[derive(Clone, Copy)]
pub struct Wrote {
    pub server: usize,
    /// Where its head is.
    pub head: Address,
    /// The head that was put.
    pub version: u64,
}

/// In place of a request's number: a message that is about no request.
const NO_REQUEST: usize = usize::MAX;

/// A request's answer.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    Done(Reply),
    /// The value's bytes begin at this word of the wave's.
    Value {
        item: Item,
        at: usize,
    },
}

/// The next step of a request.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    ReadBlock {
        pointer: Pointer,
        /// The generation of its page, read before the block is.
        generation: u64,
        /// The directory led there.
        hinted: bool,
        tries: u32,
    },
    ReadBucket,
    /// A set, to the block that the directory knows.
    Write(At, Hint),
    /// A message to the server.
    Send,
    /// A long value, to be read when it is its turn.
    Later(Later),
    Answered(Answer),
}

/// How a long value is read.
#[derive(Clone, Copy, Debug)]
pub enum Later {
    /// As any get, but alone.
    Read,
    /// From the block that the server named.
    At(Item, BlockState),
    /// From a copy that the server is to make.
    Copy,
}

/// A read that is under way for a request.
#[derive(Clone, Copy)]
struct Fetch {
    request: usize,
    step: Step,
    /// Where the words will be in the wave's.
    start: usize,
    len: usize,
    /// Where they land before that, if they land.
    landing: Option<usize>,
}

impl<F: Fabric> Client<F> {
    /// Carries out a batch.
    pub fn execute<R: Replies<LargeValue>>(
        &mut self,
        now: Time,
        batch: &[Request<'_>],
        replies: &mut R,
    ) {
        if let [Request { key, op: Op::Get }] = batch
            && self.get_known(now, key, replies)
        {
            return;
        }
        let mut done = 0;
        while done < batch.len() {
            let len = wave_len(&batch[done..]);
            let wave = &batch[done..done + len];
            self.carry_out(now, wave);
            for index in 0..len {
                let used = self.wave.words.len();
                self.read_long(now, wave, index);
                #[cfg(test)]
                {
                    self.wave.peak = self.wave.peak.max(self.wave.words.len());
                }
                self.deliver(done + index, index, replies);
                self.wave.words.truncate(used);
            }
            done += len;
        }
        for words in [&mut self.wave.words, &mut self.block] {
            if words.capacity() > WORDS_KEPT {
                words.clear();
                words.shrink_to(WORDS_KEPT);
            }
        }
    }

    /// A single get whose block is known, in one Get: the directory's main case, without a wave's lists. False if this
    /// does not answer the get.
    #[inline]
    fn get_known<R: Replies<LargeValue>>(
        &mut self,
        now: Time,
        key: &Key<'_>,
        replies: &mut R,
    ) -> bool {
        let server = placement::server(key.hash(), self.layout.servers);
        let control = self.control(server);
        let channel = &self.channels[server];
        // If the server's memory cannot be loaded, a message may be cheaper.
        let is_cheapest = channel.reachable || self.config.operations == Operations::Direct;
        if channel.gone || !is_cheapest || !self.may_go_directly(server, &control, now) {
            return false;
        }
        self.enter();
        // Read after `enter`: a flush waits for sessions that may not have seen it.
        let control = self.control(server);
        let found = self.read_known(now, server, &control, key);
        self.exit();
        let Some((item, header, len)) = found else {
            return false;
        };
        self.count_request(server);
        self.count(Count::DirectGets);
        self.count(Count::DirectoryHits);
        let value = block::value_bytes(&self.block[..len], &header);
        if value.len() > COPY_MAX {
            replies.large(0, &item, LargeValue::new(value));
        } else {
            replies.begin(0, &item).write_copy_of_slice(value);
            replies.commit(0);
        }
        true
    }

    /// True if operations on a server's blocks need no message first. It needs one now and then if it has no clock, or
    /// if it does not notice otherwise that a client uses it (`server::backoff`).
    #[inline(always)]
    fn may_go_directly(&self, server: usize, control: &Control, now: Time) -> bool {
        let channel = &self.channels[server];
        let needs_messages = self.config.clocks == Clocks::Callers || !channel.reachable;
        channel.selector.goes_to_blocks() && !(needs_messages && control.is_overdue(now))
    }

    fn carry_out(&mut self, now: Time, wave: &[Request<'_>]) {
        self.wave.words.clear();
        self.wave.steps.clear();
        self.wave.servers.clear();
        self.wave.alone = wave.len() == 1;
        for request in wave {
            let server = placement::server(request.key.hash(), self.layout.servers);
            self.count_request(server);
            self.wave.servers.push(server);
            self.wave.steps.push(match self.channels[server].gone {
                true => Step::Answered(Answer::Done(lost(&request.op))),
                false => Step::Send,
            });
        }
        self.go_directly(now, wave);
        self.send_to_servers(now, wave);
    }

    /// Reads a long value, if a request still waits for that.
    fn read_long(&mut self, now: Time, wave: &[Request<'_>], index: usize) {
        self.wave.alone = true;
        while let Step::Later(later) = self.wave.steps[index] {
            let (server, request) = (self.wave.servers[index], &wave[index]);
            let answer = match later {
                _ if self.channels[server].gone => Err(Gone { pe: server }),
                Later::Read => {
                    self.wave.steps[index] = Step::Send;
                    self.go_directly(now, wave);
                    self.send_to_servers(now, wave);
                    continue;
                }
                Later::At(item, known) => self.read_large(now, server, request, item, known),
                Later::Copy => self.read_copy(now, server, request),
            };
            self.wave.steps[index] = match answer {
                Ok(answer) => Step::Answered(answer),
                Err(Gone { .. }) => self.lost_step(server, &request.op),
            };
        }
    }

    /// Carries out direct operations, until every request is answered or left to its server.
    fn go_directly(&mut self, now: Time, wave: &[Request<'_>]) {
        self.enter();
        self.find_blocks(now, wave);
        self.choose(wave);
        let started = self.wave.timed.then(|| self.fabric.nanos());
        let wrote = self.write_blocks(wave);
        let written = started.map(|started| self.fabric.nanos() - started);
        self.read_until_done(now, wave);
        self.mark_the_only_one();
        let started = self.wave.timed.then(|| self.fabric.nanos());
        // Where memory cannot be loaded, words stay under way, and their blocks locked until the last one arrives: no reader
        // sees what was there before the lock, and nobody else writes there (`block`, 1).
        let land_alone = self.fabric.verified().lands_alone;
        self.complete_writes(|channel| channel.reachable || !land_alone);
        self.exit();
        if let (Some(written), Some(started)) = (written, started)
            && wrote > 0
        {
            let nanos = written + self.fabric.nanos() - started;
            self.note_direct(Kind::KnownSet, nanos as f64 / wrote as f64);
        }
    }

    /// Waits until all words written to some servers have arrived. If all memory can be loaded and stored,
    /// [`Fabric::quiet`] does that at no cost. Otherwise `quiet` waits for every PE that this one has sent anything to,
    /// also for one that stands still and was not written to.
    pub(super) fn complete_writes(&mut self, of: impl Fn(&Channel) -> bool) {
        let mut wrote = std::mem::take(&mut self.wave.wrote);
        if wrote.is_empty() {
            return;
        }
        if self.channels.iter().all(|channel| channel.reachable) {
            if self.fabric.quiet().is_err() {
                self.lose_those_gone();
            }
            wrote.clear();
        } else {
            wrote.sort_by_key(|wrote| wrote.server);
            for of_server in wrote.chunk_by(|one, other| one.server == other.server) {
                let last = of_server[of_server.len() - 1];
                if of(&self.channels[last.server]) && self.await_arrival(last).is_err() {
                    self.lose(last.server);
                }
            }
            wrote.retain(|wrote| !of(&self.channels[wrote.server]));
        }
        self.wave.wrote = wrote;
    }

    /// Waits until everything that was sent to a server up to this head has arrived: the head has, since it was put behind
    /// a fence. It may be a later one by now: heads rise, and the next writer needs to see this one first. (An atomic fetch
    /// would show that if a fence ordered it. OpenSHMEM 1.4 has a fence order all atomic operations, 1.5 only those that
    /// fetch nothing.)
    fn await_arrival(&mut self, wrote: Wrote) -> Result<(), Gone> {
        let server = wrote.server;
        let mut attempt = 0;
        loop {
            let mut there = [0];
            self.fabric.get(server, wrote.head, &mut there)?;
            if there[0] >= wrote.version {
                return Ok(());
            }
            self.pause(server, attempt)?;
            attempt = attempt.wrapping_add(1);
        }
    }

    /// Finds the requests that can be carried out directly, and counts them.
    fn find_blocks(&mut self, now: Time, wave: &[Request<'_>]) {
        self.wave.direct.clear();
        self.wave.direct.resize(self.channels.len(), [0; KINDS]);
        self.wave.chosen.clear();
        self.wave.chosen.resize(self.channels.len(), 0);
        for (index, request) in wave.iter().enumerate() {
            if !matches!(self.wave.steps[index], Step::Send) {
                continue;
            }
            let server = self.wave.servers[index];
            let step = self.direct_step(now, server, request);
            if let Some(step) = step {
                self.wave.steps[index] = step;
            }
            if Self::is_large(&request.op) {
                // No message holds it: there is nothing to choose.
                continue;
            }
            match step {
                Some(step) => self.wave.direct[server][kind_of(&step) as usize] += 1,
                None => self.wave.chosen[server] += 1,
            }
        }
    }

    /// The first step of a request if the session can carry it out itself.
    fn direct_step(&mut self, now: Time, server: usize, request: &Request<'_>) -> Option<Step> {
        let control = self.control(server);
        if !self.may_go_directly(server, &control, now) {
            return None;
        }
        match &request.op {
            // Only the server knows its generation: the present one may have ended, and other sessions may have missed
            // pairs of it.
            Op::Store(_) if control.flushes.may_be_over(now) => None,
            Op::Store(store) if is_plain_set(store) => {
                self.block_to_set(server, &request.key, store, control.epoch)
            }
            op if is_plain_read(op).is_some() => {
                Some(self.first_read(server, &request.key, control.epoch))
            }
            _ => None,
        }
    }

    /// Leaves to the servers the requests that they carry out at less cost.
    fn choose(&mut self, wave: &[Request<'_>]) {
        self.wave.timed = false;
        let each = self.wave.direct.iter_mut().zip(&mut self.wave.chosen);
        for (channel, (counts, messages)) in self.channels.iter_mut().zip(each) {
            if *counts == [0; KINDS] {
                continue;
            }
            self.wave.timed |= channel.selector.times();
            let mut open = *counts;
            if channel.reachable {
                // No message is as cheap as loads.
                open[Kind::KnownGet as usize] = 0;
            }
            let choice = channel.selector.choose(&open, *messages as usize);
            *messages = choice.messages as u32;
            self.wave.timed |= choice.trial;
            for kind in Kind::ALL.map(|kind| kind as usize) {
                if open[kind] > 0 && !choice.direct[kind] {
                    counts[kind] = 0;
                }
            }
        }
        let servers = wave.iter().zip(&self.wave.servers);
        for (step, (request, &server)) in self.wave.steps.iter_mut().zip(servers) {
            if !matches!(step, Step::Send | Step::Later(_) | Step::Answered(_))
                && !Self::is_large(&request.op)
                && self.wave.direct[server][kind_of(step) as usize] == 0
            {
                *step = Step::Send;
            }
        }
    }

    /// Notes how long an operation of a kind took, for each server that had one.
    fn note_direct(&mut self, kind: Kind, nanos: f64) {
        for (channel, counts) in self.channels.iter_mut().zip(&self.wave.direct) {
            let count = counts[kind as usize] as usize;
            if count > 0 {
                channel.selector.note_direct(kind, count, nanos);
            }
        }
    }

    /// Carries out the sets. Returns how many blocks were written.
    fn write_blocks(&mut self, wave: &[Request<'_>]) -> usize {
        let mut wrote = 0;
        for (index, request) in wave.iter().enumerate() {
            let (Step::Write(at, hint), Op::Store(store)) = (self.wave.steps[index], &request.op)
            else {
                continue;
            };
            if self.wave.wrote.len() >= WAVE {
                self.complete_writes(|_| true);
            }
            let server = self.wave.servers[index];
            let set = self.direct_set(server, &request.key, store, at, hint);
            self.wave.steps[index] = match set {
                Ok(Some(reply)) => {
                    wrote += 1;
                    Step::Answered(Answer::Done(reply))
                }
                Ok(None) => Step::Send,
                Err(Gone { .. }) => self.lost_step(server, &request.op),
            };
        }
        wrote
    }

    /// Changes the recency of a block that was read, if it is the only one: that costs no more than a message.
    fn mark_the_only_one(&mut self) {
        if let [used] = self.wave.used[..] {
            self.wave.used.clear();
            self.mark_used(used.server, used.pointer, used.before, used.new);
        }
    }

    /// Has servers change the recencies of blocks that were read: one message for each server, instead of a round trip
    /// for each block. (A Put would do as well, except that it could arrive after this PE has died, in a page that has
    /// another class by then.)
    fn send_those_used(&mut self, now: Time, wave: &[Request<'_>]) {
        let mut used = std::mem::take(&mut self.wave.used);
        used.sort_unstable_by_key(|used| used.server);
        for of_server in used.chunk_by(|one, other| one.server == other.server) {
            let server = of_server[0].server;
            let words: Vec<u64> = of_server
                .iter()
                .flat_map(|used| [used.pointer.word(), used.before.0, used.new.0])
                .collect();
            let request = ServerRequest::Used(bytemuck::cast_slice(&words));
            let message = TimedRequest { now, request };
            let sent = match self.channels[server].gone {
                true => Ok(()),
                false => self.send(server, &message, NO_REQUEST, &mut note_reply(wave)),
            };
            if sent.is_err() {
                self.lose(server);
            }
        }
        used.clear();
        self.wave.used = used;
    }

    fn lost_step(&mut self, server: usize, op: &Op<'_>) -> Step {
        self.lose(server);
        Step::Answered(Answer::Done(lost(op)))
    }

    /// The first step of a read.
    fn first_read(&mut self, server: usize, key: &Key<'_>, epoch: u32) -> Step {
        if let Some((_, hint)) = self.hint(server, key.hash(), epoch) {
            return Step::ReadBlock {
                pointer: hint.pointer,
                generation: hint.generation,
                hinted: true,
                tries: 0,
            };
        }
        self.count(Count::DirectoryMisses);
        Step::ReadBucket
    }

    /// Reads blocks and buckets until every request is answered or left to its server.
    fn read_until_done(&mut self, now: Time, wave: &[Request<'_>]) {
        let mut started = self.wave.timed.then(|| self.fabric.nanos());
        loop {
            self.start_fetches(wave);
            if self.wave.fetches.is_empty() {
                return;
            }
            let mut fetches = std::mem::take(&mut self.wave.fetches);
            self.land(&fetches);
            if let Some(started) = started.take() {
                let nanos = (self.fabric.nanos() - started) as f64 / fetches.len() as f64;
                self.note_direct(Kind::KnownGet, nanos);
                // Of two Gets one behind the other.
                self.note_direct(Kind::UnknownGet, 2.0 * nanos);
            }
            for fetch in fetches.drain(..) {
                let request = &wave[fetch.request];
                let server = self.wave.servers[fetch.request];
                if self.channels[server].gone {
                    self.wave.steps[fetch.request] =
                        Step::Answered(Answer::Done(lost(&request.op)));
                    continue;
                }
                let read = is_plain_read(&request.op).unwrap_or_default();
                self.wave.steps[fetch.request] =
                    self.judge_fetch(now, server, request, &read, fetch);
            }
            self.wave.fetches = fetches;
        }
    }

    fn judge_fetch(
        &mut self,
        now: Time,
        server: usize,
        request: &Request<'_>,
        read: &Read,
        fetch: Fetch,
    ) -> Step {
        match fetch.step {
            Step::ReadBlock {
                pointer,
                generation,
                hinted,
                tries,
            } => {
                let fetched = Fetched {
                    server,
                    pointer,
                    generation,
                    start: fetch.start,
                    hinted,
                    tries,
                };
                self.judge_block(now, &request.key, read, fetched)
            }
            _ => self.judge_bucket(server, &request.key, fetch.start),
        }
    }

    /// Begins the reads of the requests' next steps.
    fn start_fetches(&mut self, wave: &[Request<'_>]) {
        self.wave.fetches.clear();
        self.wave.landed = 0;
        for (index, request) in wave.iter().enumerate() {
            let step = self.wave.steps[index];
            let server = self.wave.servers[index];
            let (from, len) = match step {
                Step::ReadBlock { pointer, .. } => {
                    (self.layout.block(pointer), self.layout.block_words(pointer))
                }
                Step::ReadBucket => {
                    let number = self.layout.bucket_of(request.key.hash());
                    (self.layout.bucket(number), bucket::WORDS)
                }
                Step::Write(..) | Step::Send | Step::Later(_) | Step::Answered(_) => continue,
            };
            if len > LONG && !self.wave.alone {
                self.wave.steps[index] = Step::Later(Later::Read);
                continue;
            }
            let start = self.wave.words.len();
            let landed = self.wave.landed;
            // A block that is longer than the landing zone is read alone.
            let lands = !self.channels[server].reachable
                && !self.wave.alone
                && len <= self.layout.landing_words;
            if lands && landed + len > self.layout.landing_words {
                // No room is left in the landing zone: it is read in the next round.
                continue;
            }
            self.wave.words.resize(start + len, 0);
            let got = match lands {
                true => {
                    let landing = self.layout.landing(self.session).plus(landed);
                    self.wave.landed += len;
                    self.fabric.get_nbi(server, from, landing, len)
                }
                false => self.fabric.get(server, from, &mut self.wave.words[start..]),
            };
            if got.is_err() {
                self.wave.steps[index] = self.lost_step(server, &request.op);
                continue;
            }
            self.wave.fetches.push(Fetch {
                request: index,
                step,
                start,
                len,
                landing: lands.then_some(landed),
            });
        }
    }

    /// Waits for the words that are landing, and copies them.
    fn land(&mut self, fetches: &[Fetch]) {
        if fetches.iter().all(|fetch| fetch.landing.is_none()) {
            return;
        }
        match self.fabric.quiet() {
            Ok(()) => self.key_is_coming = false,
            // The words in the landing zone may be old.
            Err(_) => self.lose_those_gone(),
        }
        for fetch in fetches {
            let Some(landed) = fetch.landing else {
                continue;
            };
            let from = self.layout.landing(self.session).plus(landed);
            let landing = self.fabric.local(from, fetch.len);
            let into = &mut self.wave.words[fetch.start..][..fetch.len];
            for (into, word) in into.iter_mut().zip(landing) {
                // Relaxed: `quiet` has completed the Gets.
                *into = word.load(std::sync::atomic::Ordering::Relaxed);
            }
        }
    }

    /// Sends the remaining requests to their servers.
    fn send_to_servers(&mut self, now: Time, wave: &[Request<'_>]) {
        let is_left = |step: &Step| !matches!(step, Step::Answered(_) | Step::Later(_));
        let any_used = !self.wave.used.is_empty();
        if !any_used && !self.wave.steps.iter().any(is_left) {
            return;
        }
        self.send_those_used(now, wave);
        self.wave.sent.clear();
        self.wave.sent.resize(self.channels.len(), 0);
        let started = self.wave.timed.then(|| self.fabric.nanos());
        for index in 0..wave.len() {
            if !matches!(self.wave.steps[index], Step::Send) || Self::is_large(&wave[index].op) {
                continue;
            }
            let server = self.wave.servers[index];
            if self.channels[server].gone {
                self.wave.steps[index] = Step::Answered(Answer::Done(lost(&wave[index].op)));
                continue;
            }
            let mut replied = note_reply(wave);
            let request = ServerRequest::Op(wave[index]);
            if self
                .send(server, &TimedRequest { now, request }, index, &mut replied)
                .is_err()
            {
                self.lose(server);
            }
            self.wave.sent[server] += 1;
        }
        for server in 0..self.channels.len() {
            let sent = self.wave.sent[server] as usize;
            if self.channels[server].waiting.is_empty() {
                // All is answered, or it is gone.
                continue;
            }
            if self.collect(server, &mut note_reply(wave)).is_err() {
                self.lose(server);
            } else if let Some(started) = started.filter(|_| sent > 0) {
                let nanos = self.fabric.nanos() - started;
                let chosen = self.wave.chosen[server] as usize;
                let selector = &mut self.channels[server].selector;
                selector.note_active(chosen, sent, nanos);
            }
        }
        self.store_large_ones(now, wave);
    }

    /// Carries out stores of values that are too long for a message, and answers requests whose server is gone.
    fn store_large_ones(&mut self, now: Time, wave: &[Request<'_>]) {
        for (index, request) in wave.iter().enumerate() {
            if matches!(self.wave.steps[index], Step::Answered(_) | Step::Later(_)) {
                continue;
            }
            let server = self.wave.servers[index];
            let stored = match &request.op {
                Op::Store(store) if Self::is_large(&request.op) && !self.channels[server].gone => {
                    self.store_large(now, server, &request.key, store)
                }
                _ => Err(Gone { pe: server }),
            };
            self.wave.steps[index] = match stored {
                Ok(answer) => Step::Answered(answer),
                Err(Gone { .. }) => self.lost_step(server, &request.op),
            };
        }
    }

    /// Delivers a reply.
    fn deliver<R: Replies<LargeValue>>(&mut self, index: usize, of_wave: usize, replies: &mut R) {
        let Step::Answered(answer) = self.wave.steps[of_wave] else {
            unreachable!("every request of a wave is answered");
        };
        match answer {
            Answer::Done(reply) => replies.done(index, reply),
            Answer::Value { item, at } => {
                let bytes: &[u8] = bytemuck::cast_slice(&self.wave.words[at..]);
                let value = &bytes[..item.value_len];
                if value.len() > COPY_MAX {
                    return replies.large(index, &item, LargeValue::new(value));
                }
                let into = replies.begin(index, &item);
                into.write_copy_of_slice(value);
                replies.commit(index);
            }
        }
    }
}

#[cfg(test)]
impl<F: Fabric> Client<F> {
    /// The most words that a wave had, and the capacity that is kept.
    pub(crate) fn buffer_words(&self) -> (usize, usize) {
        let kept = self.wave.words.capacity() + self.block.capacity();
        (self.wave.peak, kept)
    }

    /// Begins to read the buckets of a wave's keys.
    pub(super) fn begin_reads(&mut self, wave: &[Request<'_>]) {
        for request in wave {
            let server = placement::server(request.key.hash(), self.layout.servers);
            self.wave.servers.push(server);
            self.wave.steps.push(Step::ReadBucket);
        }
        self.start_fetches(wave);
    }

    /// Waits for these reads.
    pub(super) fn end_reads(&mut self) {
        let fetches = std::mem::take(&mut self.wave.fetches);
        self.land(&fetches);
    }
}

/// Notes what a reply says: the request's answer, or how its value is read.
fn note_reply<'a, F: Fabric>(
    wave: &'a [Request<'a>],
) -> impl FnMut(&mut Client<F>, usize, &[u64]) + 'a {
    move |client, index, words| {
        if index == NO_REQUEST {
            return;
        }
        let server = client.wave.servers[index];
        client.wave.steps[index] = client.judge_reply(server, &wave[index], words);
    }
}

/// The kind of a step that a session can carry out itself.
fn kind_of(step: &Step) -> Kind {
    match step {
        Step::Write(..) => Kind::KnownSet,
        Step::ReadBlock { .. } => Kind::KnownGet,
        _ => Kind::UnknownGet,
    }
}

/// The number of requests, from the first on, that have different keys.
fn wave_len(batch: &[Request<'_>]) -> usize {
    let most = batch.len().min(WAVE);
    let same = |one: usize, other: usize| batch[one].key.hash() == batch[other].key.hash();
    (1..most)
        .find(|&index| (0..index).any(|before| same(before, index)))
        .unwrap_or(most)
}
