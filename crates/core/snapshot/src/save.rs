//! Saves the items of an engine into a file.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nuthatch_base::file::{OWNER_ONLY, Unfinished};
use nuthatch_engine::namespace::{Mapping, Namespace};
use nuthatch_engine::{
    Clock, Cursor, Engine, Expiry, Handle, Item, Key, Op, Present, Read, Replies, Reply, Request,
    Time, Value,
};

use crate::format::{self, BLOCK, Head, Record, Version, Whole};
use crate::written::Written;
use crate::{Error, Summary};

/// Places that a visit looks at between two writes.
const BUDGET: usize = 256;

/// What a server knows of an engine's items.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// The moment of a flush of all items that is still to come, if there is one.
    pub flush: Option<Time>,
    /// Whose database's their namespaces are.
    pub mapping: Mapping,
}

/// Writes all items of databases into a file that gets its name when it is complete and on the disk. A file of that name
/// is replaced then.
///
/// Errors: the file cannot be written; another process is writing it; the path is no file. An existing file then stays
/// as it is.
pub fn save<E: Engine>(
    engine: &Arc<E>,
    clock: &Clock,
    circumstances: Circumstances,
    path: &Path,
    progress: &mut dyn FnMut(),
) -> Result<Summary, Error> {
    let io = |error| Error::Io(path.to_owned(), error);
    let mut file = Unfinished::begin(path, OWNER_ONLY).map_err(io)?;
    let out = BufWriter::new(&mut file);
    let summary = write(engine, clock, circumstances, out, progress).map_err(io)?;
    file.finish(path).map_err(io)?;
    Ok(summary)
}

/// Writes all items in the format of a file.
pub fn write<E: Engine>(
    engine: &Arc<E>,
    clock: &Clock,
    circumstances: Circumstances,
    out: impl Write,
    progress: &mut dyn FnMut(),
) -> io::Result<Summary> {
    let wall = clock.wall();
    let mut writer = Writer {
        out,
        begun: wall.present,
        mapping: circumstances.mapping,
        progress,
        block: Vec::new(),
        items: 0,
        whole: Whole::default(),
        summary: Summary::default(),
    };
    writer.put(&format::header(&Head {
        written: Written::now(&wall),
        flush: circumstances.flush.map(|at| left(wall.present, at)),
        version: Version::Third,
    }))?;
    writer.all(engine, clock)?;
    // After the last item: no item of the file has a higher number.
    writer.finish(engine.next_number())
}

/// A file that is being written.
struct Writer<'p, W: Write> {
    out: W,
    /// The moment of the header, from which all that is left of lives counts.
    begun: Present,
    mapping: Mapping,
    progress: &'p mut dyn FnMut(),
    block: Vec<u8>,
    /// Items of the block.
    items: u32,
    whole: Whole,
    summary: Summary,
}

