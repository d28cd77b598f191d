//! The order of use, and the choice of victims.
//!
//! With [`Eviction::Lru`] all elements of the table are in one list, newest first. The headers hold the numbers of
//! their neighbours. A hit makes an element the newest, and the oldest without a reader is evicted. With
//! [`Eviction::Random`] there is no list, and hits write nothing there.

use nuthatch_base::sync::clock::Time;

use super::element::{Element, mark};
use super::table::{Eviction, Partition};
use super::visit::footprint;
use nuthatch_engine::{Evicted, Expiry};

impl Partition {
    /// Makes an element the newest.
    #[inline]
    pub(super) fn renew(&mut self, element: Element) {
        if self.config.eviction == Eviction::Lru && self.newest != Some(element) {
            self.drop_from_order(element);
            self.push_newest(element);
        }
    }

    pub(super) fn push_newest(&mut self, element: Element) {
        if self.config.eviction == Eviction::Random {
            return;
        }
        let memory = &*self.space.memory;
        memory.set_neighbours(element, None, self.newest);
        match self.newest {
            Some(second) => {
                let (_, older) = memory.neighbours(second);
                memory.set_neighbours(second, Some(element), older);
            }
            None => self.oldest = Some(element),
        }
        self.newest = Some(element);
    }

    pub(super) fn drop_from_order(&mut self, element: Element) {
        if self.config.eviction == Eviction::Random {
            return;
        }
        let (newer, older) = self.memory().neighbours(element);
        self.join(newer, older);
    }

    /// Makes two elements neighbours in the order of use; none is an end of it.
    fn join(&mut self, newer: Option<Element>, older: Option<Element>) {
        let memory = &*self.space.memory;
        match newer {
            Some(newer) => {
                let (further, _) = memory.neighbours(newer);
                memory.set_neighbours(newer, further, older);
            }
            None => self.newest = older,
        }
        match older {
            Some(older) => {
                let (_, further) = memory.neighbours(older);
                memory.set_neighbours(older, newer, further);
            }
            None => self.oldest = newer,
        }
    }

    /// Puts `other` in the place of an element in the order of use.
    pub(super) fn replace_in_order(&mut self, element: Element, other: Element) {
        if self.config.eviction == Eviction::Random {
            return;
        }
        let (newer, older) = self.memory().neighbours(element);
        self.memory().set_neighbours(other, newer, older);
        self.join(newer, Some(other));
        self.join(Some(other), older);
    }

    /// Evicts one element to make room; false if all have readers, or there is none.
    pub fn evict(&mut self, now: Time) -> bool {
        loop {
            let victim = match self.config.eviction {
                Eviction::Lru => self.oldest_unread(),
                Eviction::Random => self.random_unread(),
            };
            let Some(victim) = victim else {
                return false;
            };
            if self.expel(now, victim) {
                return true;
            }
        }
    }

    /// Evicts this element, unless it got a reader between the choice of the victim and its bucket's lock.
    fn expel(&mut self, now: Time, victim: Element) -> bool {
        self.holding(self.memory().hash(victim), |partition| {
            let unread = partition.memory().readers(victim) == 0;
            if unread {
                partition.count_removal(now, victim);
                partition.unlink(victim);
            }
            unread
        })
    }

    /// Counts an element that leaves without a request.
    pub(super) fn count_removal(&mut self, now: Time, element: Element) {
        let unfetched = u64::from(self.memory().state_bits(element) & mark::FETCHED == 0);
        if self.is_live(element, now) {
            self.counts.evicted += 1;
            self.counts.evicted_unfetched += unfetched;
            self.tell_eviction(now, element);
        } else {
            self.counts.expired += 1;
            self.counts.expired_unfetched += unfetched;
        }
    }

    /// Reports a live element that is evicted, if a receiver is set and wants it.
    fn tell_eviction(&self, now: Time, element: Element) {
        let memory = self.memory();
        let Some(evictions) = memory.evictions.get().filter(|to| to.are_wanted()) else {
            return;
        };
        let item = memory.item(element, now);
        let key = memory.to_vec(element, 0, memory.key_len(element));
        evictions.evicted(&Evicted {
            key: &key,
            value_len: item.value_len,
            fetched: item.fetched,
            left: match item.expiry {
                Expiry::Never => None,
                Expiry::At(moment) => Some(moment.since(now)),
            },
            age: item.idle,
            class: footprint(key.len(), item.value_len).class,
        });
    }

    /// An element that is being read is in use, so it becomes the newest: each element is looked at once.
    fn oldest_unread(&mut self) -> Option<Element> {
        for _ in 0..self.counts.items {
            let oldest = self.oldest?;
            if self.memory().readers(oldest) == 0 {
                return Some(oldest);
            }
            self.renew(oldest);
        }
        None
    }

    /// The first element without a reader, from a random bucket on.
    fn random_unread(&mut self) -> Option<Element> {
        let buckets = self.index.buckets();
        let start = (self.random.next() % u64::from(buckets.max(1))) as u32;
        let memory = self.memory();
        for step in 0..buckets {
            let bucket = (start + step) % buckets;
            let mut next = self.index.first(memory, bucket);
            while let Some(element) = next {
                if memory.readers(element) == 0 {
                    return Some(element);
                }
                next = memory.next_in_bucket(element);
            }
        }
        None
    }

    /// The element that would be evicted next, if none had readers; a random one if there is no order.
    pub(super) fn coldest(&mut self) -> Option<Element> {
        match self.config.eviction {
            Eviction::Lru => self.oldest,
            Eviction::Random => self.random_unread(),
        }
    }

    /// The order of use, newest first; for audits.
    pub(super) fn order(&self) -> (Option<Element>, Option<Element>) {
        (self.newest, self.oldest)
    }
}
