//! Each table of the paper's evaluation against what was inserted, by one thread and by two.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nuthatch_memc3::{
    Compare, Design, Index, Inserted, Paths, Records, Reference, Shape, Visit, visit,
};

/// Enough for long paths; a checker of memory has fewer.
const ITEMS: usize = if cfg!(miri) { 215 } else { 15_000 };

/// As many slots as are filled to nine tenths.
const BUCKETS: u64 = if cfg!(miri) { 64 } else { 1 << 12 };

fn records(count: usize, huge_pages: bool) -> Records {
    let made = Records::new(count, huge_pages, |number, key, value| {
        key[..8].copy_from_slice(&number.to_le_bytes());
        key[8..].fill(7);
        value[..16].copy_from_slice(key);
    });
    made.unwrap()
}

/// An index and the items that it may have.
struct Table<'r, I> {
    index: I,
    records: &'r Records,
    paths: Paths,
}

impl<'r, I: Index> Table<'r, I> {
    fn new(records: &'r Records, huge_pages: bool, paths: usize) -> Self {
        let buckets = BUCKETS;
        Self {
            index: I::new(Shape {
                buckets,
                huge_pages,
            })
            .unwrap(),
            records,
            paths: Paths::new(paths, 1),
        }
    }

    fn insert(&mut self, number: usize) -> Inserted {
        let item = Reference::to(number);
        let hash = self.records.hash_of(self.records.key(item));
        self.index.insert(hash, item, self.records, &mut self.paths)
    }
}

/// The number of the item that is found by the key of another number.
fn find<I: Index, C: Compare>(index: &I, records: &Records, number: usize) -> Option<usize> {
    let key = *records.key(Reference::to(number));
    let look = |item| {
        records
            .is::<C>(item, &key)
            .then(|| records.value(item)[..16] == key)
            .map(|is_its_own| (item.number(), is_its_own))
    };
    let (found, is_its_own) = index.find(records.hash_of(&key), records, look)?;
    assert!(is_its_own, "a value that is not its key's");
    Some(found)
}

fn remove<I: Index, C: Compare>(index: &I, records: &Records, number: usize) -> Option<usize> {
    let key = *records.key(Reference::to(number));
    let is = |item| records.is::<C>(item, &key);
    let removed = index.remove(records.hash_of(&key), records, is)?;
    Some(removed.number())
}

/// Inserts and removes, and compares with a set.
fn like_a_set<I: Index, C: Compare>(huge_pages: bool, paths: usize) {
    let records = records(ITEMS + ITEMS / 10, huge_pages);
    let mut table = Table::<I>::new(&records, huge_pages, paths);
    let mut model = HashSet::new();
    for number in 0..ITEMS {
        if number % 7 == 0 && number > 0 {
            let gone = number * 5 / 7;
            let expected = model.remove(&gone).then_some(gone);
            assert_eq!(remove::<I, C>(&table.index, &records, gone), expected);
        }
        assert_ne!(table.insert(number), Inserted::Full);
        model.insert(number);
    }
    for number in 0..records.count() {
        let expected = model.contains(&number).then_some(number);
        assert_eq!(find::<I, C>(&table.index, &records, number), expected);
    }
    assert!(table.index.fullest(&records) > 1);
    for number in 0..ITEMS {
        let expected = model.remove(&number).then_some(number);
        assert_eq!(remove::<I, C>(&table.index, &records, number), expected);
        assert_eq!(find::<I, C>(&table.index, &records, number), None);
    }
    assert_eq!(table.index.fullest(&records), 0);
}

#[test]
fn every_table_has_what_was_inserted_and_not_removed() {
    struct Check;
    impl Visit for Check {
        fn design<D: Design>(&mut self) {
            for paths in [1, 2, 8] {
                like_a_set::<D::Shared, D::Compare>(D::HUGE_PAGES, paths);
                like_a_set::<D::Alone, D::Compare>(D::HUGE_PAGES, paths);
            }
        }
    }
    visit(&mut Check);
}

/// Class of bug: a reader does not find an item that is being moved, or finds another key's.
#[test]
fn readers_find_what_stays_while_others_come_and_go() {
    struct Check;
    impl Visit for Check {
        fn design<D: Design>(&mut self) {
            two_threads::<D>();
        }
    }
    visit(&mut Check);
}

/// Ends the reader, also if the writer fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One thread reads three quarters of the items, which stay, while the other one inserts and removes the rest.
fn two_threads<D: Design>() {
    let records = records(ITEMS, D::HUGE_PAGES);
    let mut table = Table::<D::Shared>::new(&records, D::HUGE_PAGES, 2);
    let stay = ITEMS * 3 / 4;
    for number in 0..stay {
        assert_ne!(table.insert(number), Inserted::Full);
    }
    let Table {
        index, mut paths, ..
    } = table;
    let (index, records) = (&index, &records);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let end = End(&over);
        let over = &over;
        let reader = scope.spawn(move || {
            // Relaxed: the flag publishes nothing.
            while !over.load(Ordering::Relaxed) {
                for number in 0..stay {
                    let found = find::<D::Shared, D::Compare>(index, records, number);
                    assert_eq!(found, Some(number), "{}", D::NAME);
                }
            }
        });
        for _ in 0..if cfg!(miri) { 2 } else { 10 } {
            for number in stay..ITEMS {
                let item = Reference::to(number);
                let hash = records.hash_of(records.key(item));
                let inserted = index.insert(hash, item, records, &mut paths);
                assert_ne!(inserted, Inserted::Full, "{}", D::NAME);
            }
            for number in stay..ITEMS {
                let removed = remove::<D::Shared, D::Compare>(index, records, number);
                assert_eq!(removed, Some(number), "{}", D::NAME);
            }
        }
        drop(end);
        reader.join().unwrap();
    });
}

/// The paper's occupancy: some 95 % of the slots before an insert fails, more with more paths.
#[cfg(not(miri))]
#[test]
fn a_table_is_nearly_full_before_an_insert_fails() {
    use nuthatch_memc3::{OptimisticLocks, PlainCuckoo, SLOTS};
    fn load<D: Design>(paths: usize) -> f64 {
        let slots = BUCKETS as usize * SLOTS;
        let records = records(slots, true);
        let mut table = Table::<D::Alone>::new(&records, true, paths);
        let mut number = 0;
        while let Inserted::Yes { displaced, kicked } = table.insert(number) {
            assert!(displaced <= kicked && kicked <= nuthatch_memc3::KICKS);
            number += 1;
        }
        assert_eq!(table.index.fullest(&records), SLOTS);
        number as f64 / slots as f64
    }
    for paths in [1, 2, 4, 8] {
        let tagged = load::<OptimisticLocks>(paths);
        assert!((0.93..0.995).contains(&tagged), "{paths} paths: {tagged}");
    }
    let plain = load::<PlainCuckoo>(2);
    assert!((0.93..0.995).contains(&plain), "{plain}");
}

#[test]
fn chains_are_counted_with_their_links() {
    use nuthatch_memc3::Chaining;
    let records = records(30, false);
    let shape = Shape {
        buckets: 16,
        huge_pages: false,
    };
    let index = <Chaining as Design>::Alone::new(shape).unwrap();
    assert_eq!(index.bytes(24), 16 * 8 + 24 * 8);
    let mut paths = Paths::new(1, 1);
    for number in 0..24 {
        let item = Reference::to(number);
        // All in one chain.
        index.insert(5, item, &records, &mut paths);
    }
    assert_eq!(index.fullest(&records), 24);
}
