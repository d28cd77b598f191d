//! Invariants of any bytes as a file of items, and as a stream of them. Also the body of the fuzz target.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::ControlFlow::Continue;
use std::path::Path;
use std::sync::Arc;

use nuthatch_check::naive::{Naive, Options};
use nuthatch_engine::{Clock, Cursor, Engine, Expiry, Handle};
use nuthatch_snapshot::format::{self, BLOCK_HEAD, HEADER, HEADER_1, Head, Version, Whole};
use nuthatch_snapshot::{Circumstances, load_last, receive, verify, write};
use xxhash_rust::xxh3::xxh3_64;

/// Lives that end within so many ticks may end while this looks at them.
const SOON: u32 = 16 * 60;

/// By key: flags, cas, when it expires, value.
type Items = BTreeMap<Vec<u8>, (u32, u64, Expiry, Vec<u8>)>;

/// Checks all of it for `input`, and for the file that it would be if its checksums fitted. `path` is the name of a file
/// that this may write.
pub fn check(input: &[u8], path: &Path) {
    check_file(input, path);
    if let Some(sealed) = seal(input) {
        check_file(&sealed, path);
    }
}

/// A file is accepted or refused as a whole, whatever reads it. What an engine has of it are items of the file, and a
/// file of that engine has the same.
fn check_file(bytes: &[u8], path: &Path) {
    fs::write(path, bytes).unwrap();
    let clock = Clock::start();
    let verified = verify(path);
    let engine = empty();
    let file = File::open(path).unwrap();
    let loaded = load_last(&engine, &clock, &file, path, &mut || Continue(()));
    let streamed = empty();
    let mut input = bytes;
    let received = receive(&streamed, &clock, &mut input, path, &mut || Continue(()));
    let Ok(verified) = verified else {
        assert!(loaded.is_err(), "{loaded:?}");
        assert_eq!(engine.next_number(), empty().next_number());
        assert!(
            items(&engine, &clock).is_empty(),
            "of a file that was refused"
        );
        return;
    };
    let loaded = loaded.unwrap();
    assert_eq!(loaded.items + loaded.left_out.total(), verified.items);
    assert_eq!(loaded.bytes, bytes.len() as u64);
    assert_eq!(received.unwrap().bytes, loaded.bytes);
    assert!(input.is_empty());
    assert!(engine.next_number() < 1 << 50, "no engine could store more");
    let loaded = items(&engine, &clock);
    for (key, (flags, cas, expiry, value)) in &loaded {
        let is_it = |(flags_, cas_, expires, value_): &Recorded| {
            (flags_, cas_, value_) == (flags, cas, value) && *expires == (*expiry != Expiry::Never)
        };
        assert!(records(bytes)[key].iter().any(is_it), "{key:?}");
    }
    assert!(agree(&loaded, &items(&streamed, &clock), &clock));
    let mut again = Vec::new();
    write(
        &engine,
        &clock,
        Circumstances::default(),
        &mut again,
        &mut || (),
    )
    .unwrap();
    let resaved = empty();
    receive(&resaved, &clock, &again[..], path, &mut || Continue(())).unwrap();
    assert!(agree(&loaded, &items(&resaved, &clock), &clock));
    assert_eq!(resaved.next_number(), engine.next_number());
}

fn empty() -> Arc<Naive> {
    Naive::new(Options::default())
}

fn items(engine: &Arc<Naive>, clock: &Clock) -> Items {
    let mut items = Items::new();
    let mut handle = engine.handle();
    let mut next = Some(Cursor::default());
    while let Some(from) = next {
        next = handle.visit(clock.now(), from, 1024, &mut |visit| {
            let item = visit.item;
            let of_it = (item.flags, item.cas, item.expiry, visit.value.to_vec());
            items.insert(visit.key.to_vec(), of_it);
        });
    }
    items
}

