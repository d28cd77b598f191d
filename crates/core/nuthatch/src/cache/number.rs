//! Numbers of threads, and a value for each number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A thread's number, among all threads that use caches. A number that was given back is taken again, the least first: so
/// there are as many as there were threads at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(usize);

/// The numbers that no thread has.
struct Free {
    given_back: BinaryHeap<Reverse<Number>>,
    /// It and all above it.
    never_taken: Number,
}

static FREE: Mutex<Free> = Mutex::new(Free {
    given_back: BinaryHeap::new(),
    never_taken: Number(0),
});

impl Number {
    /// A number that no thread has.
    pub(super) fn take() -> Self {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Reverse(least)) = free.given_back.pop() {
            return least;
        }
        let new = free.never_taken;
        free.never_taken.0 += 1;
        new
    }

    /// Another thread may take it from now on.
    pub(super) fn give_back(self) {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.given_back.push(Reverse(self));
    }

    /// The block that has its value, and the place in there: block `n` has `2^n` places.
    fn place(self) -> (usize, usize) {
        let from_one = self.0 + 1;
        let block = from_one.ilog2();
        (block as usize, from_one - (1 << block))
    }
}

/// More threads than there can be at the same time have numbers in so many blocks.
const BLOCKS: usize = 32;

/// A value for each number. They stay where they are until all are dropped.
pub(super) struct ByNumber<T> {
    blocks: [OnceLock<Box<[OnceLock<T>]>>; BLOCKS],
}

impl<T> Default for ByNumber<T> {
    fn default() -> Self {
        Self {
            blocks: [const { OnceLock::new() }; BLOCKS],
        }
    }
}

impl<T> ByNumber<T> {
    /// The value of a number, if it has one.
    pub(super) fn get(&self, number: Number) -> Option<&T> {
        let (block, place) = number.place();
        self.blocks.get(block)?.get()?[place].get()
    }

    /// The value of a number, which is made if it has none.
    pub(super) fn get_or_make(&self, number: Number, make: impl FnOnce() -> T) -> &T {
        let (block, place) = number.place();
        let new = || (0..1 << block).map(|_| OnceLock::new()).collect();
        self.blocks[block].get_or_init(new)[place].get_or_init(make)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_a_place() {
        let values = ByNumber::default();
        for number in (0..1000).rev() {
            assert_eq!(values.get(Number(number)), None);
            values.get_or_make(Number(number), || number);
        }
        for number in 0..1000 {
            let make = || unreachable!("it is there");
            assert_eq!(values.get_or_make(Number(number), make), &number);
            assert_eq!(values.get(Number(number)), Some(&number));
        }
        assert_eq!(values.get(Number(usize::MAX >> 1)), None);
    }

    #[test]
    fn numbers_are_taken_once_until_they_are_given_back() {
        let numbers: Vec<Number> = (0..100).map(|_| Number::take()).collect();
        let mut distinct = numbers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), numbers.len());
        numbers.into_iter().for_each(Number::give_back);
    }
}
