//! Saves items into a file and loads them again, and tries every way in which a file can be invalid.

use std::fs;
use std::ops::ControlFlow::{Break, Continue};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuthatch_check::naive::{Naive, Options};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::namespace::{Mapping, Namespace};
use nuthatch_engine::{
    Clock, Cursor, Engine, Expiry, Handle, Item, Key, Op, Read, Removal, Replies, Reply, Request,
    Store, TICK, Time, Value,
};
use nuthatch_snapshot::format::MAGIC;
use nuthatch_snapshot::{Circumstances, Error, Summary, load_last, receive, verify, write};
use xxhash_rust::xxh3::xxh3_64;

fn save<E: Engine>(engine: &Arc<E>, clock: &Clock, path: &Path) -> Result<Summary, Error> {
    nuthatch_snapshot::save(engine, clock, Circumstances::default(), path, &mut || ())
}

fn load<E: Engine>(engine: &Arc<E>, clock: &Clock, path: &Path) -> Result<Summary, Error> {
    nuthatch_snapshot::load(engine, clock, path, &mut || Continue(()))
}

fn cuckoo() -> Arc<Cuckoo> {
    let config = CuckooConfig {
        memory_limit: 64 << 20,
        memory_limit_max: 64 << 20,
        item_size_max: 8 << 20,
        ..CuckooConfig::default()
    };
    Arc::new(Cuckoo::new(config).unwrap())
}

/// An item: flags, cas, whether it expires, value.
type Seen = (u32, u64, bool, Vec<u8>);

/// Takes one value.
#[derive(Default)]
struct Taken(Option<Seen>, Vec<u8>, Option<Item>);

impl<V: Value> Replies<V> for Taken {
    fn begin(&mut self, _: usize, item: &Item) -> &mut [std::mem::MaybeUninit<u8>] {
        self.2 = Some(*item);
        self.1 = Vec::with_capacity(item.value_len);
        &mut self.1.spare_capacity_mut()[..item.value_len]
    }

    fn commit(&mut self, _: usize) {
        let item = self.2.unwrap();
        // SAFETY: the engine wrote all of the room that `begin` returned, which is its side of `Replies`.
        unsafe { self.1.set_len(item.value_len) };
        self.0 = Some((
            item.flags,
            item.cas,
            item.expiry != Expiry::Never,
            self.1.clone(),
        ));
    }

    fn retract(&mut self, _: usize) {}

    fn large(&mut self, _: usize, item: &Item, value: V) {
        let mut bytes = Vec::new();
        while bytes.len() < value.len() {
            bytes.extend_from_slice(value.chunk(bytes.len()));
        }
        self.0 = Some((item.flags, item.cas, item.expiry != Expiry::Never, bytes));
    }

    fn done(&mut self, _: usize, _: Reply) {}
}

fn get<E: Engine>(engine: &Arc<E>, clock: &Clock, key: &[u8]) -> Option<Seen> {
    let request = Request {
        key: Key::new(key, engine.hasher()),
        op: Op::Get,
    };
    let mut taken = Taken::default();
    engine.handle().execute(clock.now(), &[request], &mut taken);
    taken.0
}

fn set<E: Engine>(
    engine: &Arc<E>,
    clock: &Clock,
    key: &[u8],
    value: &[u8],
    flags: u32,
    expiry: Expiry,
) {
    let mut store = Store::set(value);
    (store.flags, store.expiry) = (flags, expiry);
    let request = Request {
        key: Key::new(key, engine.hasher()),
        op: Op::Store(store),
    };
    engine
        .handle()
        .execute(clock.now(), &[request], &mut Taken::default());
}

/// Values of all sizes, the largest in segments.
fn filled(clock: &Clock) -> (Arc<Cuckoo>, Vec<Vec<u8>>) {
    let engine = cuckoo();
    let later = Expiry::At(clock.now().after(Duration::from_secs(1000)));
    let mut keys = Vec::new();
    for (number, len) in [0, 1, 100, 8191, 8192, 8193, 100_000, 3_000_000]
        .into_iter()
        .enumerate()
    {
        let key = format!("of {len} \0\r\n").into_bytes();
        let expiry = if number % 2 == 0 {
            Expiry::Never
        } else {
            later
        };
        set(
            &engine,
            clock,
            &key,
            &vec![number as u8; len],
            number as u32,
            expiry,
        );
        keys.push(key);
    }
    for number in 0..20_000_u32 {
        let key = number.to_be_bytes().to_vec();
        set(&engine, clock, &key, &key, number, Expiry::Never);
        keys.push(key);
    }
    (engine, keys)
}

