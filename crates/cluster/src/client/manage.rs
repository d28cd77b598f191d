//! What a session asks all servers for beside operations: maintenance, limits, statistics, visits.

use nuthatch_engine::stats::ClassStats;
use nuthatch_engine::{AuditError, Cursor, Footprint, Time, Visit};
use nuthatch_fabric::Fabric;

use super::Client;
use crate::block::{self, Header, RECENCY, Recency};
use crate::bucket::{ENTRIES, Entry, OVERFLOW, Pointer, WORDS};
use crate::engine::COPY_MAX;
use crate::message::{Ask, ServerReply, TimedAsk};
use crate::stats::ServerStats;

/// How often a visit reads a block at which somebody writes.
const READS: u32 = 1000;

impl<F: Fabric> Client<F> {
    /// Asks a server; what it answers. A server that is gone answers nothing.
    fn ask(&mut self, server: usize, now: Time, ask: Ask<'_>) -> Option<Vec<u64>> {
        self.exchange(server, &TimedAsk { now, ask }).ok()
    }

    fn ask_all(&mut self, now: Time, ask: Ask<'_>) -> bool {
        let mut more = false;
        for server in 0..self.channels.len() {
            let words = self.ask(server, now, ask);
            more |= words
                .is_some_and(|words| ServerReply::decode(&words) == Some(ServerReply::Done(true)));
        }
        more
    }

    /// Has servers look for what has expired. True if there is more to do.
    pub fn maintain(&mut self, now: Time, budget: usize) -> bool {
        self.ask_all(now, Ask::Maintain(budget))
    }

    /// Everything stored before `at` goes then.
    pub fn flush(&mut self, now: Time, at: Time) {
        self.ask_all(now, Ask::Flush(at));
    }

    /// Gives each server another limit, in bytes.
    pub fn set_limit(&mut self, bytes: usize) {
        self.ask_all(Time(0), Ask::Limit(bytes));
    }

    /// Has servers count from zero.
    pub fn reset_servers(&mut self) {
        self.ask_all(Time(0), Ask::Reset);
    }

    /// What a server tells of itself.
    pub fn server_stats(&mut self, server: usize) -> Option<ServerStats> {
        let words = self.ask(server, Time(0), Ask::Stats)?;
        match ServerReply::decode(&words) {
            Some(ServerReply::Words(bytes)) => bytemuck::try_pod_read_unaligned(bytes).ok(),
            _ => None,
        }
    }

    /// Adds what a server's classes have.
    pub fn add_classes(&mut self, server: usize, sums: &mut [ClassStats]) {
        let Some(words) = self.ask(server, Time(0), Ask::Classes) else {
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
            // Clients change lengths without the server: what blocks can hold is all that is known.
            sum.requested_bytes += ((blocks - free) * sum.chunk_size) as u64;
        }
    }

    /// Has a server check its invariants.
    pub fn audit(&mut self, server: usize) -> Result<(), AuditError> {
        let words = self.ask(server, Time(0), Ask::Audit);
        let Some(words) = words else { return Ok(()) };
        match ServerReply::decode(&words) {
            Some(ServerReply::Text(b"")) => Ok(()),
            Some(ServerReply::Text(text)) => Err(String::from_utf8_lossy(text).into_owned().into()),
            _ => Err("a server gave no answer to an audit".into()),
        }
    }

    /// Visits pairs, bucket by bucket, server by server. A pair keeps its bucket, so none is met twice or missed.
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
        let mut words = [0; WORDS];
        let at = self.layout.bucket(bucket);
        if self.fabric.get(server, at, &mut words).is_err() {
            return self.lose(server);
        }
        let inside = words[..ENTRIES].iter().map(|&word| Entry(word));
        let mut pointers: Vec<Pointer> = inside
            .filter(|&entry| entry != Entry::FREE)
            .map(Entry::pointer)
            .collect();
        if words[OVERFLOW] != 0 {
            self.add_overflow(server, bucket, &mut pointers);
        }
        let mut met: Vec<Vec<u8>> = Vec::new();
        for pointer in pointers {
            self.visit_block(now, server, bucket, pointer, &mut met, visit);
        }
    }

    fn add_overflow(&mut self, server: usize, bucket: usize, pointers: &mut Vec<Pointer>) {
        let mut from = 0;
        while let Some(words) = self.ask(server, Time(0), Ask::Overflow(bucket, from)) {
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

    /// Visits the pair of a block, unless it has gone meanwhile.
    fn visit_block(
        &mut self,
        now: Time,
        server: usize,
        bucket: usize,
        pointer: Pointer,
        met: &mut Vec<Vec<u8>>,
        visit: &mut dyn FnMut(Visit<'_>),
    ) {
        let len = self.layout.block_words(pointer);
        let mut words = vec![0; len];
        for attempt in 0..READS {
            if self
                .fabric
                .get(server, self.layout.block(pointer), &mut words)
                .is_err()
            {
                return self.lose(server);
            }
            let tail = block::Tail(words[len - 1]);
            let whole = words[block::HEAD] == tail.version()
                && !tail.is_locked()
                && block::read_copy(&words, &self.checksum).is_some();
            if whole || words[block::META] & 0xff == 0 {
                break;
            }
            self.fabric.pause(attempt);
        }
        let Some(header) = block::read_copy(&words, &self.checksum) else {
            return;
        };
        let key = block::key_bytes(&words, &header).to_vec();
        let hash = nuthatch_engine::KeyHasher::seeded(self.config.seed).hash(&key);
        let is_here = self.layout.bucket_of(hash) == bucket && !met.contains(&key);
        // A visit is of no one moment: it need not ask whether a generation that is due has begun.
        let flushes = self.control(server).flushes;
        let flushed = flushes.are_due(now) && header.generation == flushes.generation;
        if !is_here || flushed || !header.is_live(now, flushes.generation) {
            return;
        }
        self.tell(&words, &header, pointer, visit);
        met.push(key);
    }

    fn tell(
        &self,
        words: &[u64],
        header: &Header,
        pointer: Pointer,
        visit: &mut dyn FnMut(Visit<'_>),
    ) {
        let value = block::value_bytes(words, header);
        let recency = Recency(words[RECENCY]);
        visit(Visit {
            key: block::key_bytes(words, header),
            item: header.item(recency.was_read(words[block::HEAD])),
            value: if value.len() > COPY_MAX { b"" } else { value },
            footprint: Footprint {
                class: pointer.class() + 1,
                size: self.layout.block_words(pointer) * 8,
            },
        });
    }
}
