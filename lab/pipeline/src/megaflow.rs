//! The megaflow cache: keeps the classifier's decisions, each for all packets that it holds for.
//!
//! A megaflow is a mask and a key under it. Megaflows of one mask share a hash table; a lookup searches one table after
//! the other, the one with the most recent hits first, and ends with the first hit: megaflows may overlap, but
//! overlapping ones have the same verdict (the classifier's invariant).
//!
//! A megaflow has a number for as long as it lives. The microflow cache in front stores these numbers. When the cache
//! is full, CLOCK evicts one that was not used recently, and its number names the new one. A stale number does no harm:
//! [`Megaflows::holds`] compares the packet with the megaflow that has the number now.

use std::collections::HashMap;

use nuthatch_base::hash::KeyHasher;

use crate::classifier::{Classified, Verdict};
use crate::key::{FlowKey, Mask};
use crate::key_table::KeyTable;

/// Lookups between two sortings of the tables.
const SORT_INTERVAL: u32 = 1 << 14;

/// The cache.
#[derive(Clone, Debug)]
pub struct Megaflows {
    tables: Vec<Table>,
    /// The place of the table of each mask that has a megaflow.
    places: HashMap<Mask, u32>,
    /// Tables without megaflows, to be used again: there are never more tables than megaflows.
    free: Vec<u32>,
    /// The tables that hold a megaflow, in the order in which they are searched.
    order: Vec<u32>,
    flows: Vec<Megaflow>,
    limit: usize,
    hand: usize,
    until_sort: u32,
    hasher: KeyHasher,
    stats: MegaflowStats,
}

/// The megaflows of one mask.
#[derive(Clone, Debug)]
struct Table {
    mask: Mask,
    numbers: KeyTable<u32>,
    /// Hits, halved whenever the tables are sorted.
    hits: u64,
}

/// One megaflow: a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Megaflow {
    key: FlowKey,
    table: u32,
    used: bool,
    verdict: Verdict,
}

/// The counters of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MegaflowStats {
    /// Lookups.
    pub lookups: u64,
    /// Lookups that found one.
    pub hits: u64,
    /// Tables searched, in all lookups.
    pub tables_searched: u64,
    /// Megaflows that were evicted.
    pub evictions: u64,
}

impl Megaflows {
    /// For `limit` megaflows, at least 1.
    pub fn new(limit: usize) -> Self {
        Self {
            tables: Vec::new(),
            places: HashMap::new(),
            free: Vec::new(),
            order: Vec::new(),
            flows: Vec::new(),
            limit: limit.max(1),
            hand: 0,
            until_sort: SORT_INTERVAL,
            hasher: KeyHasher::random(),
            stats: MegaflowStats::default(),
        }
    }

    /// How many megaflows there are.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// How many masks there are: the most that a lookup searches.
    pub fn masks(&self) -> usize {
        self.order.len()
    }

    /// The counters so far.
    pub fn stats(&self) -> MegaflowStats {
        self.stats
    }

    /// The verdict of megaflow `number`, if there is one and it holds for this packet.
    #[inline]
    pub fn holds(&mut self, number: u64, key: &FlowKey) -> Option<Verdict> {
        let flow = self.flows.get_mut(usize::try_from(number).ok()?)?;
        let mask = &self.tables[flow.table as usize].mask;
        if key.masked(mask) != flow.key {
            return None;
        }
        flow.used = true;
        Some(flow.verdict)
    }

    /// The megaflow that holds for a packet, and its verdict.
    pub fn find(&mut self, key: &FlowKey) -> Option<(u32, Verdict)> {
        self.stats.lookups += 1;
        self.until_sort -= 1;
        if self.until_sort == 0 {
            self.sort();
        }
        for &place in &self.order {
            self.stats.tables_searched += 1;
            let table = &mut self.tables[place as usize];
            if let Some(&number) = table.numbers.get(&key.masked(&table.mask)) {
                table.hits += 1;
                self.stats.hits += 1;
                let flow = &mut self.flows[number as usize];
                flow.used = true;
                return Some((number, flow.verdict));
            }
        }
        None
    }

