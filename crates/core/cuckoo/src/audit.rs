//! The audit of a cuckoo engine: it checks every numbered invariant against the bytes. Nothing else may run meanwhile.

use std::collections::{HashMap, HashSet};

use super::Cuckoo;
use super::index::Position;
use super::layout::{SlotWord, Variant};
use nuthatch_engine::AuditError;
use nuthatch_store::count::Count;
use nuthatch_store::item::{Header, record_words};
use nuthatch_store::memory::arena::Address;
use nuthatch_store::memory::bytes;

impl<D: Variant> Cuckoo<D> {
    pub(super) fn audit_all(&self) -> Result<(), AuditError> {
        self.store.audit()?;
        let mut used = HashSet::new();
        let mut keys = HashMap::new();
        let buckets = self.index.geometry().live_buckets();
        for bucket in 0..buckets {
            for slot in 0..D::SLOTS {
                self.audit_slot(Position { bucket, slot }, &mut used, &mut keys)?;
            }
        }
        self.audit_counts(keys.len(), &used)
    }

    fn audit_slot(
        &self,
        at: Position,
        used: &mut HashSet<Address>,
        keys: &mut HashMap<Vec<u8>, Position>,
    ) -> Result<(), AuditError> {
        let slot = self.index.load(at);
        if slot.is_empty() {
            return Ok(());
        }
        let address = slot.address::<D>();
        let header = Header::load(&self.store.arena, address);
        if !header.is_item() {
            return Err(
                format!("store 1: {at:?} refers to {address:?}, which holds no item").into(),
            );
        }
        if !used.insert(address) {
            return Err(format!("cuckoo 1: two slots refer to {address:?}").into());
        }
        let shape = header.shape(self.store.cut());
        // A number that is changed in place, in a chunk of a size class, may become a line longer or shorter.
        let words = record_words(shape.head_bytes());
        let record = SlotWord::of_record::<D>(slot.tag::<D>(), address, words);
        if record.more_lines::<D>().abs_diff(slot.more_lines::<D>()) > 1 {
            return Err(format!("cuckoo: {at:?} tells a wrong size of the item").into());
        }
        for index in 0..shape.pieces() {
            let piece = self.store.piece(address, &shape, index);
            if Header::load(&self.store.arena, piece).piece_of() != Some(address) {
                return Err(
                    format!("store 1: piece {index} of {address:?} does not know it").into(),
                );
            }
            if !used.insert(piece) {
                return Err(format!("store 1: {piece:?} is used twice").into());
            }
        }
        let Some(place) = self.candidates_of(address) else {
            return Err(format!("store 1: the item in {at:?} has no key").into());
        };
        let geometry = self.index.geometry();
        let homes = [geometry.locate(place.first), geometry.locate(place.second)];
        if !homes.contains(&at.bucket) || place.tag != slot.tag::<D>() {
            return Err(format!("cuckoo 1: the item in {at:?} belongs into {homes:?}").into());
        }
        let mut key = vec![std::mem::MaybeUninit::new(0); header.key_len()];
        self.store.arena.read(address, header.key_start(), &mut key);
        // SAFETY: made initialised, written over since.
        let key = unsafe { bytes::assume_init(&key) }.to_vec();
        match keys.insert(key, at) {
            Some(other) => Err(format!("cuckoo 2: {at:?} and {other:?} hold the same key").into()),
            None => Ok(()),
        }
    }

    fn audit_counts(&self, items: usize, used: &HashSet<Address>) -> Result<(), AuditError> {
        let sums = self.counters.sums();
        let counted = sums[Count::Linked as usize].wrapping_sub(sums[Count::Unlinked as usize]);
        if counted != items as u64 {
            return Err(
                format!("statistics: {items} items in the index, {counted} counted").into(),
            );
        }
        self.store.audit_charged(self.index.bytes_taken())?;
        self.store.audit_linked(used.len())
    }
}
