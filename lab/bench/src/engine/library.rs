//! [`nuthatch::Cache`], the library's interface, under measurement: the calls of a program that does not use the engine
//! directly. Beside the engine's work each call reads a clock and finds the thread's handle.

use nuthatch::Cache;

use crate::engine::Room;
use crate::engine::operations::{Operation, Operations};
use crate::engine::subject::{Subject, Tally, Worker};

/// A cache that is called for `batch` keys at a time.
pub struct Library {
    cache: Cache,
    batch: usize,
}

impl Library {
    /// A cache with this room, called for `batch` keys at a time.
    pub fn new(room: Room, batch: usize) -> Result<Self, String> {
        let builder = Cache::builder().memory_limit(room.memory);
        let builder = match room.items {
            Some(items) => builder.initial_capacity(items),
            None => builder,
        };
        let cache = builder.build().map_err(|error| error.to_string())?;
        Ok(Self { cache, batch })
    }
}

impl Subject for Library {
    type Worker<'a> = LibraryWorker<'a>;

    fn worker(&self) -> LibraryWorker<'_> {
        LibraryWorker {
            subject: self,
            value: Vec::new(),
        }
    }
}

/// A thread's access to a [`Library`].
pub struct LibraryWorker<'a> {
    subject: &'a Library,
    value: Vec<u8>,
}

impl LibraryWorker<'_> {
    /// One operation.
    #[inline(always)]
    fn call(&mut self, one: Operation<'_>, tally: &mut Tally) {
        let cache = &self.subject.cache;
        tally.operations += 1;
        match one.set {
            Some(value) => tally.wrong += u64::from(cache.insert(one.key, value).is_err()),
            None => {
                tally.gets += 1;
                if cache.get_into(one.key, &mut self.value) {
                    tally.hit(&self.value, one.key, one.value_size);
                }
            }
        }
    }

    /// Gets in one call, of values of these sizes.
    fn gets(&self, keys: &[&[u8]], sizes: &[usize], tally: &mut Tally) {
        tally.operations += keys.len() as u64;
        tally.gets += keys.len() as u64;
        self.subject.cache.get_many_with(keys, |index, value| {
            if let Some(value) = value {
                tally.hit(value, keys[index], sizes[index]);
            }
        });
    }
}

impl Worker for LibraryWorker<'_> {
    fn requests(&mut self, list: &Operations, from: usize, to: usize) -> Tally {
        let batch = self.subject.batch;
        let mut tally = Tally::default();
        if batch == 1 {
            for one in list.range(from, to) {
                self.call(one, &mut tally);
            }
            return tally;
        }
        let (mut keys, mut sizes) = (Vec::with_capacity(batch), Vec::with_capacity(batch));
        let mut operations = list.range(from, to);
        while operations.len() > 0 {
            keys.clear();
            sizes.clear();
            for one in operations.by_ref().take(batch) {
                match one.set {
                    Some(_) => self.call(one, &mut tally),
                    None => {
                        keys.push(one.key);
                        sizes.push(one.value_size);
                    }
                }
            }
            if !keys.is_empty() {
                self.gets(&keys, &sizes, &mut tally);
            }
        }
        tally
    }
}
