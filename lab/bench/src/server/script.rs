//! The script of a connection: blocks of requests, made before the clock starts.

use std::ops::Range;

use nuthatch_workload::{KeyMaker, Popularity};
use rand::Rng;

use crate::engine::{Distribution, Items, SEED};
use crate::server::cpserver::Dialect;
use crate::server::scan::Protocol;
use crate::server::{binary, resp};
use nuthatch_workload::proof::write_value;

/// Keys in a script, at least, so that requests do not repeat soon. With large values there are fewer.
const KEYS: usize = 1 << 18;

/// Requests in a block while preloading.
const PRELOAD_PIPELINE: usize = 64;

/// The shape of a load.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What the server speaks.
    pub protocol: Protocol,
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

/// The server of an item's key, of so many. Popular keys lie anywhere among the numbers.
pub fn server_of(number: u64, servers: usize) -> usize {
    (number % servers as u64) as usize
}

/// Requests as they go over the wire, cut into blocks that are sent whole.
pub struct Script {
    protocol: Protocol,
    items: Items,
    text: Vec<u8>,
    requests: Vec<Request>,
    /// Where each block ends: in the text, and among the requests.
    ends: Vec<(usize, usize)>,
}

impl Script {
    /// Random requests to one server.
    #[cfg(test)]
    pub fn random(shape: &Shape) -> Self {
        Self::divided(shape, 1).remove(0)
    }

    /// Random requests to several servers, among which the client divides the keys: a script for each. Blocks of one number
    /// belong together; where a server has no key of a block, its own is empty.
    pub fn divided(shape: &Shape, servers: usize) -> Vec<Self> {
        let mut random = SEED.thread(0);
        let popularity = Popularity::new(shape.distribution.into(), shape.items.count);
        let mut scripts: Vec<Self> = (0..servers)
            .map(|_| Self::empty(shape.protocol, shape.items))
            .collect();
        let keys_in_block = shape.pipeline * shape.multiget;
        let keys = shape.items.at_most(KEYS as u64) as usize;
        let mut numbers = Vec::with_capacity(shape.multiget);
        for _ in 0..keys.div_ceil(keys_in_block) {
            let mut requests = 0;
            while requests < shape.pipeline || scripts.iter().any(Self::ends_silently) {
                requests += 1;
                let is_get = random.random_bool(shape.get_ratio);
                let keys = if is_get { shape.multiget } else { 1 };
                numbers.clear();
                numbers.extend((0..keys).map(|_| popularity.draw(&mut random)));
                for (server, script) in scripts.iter_mut().enumerate() {
                    let mut own = numbers
                        .iter()
                        .copied()
                        .filter(|&number| server_of(number, servers) == server);
                    match (own.clone().count(), is_get) {
                        (0, _) => {}
                        (count, true) => script.get(count, || own.next().unwrap_or_default()),
                        (_, false) => own.for_each(|number| script.set(number)),
                    }
                }
            }
            scripts.iter_mut().for_each(Self::end_block);
        }
        scripts
    }

    /// Sets of the items with these numbers, each once.
    pub fn preload(protocol: Protocol, items: &Items, numbers: &[u64]) -> Self {
        let mut script = Self::empty(protocol, *items);
        for numbers in numbers.chunks(PRELOAD_PIPELINE) {
            for &number in numbers {
                script.set(number);
            }
            if script.ends_silently() {
                script.get(1, || numbers[0]);
            }
            script.end_block();
        }
        script
    }

    fn empty(protocol: Protocol, items: Items) -> Self {
        Self {
            protocol,
            items,
            text: Vec::new(),
            requests: Vec::new(),
            ends: Vec::new(),
        }
    }

    fn get(&mut self, keys: usize, mut number: impl FnMut() -> u64) {
        let (text, key_size) = (&mut self.text, self.items.key_size);
        match (self.protocol, self.protocol.dialect()) {
            (_, Some(dialect)) => dialect.get(text),
            (Protocol::Binary, _) => binary::get(text, key_size),
            (Protocol::Redis, _) => resp::get(text, key_size),
            _ => text.extend_from_slice(b"get "),
        }
        let keys_at = self.text.len();
        self.requests.push(Request::Get { keys_at, keys });
        if self.protocol != Protocol::Memcached {
            self.key(number());
            if self.protocol == Protocol::Redis {
                self.text.extend_from_slice(b"\r\n");
            }
            return;
        }
        for _ in 0..keys {
            self.key(number());
            self.text.push(b' ');
        }
        self.text.pop();
        self.text.extend_from_slice(b"\r\n");
    }

