//! The audit of a partition: it checks its invariants against the bytes. Nothing else may run in the partition
//! meanwhile.

use std::collections::HashSet;

use super::element::{Element, HEADER, Kind, Piece, mark};
use super::memory::BLOCK_LINES;
use super::table::{Eviction, Partition};
use nuthatch_engine::AuditError;

impl Partition {
    /// Recomputes every numbered invariant; an error names the one that does not hold. Returns the blocks
    /// that the partition has, for the invariants of all partitions together.
    pub fn audit(&self) -> Result<Vec<u32>, AuditError> {
        let mut blocks = self.space.audit()?;
        let mut lines = HashSet::new();
        let mut elements = Vec::new();
        for bucket in 0..self.index.buckets() {
            self.audit_bucket(bucket, &mut elements)?;
        }
        let mut bytes = 0;
        for &element in &elements {
            self.audit_pieces(element, &mut lines)?;
            bytes += HEADER + self.memory().key_len(element) + self.memory().value_len(element);
        }
        self.audit_keys(&elements)?;
        self.audit_order(&elements)?;
        let counts = self.counts();
        if (counts.items, counts.item_bytes) != (elements.len() as u64, bytes as u64) {
            return Err(format!(
                "partition 4: {} items of {bytes} bytes in the buckets, {} of {} counted",
                elements.len(),
                counts.items,
                counts.item_bytes
            )
            .into());
        }
        let used = counts.lines;
        if used < lines.len() as u64 || (counts.held == 0 && used != lines.len() as u64) {
            return Err(format!(
                "space 2: {used} lines are not free, {} are of elements in the table, and {} \
                 elements are held",
                lines.len(),
                counts.held
            )
            .into());
        }
        self.audit_descriptor()?;
        blocks.extend(self.index.blocks());
        Ok(blocks)
    }

    fn audit_bucket(&self, bucket: u32, elements: &mut Vec<Element>) -> Result<(), AuditError> {
        let memory = self.memory();
        let mut next = self.bucket(bucket);
        while let Some(element) = next {
            let line = element.line();
            if self.index.bucket_of(memory.hash(element)) != bucket {
                return Err(format!("partition 1: line {line} is not of bucket {bucket}").into());
            }
            let whole = mark::LINKED | mark::READY;
            if memory.state_bits(element) & whole != whole {
                return Err(
                    format!("partition 2: line {line} is linked and does not say so").into(),
                );
            }
            elements.push(element);
            if elements.len() as u64 > self.counts().items {
                return Err("partition 1: more elements are linked than there are".into());
            }
            next = memory.next_in_bucket(element);
        }
        Ok(())
    }

    fn audit_pieces(&self, element: Element, lines: &mut HashSet<u32>) -> Result<(), AuditError> {
        let memory = self.memory();
        let mut line = element.line();
        let mut kind = Kind::Head;
        while line != 0 {
            let piece = Piece::load(memory, line);
            if piece.kind != kind || piece.lines == 0 {
                return Err(format!("space 2: the piece at line {line} is none").into());
            }
            let free = memory.free_bits(line / BLOCK_LINES);
            for used in line..line + piece.lines {
                if free >> (used % BLOCK_LINES) & 1 == 1 || !lines.insert(used) {
                    return Err(format!("space 2: line {used} is used twice").into());
                }
            }
            kind = Kind::More;
            line = piece.next;
        }
        let data = memory.key_len(element) + memory.value_len(element);
        if self.space.room(element) < data {
            let line = element.line();
            return Err(
                format!("space 2: the element at line {line} is larger than its lines").into(),
            );
        }
        Ok(())
    }

    fn audit_keys(&self, elements: &[Element]) -> Result<(), AuditError> {
        let memory = self.memory();
        let mut keys = HashSet::new();
        let key = |&element| memory.to_vec(element, 0, memory.key_len(element));
        match elements.iter().find(|element| !keys.insert(key(element))) {
            Some(twice) => Err(format!("partition 3: a second element of {:?}", key(twice)).into()),
            None => Ok(()),
        }
    }

    /// The order of use has the same elements, forwards and backwards.
    fn audit_order(&self, elements: &[Element]) -> Result<(), AuditError> {
        if self.config.eviction == Eviction::Random {
            return Ok(());
        }
        let memory = self.memory();
        let mut linked: HashSet<_> = elements.iter().copied().collect();
        let (newest, oldest) = self.order();
        let mut before = None;
        let mut next = newest;
        while let Some(element) = next {
            let (newer, older) = memory.neighbours(element);
            if newer != before || !linked.remove(&element) {
                let line = element.line();
                return Err(
                    format!("partition 5: the order of use is broken at line {line}").into(),
                );
            }
            before = Some(element);
            next = older;
        }
        if before != oldest || !linked.is_empty() {
            let missing = linked.len();
            return Err(format!(
                "partition 5: {missing} elements have no place in the order of use"
            )
            .into());
        }
        Ok(())
    }
}
