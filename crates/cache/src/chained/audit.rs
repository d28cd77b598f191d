//! Recomputes every numbered invariant from the bytes. Nothing else may run meanwhile.

use std::collections::{HashMap, HashSet};

use super::Chained;
use super::layout::Link;
use super::lru::Lists;
use crate::count;
use crate::item::Header;
use crate::slab::arena::Chunk;
use crate::table::Table;

/// What an audit has met so far.
#[derive(Default)]
struct Met {
    /// All chunks of items, pieces included.
    chunks: HashSet<Chunk>,
    /// The bucket of each key.
    keys: HashMap<Vec<u8>, u64>,
    /// Items of each list, by the class that their headers tell.
    listed: HashMap<Chunk, usize>,
}

impl Chained {
    pub(super) fn audit_all(&self) -> Result<(), String> {
        self.store.audit()?;
        let mut met = Met::default();
        let geometry = self.index.geometry();
        for bucket in 0..geometry.live_buckets() {
            self.audit_chain(bucket, &mut met)?;
        }
        for bucket in geometry.live_buckets()..geometry.allocated_buckets() {
            if self.index.lock_bucket(bucket).first().is_some() {
                return Err(format!(
                    "chained 5: bucket {bucket} is in use before its time"
                ));
            }
        }
        if let Some(lists) = &self.lists {
            self.audit_lists(lists, &met)?;
        }
        self.audit_counts(&met)
    }

    fn audit_chain(&self, bucket: u64, met: &mut Met) -> Result<(), String> {
        let mut at = self.index.lock_bucket(bucket).first();
        while let Some(chunk) = at {
            self.audit_item(bucket, chunk, met)?;
            at = Link::Next.load(&self.store.arena, chunk);
        }
        Ok(())
    }

    fn audit_item(&self, bucket: u64, chunk: Chunk, met: &mut Met) -> Result<(), String> {
        let header = Header::load(&self.store.arena, chunk);
        let Some(key) = self.store.copy_key(chunk) else {
            return Err(format!(
                "store 1: a chain leads to {chunk:?}, which holds no item"
            ));
        };
        if !met.chunks.insert(chunk) {
            return Err(format!(
                "chained 1: {chunk:?} is in two chains, or twice in one"
            ));
        }
        met.listed.insert(chunk, self.list_of(&header));
        let shape = self.shape_of(&header);
        for index in 0..shape.segments() {
            let segment = self.store.segment(chunk, &shape, index);
            if Header::load(&self.store.arena, segment).segment_of() != Some(chunk) {
                return Err(format!(
                    "store 1: segment {index} of {chunk:?} does not know it"
                ));
            }
            if !met.chunks.insert(segment) {
                return Err(format!("store 1: {segment:?} is used twice"));
            }
        }
        let home = self.index.geometry().locate(self.hasher.hash(key.bytes()));
        if home != bucket {
            return Err(format!(
                "chained 1: {chunk:?} is in bucket {bucket}, not in {home}"
            ));
        }
        match met.keys.insert(key.bytes().to_vec(), bucket) {
            Some(_) => Err(format!(
                "chained 2: two items of bucket {bucket} have one key"
            )),
            None => Ok(()),
        }
    }

    fn audit_lists(&self, lists: &Lists, met: &Met) -> Result<(), String> {
        let arena = &self.store.arena;
        let mut seen = 0;
        for class in 0..self.store.sizes.count() {
            let mut last = None;
            let oldest = lists.each(arena, class, |newer, chunk| {
                if met.listed.get(&chunk) != Some(&class) {
                    return Err(format!(
                        "chained 3: list {class} has {chunk:?}, which is no item of it"
                    ));
                }
                if Link::Newer.load(arena, chunk) != newer {
                    return Err(format!(
                        "chained 3: {chunk:?} does not know the item before it"
                    ));
                }
                seen += 1;
                if seen > met.listed.len() {
                    return Err(format!("chained 3: list {class} has a circle"));
                }
                last = Some(chunk);
                Ok(())
            })?;
            if oldest != last {
                return Err(format!(
                    "chained 3: list {class} ends in {last:?}, not in {oldest:?}"
                ));
            }
        }
        if seen != met.listed.len() {
            let items = met.listed.len();
            return Err(format!(
                "chained 3: {items} items in chains, {seen} in lists"
            ));
        }
        Ok(())
    }

    fn audit_counts(&self, met: &Met) -> Result<(), String> {
        let (items, counted) = (met.keys.len() as u64, count::items(&self.counters.sums()));
        if counted != items {
            return Err(format!(
                "statistics: {items} items in the table, {counted} counted"
            ));
        }
        self.store.audit_linked(met.chunks.len())
    }
}