#[test]
fn all_items_come_back_as_they_were_into_another_engine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let clock = Clock::start();
    let (engine, keys) = filled(&clock);
    set(
        &engine,
        &clock,
        b"soon",
        b"gone",
        0,
        Expiry::At(clock.now().after(Duration::from_millis(1))),
    );
    let saved = save(&engine, &clock, &path).unwrap();
    assert!(saved.items >= keys.len() as u64);
    assert_eq!(saved.bytes, fs::metadata(&path).unwrap().len());
    assert_eq!(verify(&path).unwrap().items, saved.items);
    // The time between two servers.
    std::thread::sleep(Duration::from_millis(1100));
    let other = Naive::new(Options {
        item_size_max: 8 << 20,
        ..Options::default()
    });
    let loaded = load(&other, &clock, &path).unwrap();
    assert_eq!(loaded.items, keys.len() as u64);
    for key in &keys {
        let (here, there) = (get(&engine, &clock, key), get(&other, &clock, key));
        assert!(here.is_some() && here == there, "{key:?}");
    }
    assert_eq!(get(&other, &clock, b"soon"), None);
    // Nothing else is left in the folder.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_empty_item_that_a_reader_made_and_won_is_a_miss_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let clock = Clock::start();
    let engine = cuckoo();
    set(&engine, &clock, b"empty", b"", 0, Expiry::Never);
    let vivify = Read {
        vivify: Some(Expiry::Never),
        may_win: true,
        ..Read::default()
    };
    for key in [&b"empty"[..], b"promised", b"kept"] {
        let request = Request {
            key: Key::new(key, engine.hasher()),
            op: Op::Read(vivify),
        };
        engine
            .handle()
            .execute(clock.now(), &[request], &mut Taken::default());
    }
    set(&engine, &clock, b"kept", b"its value", 0, Expiry::Never);
    let saved = save(&engine, &clock, &path).unwrap();
    assert_eq!((saved.items, saved.left_out.stale), (2, 1));
    let other = cuckoo();
    load(&other, &clock, &path).unwrap();
    assert_eq!(get(&other, &clock, b"promised"), None);
    assert_eq!(get(&other, &clock, b"empty").unwrap().3, b"");
    assert_eq!(get(&other, &clock, b"kept").unwrap().3, b"its value");
}

#[test]
fn what_the_engine_has_already_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let clock = Clock::start();
    let engine = cuckoo();
    set(&engine, &clock, b"k", b"old", 0, Expiry::Never);
    save(&engine, &clock, &path).unwrap();
    set(&engine, &clock, b"k", b"new", 0, Expiry::Never);
    let loaded = load(&engine, &clock, &path).unwrap();
    assert_eq!((loaded.items, loaded.left_out.total()), (0, 1));
    assert_eq!(get(&engine, &clock, b"k").unwrap().3, b"new");
}

#[test]
fn a_file_that_was_changed_or_cut_anywhere_is_refused_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let clock = Clock::start();
    let engine = cuckoo();
    for number in 0..20_u32 {
        set(
            &engine,
            &clock,
            &number.to_be_bytes(),
            b"value",
            0,
            Expiry::Never,
        );
    }
    save(&engine, &clock, &path).unwrap();
    let good = fs::read(&path).unwrap();
    let bad = folder.path().join("bad");
    for at in 0..good.len() {
        let mut changed = good.clone();
        changed[at] ^= 0x41;
        fs::write(&bad, &changed).unwrap();
        let fresh = empty();
        let refused = load(&fresh, &clock, &bad);
        assert!(refused.is_err(), "byte {at}");
        assert_eq!(fresh.stats().items, 0);
        fs::write(&bad, &good[..at]).unwrap();
        assert!(verify(&bad).is_err(), "cut at {at}");
    }
    fs::write(&bad, [&good[..], b"x"].concat()).unwrap();
    assert!(matches!(verify(&bad), Err(Error::Damaged(..))));
    fs::write(&bad, b"set a 0 0 1\r\n").unwrap();
    assert!(matches!(verify(&bad), Err(Error::NotASnapshot(_))));
    let mut later = good.clone();
    later[8] = 4;
    fs::write(&bad, &later).unwrap();
    assert!(matches!(verify(&bad), Err(Error::Version(_, 4))));
    // It says where and why.
    assert!(verify(&bad).unwrap_err().to_string().contains("version 4"));
}

