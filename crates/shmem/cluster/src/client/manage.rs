//! What a session sends to all servers beside operations: maintenance, limits, statistics, visits.

use std::mem::MaybeUninit;

use nuthatch_engine::stats::ClassStats;
use nuthatch_engine::{
    AuditError, Cursor, Footprint, Item, Key, KeyHasher, Op, Read, Replies, Reply, Request, Time,
    Visit,
};
use nuthatch_fabric::{Fabric, Gone};

use super::Client;
use crate::block::{self, Header, RECENCY, Recency};
use crate::bucket::{ENTRIES, Entry, OVERFLOW, Pointer, WORDS};
use crate::engine::{COPY_MAX, LargeValue};
use crate::message::{ServerReply, ServerRequest, TimedRequest};
use crate::stats::ServerStats;

/// How often a visit reads a block that is being written, before it asks the server.
const READS: u32 = 64;

/// How often a bucket is read again because its pairs had moved: they move with their pages, one page at a time.
const ROUNDS: usize = 16;

impl<F: Fabric> Client<F> {
    /// Asks a server, and returns its answer; nothing if the server is gone.
    fn request(
        &mut self,
        server: usize,
        now: Time,
        request: ServerRequest<'_>,
    ) -> Option<Vec<u64>> {
        self.exchange(server, &TimedRequest { now, request }).ok()
    }

    fn request_all(&mut self, now: Time, request: ServerRequest<'_>) {
        for server in 0..self.channels.len() {
            self.request(server, now, request);
        }
    }

    /// Has servers search for expired pairs. True if there is more to do: until all have come round, which they do at different
    /// times.
    pub fn maintain(&mut self, now: Time, budget: usize) -> bool {
        for server in 0..self.channels.len() {
            if self.channels[server].swept {
                continue;
            }
            let words = self.request(server, now, ServerRequest::Maintain(budget));
            let more = words
                .is_some_and(|words| ServerReply::decode(&words) == Some(ServerReply::Done(true)));
            self.channels[server].swept = !more;
        }
        let more = self.channels.iter().any(|channel| !channel.swept);
        if !more {
            self.channels
                .iter_mut()
                .for_each(|channel| channel.swept = false);
        }
        more
    }

    /// Flushes, at `at`, everything stored before that moment.
    pub fn flush(&mut self, now: Time, at: Time) {
        self.request_all(now, ServerRequest::Flush(at));
    }

    /// Gives each server another limit, in bytes.
    pub fn set_limit(&mut self, bytes: usize) {
        self.request_all(Time(0), ServerRequest::Limit(bytes));
    }

    /// Has servers reset their counters.
    pub fn reset_servers(&mut self) {
        self.request_all(Time(0), ServerRequest::Reset);
    }

    /// A server's statistics.
    pub fn server_stats(&mut self, server: usize) -> Option<ServerStats> {
        let words = self.request(server, Time(0), ServerRequest::Stats)?;
        match ServerReply::decode(&words) {
            Some(ServerReply::Words(bytes)) => bytemuck::try_pod_read_unaligned(bytes).ok(),
            _ => None,
        }
    }

    /// Adds the statistics of a server's classes.
    pub fn add_classes(&mut self, server: usize, sums: &mut [ClassStats]) {
        let Some(words) = self.request(server, Time(0), ServerRequest::Classes) else {
            return;
        };
        let Some(ServerReply::Words(bytes)) = ServerReply::decode(&words) else {
            return;
        };
        let words: &[u64] = bytemuck::cast_slice(bytes);
        for (class, (sum, counts)) in sums.iter_mut().zip(words.chunks_exact(3)).enumerate() {
            let (pages, blocks, free) =
                (counts[0] as usize, counts[1] as usize, counts[2] as usize);
            sum.class = class + 1;
            sum.chunk_size = self.layout.classes.words(class) * 8;
            sum.chunks_per_page = self.layout.page_words / self.layout.classes.words(class);
            sum.pages += pages;
            // A block has one item.
            sum.items += (blocks - free) as u64;
            sum.used_chunks += blocks - free;
            sum.free_chunks += free;
            // Clients change lengths without the server: only the sizes of blocks are known.
            sum.requested_bytes += ((blocks - free) * sum.chunk_size) as u64;
        }
    }