/// True if both have the same, apart from what expires soon. A life may change by the ticks that it is rounded to.
fn agree(one: &Items, other: &Items, clock: &Clock) -> bool {
    let now = clock.now();
    let soon = |expiry| matches!(expiry, Expiry::At(end) if end.0 < now.0.saturating_add(SOON));
    let lasting = |items: &Items| -> Vec<_> {
        let items = items.iter().filter(|(_, item)| !soon(item.2));
        items
            .map(|(key, item)| (key.clone(), item.clone()))
            .collect()
    };
    let same_end = |one: Expiry, other: Expiry| match (one, other) {
        (Expiry::At(one), Expiry::At(other)) => one.0.abs_diff(other.0) <= SOON,
        (one, other) => one == other,
    };
    // What is near the mark may be on either side of it.
    lasting(one)
        .iter()
        .all(|(key, (flags, cas, expiry, value))| {
            other.get(key).is_some_and(|there| {
                (there.0, there.1, &there.3) == (*flags, *cas, value) && same_end(there.2, *expiry)
            })
        })
        && lasting(other).iter().all(|(key, _)| one.contains_key(key))
}

/// An item as a file has it: flags, cas, whether it expires, value.
type Recorded = (u32, u64, bool, Vec<u8>);

/// All records of a valid file, by key.
fn records(bytes: &[u8]) -> BTreeMap<Vec<u8>, Vec<Recorded>> {
    let mut records = BTreeMap::<_, Vec<_>>::new();
    let (head, mut at) = head_of(bytes).unwrap();
    while let Some(mut block) = block_at(bytes, at) {
        at += BLOCK_HEAD + block.len();
        while let Some(record) = format::pop(&mut block, &head) {
            let of_key = records
                .entry(head.key_of(record.key).into_owned())
                .or_default();
            let (expires, value) = (record.left.is_some(), record.value.to_vec());
            of_key.push((record.flags, record.cas, expires, value));
        }
    }
    records
}

/// The head of a file, and its length.
fn head_of(bytes: &[u8]) -> Option<(Head, usize)> {
    let (first, rest) = bytes.split_first_chunk::<HEADER_1>()?;
    let more = |into: &mut [u8]| {
        into.copy_from_slice(rest.get(..into.len()).ok_or(())?);
        Ok::<_, ()>(())
    };
    let head = format::parse_header(first, more).ok()?.ok()?;
    Some((
        head,
        if head.version == Version::First {
            HEADER_1
        } else {
            HEADER
        },
    ))
}

/// The items of the block whose head is there. `None` at the end, or if it is cut off.
fn block_at(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let len = number(bytes.get(at..at + 4)?) as usize;
    let block = bytes.get(at + BLOCK_HEAD..)?.get(..len)?;
    (len > 0).then_some(block)
}

/// The file with the counts and checksums that its bytes need. `None` if it has no head.
fn seal(input: &[u8]) -> Option<Vec<u8>> {
    let mut file = input.to_vec();
    let is_first = number(input.get(8..12)?) == 1;
    let end = if is_first { HEADER_1 } else { HEADER };
    let checksum = xxh3_64(file.get(..end - 8)?).to_le_bytes();
    file.get_mut(end - 8..end)?.copy_from_slice(&checksum);
    let (head, mut at) = head_of(&file)?;
    let mut whole = Whole::default();
    while let Some(block) = block_at(&file, at) {
        let (mut left, mut count) = (block, 0);
        while format::pop(&mut left, &head).is_some() {
            count += 1;
        }
        let head = format::block_head(block, count);
        at += BLOCK_HEAD + block.len();
        let from = at - BLOCK_HEAD - block.len();
        file[from..from + BLOCK_HEAD].copy_from_slice(&head);
        whole.add(&head);
    }
    let next = file.get(at + BLOCK_HEAD + 8..at + BLOCK_HEAD + 16);
    let next = (!is_first).then(|| next.map_or(1, number));
    file.truncate(at);
    file.extend(whole.end(next));
    Some(file)
}

fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |number, &byte| number << 8 | u64::from(byte))
}