#[test]
fn a_stream_has_the_same_items_and_is_refused_wherever_it_is_cut() {
    let clock = Clock::start();
    let (engine, keys) = filled(&clock);
    let (mut stream, mut written) = (Vec::new(), 0);
    let sent = write(
        &engine,
        &clock,
        Circumstances::default(),
        &mut stream,
        &mut || written += 1,
    )
    .unwrap();
    assert!(sent.bytes == stream.len() as u64 && written > 1);
    let name = Path::new("a stream");
    let receive = |bytes: &[u8]| {
        let (fresh, mut read) = (cuckoo(), 0);
        // The bytes behind its end belong to another reader.
        let mut input = bytes;
        let mut progress = || {
            read += 1;
            Continue(())
        };
        let outcome = receive(&fresh, &clock, &mut input, name, &mut progress);
        assert!(outcome.is_err() || read == written);
        (fresh, outcome, input.len())
    };
    let (other, taken, left) = receive(&[&stream[..], b"more"].concat());
    assert_eq!(
        (taken.unwrap().items, left),
        (keys.len() as u64, b"more".len())
    );
    for key in &keys {
        assert_eq!(get(&engine, &clock, key), get(&other, &clock, key));
    }
    let cuts = (0..1000).chain((1000..stream.len()).step_by(150_001));
    for at in cuts.chain(stream.len() - 30..stream.len()) {
        assert!(receive(&stream[..at]).1.is_err(), "cut at {at}");
    }
}

fn empty() -> Arc<Naive> {
    Naive::new(Options::default())
}

/// What is left of an item's life.
fn left<E: Engine>(engine: &Arc<E>, clock: &Clock, key: &[u8]) -> Duration {
    let request = Request {
        key: Key::new(key, engine.hasher()),
        op: Op::Get,
    };
    let mut taken = Taken::default();
    engine.handle().execute(clock.now(), &[request], &mut taken);
    match taken.2.unwrap().expiry {
        Expiry::At(end) => clock.present().until(end),
        Expiry::Never => panic!("it has an end"),
    }
}

/// This holds whatever part of a second the clocks began at. The time between two servers counts.
#[test]
fn a_life_is_neither_cut_short_nor_prolonged_by_more_than_a_tick() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let life = Duration::from_secs(1000);
    for _ in 0..12 {
        let clock = Clock::start();
        let engine = cuckoo();
        std::thread::sleep(Duration::from_millis(17));
        let asked = Instant::now();
        let end = Expiry::At(clock.present().end(life));
        let stored = Instant::now();
        set(&engine, &clock, b"k", b"v", 0, end);
        save(&engine, &clock, &path).unwrap();
        let (next_clock, next) = (Clock::start(), cuckoo());
        std::thread::sleep(Duration::from_millis(9));
        load(&next, &next_clock, &path).unwrap();
        let before = stored.elapsed();
        let left = left(&next, &next_clock, b"k");
        assert!(left + asked.elapsed() >= life, "{left:?} is too short");
        assert!(left + before <= life + 2 * TICK, "{left:?} is too long");
    }
}

/// Class of bug: a clock of 32 bits cuts a long life short.
#[test]
fn an_end_beyond_the_clock_stays_beyond_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let (clock, engine) = (Clock::start(), cuckoo());
    let end = clock
        .present()
        .end(Duration::from_secs(10 * 365 * 24 * 3600));
    assert!(Time::LAST < end);
    set(&engine, &clock, b"k", b"v", 0, Expiry::At(end));
    save(&engine, &clock, &path).unwrap();
    std::thread::sleep(2 * TICK);
    let (next_clock, next) = (Clock::start(), cuckoo());
    load(&next, &next_clock, &path).unwrap();
    let request = Request {
        key: Key::new(b"k", next.hasher()),
        op: Op::Get,
    };
    let mut taken = Taken::default();
    // The last moment that there is.
    next.handle().execute(Time::LAST, &[request], &mut taken);
    assert_eq!(taken.2.unwrap().expiry, Expiry::At(end));
}

