//! A batch: in waves of different keys. Of a wave the direct operations go first, all their Gets under way at once, then
//! the messages, one Put for each server, then large values; replies go out in order.

use nuthatch_engine::{Item, Key, Op, Read, Replies, Reply, Request, Time};
use nuthatch_fabric::{Fabric, Gone};

use super::Client;
use super::active::{Replied, lost};
use super::direct::{Fetched, is_plain_read, is_plain_set};
use crate::block;
use crate::bucket::{self, Pointer};
use crate::engine::{COPY_MAX, LargeValue};
use crate::message::{Ask, Asked};
use crate::placement;
use crate::stats::Count;

/// Requests of a wave.
const WAVE: usize = 64;

/// What a wave's requests work with.
#[derive(Default)]
pub struct Wave {
    /// Words that were read: of blocks, of buckets, of replies.
    pub words: Vec<u64>,
    steps: Vec<Step>,
    servers: Vec<usize>,
    fetches: Vec<Fetch>,
    /// Words of the landing zone in use.
    landed: usize,
}

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

/// What is to be done for a request next.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    ReadBlock {
        pointer: Pointer,
        /// Of its page, from before the block is read.
        generation: u64,
        /// The directory led there.
        hinted: bool,
        tries: u32,
    },
    ReadBucket,
    Ask,
    Answered(Answer),
}

