//! What a connection sends: blocks of requests, made before the clock starts.

use std::ops::Range;

use nuthatch_workload::{KeyMaker, Popularity};
use rand::Rng;

use crate::engine::{Distribution, Items, SEED};
use crate::proof::write_value;

/// Keys in a script, at least, so that requests do not repeat soon.
const KEYS: usize = 1 << 18;

/// Requests in a block while preloading.
const PRELOAD_PIPELINE: usize = 64;

/// The shape of a load.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Sizes and count of the items asked for.
    pub items: Items,
    /// How often each.
    pub distribution: Distribution,
    /// Requests sent at once.
    pub pipeline: usize,
    /// Keys of a get.
    pub multiget: usize,
    /// The share of gets.
    pub get_ratio: f64,
}

/// One request within a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A get whose first key stands at this place.
    Get {
        /// Where.
        keys_at: usize,
        /// How many keys.
        keys: usize,
    },
    /// A set.
    Set,
}

/// Requests as they go over the wire, cut into blocks that are sent whole.
pub struct Script {
    items: Items,
    text: Vec<u8>,
    requests: Vec<Request>,
    /// Where each block ends: in the text, and among the requests.
    ends: Vec<(usize, usize)>,
}

impl Script {
    /// Random requests.
    pub fn random(shape: &Shape) -> Self {
        let mut random = SEED.thread(0);
        let popularity = Popularity::new(shape.distribution.into(), shape.items.count);
        let mut script = Self::empty(shape.items);
        let keys_in_block = shape.pipeline * shape.multiget;
        for _ in 0..KEYS.div_ceil(keys_in_block) {
            for _ in 0..shape.pipeline {
                if random.random_bool(shape.get_ratio) {
                    script.get(shape.multiget, || popularity.draw(&mut random));
                } else {
                    script.set(popularity.draw(&mut random));
                }
            }
            script.end_block();
        }
        script
    }

    /// Sets of the items with these numbers, each once.
    pub fn preload(items: &Items, numbers: Range<u64>) -> Self {
        let mut script = Self::empty(*items);
        for from in numbers.clone().step_by(PRELOAD_PIPELINE) {
            for number in from..(from + PRELOAD_PIPELINE as u64).min(numbers.end) {
                script.set(number);
            }
            script.end_block();
        }
        script
    }

    fn empty(items: Items) -> Self {
        Self {
            items,
            text: Vec::new(),
            requests: Vec::new(),
            ends: Vec::new(),
        }
    }

    fn get(&mut self, keys: usize, mut number: impl FnMut() -> u64) {
        self.text.extend_from_slice(b"get ");
        let keys_at = self.text.len();
        self.requests.push(Request::Get { keys_at, keys });
        for _ in 0..keys {
            self.key(number());
            self.text.push(b' ');
        }
        self.text.pop();
        self.text.extend_from_slice(b"\r\n");
    }

    fn set(&mut self, number: u64) {
        self.requests.push(Request::Set);
        self.text.extend_from_slice(b"set ");
        let key_at = self.text.len();
        self.key(number);
        let key = key_at..self.text.len();
        self.text
            .extend_from_slice(format!(" 0 0 {}\r\n", self.items.value_size).as_bytes());
        let value_at = self.text.len();
        self.text.resize(value_at + self.items.value_size, 0);
        let (before, value) = self.text.split_at_mut(value_at);
        write_value(value, &before[key]);
        self.text.extend_from_slice(b"\r\n");
    }

    fn key(&mut self, number: u64) {
        let at = self.text.len();
        self.text.resize(at + self.items.key_size, 0);
        KeyMaker::new(self.items.key_size).write(number, &mut self.text[at..]);
    }

    fn end_block(&mut self) {
        self.ends.push((self.text.len(), self.requests.len()));
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of a block.
    pub fn text(&self, block: usize) -> &[u8] {
        &self.text[self.start(block).0..self.ends[block].0]
    }

    /// The requests of a block.
    pub fn requests(&self, block: usize) -> &[Request] {
        &self.requests[self.start(block).1..self.ends[block].1]
    }

    /// Key `index` of a get.
    #[inline(always)]
    pub fn requested_key(&self, keys_at: usize, index: usize) -> &[u8] {
        let at = keys_at + index * (self.items.key_size + 1);
        &self.text[at..at + self.items.key_size]
    }

    fn start(&self, block: usize) -> (usize, usize) {
        match block {
            0 => (0, 0),
            _ => self.ends[block - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEMS: Items = Items {
        count: 100,
        key_size: 10,
        value_size: 9,
    };

    #[test]
    fn a_preload_sets_each_item_once() {
        let script = Script::preload(&ITEMS, 0..100);
        assert_eq!(script.blocks(), 2);
        assert_eq!(script.requests(1), [Request::Set; 36]);
        let text = script.text(1);
        assert!(text.starts_with(b"set kkkkkkkk20 0 0 9\r\nkkkkkk20v\r\nset kkkkkkkk21 "));
        assert!(text.ends_with(b"\r\nkkkkkk33v\r\n"));
    }

    #[test]
    fn gets_know_their_keys() {
        let shape = Shape {
            items: ITEMS,
            distribution: Distribution::Uniform,
            pipeline: 3,
            multiget: 2,
            get_ratio: 1.0,
        };
        let script = Script::random(&shape);
        assert_eq!(script.blocks(), KEYS.div_ceil(6));
        let last = script.blocks() - 1;
        assert_eq!(script.requests(last).len(), 3);
        let text = script.text(last);
        assert_eq!(text.len(), 3 * "get 0000000000 0000000000\r\n".len());
        let Request::Get { keys_at, keys: 2 } = script.requests(last)[0] else {
            panic!("not a get of two keys");
        };
        assert_eq!(script.requested_key(keys_at, 1), &text[15..25]);
    }
}