/// A file of version 1: one item with an end and one without, and a cas that a client chose.
fn first_version(unix_millis: u64, end: u64) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(MAGIC);
    file.extend(1_u32.to_le_bytes());
    // A flush in 1000 seconds.
    file.extend(16_000_u32.to_le_bytes());
    file.extend(unix_millis.to_le_bytes());
    file.extend(xxh3_64(&file).to_le_bytes());
    let mut block = Vec::new();
    for (key, cas, end) in [(b"a", 7_u64, end), (b"b", u64::MAX, 0)] {
        block.extend([1, u8::from(end > 0)]);
        block.extend(5_u32.to_le_bytes());
        block.extend(cas.to_le_bytes());
        block.extend(end.to_le_bytes());
        block.extend(5_u32.to_le_bytes());
        block.extend(key);
        block.extend(b"value");
    }
    file.extend((block.len() as u32).to_le_bytes());
    file.extend(2_u32.to_le_bytes());
    file.extend(xxh3_64(&block).to_le_bytes());
    let blocks = xxh3_64(&file[file.len() - 8..]);
    file.extend(&block);
    file.extend([0; 8]);
    file.extend(blocks.to_le_bytes());
    file.extend(2_u64.to_le_bytes());
    file
}

#[test]
fn a_file_of_the_first_version_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let clock = Clock::start();
    let now = clock.wall().unix().as_millis() as u64;
    let hour = 3_600_000;
    // Written a minute ago, or by a wall clock that was an hour ahead of today's.
    for (written, is_left) in [(now - 60_000, 940), (now + hour, 1000)] {
        fs::write(&path, first_version(written, written + 1_000_000)).unwrap();
        assert_eq!(verify(&path).unwrap().items, 2);
        let engine = cuckoo();
        let loaded = load(&engine, &clock, &path).unwrap();
        assert_eq!(loaded.items, 2);
        let near = |left: Duration| (is_left - 9..=is_left + 1).contains(&left.as_secs());
        assert!(near(left(&engine, &clock, b"a")) && near(loaded.flush.unwrap()));
        let seen = |cas| (5, cas, cas == 7, b"value".to_vec());
        assert_eq!(get(&engine, &clock, b"a"), Some(seen(7)));
        assert_eq!(get(&engine, &clock, b"b"), Some(seen(u64::MAX)));
        set(&engine, &clock, b"c", b"", 0, Expiry::Never);
        // Above what the earlier server may have given out, and far from the end.
        let cas = get(&engine, &clock, b"c").unwrap().1;
        assert!(cas > 1 << 45 && cas < 1 << 47, "{cas}");
    }
    let mut stream = &first_version(now, now + hour)[..];
    let (engine, name) = (cuckoo(), Path::new("a stream"));
    receive(&engine, &clock, &mut stream, name, &mut || Continue(())).unwrap();
    assert!(left(&engine, &clock, b"a") > Duration::from_secs(3500));
    fs::write(&path, first_version(now - 2 * hour, now - hour)).unwrap();
    let loaded = load(&cuckoo(), &clock, &path).unwrap();
    assert_eq!((loaded.items, loaded.left_out.expired), (1, 1));
    assert_eq!(loaded.flush, Some(Duration::ZERO));
}