/// What is being read for a request.
#[derive(Clone, Copy)]
struct Fetch {
    request: usize,
    step: Step,
    /// Where the words will be in the wave's.
    start: usize,
    len: usize,
    /// Where they land before that, if they do.
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
                self.deliver(done + index, index, replies);
            }
            done += len;
        }
    }

    /// A get alone whose block is known, in one Get: what a directory is for, without a wave's lists. False if it comes
    /// to nothing; then nothing was answered.
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
        if channel.gone || !channel.selector.goes_to_blocks() || control.is_overdue(now) {
            return false;
        }
        self.enter();
        let found = self.read_known(now, server, &control, key);
        self.exit();
        let Some((item, header, len)) = found else {
            return false;
        };
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

    fn carry_out(&mut self, now: Time, wave: &[Request<'_>]) {
        self.wave.words.clear();
        self.wave.steps.clear();
        self.wave.servers.clear();
        for request in wave {
            let server = placement::server(request.key.hash(), self.layout.servers);
            self.wave.servers.push(server);
            self.wave.steps.push(match self.channels[server].gone {
                true => Step::Answered(Answer::Done(lost(&request.op))),
                false => Step::Ask,
            });
        }
        self.go_directly(now, wave);
        self.ask_servers(now, wave);
    }

    /// Direct operations, as far as they go.
    fn go_directly(&mut self, now: Time, wave: &[Request<'_>]) {
        self.enter();
        let mut wrote = false;
        for (index, request) in wave.iter().enumerate() {
            let server = self.wave.servers[index];
            if !matches!(self.wave.steps[index], Step::Ask)
                || !self.channels[server].selector.goes_to_blocks()
                || self.control(server).is_overdue(now)
            {
                continue;
            }
            let step = match &request.op {
                Op::Store(store) if is_plain_set(store) => {
                    match self.direct_set(now, server, &request.key, store) {
                        Ok(Some(reply)) => {
                            wrote = true;
                            Step::Answered(Answer::Done(reply))
                        }
                        Ok(None) => Step::Ask,
                        Err(Gone { .. }) => self.lost_step(server, &request.op),
                    }
                }
                op if is_plain_read(op).is_some() => self.first_read(server, &request.key),
                _ => Step::Ask,
            };
            self.wave.steps[index] = step;
        }
        self.read_until_done(now, wave);
        if wrote && self.fabric.quiet().is_err() {
            self.lose_those_gone();
        }
        self.exit();
    }

    fn lost_step(&mut self, server: usize, op: &Op<'_>) -> Step {
        self.lose(server);
        Step::Answered(Answer::Done(lost(op)))
    }

    /// Where a read begins.
    fn first_read(&mut self, server: usize, key: &Key<'_>) -> Step {
        if let Some((_, hint)) = self.hint(server, key.hash()) {
            return Step::ReadBlock {
                pointer: hint.pointer,
                generation: hint.generation,
                hinted: true,
                tries: 0,
            };
        }
        self.count(Count::DirectoryMisses);
        match self.channels[server].selector.reads_buckets() {
            true => Step::ReadBucket,
            false => Step::Ask,
        }
    }

    /// Reads blocks and buckets until every request is answered or is for its server.
    fn read_until_done(&mut self, now: Time, wave: &[Request<'_>]) {
        loop {
            self.start_fetches(wave);
            if self.wave.fetches.is_empty() {
                return;
            }
            let timed = self.timed_server();
            let started = timed.map(|_| self.fabric.nanos());
            let mut fetches = std::mem::take(&mut self.wave.fetches);
            self.land(&fetches);
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
            if let (Some(server), Some(started)) = (timed, started) {
                let nanos = self.fabric.nanos() - started;
                // Of two Gets one behind the other.
                self.channels[server].selector.note_direct(2 * nanos, 1);
            }
        }
    }

    /// The server of a wave of one read whose cost is to be known.
    fn timed_server(&mut self) -> Option<usize> {
        let [fetch] = self.wave.fetches[..] else {
            return None;
        };
        let server = self.wave.servers[fetch.request];
        self.channels[server].selector.times().then_some(server)
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

    /// Begins to read what the requests' next steps want.
    fn start_fetches(&mut self, wave: &[Request<'_>]) {
        self.wave.fetches.clear();
        self.wave.landed = 0;
        for index in 0..wave.len() {
            let step = self.wave.steps[index];
            let server = self.wave.servers[index];
            let (from, len) = match step {
                Step::ReadBlock { pointer, .. } => {
                    (self.layout.block(pointer), self.layout.block_words(pointer))
                }
                Step::ReadBucket => {
                    let number = self.layout.bucket_of(wave[index].key.hash());
                    (self.layout.bucket(number), bucket::WORDS)
                }
                Step::Ask | Step::Answered(_) => continue,
            };
            let start = self.wave.words.len();
            let landed = self.wave.landed;
            let lands = !self.channels[server].reachable && wave.len() > 1;
            if lands && landed + len > self.layout.landing_words {
                // No room left to land: in the next round.
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
                self.wave.steps[index] = self.lost_step(server, &wave[index].op);
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

    /// Waits for what is landing, and copies it.
    fn land(&mut self, fetches: &[Fetch]) {
        if fetches.iter().all(|fetch| fetch.landing.is_none()) {
            return;
        }
        if self.fabric.quiet().is_err() {
            // What was to land may be from before.
            self.lose_those_gone();
        }
        for fetch in fetches {
            let Some(landed) = fetch.landing else {
                continue;
            };
            let from = self.layout.landing(self.session).plus(landed);
            let landing = self.fabric.local(from, fetch.len);
            let into = &mut self.wave.words[fetch.start..][..fetch.len];
            for (into, word) in into.iter_mut().zip(landing) {
                // Relaxed: settled by `quiet`.
                *into = word.load(std::sync::atomic::Ordering::Relaxed);
            }
        }
    }

    /// Asks servers for what is left.
    fn ask_servers(&mut self, now: Time, wave: &[Request<'_>]) {
        let is_left = |step: &Step| !matches!(step, Step::Answered(_));
        if !self.wave.steps.iter().any(is_left) {
            return;
        }
        let mut asked = 0;
        let mut later: Vec<(usize, Replied)> = Vec::new();
        let mut timed = None;
        let started = self.fabric.nanos();
        for index in 0..wave.len() {
            if !matches!(self.wave.steps[index], Step::Ask) || Self::is_large(&wave[index].op) {
                continue;
            }
            let server = self.wave.servers[index];
            if self.channels[server].gone {
                self.wave.steps[index] = Step::Answered(Answer::Done(lost(&wave[index].op)));
                continue;
            }
            let mut replied = note_reply(wave, &mut later);
            let ask = Ask::Op(wave[index]);
            if self
                .send(server, &Asked { now, ask }, index, &mut replied)
                .is_err()
            {
                self.lose(server);
            }
            asked += 1;
            timed = Some(server);
        }
        if asked > 0 {
            for server in 0..self.channels.len() {
                if self.channels[server].gone {
                    continue;
                }
                let mut replied = note_reply(wave, &mut later);
                if self.collect(server, &mut replied).is_err() {
                    self.lose(server);
                }
            }
            if let Some(server) = timed
                && self.channels[server].selector.times()
            {
                let nanos = self.fabric.nanos() - started;
                self.channels[server].selector.note_active(nanos, asked);
            }
        }
        for (index, replied) in later {
            self.finish_large(now, wave, index, replied);
        }
        self.store_large_ones(now, wave);
    }

    fn finish_large(&mut self, now: Time, wave: &[Request<'_>], index: usize, replied: Replied) {
        let server = self.wave.servers[index];
        let answer = match replied {
            Replied::Answered(answer) => Ok(answer),
            Replied::At(item, known) => self.read_large(now, server, &wave[index].key, item, known),
            Replied::Copy(item, pointer) => self.read_copy(now, server, item, pointer),
        };
        self.wave.steps[index] = match answer {
            Ok(answer) => Step::Answered(answer),
            Err(Gone { .. }) => self.lost_step(server, &wave[index].op),
        };
    }

    /// Stores of values that go into no message, and whatever has no answer because its server is gone.
    fn store_large_ones(&mut self, now: Time, wave: &[Request<'_>]) {
        for (index, request) in wave.iter().enumerate() {
            if matches!(self.wave.steps[index], Step::Answered(_)) {
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

    /// Hands a reply out.
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
    /// Begins to read the buckets of a wave's keys.
    pub(super) fn begin_reads(&mut self, wave: &[Request<'_>]) {
        for request in wave {
            let server = placement::server(request.key.hash(), self.layout.servers);
            self.wave.servers.push(server);
            self.wave.steps.push(Step::ReadBucket);
        }
        self.start_fetches(wave);
    }

    /// Waits for what was begun.
    pub(super) fn end_reads(&mut self) {
        let fetches = std::mem::take(&mut self.wave.fetches);
        self.land(&fetches);
    }
}

/// Notes what a reply says: the request's answer, or what is left to do for it.
fn note_reply<'a, F: Fabric>(
    wave: &'a [Request<'a>],
    later: &'a mut Vec<(usize, Replied)>,
) -> impl FnMut(&mut Client<F>, usize, &[u64]) + 'a {
    move |client, index, words| {
        let server = client.wave.servers[index];
        match client.judge_reply(server, &wave[index], words) {
            Replied::Answered(answer) => client.wave.steps[index] = Step::Answered(answer),
            other => later.push((index, other)),
        }
    }
}

/// Requests from the first on that are of different keys.
fn wave_len(batch: &[Request<'_>]) -> usize {
    let most = batch.len().min(WAVE);
    let same = |one: usize, other: usize| batch[one].key.hash() == batch[other].key.hash();
    (1..most)
        .find(|&index| (0..index).any(|before| same(before, index)))
        .unwrap_or(most)
}
