//! Models of the version stripes: every interleaving of a few threads, and every value that a relaxed load may return
//! (`scripts/loom.sh`). The numbers are those of the invariants in `stripes.rs`.
//!
//! Loom remembers one last access of each atomic when it looks for places to switch threads, so a
//! thread's own load (every lock begins with one) hides the load of a reader that ran before. The
//! thread that a model starts on runs first: it is the writer, and readers are spawned; what they
//! could have read earlier they find among the older values that relaxed loads may return.
#![cfg(loom)]

use std::sync::Arc;

use loom::thread;
use nuthatch_base::sync::shim::{AtomicU64, Ordering, fence};
use nuthatch_base::sync::spinlock::SpinLock;
use nuthatch_base::sync::stripes::{Pair, Stripes};

const RELAXED: Ordering = Ordering::Relaxed;

/// Stripes and two words that a writer always changes together.
struct World {
    stripes: Stripes,
    words: [AtomicU64; 2],
}

impl World {
    fn new(stripes: usize) -> Arc<Self> {
        Arc::new(Self {
            stripes: Stripes::new(stripes),
            words: [AtomicU64::new(0), AtomicU64::new(0)],
        })
    }

    fn write(&self, value: u64) {
        for word in &self.words {
            word.store(value, RELAXED);
        }
    }

    fn words(&self) -> [u64; 2] {
        [self.words[0].load(RELAXED), self.words[1].load(RELAXED)]
    }

    /// One optimistic attempt.
    fn read(&self, pair: Pair) -> Option<[u64; 2]> {
        let seen = self.stripes.snapshot(pair);
        let words = self.words();
        self.stripes.unchanged(&seen).then_some(words)
    }
}

/// Invariants 1 and 3: three stripes, two pairs that share one of them. Neither writer sees a half-done change of the
/// other, no change is lost, and both end.
#[test]
fn writers_on_overlapping_pairs_exclude_each_other_and_end() {
    loom::model(|| {
        let world = World::new(4);
        let add = |world: &World, one, other| {
            let _guard = world.stripes.lock(world.stripes.pair(one, other));
            let [first, second] = world.words();
            assert_eq!(first, second);
            world.write(first + 1);
        };
        let writer = {
            let world = Arc::clone(&world);
            thread::spawn(move || add(&world, 2, 1))
        };
        add(&world, 1, 0);
        writer.join().unwrap();
        assert_eq!(world.words(), [2, 2]);
    });
}

/// Invariant 3: the same two stripes, named in opposite order.
#[test]
fn writers_on_one_pair_named_both_ways_do_not_deadlock() {
    loom::model(|| {
        let world = World::new(2);
        let writer = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let _guard = world.stripes.lock(world.stripes.pair(0, 1));
                world.write(world.words()[0] + 1);
            })
        };
        {
            let _guard = world.stripes.lock(world.stripes.pair(1, 0));
            world.write(world.words()[0] + 1);
        }
        writer.join().unwrap();
        assert_eq!(world.words(), [2, 2]);
    });
}

/// Invariant 2: a validated read shows one moment, although the writer holds only one of the reader's two stripes (its
/// own pair overlaps), and writes twice.
#[test]
fn a_reader_never_validates_a_torn_write() {
    loom::model(|| {
        let world = World::new(4);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                if let Some([first, second]) = world.read(world.stripes.pair(1, 0)) {
                    assert_eq!(first, second);
                }
            })
        };
        for value in 1..=2 {
            let _guard = world.stripes.lock(world.stripes.pair(2, 1));
            world.write(value);
        }
        reader.join().unwrap();
        assert_eq!(world.read(world.stripes.pair(1, 0)), Some([2, 2]));
    });
}

/// Two validated reads, one after the other, never go back in time.
#[test]
fn reads_do_not_go_back() {
    loom::model(|| {
        let world = World::new(2);
        let pair = world.stripes.pair(0, 1);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                if let Some(first) = world.read(pair)
                    && let Some(second) = world.read(pair)
                {
                    assert!(first <= second);
                }
            })
        };
        {
            let _guard = world.stripes.lock(pair);
            world.write(1);
        }
        reader.join().unwrap();
    });
}

/// Invariant 2, its exception: a writer that changes nothing invalidates no read that began before it, and the next
/// writer finds the stripes free and is noticed.
#[test]
fn a_release_without_change_disturbs_nobody() {
    loom::model(|| {
        let world = World::new(2);
        let pair = world.stripes.pair(0, 1);
        let seen = world.stripes.snapshot(pair);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let words = world.words();
                if world.stripes.unchanged(&seen) {
                    assert_eq!(words, [0, 0]);
                }
            })
        };
        world.stripes.lock(pair).release_unmodified();
        assert!(world.stripes.unchanged(&seen));
        {
            let _guard = world.stripes.lock(pair);
            world.write(1);
        }
        reader.join().unwrap();
        assert!(!world.stripes.unchanged(&seen));
        let seen = world.stripes.snapshot(pair);
        world.stripes.lock(pair).release_unmodified();
        assert!(world.stripes.unchanged(&seen));
    });
}

