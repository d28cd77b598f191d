use super::*;
use crate::bounds::Bounds;
use crate::mailbox::tests::{Calls, mailbox, said};
use clients::PREFIXES_MAX;

struct World {
    calls: Arc<Calls>,
    bounds: Arc<Bounds>,
    tracking: Tracking,
}

impl World {
    fn new() -> Self {
        Self {
            calls: Arc::default(),
            bounds: Arc::default(),
            tracking: Tracking::default(),
        }
    }

    fn client(&self, id: usize, version: Version) -> Arc<Mailbox> {
        let mailbox = mailbox(id, &self.calls, &self.bounds);
        mailbox.set_version(version);
        self.tracking.enter(&mailbox);
        mailbox
    }

    fn track(&self, mailbox: &Arc<Mailbox>, options: Options, prefixes: &[&str]) -> Arc<Tracker> {
        let number = mailbox.serial as usize;
        let tracker = Arc::new(Tracker::new(Arc::clone(mailbox), options, number));
        let prefixes = prefixes.iter().map(|prefix| prefix.as_bytes().into());
        assert!(self.tracking.begin(&tracker, prefixes.collect()));
        tracker
    }

    fn read(&self, tracker: &Arc<Tracker>, keys: &[&'static str]) {
        self.tracking
            .remember(tracker, keys.iter().map(|key| key.as_bytes()));
    }
}

const A: &str = ">2 $10 invalidate *1 $1 a ";
const B: &str = ">2 $10 invalidate *1 $1 b ";

#[test]
fn a_key_that_was_read_is_told_once() {
    let world = World::new();
    let one = world.client(1, Version::Resp3);
    let tracker = world.track(&one, Options::default(), &[]);
    world.read(&tracker, &["a", "b", "a"]);
    assert_eq!(
        (world.tracking.totals().keys, world.tracking.totals().pairs),
        (2, 2)
    );
    world.tracking.changed(b"a", Some(9));
    world.tracking.changed(b"a", Some(9));
    world.tracking.changed(b"other", None);
    assert_eq!(said(&one), A);
    world.tracking.flushed();
    assert_eq!(said(&one), ">2 $10 invalidate _ ");
    world.read(&tracker, &["a"]);
    world.tracking.end(&tracker);
    world.tracking.changed(b"a", None);
    assert_eq!((said(&one).as_str(), world.tracking.is_used()), ("", false));
}

#[test]
fn who_begins_again_is_told_what_it_has_read_before() {
    let world = World::new();
    let one = world.client(1, Version::Resp3);
    let before = world.track(&one, Options::default(), &[]);
    world.read(&before, &["a", "b"]);
    let options = Options {
        no_loop: true,
        ..Options::default()
    };
    world.track(&one, options, &[]);
    world.tracking.changed(b"b", Some(1));
    assert_eq!(said(&one), "", "by the options that it has now");
    world.tracking.changed(b"a", Some(2));
    assert_eq!(said(&one), A);
}

#[test]
fn a_table_has_a_limit_and_tells_what_it_forgets() {
    let world = World::new();
    world.tracking.set_pairs_max(2);
    let one = world.client(1, Version::Resp3);
    let tracker = world.track(&one, Options::default(), &[]);
    world.read(&tracker, &["a", "b", "c"]);
    let told = said(&one);
    assert_eq!(told.matches("invalidate").count(), 1, "{told}");
    assert_eq!(world.tracking.totals().pairs, 2);
    let long = [b'k'; 2 * BYTES_OF_PAIR + 1];
    world.tracking.remember(&tracker, [&long[..]].into_iter());
    world.tracking.sweep(0);
    let left = world.tracking.totals();
    assert!(left.pairs <= 2, "{left:?}");
    assert!(said(&one).contains("invalidate"));
}

/// Who reads forgets a few for it, and who sweeps the rest.
#[test]
fn a_limit_that_is_lowered_is_reached_step_by_step() {
    let world = World::new();
    let one = world.client(1, Version::Resp3);
    let tracker = world.track(&one, Options::default(), &[]);
    let keys: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let keys = keys.iter().map(|key| key.as_bytes());
    world.tracking.remember(&tracker, keys);
    world.tracking.set_pairs_max(10);
    world.read(&tracker, &["a"]);
    assert_eq!(world.tracking.totals().pairs, 999);
    world.tracking.sweep(0);
    assert_eq!(world.tracking.totals().pairs, 10);
    assert_eq!(said(&one).matches("invalidate").count(), 991);
}

#[test]
fn a_table_suits_the_memory() {
    let tracking = Tracking::default();
    for (memory, pairs) in [(0, 1), (64 << 20, 8192), (u64::MAX, PAIRS_MAX)] {
        tracking.suit(memory);
        assert_eq!(tracking.pairs_max(), pairs);
    }
    assert_eq!(pairs_allowed(64 << 20), PAIRS_MAX);
    assert_eq!(pairs_allowed(1 << 40), 1 << 31);
}

#[test]
fn what_expires_is_told_when_it_does() {
    let world = World::new();
    let one = world.client(1, Version::Resp3);
    let tracker = world.track(&one, Options::default(), &[]);
    world.read(&tracker, &["a", "b"]);
    let expiries = [(&b"a"[..], 10), (b"a", 7), (b"b", 20), (b"none", 1)];
    for (key, at) in expiries {
        world.tracking.expire(key, at);
    }
    world.tracking.sweep(6);
    assert_eq!(said(&one), "");
    world.tracking.sweep(7);
    assert_eq!(said(&one), A);
    world.tracking.changed(b"b", None);
    assert_eq!(said(&one), B);
    world.tracking.sweep(30);
    assert_eq!(said(&one), "");
}

#[test]
fn who_broadcasts_has_prefixes() {
    let world = World::new();
    let one = world.client(1, Version::Resp3);
    let options = Options {
        broadcast: true,
        no_loop: true,
        ..Options::default()
    };
    let tracker = world.track(&one, options, &["a", "b"]);
    world.tracking.changed(b"c", None);
    world.tracking.changed(b"a", Some(1));
    assert_eq!(said(&one), "", "it has changed it itself");
    world.tracking.changed(b"a", Some(2));
    world.tracking.changed(b"b", None);
    assert_eq!(said(&one), [A, B].concat());
    assert_eq!(world.tracking.prefixes_of(&tracker).len(), 2);
    world.tracking.end(&tracker);
    assert_eq!(world.tracking.totals(), Totals::default());
}

#[test]
fn all_prefixes_have_a_limit() {
    let world = World::new();
    let options = Options {
        broadcast: true,
        ..Options::default()
    };
    let one = world.client(1, Version::Resp3);
    let all: Vec<String> = (0..PREFIXES_MAX).map(|it| format!("{it:04}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    world.track(&one, options, &all);
    let other = world.client(2, Version::Resp3);
    let tracker = Arc::new(Tracker::new(other, options, 2));
    assert!(!world.tracking.begin(&tracker, vec![b"a"[..].into()]));
    assert_eq!(world.tracking.totals().clients, 1);
    world.track(&one, options, &all[1..]);
    assert!(world.tracking.begin(&tracker, vec![b"a"[..].into()]));
    assert_eq!(world.tracking.totals().prefixes, PREFIXES_MAX);
}

/// Class of fault: the keys of a batch are remembered before its own changes are made.
#[test]
fn who_is_not_told_of_its_own_change_is_told_of_the_next() {
    let world = World::new();
    let one = world.client(1, Version::Resp3);
    let options = Options {
        no_loop: true,
        ..Options::default()
    };
    let tracker = world.track(&one, options, &[]);
    world.read(&tracker, &["a"]);
    world.tracking.changed(b"a", Some(1));
    assert_eq!(said(&one), "");
    world.tracking.changed(b"a", Some(2));
    assert_eq!(said(&one), A);
}

#[test]
fn another_connection_may_be_told() {
    let world = World::new();
    let (one, other) = (
        world.client(1, Version::Resp3),
        world.client(2, Version::Resp2),
    );
    let options = Options {
        redirect: Some(2),
        ..Options::default()
    };
    let tracker = world.track(&one, options, &[]);
    world.read(&tracker, &["a"]);
    world.tracking.changed(b"a", None);
    assert_eq!(said(&other), "", "it has not subscribed");
    other.set_subscribed(true);
    world.read(&tracker, &["a"]);
    world.tracking.changed(b"a", None);
    assert_eq!(
        said(&other),
        "*3 $7 message $20 __redis__:invalidate *1 $1 a "
    );
    world.tracking.flushed();
    assert_eq!(said(&other), "*3 $7 message $20 __redis__:invalidate $-1 ");
    assert!(!tracker.is_broken());
    world.tracking.leave(2);
    drop(other);
    world.read(&tracker, &["a"]);
    world.tracking.changed(b"a", None);
    assert_eq!(said(&one), ">2 $21 tracking-redir-broken :2 ");
    assert!(tracker.is_broken());
}

/// Who sweeps drops what many clients' keys were, also when nobody tracks any more.
#[test]
fn what_was_emptied_is_dropped_by_who_sweeps() {
    let world = World::new();
    let one = world.client(1, Version::Resp3);
    let tracker = world.track(&one, Options::default(), &[]);
    let keys: Vec<String> = (0..2 * STEP * STRIPES).map(|it| it.to_string()).collect();
    let keys = keys.iter().map(|key| key.as_bytes());
    world.tracking.remember(&tracker, keys);
    world.tracking.end(&tracker);
    assert_eq!(world.tracking.totals(), Totals::default());
    assert!(!world.tracking.emptied.lock().is_empty());
    world.tracking.sweep(0);
    assert!(world.tracking.emptied.lock().is_empty());
}

/// Its worker has yet to open the mailbox.
#[test]
fn what_is_missed_before_a_mailbox_is_open_is_told_as_all_keys() {
    let world = World::new();
    let one = world.client(1, Version::Resp3);
    assert!(world.tracking.expect(2) && !world.tracking.expect(2));
    assert!(!world.tracking.expect(1));
    let options = Options {
        redirect: Some(2),
        ..Options::default()
    };
    let tracker = world.track(&one, options, &[]);
    world.read(&tracker, &["a"]);
    assert_eq!(world.tracking.changed(b"a", None), 1);
    let other = world.client(2, Version::Resp3);
    assert_eq!(said(&other), ">2 $10 invalidate _ ");
    assert_eq!(said(&one), "", "it is not broken");
    world.read(&tracker, &["a"]);
    world.tracking.changed(b"a", None);
    assert_eq!(said(&other), A);
}

#[test]
fn who_is_not_told_of_its_own_change_is_told_when_the_key_expires() {
    let world = World::new();
    let one = world.client(1, Version::Resp3);
    let options = Options {
        no_loop: true,
        ..Options::default()
    };
    let tracker = world.track(&one, options, &[]);
    world.read(&tracker, &["a"]);
    world.tracking.expire(b"a", 7);
    world.tracking.changed(b"a", Some(1));
    assert_eq!(said(&one), "");
    world.tracking.sweep(7);
    assert_eq!(said(&one), A);
}

/// Invariants 1 and 2: readers keep what they have read, as near caches do, until they are told. After all writes, what
/// they keep is what there is.
#[test]
fn no_change_is_lost_beside_a_read() {
    use std::sync::atomic::AtomicU64;
    let world = World::new();
    let value = AtomicU64::new(0);
    let one = world.client(1, Version::Resp3);
    let tracker = world.track(&one, Options::default(), &[]);
    const WRITES: u64 = if cfg!(miri) { 50 } else { 20_000 };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=WRITES {
                value.store(number, Ordering::Release);
                world.tracking.changed(b"a", Some(2));
            }
        });
        let mut kept = None;
        while kept != Some(WRITES) {
            if kept.is_none() {
                world.read(&tracker, &["a"]);
                kept = Some(value.load(Ordering::Acquire));
            }
            // Behind the answer. The writer needs the mailbox, too.
            match said(&one).is_empty() {
                true => std::thread::yield_now(),
                false => kept = None,
            }
        }
    });
}