    /// Adds the classifier's decision for a packet, and returns its number. A megaflow that exists already keeps its
    /// number.
    pub fn insert(&mut self, key: &FlowKey, found: &Classified) -> u32 {
        let key = key.masked(&found.mask);
        if let Some(&place) = self.places.get(&found.mask)
            && let Some(&number) = self.tables[place as usize].numbers.get(&key)
        {
            return number;
        }
        // Evict first: it may take the last megaflow of this mask.
        let evicted = (self.flows.len() == self.limit).then(|| self.evict());
        let place = self.place(found.mask);
        let flow = Megaflow {
            key,
            table: place,
            used: true,
            verdict: found.verdict,
        };
        let number = match evicted {
            Some(number) => {
                self.flows[number] = flow;
                number as u32
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        self.tables[place as usize]
            .numbers
            .get_or_insert(key, number);
        number
    }

    /// The table of a mask.
    fn place(&mut self, mask: Mask) -> u32 {
        if let Some(&place) = self.places.get(&mask) {
            return place;
        }
        let table = Table {
            mask,
            numbers: KeyTable::new(&self.hasher),
            hits: 0,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.tables[place as usize] = table;
                place
            }
            None => {
                self.tables.push(table);
                self.tables.len() as u32 - 1
            }
        };
        self.places.insert(mask, place);
        self.order.push(place);
        place
    }

    /// Evicts a megaflow that was not used since the hand last passed it, and returns its number. The
    /// hand passes each megaflow at most twice: the first time it clears the `used` flags.
    fn evict(&mut self) -> usize {
        loop {
            let number = self.hand;
            self.hand = (self.hand + 1) % self.flows.len();
            let flow = &mut self.flows[number];
            if std::mem::take(&mut flow.used) {
                continue;
            }
            let place = flow.table;
            let table = &mut self.tables[place as usize];
            table.numbers.remove(&flow.key);
            if table.numbers.len() == 0 {
                self.places.remove(&table.mask);
                self.order.retain(|&other| other != place);
                self.free.push(place);
            }
            self.stats.evictions += 1;
            return number;
        }
    }

    fn sort(&mut self) {
        self.until_sort = SORT_INTERVAL;
        let tables = &self.tables;
        self.order
            .sort_by_key(|&place| std::cmp::Reverse(tables[place as usize].hits));
        for table in &mut self.tables {
            table.hits /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Field;
    use crate::rules::Action;

    fn port(number: u16) -> FlowKey {
        let mut key = FlowKey::default();
        key.set(Field::DestinationPort, u64::from(number));
        key.set(Field::SourcePort, 7);
        key
    }

    fn found(mask: Mask, action: u16) -> Classified {
        let verdict = Verdict {
            action: Action::Forward(action),
            rule: Some(0),
        };
        Classified { verdict, mask }
    }

    const BY_PORT: Mask = Mask::NONE.with_all(Field::DestinationPort);

    #[test]
    fn a_megaflow_holds_for_what_agrees_under_its_mask() {
        let mut flows = Megaflows::new(8);
        let number = flows.insert(&port(80), &found(BY_PORT, 3));
        let mut other = FlowKey::default();
        other.set(Field::DestinationPort, 80);
        let verdict = found(BY_PORT, 3).verdict;
        assert_eq!(flows.find(&other), Some((number, verdict)));
        assert_eq!(flows.holds(number.into(), &other), Some(verdict));
        assert_eq!(flows.holds(number.into(), &port(81)), None);
        assert_eq!(flows.holds(99, &other), None);
        assert_eq!(flows.find(&port(81)), None);
        assert_eq!(flows.insert(&other, &found(BY_PORT, 3)), number);
        assert_eq!(flows.len(), 1);
    }

    #[test]
    fn unused_megaflows_are_evicted_and_their_numbers_reused() {
        let mut flows = Megaflows::new(4);
        for number in 0..4 {
            assert_eq!(
                flows.insert(&port(number), &found(BY_PORT, number)),
                u32::from(number)
            );
        }
        // The hand clears all `used` flags, wraps around, and evicts the first.
        assert_eq!(flows.insert(&port(4), &found(BY_PORT, 4)), 0);
        assert!(flows.find(&port(0)).is_none());
        assert_eq!(flows.holds(0, &port(0)), None);
        flows.find(&port(1)).unwrap();
        assert_eq!(flows.insert(&port(5), &found(BY_PORT, 5)), 2);
        assert!(flows.find(&port(1)).is_some());
        assert_eq!((flows.len(), flows.stats().evictions), (4, 2));
    }

    #[test]
    fn a_mask_without_megaflows_is_not_searched() {
        let mut flows = Megaflows::new(1);
        flows.insert(&port(1), &found(BY_PORT, 1));
        flows.insert(&port(1), &found(Mask::ALL, 1));
        assert_eq!(flows.masks(), 1);
        flows.find(&port(1)).unwrap();
        assert_eq!(flows.stats().tables_searched, 1);
    }

    #[test]
    fn the_mask_that_is_hit_most_is_searched_first() {
        let mut flows = Megaflows::new(8);
        flows.insert(&port(1), &found(Mask::ALL, 1));
        flows.insert(&port(2), &found(BY_PORT, 2));
        for _ in 0..SORT_INTERVAL {
            flows.find(&port(2)).unwrap();
        }
        let before = flows.stats().tables_searched;
        flows.find(&port(2)).unwrap();
        assert_eq!(flows.stats().tables_searched, before + 1);
    }
}
