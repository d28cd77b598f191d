//! The audit of a chained engine: it checks every numbered invariant against the bytes. Nothing else may run meanwhile.

use std::collections::{HashMap, HashSet};

use super::Chained;
use super::layout::NEXT;
use nuthatch_engine::AuditError;
use nuthatch_store::count;
use nuthatch_store::item::Header;
use nuthatch_store::memory::arena::Address;
use nuthatch_store::table::Table;

/// The items that an audit has met so far.
#[derive(Default)]
struct Census {
    /// All chunks of items, pieces included.
    chunks: HashSet<Address>,
    /// The bucket of each key.
    keys: HashMap<Vec<u8>, u64>,
    /// The class of each item, by its header.
    classes: HashMap<Address, usize>,
}

impl Chained {
    pub(super) fn audit_all(&self) -> Result<(), AuditError> {
        self.store.audit()?;
        let mut met = Census::default();
        let geometry = self.index.geometry();
        for bucket in 0..geometry.live_buckets() {
            self.audit_chain(bucket, &mut met)?;
        }
        for bucket in geometry.live_buckets()..geometry.allocated_buckets() {
            if self.index.lock_bucket(bucket).first().is_some() {
                return Err(format!("chained 5: bucket {bucket} is in use before its time").into());
            }
        }
        self.policy().audit(&self.store, &met.classes)?;
        self.audit_counts(&met)
    }

    fn audit_chain(&self, bucket: u64, met: &mut Census) -> Result<(), AuditError> {
        let mut at = self.index.lock_bucket(bucket).first();
        while let Some(address) = at {
            self.audit_item(bucket, address, met)?;
            at = NEXT.load(&self.store.arena, address);
        }
        Ok(())
    }

    fn audit_item(
        &self,
        bucket: u64,
        address: Address,
        met: &mut Census,
    ) -> Result<(), AuditError> {
        let header = Header::load(&self.store.arena, address);
        let Some(key) = self.store.copy_key(address) else {
            return Err(
                format!("store 1: a chain leads to {address:?}, which holds no item").into(),
            );
        };
        if !met.chunks.insert(address) {
            return Err(format!("chained 1: {address:?} is in two chains, or twice in one").into());
        }
        met.classes
            .insert(address, self.store.class_of_item(&header));
        let shape = self.shape_of(&header);
        for index in 0..shape.pieces() {
            let piece = self.store.piece(address, &shape, index);
            if Header::load(&self.store.arena, piece).piece_of() != Some(address) {
                return Err(
                    format!("store 1: piece {index} of {address:?} does not know it").into(),
                );
            }
            if !met.chunks.insert(piece) {
                return Err(format!("store 1: {piece:?} is used twice").into());
            }
        }
        let home = self.index.geometry().locate(self.hasher.hash(key.bytes()));
        if home != bucket {
            return Err(
                format!("chained 1: {address:?} is in bucket {bucket}, not in {home}").into(),
            );
        }
        match met.keys.insert(key.bytes().to_vec(), bucket) {
            Some(_) => Err(format!("chained 2: two items of bucket {bucket} have one key").into()),
            None => Ok(()),
        }
    }

    fn audit_counts(&self, met: &Census) -> Result<(), AuditError> {
        let (items, counted) = (met.keys.len() as u64, count::items(&self.counters.sums()));
        if counted != items {
            return Err(
                format!("statistics: {items} items in the table, {counted} counted").into(),
            );
        }
        self.store.audit_charged(self.index.bytes_taken())?;
        self.store.audit_linked(met.chunks.len())
    }
}
