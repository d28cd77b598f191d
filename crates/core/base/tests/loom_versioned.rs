//! Models of reads between two versions beside a writer, like those of the distributed store's clients and servers on
//! shared memory: every interleaving, and every value that a relaxed load may return (`scripts/loom.sh`).
#![cfg(loom)]

use std::sync::Arc;

use loom::thread;
use nuthatch_base::sync::shim::{AtomicU64, Ordering, fence};
use nuthatch_base::sync::versioned::load_in_order;

const WORDS: usize = 4;
const LAST: usize = WORDS - 1;

/// A block: the head, two words of content, the tail with its lock in the lowest bit.
struct Block([AtomicU64; WORDS]);

impl Block {
    fn new() -> Arc<Self> {
        Arc::new(Self(std::array::from_fn(|_| AtomicU64::new(0))))
    }

    /// The read-friendly exclusive write of the next version, whose content is its number.
    fn write(&self, version: u64) {
        let (before, locked) = ((version - 1) << 1, version << 1 | 1);
        let swapped =
            self.0[LAST].compare_exchange(before, locked, Ordering::SeqCst, Ordering::SeqCst);
        assert_eq!(swapped, Ok(before));
        fence(Ordering::Release);
        for word in &self.0[1..LAST] {
            word.store(version, Ordering::Relaxed);
        }
        self.0[LAST].store(version << 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.0[0].store(version, Ordering::Relaxed);
    }

    fn read_in_order(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        load_in_order(&self.0, &mut words);
        words
    }

    /// The tail first and the head last.
    fn read_backwards(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[LAST] = self.0[LAST].load(Ordering::Acquire);
        for (into, word) in words[1..LAST].iter_mut().zip(&self.0[1..LAST]) {
            *into = word.load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        words[0] = self.0[0].load(Ordering::Relaxed);
        words
    }
}

/// Every accepted read is whole: its content is the version's.
fn accepts_whole_versions(read: fn(&Block) -> [u64; WORDS]) {
    loom::model(move || {
        let block = Block::new();
        let reader = {
            let block = Arc::clone(&block);
            thread::spawn(move || {
                let [head, one, other, tail] = read(&block);
                if head << 1 == tail {
                    assert_eq!([one, other], [head; 2], "a torn read is accepted");
                }
            })
        };
        block.write(1);
        block.write(2);
        reader.join().unwrap();
    });
}

#[test]
fn equal_versions_read_in_order_make_a_read_whole() {
    accepts_whole_versions(Block::read_in_order);
}

#[test]
#[should_panic(expected = "a torn read is accepted")]
fn canary_the_tail_before_the_head() {
    accepts_whole_versions(Block::read_backwards);
}