/// Store buffering: two threads each change their own key and then read the other's; at least one
/// of them sees the other's change.
#[test]
fn two_writers_do_not_both_miss_each_other() {
    // Each of them may spin on the other's lock again and again: bounded, or the model takes minutes.
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(|| {
        let world = World::new(4);
        let run = |world: &World, own: usize| {
            let pairs = [world.stripes.pair(0, 1), world.stripes.pair(2, 3)];
            {
                let _guard = world.stripes.lock(pairs[own]);
                world.words[own].store(1, RELAXED);
            }
            let other = 1 - own;
            loop {
                let seen = world.stripes.snapshot(pairs[other]);
                let word = world.words[other].load(RELAXED);
                if world.stripes.unchanged(&seen) {
                    break word;
                }
                thread::yield_now();
            }
        };
        let writer = {
            let world = Arc::clone(&world);
            thread::spawn(move || run(&world, 0))
        };
        let (mine, theirs) = (run(&world, 1), writer.join().unwrap());
        assert_ne!((mine, theirs), (0, 0));
    });
}

/// A chunk is unlinked under the lock, and its next owner is another thread: the hand-over is by Acquire and Release
/// (like the allocator's lock), and the next owner overwrites the words.
fn reuse(before_overwriting: fn()) {
    loom::model(move || {
        let world = World::new(2);
        let pair = world.stripes.pair(0, 1);
        let linked = Arc::new(AtomicU64::new(1));
        let handed = Arc::new(AtomicU64::new(0));
        let owner = {
            let (world, handed) = (Arc::clone(&world), Arc::clone(&handed));
            thread::spawn(move || {
                if handed.load(Ordering::Acquire) == 1 {
                    before_overwriting();
                    world.write(9);
                }
            })
        };
        let reader = {
            let (world, linked) = (Arc::clone(&world), Arc::clone(&linked));
            thread::spawn(move || {
                let seen = world.stripes.snapshot(pair);
                let words = (linked.load(RELAXED) == 1).then(|| world.words());
                if world.stripes.unchanged(&seen) {
                    assert!(words.is_none_or(|words| words == [0, 0]));
                }
            })
        };
        {
            let _guard = world.stripes.lock(pair);
            linked.store(0, RELAXED);
        }
        handed.store(1, Ordering::Release);
        owner.join().unwrap();
        reader.join().unwrap();
    });
}

/// The store's invariant 3, without the store: the next owner's Release fence keeps a late reader from accepting the
/// new bytes.
#[test]
fn a_fence_before_reuse_keeps_late_readers_honest() {
    reuse(|| fence(Ordering::Release));
}

/// Canary: the same without the fence is wrong, and the models find it.
#[test]
#[should_panic(expected = "words")]
fn canary_reuse_without_the_fence_is_noticed() {
    reuse(|| ());
}

/// Canary: a reader that does not check the versions reads torn words, and the models find it.
#[test]
#[should_panic(expected = "left == right")]
fn canary_a_reader_without_the_check_is_torn() {
    loom::model(|| {
        let world = World::new(2);
        let pair = world.stripes.pair(0, 1);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let _seen = world.stripes.snapshot(pair);
                let [first, second] = world.words();
                assert_eq!(first, second);
            })
        };
        {
            let _guard = world.stripes.lock(pair);
            world.write(1);
        }
        reader.join().unwrap();
    });
}

/// Canary: without the SeqCst fence of a modifying release, both writers may miss each other.
#[test]
#[should_panic(expected = "left != right")]
fn canary_store_buffering_is_modelled() {
    loom::model(|| {
        let words = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let run = |words: &[AtomicU64; 2], own: usize| {
            words[own].store(1, Ordering::Release);
            words[1 - own].load(Ordering::Acquire)
        };
        let writer = {
            let words = Arc::clone(&words);
            thread::spawn(move || run(&words, 0))
        };
        let (mine, theirs) = (run(&words, 1), writer.join().unwrap());
        assert_ne!((mine, theirs), (0, 0));
    });
}

/// Spinlock 1 and 2: no holder sees a half-done change of another, and no change is lost.
#[test]
fn a_spinlock_excludes_and_hands_over() {
    loom::model(|| {
        let lock = Arc::new(SpinLock::new([0, 0]));
        let add = |lock: &SpinLock<[u64; 2]>| {
            let mut words = lock.lock();
            assert_eq!(words[0], words[1]);
            words[0] += 1;
            words[1] += 1;
        };
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || add(&lock))
            })
            .collect();
        add(&lock);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*lock.lock(), [3, 3]);
    });
}

/// Spinlock 3: a waiter goes on after two holders in a row, although it has given up spinning.
#[test]
fn a_spinlock_forgets_no_waiter() {
    loom::model(|| {
        let lock = Arc::new(SpinLock::new(0));
        let waiter = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || *lock.lock() += 1)
        };
        for _ in 0..2 {
            *lock.lock() += 1;
        }
        waiter.join().unwrap();
        assert_eq!(*lock.lock(), 3);
    });
}