impl<W: Write> Writer<'_, W> {
    fn all<E: Engine>(&mut self, engine: &Arc<E>, clock: &Clock) -> io::Result<()> {
        let mut handle = engine.handle();
        let mut next = Some(Cursor::default());
        let mut large: Vec<Vec<u8>> = Vec::new();
        while let Some(from) = next {
            let now = clock.now();
            next = handle.visit(now, from, BUDGET, &mut |visit| {
                if self.key_of(visit.key).is_none() {
                    // A flush of its database has left it.
                } else if visit.item.stale || is_placeholder(&visit.item) {
                    self.summary.left_out.stale += 1;
                } else if visit.value.len() == visit.item.value_len {
                    self.push(visit.key, &visit.item, visit.value);
                } else {
                    large.push(visit.key.to_vec());
                }
            });
            self.write_if(BLOCK)?;
            for key in large.drain(..) {
                self.push_large(engine, &mut handle, clock, &key);
                self.write_if(BLOCK)?;
            }
        }
        self.write_if(1)
    }

    /// An item's key in the file: that of its database at the begin of a server.
    fn key_of<'k>(&self, key: &'k [u8]) -> Option<Cow<'k, [u8]>> {
        let (namespace, name) = Namespace::split(key);
        let first = Namespace::of(self.mapping.database_of(namespace)?, 0);
        Some(match namespace == first {
            true => Cow::Borrowed(key),
            false => Cow::Owned(first.stored(name)),
        })
    }

    fn push(&mut self, key: &[u8], item: &Item, value: &[u8]) {
        let Some(key) = self.key_of(key) else { return };
        let record = record(self.begun, &key, item, value);
        format::push(&mut self.block, &record, item.value_len);
        self.items += 1;
    }

    /// Reads an item by its key: visits do not show large values.
    fn push_large<E: Engine>(
        &mut self,
        engine: &Arc<E>,
        handle: &mut E::Handle,
        clock: &Clock,
        key: &[u8],
    ) {
        let Some(name) = self.key_of(key) else { return };
        let begun = self.begun;
        let read = Read {
            bump: false,
            ..Read::default()
        };
        let request = Request {
            key: Key::new(key, engine.hasher()),
            op: Op::Read(read),
        };
        let mut taken = Taken {
            block: &mut self.block,
            start: 0,
            promised: 0,
            head: |item: &Item| record(begun, &name, item, &[]),
            found: false,
        };
        handle.execute(clock.now(), &[request], &mut taken);
        self.items += u32::from(taken.found);
    }

    /// Writes the block if it has at least this many bytes.
    fn write_if(&mut self, bytes: usize) -> io::Result<()> {
        if self.block.len() < bytes {
            return Ok(());
        }
        let head = format::block_head(&self.block, self.items);
        self.whole.add(&head);
        let block = std::mem::take(&mut self.block);
        self.put(&head)?;
        self.put(&block)?;
        (self.progress)();
        self.block = block;
        self.block.clear();
        // The memory of one huge value is not kept.
        self.block.shrink_to(2 * BLOCK);
        self.items = 0;
        Ok(())
    }

    fn finish(mut self, next_number: u64) -> io::Result<Summary> {
        let end = self.whole.end(Some(next_number));
        self.put(&end)?;
        self.out.flush()?;
        self.summary.items = self.whole.items;
        Ok(self.summary)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.summary.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

/// An empty item that a reader has won, as `mg N` makes it on a miss: whoever won it has not stored the value yet.
fn is_placeholder(item: &Item) -> bool {
    item.value_len == 0 && item.won_before
}

/// What is left until a moment. One that never comes by this clock, because that reaches 8.5 years, does not come by the
/// next one either, which begins anew.
fn left(present: Present, moment: Time) -> Duration {
    match Time::LAST < moment {
        true => Duration::MAX,
        false => present.until(moment),
    }
}

fn record<'a>(begun: Present, key: &'a [u8], item: &Item, value: &'a [u8]) -> Record<'a> {
    let left = match item.expiry {
        Expiry::Never => None,
        Expiry::At(end) => Some(left(begun, end)),
    };
    Record {
        key,
        flags: item.flags,
        cas: item.cas,
        left,
        value,
    }
}

/// Takes the answer to one read into a block.
struct Taken<'b, H> {
    block: &'b mut Vec<u8>,
    /// Where the item begins.
    start: usize,
    /// Bytes that the engine will write behind the block.
    promised: usize,
    head: H,
    found: bool,
}

impl<'k, H: Fn(&Item) -> Record<'k>> Taken<'_, H> {
    fn begin_item(&mut self, item: &Item) {
        self.start = self.block.len();
        format::push(self.block, &(self.head)(item), item.value_len);
    }
}

impl<'k, V: Value, H: Fn(&Item) -> Record<'k>> Replies<V> for Taken<'_, H> {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        // The value has become small meanwhile.
        self.begin_item(item);
        self.promised = item.value_len;
        self.block.reserve(item.value_len);
        &mut self.block.spare_capacity_mut()[..item.value_len]
    }

    fn commit(&mut self, _: usize) {
        let len = self.block.len() + self.promised;
        // SAFETY: `begin` reserved the room behind the length, and the engine calls this after it wrote all of it: that
        // is its side of `Replies`.
        unsafe { self.block.set_len(len) };
        self.found = true;
    }

    fn retract(&mut self, _: usize) {
        self.block.truncate(self.start);
    }

    fn large(&mut self, _: usize, item: &Item, value: V) {
        self.begin_item(item);
        let mut offset = 0;
        while offset < value.len() {
            let chunk = value.chunk(offset);
            self.block.extend_from_slice(chunk);
            offset += chunk.len();
        }
        self.found = true;
    }

    fn done(&mut self, _: usize, _: Reply) {}
}
