//! From a file into an engine.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nuthatch_engine::{
    Clock, Engine, Expiry, Handle, Item, Key, Op, Replies, Reply, Request, Store, Time, Value,
};

use crate::format::{self, BLOCK_HEAD, BLOCK_MAX, BadHeader, HEADER, Record, Whole};
use crate::{Error, Summary};

/// Stores that go to the engine at a time.
const BATCH: usize = 64;

/// A cas above this is taken for one that a client chose: numbering stores behind it might use all numbers up.
const NUMBERED_MAX: u64 = 1 << 47;

/// Reads a whole file, and says whether it is as it was written. Nothing is stored.
pub fn verify(path: &Path) -> Result<Summary, Error> {
    let mut items = 0;
    let mut file = Snapshot::open(path)?;
    while file.next_block()? {
        let mut block = &file.block[..];
        while format::pop(&mut block).is_some() {
            items += 1;
        }
        if !block.is_empty() {
            return Err(file.damaged());
        }
    }
    match items == file.whole.items {
        true => Ok(Summary {
            items,
            bytes: file.position,
            left_out: 0,
        }),
        false => Err(file.damaged()),
    }
}

/// Verifies a file, and stores its items that have not expired. Keys that are in the engine keep what they have. Later
/// stores are numbered behind the items' cas, so that a client that holds one of before does not meet it again.
pub fn load<E: Engine>(engine: &Arc<E>, clock: &Clock, path: &Path) -> Result<Summary, Error> {
    verify(path)?;
    let mut handle = engine.handle();
    let mut summary = Summary::default();
    let mut highest = 0;
    let mut file = Snapshot::open(path)?;
    while file.next_block()? {
        let now = clock.now();
        let mut block = &file.block[..];
        let mut requests = Vec::with_capacity(BATCH);
        loop {
            let record = format::pop(&mut block);
            if let Some(record) = &record {
                if record.cas <= NUMBERED_MAX {
                    highest = highest.max(record.cas);
                }
                match store(clock, now, record) {
                    Some(store) => requests.push(Request {
                        key: Key::new(record.key, engine.hasher()),
                        op: Op::Store(store),
                    }),
                    None => summary.left_out += 1,
                }
            }
            if requests.len() == BATCH || record.is_none() {
                handle.execute(now, &requests, &mut Counted(&mut summary));
                requests.clear();
            }
            if record.is_none() {
                break;
            }
        }
    }
    engine.number_from(highest + 1);
    summary.bytes = file.position;
    Ok(summary)
}

/// How an item is stored; `None` if it has expired.
fn store<'a>(clock: &Clock, now: Time, record: &Record<'a>) -> Option<Store<'a>> {
    let expiry = match record.expiry {
        None => Expiry::Never,
        Some(millis) => {
            let left = millis.checked_sub(clock.unix(now) * 1000)?;
            Expiry::At(now.after(Duration::from_millis(left)))
        }
    };
    if expiry.is_past(now) {
        return None;
    }
    let mut store = Store::set(record.value);
    store.mode = nuthatch_engine::StoreMode::Add;
    store.flags = record.flags;
    store.expiry = expiry;
    store.new_cas = Some(record.cas);
    Some(store)
}

/// Counts what was stored.
struct Counted<'s>(&'s mut Summary);

impl<V: Value> Replies<V> for Counted<'_> {
    fn begin(&mut self, _: usize, _: &Item) -> &mut [std::mem::MaybeUninit<u8>] {
        &mut []
    }

    fn commit(&mut self, _: usize) {}

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, _: &Item, _: V) {}

    fn done(&mut self, _: usize, reply: Reply) {
        match reply {
            Reply::Stored(_) => self.0.items += 1,
            _ => self.0.left_out += 1,
        }
    }
}

/// A file that is read block by block.
struct Snapshot<'p> {
    path: &'p Path,
    file: BufReader<File>,
    /// Bytes of the file when it was opened, and bytes read.
    length: u64,
    position: u64,
    block: Vec<u8>,
    whole: Whole,
}

impl<'p> Snapshot<'p> {
    fn open(path: &'p Path) -> Result<Self, Error> {
        let io = |error| Error::Io(path.to_owned(), error);
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut snapshot = Self {
            path,
            file: BufReader::with_capacity(1 << 20, file),
            length,
            position: 0,
            block: Vec::new(),
            whole: Whole::default(),
        };
        let mut header = [0; HEADER];
        if let Err(error) = snapshot.read(&mut header) {
            return Err(match error {
                Error::Damaged(path, _) => Error::NotASnapshot(path),
                error => error,
            });
        }
        match format::parse_header(&header) {
            Ok(_) => Ok(snapshot),
            Err(BadHeader::Magic) => Err(Error::NotASnapshot(path.to_owned())),
            Err(BadHeader::Version(version)) => Err(Error::Version(path.to_owned(), version)),
            Err(BadHeader::Checksum) => Err(snapshot.damaged()),
        }
    }

    fn damaged(&self) -> Error {
        Error::Damaged(self.path.to_owned(), self.position)
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.file
            .read_exact(bytes)
            .map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => self.damaged(),
                _ => Error::Io(self.path.to_owned(), error),
            })?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Reads a block and compares its checksum. False at the end, which must be that of the blocks before, and the
    /// file's.
    fn next_block(&mut self) -> Result<bool, Error> {
        let mut head = [0; BLOCK_HEAD];
        self.read(&mut head)?;
        let is_end = head[..8] == [0; 8];
        let len = format::number(&head[..4]) as usize;
        if is_end {
            let mut items = [0; 8];
            self.read(&mut items)?;
            let end = [&head[..], &items].concat();
            let is_last = self.file.read(&mut [0]).is_ok_and(|more| more == 0);
            return match end == self.whole.end() && is_last {
                true => Ok(false),
                false => Err(self.damaged()),
            };
        }
        // Before memory is taken for it.
        if len == 0 || len > BLOCK_MAX || len as u64 > self.length.saturating_sub(self.position) {
            return Err(self.damaged());
        }
        let mut block = std::mem::take(&mut self.block);
        block.resize(len, 0);
        self.read(&mut block)?;
        if format::block_head(&block, format::number(&head[4..8]) as u32) != head {
            return Err(self.damaged());
        }
        self.whole.add(&head);
        self.block = block;
        Ok(true)
    }
}