/// Numbers go on whatever happened to the items that had them, and clients' own numbers do not steer them.
#[test]
fn no_number_is_given_out_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let clock = Clock::start();
    let first = cuckoo();
    let cas_of = |engine: &Arc<Cuckoo>, key: &[u8]| {
        set(engine, &clock, key, b"", 0, Expiry::Never);
        get(engine, &clock, key).unwrap().1
    };
    let mut store = Store::set(b"chosen");
    store.new_cas = Some(1 << 46);
    let chosen = Request {
        key: Key::new(b"chosen", first.hasher()),
        op: Op::Store(store),
    };
    let mut taken = Taken::default();
    first.handle().execute(clock.now(), &[chosen], &mut taken);
    let held = (0..100).map(|_| cas_of(&first, b"k")).max().unwrap();
    let removal = Request {
        key: Key::new(b"k", first.hasher()),
        op: Op::Remove(Removal::default()),
    };
    first.handle().execute(clock.now(), &[removal], &mut taken);
    let mut stream = Vec::new();
    write(
        &first,
        &clock,
        Circumstances::default(),
        &mut stream,
        &mut || (),
    )
    .unwrap();
    save(&first, &clock, &path).unwrap();
    let (by_stream, by_stop) = (cuckoo(), cuckoo());
    let mut go_on = || Continue(());
    receive(&by_stream, &clock, &mut &stream[..], &path, &mut go_on).unwrap();
    let file = fs::File::open(&path).unwrap();
    load_last(&by_stop, &clock, &file, &path, &mut go_on).unwrap();
    for next in [by_stream, by_stop] {
        assert_eq!(get(&next, &clock, b"chosen").unwrap().1, 1 << 46);
        let cas = cas_of(&next, b"k");
        assert!(held < cas && cas < held + 1000, "{held} {cas}");
    }
    // The first engine went on after the copy.
    let held = (0..10_000).map(|_| cas_of(&first, b"k")).max().unwrap();
    let by_copy = cuckoo();
    load(&by_copy, &clock, &path).unwrap();
    let cas = cas_of(&by_copy, b"k");
    assert!(held < cas && cas < 1 << 45, "{held} {cas}");
}

#[test]
fn a_flush_that_is_to_come_is_told_by_the_time_that_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let (clock, engine) = (Clock::start(), cuckoo());
    set(&engine, &clock, b"k", b"v", 0, Expiry::Never);
    let left = |delay: Option<Duration>, pause: Duration| {
        let circumstances = Circumstances {
            flush: delay.map(|delay| clock.now().after(delay)),
            ..Circumstances::default()
        };
        nuthatch_snapshot::save(&engine, &clock, circumstances, &path, &mut || ()).unwrap();
        std::thread::sleep(pause);
        load(&cuckoo(), &Clock::start(), &path).unwrap().flush
    };
    let (long, short) = (Duration::from_secs(1000), Duration::from_millis(500));
    assert_eq!(left(None, Duration::ZERO), None);
    assert_eq!(left(Some(short), short * 2), Some(Duration::ZERO));
    let is_left = left(Some(long), short).unwrap();
    assert!(is_left <= long && is_left > long / 2, "{is_left:?}");
}

#[test]
fn who_wants_no_more_is_heeded_before_the_next_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let clock = Clock::start();
    let (engine, _) = filled(&clock);
    save(&engine, &clock, &path).unwrap();
    let mut blocks = 0;
    let mut all = || {
        blocks += 1;
        Continue(())
    };
    nuthatch_snapshot::load(&cuckoo(), &clock, &path, &mut all).unwrap();
    // Each block is read twice: it is verified, then loaded.
    assert!(blocks >= 4);
    for wanted in [0, 1, blocks / 2, blocks - 1] {
        let mut left = wanted;
        let mut some = || {
            left -= i32::from(left >= 0);
            if left < 0 { Break(()) } else { Continue(()) }
        };
        let stopped = nuthatch_snapshot::load(&cuckoo(), &clock, &path, &mut some);
        assert!(matches!(stopped, Err(Error::Stopped(_))), "{wanted}");
    }
    assert!(verify(&path).is_ok());
}

#[test]
fn a_folder_that_is_not_there_and_a_full_disk_leave_what_was() {
    let clock = Clock::start();
    let engine = cuckoo();
    set(&engine, &clock, b"k", b"v", 0, Expiry::Never);
    let nowhere = std::path::Path::new("/nonexistent/items");
    assert!(matches!(save(&engine, &clock, nowhere), Err(Error::Io(..))));
    assert!(matches!(load(&engine, &clock, nowhere), Err(Error::Io(..))));
}

#[test]
fn what_a_killed_save_left_is_used_again_and_nothing_stays() {
    let clock = Clock::start();
    let engine = cuckoo();
    set(&engine, &clock, b"k", b"v", 0, Expiry::Never);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let unfinished = folder.path().join(".items.unfinished");
    fs::write(&unfinished, vec![7; 1 << 20]).unwrap();
    assert_eq!(save(&engine, &clock, &path).unwrap().items, 1);
    assert_eq!(verify(&path).unwrap().items, 1);
    let names = || fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names(), 1);
    // Another process writes it: it is left alone, and so is the existing file.
    let other = fs::File::create(&unfinished).unwrap();
    other.lock().unwrap();
    let error = save(&engine, &clock, &path).unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    assert!(unfinished.exists() && verify(&path).is_ok());
    drop(other);
}