    fn set(&mut self, number: u64) {
        self.requests.push(Request::Set);
        let size = self.items.value_size;
        if let Some(dialect) = self.protocol.dialect() {
            dialect.set(&mut self.text, size);
            let key = self.key_range(number);
            return self.value(key);
        }
        let (text, key_size) = (&mut self.text, self.items.key_size);
        match self.protocol {
            Protocol::Binary => {
                binary::set(text, key_size, size);
                let key = self.key_range(number);
                return self.value(key);
            }
            Protocol::Redis => resp::set(text, key_size),
            _ => text.extend_from_slice(b"set "),
        }
        let key = self.key_range(number);
        match self.protocol {
            Protocol::Redis => resp::between(&mut self.text, size),
            _ => self
                .text
                .extend_from_slice(format!(" 0 0 {size}\r\n").as_bytes()),
        }
        self.value(key);
        self.text.extend_from_slice(b"\r\n");
    }

    /// Writes a key and returns its place.
    fn key_range(&mut self, number: u64) -> Range<usize> {
        let at = self.text.len();
        self.key(number);
        at..self.text.len()
    }

    /// Writes the value of the key that stands there.
    fn value(&mut self, key: Range<usize>) {
        let at = self.text.len();
        self.text.resize(at + self.items.value_size, 0);
        let (before, value) = self.text.split_at_mut(at);
        write_value(value, &before[key]);
    }

    /// True if no answer would show that the requests so far were carried out: then a get must follow, before the block
    /// ends.
    fn ends_silently(&self) -> bool {
        let silent = self
            .protocol
            .dialect()
            .is_some_and(Dialect::stores_silently);
        silent && self.requests.last() == Some(&Request::Set)
    }

    fn key(&mut self, number: u64) {
        let at = self.text.len();
        self.text.resize(at + self.items.key_size, 0);
        KeyMaker::new(self.items.key_size).write(number, &mut self.text[at..]);
    }

    fn end_block(&mut self) {
        if let (Protocol::Binary, Some(&Request::Get { keys_at, .. })) =
            (self.protocol, self.requests.last())
        {
            binary::make_loud(&mut self.text, keys_at);
        }
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

    const ITEMS: Items = Items::alike(100, 10, 9);

    #[test]
    fn a_preload_sets_each_item_once() {
        let numbers: Vec<u64> = (0..100).collect();
        let script = Script::preload(Protocol::Memcached, &ITEMS, &numbers);
        assert_eq!(script.blocks(), 2);
        assert_eq!(script.requests(1), [Request::Set; 36]);
        let text = script.text(1);
        assert!(text.starts_with(b"set kkkkkkkk20 0 0 9\r\nkkkkkk20v\r\nset kkkkkkkk21 "));
        assert!(text.ends_with(b"\r\nkkkkkk33v\r\n"));
    }

    #[test]
    fn several_servers_have_the_keys_of_one_divided() {
        let shape = Shape {
            protocol: Protocol::Memcached,
            items: ITEMS,
            distribution: Distribution::Zipf,
            pipeline: 2,
            multiget: 5,
            get_ratio: 0.8,
        };
        let whole = Script::random(&shape);
        let parts = Script::divided(&shape, 3);
        // Each key is alone between spaces, and in a value.
        let keys = |text: &[u8]| {
            let text = String::from_utf8(text.to_vec()).unwrap();
            let words = text.split_ascii_whitespace();
            let mut keys: Vec<String> = words
                .filter(|word| word.len() == 10)
                .map(str::to_owned)
                .collect();
            keys.sort();
            keys
        };
        let maker = KeyMaker::new(10);
        let numbers: Vec<_> = (0..100).map(|number| maker.key(number)).collect();
        for block in 0..100 {
            let mut all = Vec::new();
            for (server, part) in parts.iter().enumerate() {
                assert_eq!(part.blocks(), whole.blocks());
                let own = keys(part.text(block));
                let number = |key: &String| numbers.iter().position(|one| one == key.as_bytes());
                assert!(
                    own.iter()
                        .all(|key| server_of(number(key).unwrap() as u64, 3) == server)
                );
                all.extend(own);
            }
            all.sort();
            assert_eq!(all, keys(whole.text(block)));
        }
    }

    #[test]
    fn no_block_ends_with_what_has_no_answer() {
        let numbers: Vec<u64> = (0..100).collect();
        let shape = Shape {
            protocol: Protocol::Cpserver,
            items: Items {
                key_size: 8,
                ..ITEMS
            },
            distribution: Distribution::Uniform,
            pipeline: 3,
            multiget: 1,
            get_ratio: 0.3,
        };
        let script = Script::random(&shape);
        for block in 0..script.blocks() {
            let requests = script.requests(block);
            assert!(requests.len() >= 3);
            assert!(matches!(requests.last(), Some(Request::Get { .. })));
        }
        let script = Script::preload(Protocol::Cpserver, &shape.items, &numbers);
        assert_eq!(script.requests(1).len(), 37);
        assert_eq!(script.text(1).len(), 36 * (16 + 9) + 16);
    }

    #[test]
    fn gets_know_their_keys() {
        let shape = Shape {
            protocol: Protocol::Memcached,
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
