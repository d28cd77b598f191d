//! How many items each database has.
//!
//! No engine knows of databases, so a count of one of several looks at the items of all. A long walk is not repeated for each
//! client that asks: a monitor asks every few seconds for ever. Its count is told until ten times its own time has gone by,
//! so counts take an eleventh of a processor at most, however often clients ask.

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::namespace::{DATABASES, Mapping, Namespace};
use nuthatch_engine::{Engine, Time};

use crate::last_flush::LastFlush;
use crate::server_state::ServerState;

/// So many items are counted anew for each client that asks.
const COUNTED_MAX: u64 = 1000;

/// Items by database, if that is known without a walk. Of one database alone, these include items that have expired or were
/// flushed and whose memory is not reclaimed yet.
pub fn known(shared: &ServerState, now: Time) -> Option<[u64; DATABASES]> {
    let items = shared.engine.stats().items;
    if items == 0 || shared.databases.is_one() {
        let mut live = [0; DATABASES];
        live[0] = items;
        return Some(live);
    }
    let mapping = shared.databases.mapping();
    let last = last_count(shared, items, now)?;
    last.knows(&mapping).then(|| last.by_database(&mapping))
}

/// The same of a database that has this namespace. Few items are counted, for the exact number.
pub fn known_of(shared: &ServerState, now: Time, namespace: Namespace) -> Option<u64> {
    match shared.engine.stats().items {
        0 => Some(0),
        items if shared.databases.is_one() => (items > COUNTED_MAX).then_some(items),
        items => last_count(shared, items, now)?.of(namespace),
    }
}

/// INFO's lines of the databases with these numbers of items.
pub fn lines(live: &[u64; DATABASES]) -> String {
    let used = live.iter().enumerate().filter(|(_, items)| **items > 0);
    // Clients that parse this line want all three fields; the other two are not counted.
    used.map(|(database, items)| format!("db{database}:keys={items},expires=0,avg_ttl=0\r\n"))
        .collect()
}

fn last_count(shared: &ServerState, items: u64, now: Time) -> Option<Count> {
    let last = || shared.walks.count.get(now, &shared.last_flush);
    (items > COUNTED_MAX).then(last).flatten()
}

/// How many times the time of its walk a count is told.
const TOLD: u32 = 10;

/// Items by database, counted in one walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    began: Time,
    /// The databases when the walk began.
    mapping: Mapping,
    /// By the database of then.
    live: [u64; DATABASES],
}

impl Count {
    /// A count that begins now.
    pub fn new(now: Time, mapping: Mapping) -> Self {
        Self {
            began: now,
            mapping,
            live: [0; DATABASES],
        }
    }

    /// Counts an item.
    pub fn add(&mut self, namespace: Namespace) {
        if let Some(database) = self.mapping.database_of(namespace) {
            self.live[database] += 1;
        }
    }

    /// Items of a namespace. `None` if no database had it when the walk began.
    pub fn of(&self, namespace: Namespace) -> Option<u64> {
        let database = self.mapping.database_of(namespace)?;
        Some(self.live[database])
    }

    /// Items by database, if these have a mapping of now; none of a database that was flushed since.
    pub fn by_database(&self, mapping: &Mapping) -> [u64; DATABASES] {
        mapping.0.map(|its| self.of(its).unwrap_or(0))
    }

    /// True if no database was flushed since.
    pub fn knows(&self, mapping: &Mapping) -> bool {
        mapping.0.iter().all(|its| self.of(*its).is_some())
    }
}

/// The last count that took longer than a tick, and the moment until which it is told.
#[derive(Default)]
pub struct LastCount(Mutex<Option<(Count, Time)>>);

impl LastCount {
    /// Keeps a count whose walk is over.
    pub fn set(&self, count: Count, now: Time) {
        let until = now.after(TOLD * now.since(count.began));
        *self.0.lock() = (until > now).then_some((count, until));
    }

    /// The last count, if it is still told: all items were not flushed since it began.
    pub fn get(&self, now: Time, flush: &LastFlush) -> Option<Count> {
        let (count, until) = (*self.0.lock())?;
        let is_told = now < until && !flush.is_between(count.began, now);
        is_told.then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted() -> Count {
        let mut count = Count::new(Time(100), Mapping::default());
        for database in [0, 3, 3] {
            count.add(Namespace::of(database, 0));
        }
        // Of no database.
        count.add(Namespace::of(3, 7));
        count
    }

    #[test]
    fn a_count_is_of_namespaces_whatever_database_has_them() {
        let count = counted();
        assert_eq!(count.of(Namespace::of(3, 0)), Some(2));
        assert_eq!(count.of(Namespace::of(3, 7)), None);
        let mut mapping = Mapping::default();
        mapping.0.swap(3, 1);
        assert_eq!(count.by_database(&mapping)[..4], [1, 2, 0, 0]);
        assert!(count.knows(&mapping));
        mapping.0[1] = Namespace::of(3, 1);
        assert_eq!(count.by_database(&mapping)[..4], [1, 0, 0, 0]);
        assert!(!count.knows(&mapping));
    }

    #[test]
    fn a_long_count_is_told_for_ten_times_its_time() {
        let (last, flush) = (LastCount::default(), LastFlush::default());
        assert_eq!(last.get(Time(1), &flush), None);
        last.set(counted(), Time(102));
        assert_eq!(last.get(Time(102), &flush), Some(counted()));
        assert_eq!(last.get(Time(121), &flush), Some(counted()));
        assert_eq!(last.get(Time(122), &flush), None);
    }

    #[test]
    fn a_short_count_is_told_once_and_none_after_a_flush() {
        let (last, flush) = (LastCount::default(), LastFlush::default());
        last.set(counted(), Time(100));
        assert_eq!(last.get(Time(100), &flush), None);
        last.set(counted(), Time(110));
        // One that is to come.
        flush.set(Time(110), Time(120));
        assert_eq!(last.get(Time(115), &flush), Some(counted()));
        assert_eq!(last.get(Time(120), &flush), None);
        // One before the count began.
        flush.set(Time(99), Time(99));
        assert_eq!(last.get(Time(120), &flush), Some(counted()));
        flush.set(Time(100), Time(100));
        assert_eq!(last.get(Time(120), &flush), None);
    }
}