#[cfg(unix)]
#[test]
fn a_link_that_somebody_has_made_is_not_followed() {
    let clock = Clock::start();
    let engine = cuckoo();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let unfinished = folder.path().join(".items.unfinished");
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, b"keep").unwrap();
    std::os::unix::fs::symlink(&elsewhere, &unfinished).unwrap();
    assert!(save(&engine, &clock, &path).is_err());
    assert_eq!(fs::read(&elsewhere).unwrap(), b"keep");
}

/// A link that leads nowhere, a socket (as any pipe or device): a rename would put a file in their place.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_replaced() {
    let clock = Clock::start();
    let engine = cuckoo();
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(place("nowhere"), place("link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place("socket")).unwrap();
    for name in ["link", "socket"] {
        let before = fs::symlink_metadata(place(name)).unwrap().file_type();
        let error = save(&engine, &clock, &place(name)).unwrap_err();
        assert!(error.to_string().contains("not a file"), "{error}");
        let after = fs::symlink_metadata(place(name)).unwrap().file_type();
        assert_eq!(before, after);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// The keys of an engine, in order.
fn keys(engine: &Arc<Cuckoo>, clock: &Clock) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut handle = engine.handle();
    let mut next = Some(Cursor::default());
    while let Some(from) = next {
        next = handle.visit(clock.now(), from, 64, &mut |visit| {
            keys.push(visit.key.to_vec());
        });
    }
    keys.sort_unstable();
    keys
}

#[test]
fn databases_come_back_under_their_numbers_and_what_a_flush_left_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let (clock, engine) = (Clock::start(), cuckoo());
    // Databases 0 and 2 were exchanged, and 1 was flushed.
    let mut mapping = Mapping::default();
    mapping.0.swap(0, 2);
    mapping.0[1] = Namespace::of(1, 7);
    let long = vec![b'l'; 60_000];
    for (namespace, key) in [
        (Namespace::of(0, 0), &b"was 0"[..]),
        (Namespace::of(0, 0), b"\0was 0"),
        (Namespace::of(1, 0), b"flushed"),
        (Namespace::of(1, 7), b"in 1"),
        (Namespace::of(2, 0), b"was 2"),
        (Namespace::of(15, 0), &long),
    ] {
        set(
            &engine,
            &clock,
            &namespace.stored(key),
            b"v",
            0,
            Expiry::Never,
        );
    }
    let circumstances = Circumstances {
        mapping,
        ..Circumstances::default()
    };
    nuthatch_snapshot::save(&engine, &clock, circumstances, &path, &mut || ()).unwrap();
    let next = cuckoo();
    let summary = load(&next, &clock, &path).unwrap();
    assert_eq!(
        (summary.items, summary.databases),
        (5, 1 | 1 << 1 | 1 << 2 | 1 << 15)
    );
    let mut expected = [
        (0, &b"was 2"[..]),
        (1, b"in 1"),
        (2, b"was 0"),
        (2, b"\0was 0"),
        (15, &long),
    ]
    .map(|(database, key)| Namespace::of(database, 0).stored(key));
    expected.sort_unstable();
    assert!(keys(&next, &clock) == expected);
}

/// Before databases, a key could begin with any byte.
#[test]
fn keys_of_the_first_versions_are_those_of_database_0() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items");
    let (clock, engine) = (Clock::start(), cuckoo());
    let now = clock.wall().unix().as_millis() as u64;
    let mut file = first_version(now, 0);
    let at = file.windows(6).position(|it| it == b"avalue").unwrap();
    file[at] = 0;
    // The block's checksum, and that of the end.
    let block = 32 + 16..file.len() - 24;
    let sum = xxh3_64(&file[block.clone()]).to_le_bytes();
    file[block.start - 8..block.start].copy_from_slice(&sum);
    let end = file.len() - 16;
    file[end..end + 8].copy_from_slice(&xxh3_64(&sum).to_le_bytes());
    fs::write(&path, file).unwrap();
    assert_eq!(load(&engine, &clock, &path).unwrap().databases, 1);
    assert_eq!(keys(&engine, &clock), [&b"\0\0\0"[..], b"b"]);
}
