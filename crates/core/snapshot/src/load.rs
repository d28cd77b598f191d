//! Loads items from a file into an engine.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::{
    Clock, Engine, Expiry, Handle, Item, Key, Op, Present, Replies, Reply, Request, Store, Value,
};

use crate::format::{
    self, BLOCK_HEAD, BLOCK_MAX, BadHeader, HEADER_1, Head, Record, Version, Whole,
};
use crate::numbers::{NUMBER_MAX, Next, Source};
use crate::written::Written;
use crate::{Error, Progress, Summary};

/// Stores that go to the engine at a time.
const BATCH: usize = 64;

/// Reads a whole file and verifies it. Stores nothing.
pub fn verify(path: &Path) -> Result<Summary, Error> {
    let file = open(path)?;
    verify_file(&file, path, &mut || ControlFlow::Continue(()))
}

/// Reads the head of a file. Errors: it is no file of items, or one of a later version. [`verify`] checks the rest.
pub fn verify_head(path: &Path) -> Result<(), Error> {
    let file = open(path)?;
    Snapshot::of_file(&file, path).map(|_| ())
}

fn verify_file(file: &File, path: &Path, progress: &mut Progress<'_>) -> Result<Summary, Error> {
    let mut items = 0;
    let mut file = Snapshot::of_file(file, path)?;
    while file.next_block()? {
        if progress().is_break() {
            return Err(Error::Stopped(file.path.to_owned()));
        }
        let mut block = &file.block[..];
        while format::pop(&mut block, &file.head).is_some() {
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
            ..Summary::default()
        }),
        false => Err(file.damaged()),
    }
}

/// Verifies a copy, and stores its items that have not expired. Keys that are in the engine keep their items. Later
/// stores get numbers above those that the engine which wrote the copy has given out, up to now, so that a client that
/// holds an old cas does not meet the same number again.
///
/// Errors: the file is invalid, or `progress` stopped the load. Some of the items may be stored by then.
pub fn load<E: Engine>(
    engine: &Arc<E>,
    clock: &Clock,
    path: &Path,
    progress: &mut Progress<'_>,
) -> Result<Summary, Error> {
    let file = open(path)?;
    load_file(engine, clock, &file, path, progress)
}

/// Like [`load`], from a file that was opened by the name `path`.
pub fn load_file<E: Engine>(
    engine: &Arc<E>,
    clock: &Clock,
    file: &File,
    path: &Path,
    progress: &mut Progress<'_>,
) -> Result<Summary, Error> {
    verify_file(file, path, progress)?;
    let snapshot = Snapshot::of_file(file, path)?;
    take(engine, clock, snapshot, Source::Copy, progress)
}

/// Like [`load_file`], from a file that an engine wrote at its end: it has stored
/// nothing since.
pub fn load_last<E: Engine>(
    engine: &Arc<E>,
    clock: &Clock,
    file: &File,
    path: &Path,
    progress: &mut Progress<'_>,
) -> Result<Summary, Error> {
    verify_file(file, path, progress)?;
    let snapshot = Snapshot::of_file(file, path)?;
    take(engine, clock, snapshot, Source::Last, progress)
}

/// Stores the items that [`write`](crate::write) sends from an engine that stores nothing any more, each block after it
/// has arrived and its checksum fits. Errors name `path`. The earlier blocks are stored by then.
pub fn receive<E: Engine>(
    engine: &Arc<E>,
    clock: &Clock,
    input: impl Read,
    path: &Path,
    progress: &mut Progress<'_>,
) -> Result<Summary, Error> {
    let snapshot = Snapshot::of(input, path, None)?;
    take(engine, clock, snapshot, Source::Last, progress)
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|error| Error::Io(path.to_owned(), error))
}

/// Stores all items.
fn take<E: Engine, R: Read>(
    engine: &Arc<E>,
    clock: &Clock,
    mut file: Snapshot<'_, R>,
    source: Source,
    progress: &mut Progress<'_>,
) -> Result<Summary, Error> {
    let mut handle = engine.handle();
    let mut summary = Summary::default();
    let evicted_before = engine.stats().evictions;
    let mut next = Next::default();
    while file.next_block()? {
        if progress().is_break() {
            return Err(Error::Stopped(file.path.to_owned()));
        }
        let (now, present) = (clock.now(), clock.present());
        let age = file.age(clock).unwrap_or_default();
        let mut block = &file.block[..];
        let mut stores = Vec::with_capacity(BATCH);
        loop {
            let record = format::pop(&mut block, &file.head);
            if let Some(record) = &record {
                next.note(record.cas);
                let key = file.head.key_of(record.key);
                match store(present, age, record) {
                    // A successor that is a near cache takes the sockets alone.
                    Some(_) if engine.holds_copies() => {}
                    Some(_) if key.len() > engine.key_len_max() => summary.left_out.too_large += 1,
                    Some(store) => stores.push((key, store)),
                    None => summary.left_out.expired += 1,
                }
            }
            if stores.len() == BATCH || record.is_none() {
                let requests: Vec<_> = stores
                    .iter()
                    .map(|(key, store)| Request {
                        key: Key::new(key, engine.hasher()),
                        op: Op::Store(*store),
                    })
                    .collect();
                let homes = stores.iter().map(|(key, _)| Namespace::split(key).0.home());
                summary.databases |= homes.fold(0, |all, home| all | 1 << home);
                handle.execute(now, &requests, &mut Counted(&mut summary));
                stores.clear();
            }
            if record.is_none() {
                break;
            }
        }
    }
    summary.evicted = engine.stats().evictions.saturating_sub(evicted_before);
    let age = file.age(clock);
    engine.number_from(next.number(file.next_number, source, age));
    summary.flush = (file.head.flush).map(|left| left.saturating_sub(age.unwrap_or_default()));
    summary.bytes = file.position;
    Ok(summary)
}