    /// Has a server check its invariants.
    pub fn audit(&mut self, server: usize) -> Result<(), AuditError> {
        let words = self.request(server, Time(0), ServerRequest::Audit);
        let Some(words) = words else { return Ok(()) };
        match ServerReply::decode(&words) {
            Some(ServerReply::Text(b"")) => Ok(()),
            Some(ServerReply::Text(text)) => Err(String::from_utf8_lossy(text).into_owned().into()),
            _ => Err("a server gave no answer to an audit".into()),
        }
    }

    /// Visits pairs, bucket by bucket, server by server. A pair keeps its bucket, and if a pair was not where the
    /// bucket said, the bucket is read again: so no pair is met twice or missed.
    pub fn visit(
        &mut self,
        now: Time,
        from: Cursor,
        budget: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Option<Cursor> {
        let buckets = self.layout.buckets as u64;
        let all = buckets * self.layout.servers as u64;
        let mut place = from.place;
        let end = place.saturating_add(budget.max(1) as u64).min(all);
        while place < end {
            let (server, bucket) = ((place / buckets) as usize, (place % buckets) as usize);
            if !self.channels[server].gone {
                self.visit_bucket(now, server, bucket, visit);
            }
            place += 1;
        }
        (place < all).then(|| Cursor::at(place))
    }

    fn visit_bucket(
        &mut self,
        now: Time,
        server: usize,
        bucket: usize,
        visit: &mut dyn FnMut(Visit<'_>),
    ) {
        let mut met: Vec<Vec<u8>> = Vec::new();
        for _ in 0..ROUNDS {
            let pointers = self.pointers_of(server, bucket);
            let mut all_were_there = true;
            for pointer in pointers {
                let place = (server, bucket, pointer);
                all_were_there &= self.visit_block(now, place, &mut met, visit);
            }
            if all_were_there {
                return;
            }
        }
    }

    /// Where the pairs of a bucket are; nowhere if its server is gone.
    fn pointers_of(&mut self, server: usize, bucket: usize) -> Vec<Pointer> {
        let mut words = [0; WORDS];
        let at = self.layout.bucket(bucket);
        if self.fabric.get(server, at, &mut words).is_err() {
            self.lose(server);
            return Vec::new();
        }
        let inside = words[..ENTRIES].iter().map(|&word| Entry(word));
        let mut pointers: Vec<Pointer> = inside
            .filter(|&entry| entry != Entry::FREE)
            .map(Entry::pointer)
            .collect();
        if words[OVERFLOW] != 0 {
            self.add_overflow(server, bucket, &mut pointers);
        }
        pointers
    }

    fn add_overflow(&mut self, server: usize, bucket: usize, pointers: &mut Vec<Pointer>) {
        let mut from = 0;
        while let Some(words) = self.request(server, Time(0), ServerRequest::Overflow(bucket, from))
        {
            let Some(ServerReply::Words(bytes)) = ServerReply::decode(&words) else {
                return;
            };
            let more = bytemuck::cast_slice::<u8, u64>(bytes).iter().copied();
            let Some(last) = more.clone().next_back() else {
                return;
            };
            from = Entry(last).tag() + 1;
            pointers.extend(more.map(|word| Entry(word).pointer()));
        }
    }

    /// Visits the pair of a block. False if it is no longer there.
    fn visit_block(
        &mut self,
        now: Time,
        (server, bucket, pointer): (usize, usize, Pointer),
        met: &mut Vec<Vec<u8>>,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> bool {
        let Ok(words) = self.read_for_visit(server, pointer) else {
            self.lose(server);
            return true;
        };
        let Some(key) = self.key_in(&words, bucket) else {
            return false;
        };
        if met.contains(&key) {
            return true;
        }
        let Some(header) = block::read_any(&words, &self.checksum) else {
            return self.visit_by_key(now, &key, met, visit);
        };
        // A visit is of no one moment: it need not ask whether a generation that is due has begun.
        let flushes = self.control(server).flushes;
        let flushed = flushes.are_due(now) && header.generation == flushes.generation;
        if !flushed && header.is_live(now, flushes.generation) {
            let was_read = Recency(words[RECENCY]).was_read(words[block::HEAD]);
            let value = block::value_bytes(&words, &header);
            self.tell(&key, header.item(was_read), value, visit);
            met.push(key);
        }
        true
    }

    /// The words of a block. They are whole unless it is being written all the time.
    fn read_for_visit(&mut self, server: usize, pointer: Pointer) -> Result<Vec<u64>, Gone> {
        let mut words = vec![0; self.layout.block_words(pointer)];
        for attempt in 0..READS {
            self.fabric
                .get(server, self.layout.block(pointer), &mut words)?;
            let is_none = words[block::META] & 0xff == 0;
            if is_none || block::read_any(&words, &self.checksum).is_some() {
                break;
            }
            self.fabric.pause(attempt);
        }
        Ok(words)
    }

    /// The key in a block's words, if it is one of the bucket. A write to a pair leaves its key alone.
    fn key_in(&self, words: &[u64], bucket: usize) -> Option<Vec<u8>> {
        let header = Header::read(words);
        let is_short = block::KEY + block::words_of(header.key_len.into()) < words.len();
        if header.key_len == 0 || !is_short {
            return None;
        }
        let key = block::key_bytes(words, &header).to_vec();
        (self.layout.bucket_of(self.hasher().hash(&key)) == bucket).then_some(key)
    }

    fn hasher(&self) -> KeyHasher {
        KeyHasher::seeded(self.config.seed)
    }

    /// Visits the pair of a key whose block is being written all the time. The server does it, as for any get that
    /// finds the block so: it waits for the writer, or finds out that the writer is gone. False if the key has no pair.
    fn visit_by_key(
        &mut self,
        now: Time,
        key: &[u8],
        met: &mut Vec<Vec<u8>>,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> bool {
        let read = Read {
            bump: false,
            ..Read::default()
        };
        let request = Request {
            key: Key::new(key, &self.hasher()),
            op: Op::Read(read),
        };
        let mut got = Got::default();
        self.execute(now, &[request], &mut got);
        let Some(item) = got.item else {
            return false;
        };
        self.tell(key, item, &got.value, visit);
        met.push(key.to_vec());
        true
    }

    fn tell(&self, key: &[u8], item: Item, value: &[u8], visit: &mut dyn FnMut(Visit<'_>)) {
        let words = block::pair_words(key.len(), item.value_len);
        let class = self.layout.classes.class_of(words);
        let class = class.expect("a pair that is there has a class");
        visit(Visit {
            key,
            item,
            value: if item.value_len > COPY_MAX {
                b""
            } else {
                value
            },
            footprint: Footprint {
                class: class + 1,
                size: self.layout.classes.words(class) * 8,
            },
        });
    }
}

/// The answer of a get.
#[derive(Default)]
struct Got {
    item: Option<Item>,
    value: Vec<u8>,
    len: usize,
}

impl Replies<LargeValue> for Got {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        (self.item, self.len) = (Some(*item), item.value_len);
        self.value = Vec::with_capacity(self.len);
        &mut self.value.spare_capacity_mut()[..self.len]
    }

    fn commit(&mut self, _: usize) {
        // SAFETY: there is room for so many bytes, and the session that commits has written all of them.
        unsafe { self.value.set_len(self.len) };
    }

    fn retract(&mut self, _: usize) {
        *self = Self::default();
    }

    fn large(&mut self, _: usize, item: &Item, _: LargeValue) {
        self.item = Some(*item);
    }

    fn done(&mut self, _: usize, _: Reply) {}
}