/// The store of an item of a file that was begun so long before the present. `None` if it has expired.
fn store<'a>(present: Present, age: Duration, record: &Record<'a>) -> Option<Store<'a>> {
    let expiry = match record.left {
        None => Expiry::Never,
        Some(left) => {
            let left = left.checked_sub(age).filter(|left| !left.is_zero())?;
            Expiry::At(present.end(left))
        }
    };
    let mut store = Store::set(record.value);
    store.mode = nuthatch_engine::StoreMode::Add;
    store.flags = record.flags;
    store.expiry = expiry;
    store.new_cas = Some(record.cas);
    Some(store)
}

/// Counts the outcomes of the stores.
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
            Reply::TooLarge => self.0.left_out.too_large += 1,
            Reply::OutOfMemory => self.0.left_out.no_memory += 1,
            // An add that found an item.
            _ => self.0.left_out.there += 1,
        }
    }
}

/// A reader of items, block by block.
struct Snapshot<'p, R> {
    path: &'p Path,
    head: Head,
    input: R,
    /// Bytes of the file when it was opened. `None` for a stream, which may have more bytes behind the end.
    length: Option<u64>,
    /// Bytes read.
    position: u64,
    block: Vec<u8>,
    whole: Whole,
    /// What the end says, if it does.
    next_number: Option<u64>,
}

impl<'p, 'f> Snapshot<'p, BufReader<&'f File>> {
    /// Reads a file from its beginning.
    fn of_file(mut file: &'f File, path: &'p Path) -> Result<Self, Error> {
        let io = |error| Error::Io(path.to_owned(), error);
        file.rewind().map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let input = BufReader::with_capacity(1 << 20, file);
        Self::of(input, path, Some(length))
    }
}

impl<'p, R: Read> Snapshot<'p, R> {
    fn of(input: R, path: &'p Path, length: Option<u64>) -> Result<Self, Error> {
        let mut snapshot = Self {
            path,
            head: Head::default(),
            input,
            length,
            position: 0,
            block: Vec::new(),
            whole: Whole::default(),
            next_number: None,
        };
        let mut first = [0; HEADER_1];
        if let Err(error) = snapshot.read(&mut first) {
            return Err(match error {
                Error::Damaged(path, _) => Error::NotASnapshot(path),
                error => error,
            });
        }
        match format::parse_header(&first, |more| snapshot.read(more))? {
            Ok(head) => Ok(Self { head, ..snapshot }),
            Err(BadHeader::Magic) => Err(Error::NotASnapshot(path.to_owned())),
            Err(BadHeader::Version(version)) => Err(Error::Version(path.to_owned(), version)),
            Err(BadHeader::Checksum) => Err(snapshot.damaged()),
        }
    }

    /// How long ago the file was begun. `None` if nothing tells.
    fn age(&self, clock: &Clock) -> Option<Duration> {
        self.head.written.until(&Written::now(&clock.wall()))
    }

    fn damaged(&self) -> Error {
        Error::Damaged(self.path.to_owned(), self.position)
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        let read = self.input.read_exact(bytes);
        read.map_err(|error| self.failed(error))?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn failed(&self, error: std::io::Error) -> Error {
        match error.kind() {
            ErrorKind::UnexpectedEof => self.damaged(),
            _ => Error::Io(self.path.to_owned(), error),
        }
    }

    /// Reads a block and compares its checksum. False at the end, which must fit the blocks before it and be the end of
    /// the file.
    fn next_block(&mut self) -> Result<bool, Error> {
        let mut head = [0; BLOCK_HEAD];
        self.read(&mut head)?;
        let is_end = head[..8] == [0; 8];
        let len = format::number(&head[..4]) as usize;
        if is_end {
            let (mut items, mut number) = ([0; 8], [0; 8]);
            self.read(&mut items)?;
            if self.head.version != Version::First {
                self.read(&mut number)?;
                self.next_number = Some(u64::from_le_bytes(number));
            }
            let end = match self.next_number {
                None => [&head[..], &items].concat(),
                Some(_) => [&head[..], &items, &number].concat(),
            };
            // No engine gives out more numbers: one that went on from there could store nothing.
            let is_number = self.next_number.is_none_or(|next| next <= NUMBER_MAX);
            let is_last =
                self.length.is_none() || self.input.read(&mut [0]).is_ok_and(|more| more == 0);
            return match end == self.whole.end(self.next_number) && is_number && is_last {
                true => Ok(false),
                false => Err(self.damaged()),
            };
        }
        // Check the length before memory is taken for it.
        let left = self
            .length
            .map_or(u64::MAX, |length| length.saturating_sub(self.position));
        if len == 0 || len > BLOCK_MAX || len as u64 > left {
            return Err(self.damaged());
        }
        // From a stream, memory is taken as the bytes arrive.
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        let read = (&mut self.input).take(len as u64).read_to_end(&mut block);
        self.position += read.map_err(|error| self.failed(error))? as u64;
        if block.len() < len {
            return Err(self.damaged());
        }
        if format::block_head(&block, format::number(&head[4..8]) as u32) != head {
            return Err(self.damaged());
        }
        self.whole.add(&head);
        self.block = block;
        Ok(true)
    }
}
