//! From a server's events to the requests of a trace.
//!
//! A trace has what its clients ask for; what a cache then does with that is for the cache under simulation to decide. So:
//!
//! * A change begins with a look-up, which servers report like a get: it is no request.
//! * A set that follows a miss of its key is what a read-through does with a miss: it is no request either, and tells the size
//!   that the miss could not tell.
//! * Any other set is a request that writes.
//!
//! For this the last requests are held back.

use std::collections::{HashMap, VecDeque};

use nuthatch_base::hash::KeyHasher;

use crate::line::{Event, Line};

/// Requests that are held back, until the sets that belong to them have come.
const WINDOW: usize = 1 << 16;

/// Keys whose sizes are remembered, and connections whose last request is. Beyond, all are forgotten.
const KEYS_MAX: usize = 1 << 22;
const CONNECTIONS_MAX: usize = 1 << 17;

/// Any fixed seed.
const HASHER: KeyHasher = KeyHasher::seeded(0x7EC0);

/// A request of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Microseconds since 1970.
    pub time_us: u64,
    /// The key as in the server's lines.
    pub key: Box<[u8]>,
    /// Bytes of its value, if any event told.
    pub size: Option<u32>,
    /// It is stored without being asked for.
    pub writes: bool,
    /// Seconds that the stored item lives; 0: for ever, or nothing was stored.
    pub lifetime: u64,
}

/// What was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Gets that found their item.
    pub hits: u64,
    /// Gets that did not.
    pub misses: u64,
    /// Of those, followed by a set of their key.
    pub restored: u64,
    /// Other sets.
    pub writes: u64,
    /// Items that clients deleted, which a trace cannot tell.
    pub deletes: u64,
    /// Items that the server evicted.
    pub evictions: u64,
}

impl Counts {
    /// Gets.
    pub fn gets(&self) -> u64 {
        self.hits + self.misses
    }
}

/// A request that is held back.
struct Held {
    request: Request,
    hash: u64,
    /// It is counted as a hit. A set behind a miss gives it a size, too.
    hit: bool,
    /// It is no request, as is known by now.
    dropped: bool,
}

/// What is known of a key. Places are those of requests among all that there were.
#[derive(Default)]
struct Known {
    size: Option<u32>,
    /// The place of the first get that missed, with no set behind it yet.
    missed: Option<u64>,
    /// The place of the last get.
    got: Option<u64>,
}

/// Makes requests of events.
#[derive(Default)]
pub struct Requests {
    held: VecDeque<Held>,
    /// The place of the first that is held.
    first: u64,
    keys: HashMap<u64, Known>,
    /// The place of each connection's last get, if nothing of it came behind.
    last: HashMap<u64, u64>,
    counts: Counts,
}

impl Requests {
    /// What was seen so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes an event, in the server's order.
    pub fn take(&mut self, line: Line) {
        if self.keys.len() > KEYS_MAX {
            self.keys.clear();
        }
        if self.last.len() > CONNECTIONS_MAX {
            self.last.clear();
        }
        let hash = HASHER.hash(&line.key);
        match line.event {
            Event::Get(size) => self.get(line, hash, size),
            Event::Store { size, lifetime } => {
                self.drop_lookup(&line, hash);
                self.store(line, hash, size, lifetime);
            }
            Event::NotStored => self.drop_lookup(&line, hash),
            Event::Delete => {
                self.counts.deletes += 1;
                let known = self.keys.entry(hash).or_default();
                if let Some(place) = known.got.take() {
                    self.drop_get(place);
                }
            }
            Event::Evict => self.counts.evictions += 1,
        }
    }

    /// The oldest request, once it has been held back for long enough; with `all` at once.
    pub fn next(&mut self, all: bool) -> Option<Request> {
        while all || self.held.len() > WINDOW {
            let held = self.held.pop_front()?;
            self.first += 1;
            if held.dropped {
                continue;
            }
            let known = self.keys.get(&held.hash).and_then(|known| known.size);
            return Some(Request {
                size: held.request.size.or(known),
                ..held.request
            });
        }
        None
    }

    fn get(&mut self, line: Line, hash: u64, size: Option<u32>) {
        let place = self.first + self.held.len() as u64;
        let known = self.keys.entry(hash).or_default();
        known.got = Some(place);
        match size {
            Some(_) => {
                self.counts.hits += 1;
                known.size = size;
                known.missed = None;
            }
            None => {
                self.counts.misses += 1;
                known.missed.get_or_insert(place);
            }
        }
        if let Some(connection) = line.connection {
            self.last.insert(connection, place);
        }
        self.hold(line, hash, size, false, 0);
    }

    fn store(&mut self, line: Line, hash: u64, size: u32, lifetime: u64) {
        let known = self.keys.entry(hash).or_default();
        known.size = Some(size);
        let places = [known.missed.take(), known.got];
        match self.held_miss(hash, places) {
            Some(held) => {
                held.request.size = Some(size);
                held.request.lifetime = lifetime;
                self.counts.restored += 1;
            }
            // Behind a miss that was given away long ago, too: it is no longer told what it missed.
            None => {
                self.counts.writes += 1;
                self.hold(line, hash, Some(size), true, lifetime);
            }
        }
    }

    /// The first of these gets that is held and missed this key.
    fn held_miss(&mut self, hash: u64, places: [Option<u64>; 2]) -> Option<&mut Held> {
        let missed = |held: &Held| {
            held.hash == hash
                && !held.dropped
                && !held.request.writes
                && held.request.size.is_none()
        };
        let mut places = places.into_iter().flatten();
        let place = places.find(|&place| self.at(place).is_some_and(|held| missed(held)))?;
        self.at(place)
    }

    fn hold(&mut self, line: Line, hash: u64, size: Option<u32>, writes: bool, lifetime: u64) {
        self.held.push_back(Held {
            request: Request {
                time_us: line.time_us,
                key: line.key,
                size,
                writes,
                lifetime,
            },
            hash,
            hit: size.is_some(),
            dropped: false,
        });
    }

    /// The get with which a change began: the last of its connection, if that was of the same key.
    fn drop_lookup(&mut self, line: &Line, hash: u64) {
        let last = line
            .connection
            .and_then(|connection| self.last.remove(&connection));
        let Some(place) = last else { return };
        if self.at(place).is_some_and(|held| held.hash == hash) {
            self.drop_get(place);
            let known = self.keys.entry(hash).or_default();
            if known.missed == Some(place) {
                known.missed = None;
            }
        }
    }

    fn drop_get(&mut self, place: u64) {
        let Some(held) = self.at(place) else { return };
        if held.dropped || held.request.writes {
            return;
        }
        held.dropped = true;
        match held.hit {
            true => self.counts.hits -= 1,
            false => self.counts.misses -= 1,
        }
    }

    fn at(&mut self, place: u64) -> Option<&mut Held> {
        let index = place.checked_sub(self.first)?;
        self.held.get_mut(usize::try_from(index).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of events of one connection each: `get k hit 3`, `get k miss`, `set k 3`.
    fn requests(events: &[(u64, &str, Event)]) -> (Vec<(String, Option<u32>, bool)>, Counts) {
        let mut requests = Requests::default();
        for (number, (connection, key, event)) in events.iter().enumerate() {
            requests.take(Line {
                number: number as u64,
                time_us: 0,
                key: key.as_bytes().into(),
                connection: Some(*connection),
                event: *event,
            });
        }
        let mut all = Vec::new();
        while let Some(request) = requests.next(true) {
            let key = String::from_utf8_lossy(&request.key).into_owned();
            all.push((key, request.size, request.writes));
        }
        (all, requests.counts())
    }

    const MISS: Event = Event::Get(None);
    const HIT: Event = Event::Get(Some(3));
    const STORE: Event = Event::Store {
        size: 3,
        lifetime: 0,
    };

    fn named(key: &str, size: Option<u32>, writes: bool) -> (String, Option<u32>, bool) {
        (key.to_owned(), size, writes)
    }

    #[test]
    fn a_read_through_is_one_request() {
        // A miss, and the set with its own look-up, by another connection; then a hit.
        let events = [
            (1, "a", MISS),
            (2, "a", MISS),
            (2, "a", STORE),
            (1, "a", HIT),
        ];
        let (all, counts) = requests(&events);
        assert_eq!(
            all,
            [named("a", Some(3), false), named("a", Some(3), false)]
        );
        assert_eq!((counts.hits, counts.misses, counts.restored), (1, 1, 1));
        assert_eq!(counts.writes, 0);
    }

    #[test]
    fn a_set_without_a_miss_writes() {
        let events = [
            (1, "a", MISS),
            (1, "a", STORE),
            (1, "a", HIT),
            (1, "a", HIT),
            (1, "a", STORE),
        ];
        let (all, counts) = requests(&events);
        let write = named("a", Some(3), true);
        assert_eq!(all, [write.clone(), named("a", Some(3), false), write]);
        assert_eq!((counts.gets(), counts.writes), (1, 2));
    }

    #[test]
    fn what_is_not_stored_or_deleted_leaves_no_request() {
        let events = [
            (1, "a", HIT),
            (1, "a", Event::NotStored),
            (1, "b", HIT),
            (1, "b", Event::Delete),
            (1, "c", Event::Evict),
            (1, "d", MISS),
        ];
        let (all, counts) = requests(&events);
        assert_eq!(all, [named("d", None, false)]);
        assert_eq!((counts.deletes, counts.evictions, counts.gets()), (1, 1, 1));
    }

    #[test]
    fn several_misses_of_one_key_get_their_size_from_one_set() {
        let events = [
            (1, "a", MISS),
            (2, "a", MISS),
            (3, "a", MISS),
            (3, "a", MISS),
            (3, "a", STORE),
        ];
        let (all, counts) = requests(&events);
        assert_eq!(all, vec![named("a", Some(3), false); 3]);
        assert_eq!((counts.misses, counts.restored, counts.writes), (3, 1, 0));
    }

    #[test]
    fn a_set_behind_a_miss_that_is_no_longer_held_writes() {
        let mut requests = Requests::default();
        let take = |requests: &mut Requests, key: &str, event| {
            requests.take(Line {
                number: 0,
                time_us: 0,
                key: key.as_bytes().into(),
                connection: None,
                event,
            });
        };
        take(&mut requests, "a", MISS);
        take(&mut requests, "b", MISS);
        for number in 0..WINDOW - 1 {
            take(&mut requests, &number.to_string(), HIT);
        }
        let first = requests.next(false).expect("one more than are held");
        assert_eq!((&*first.key, requests.next(false)), (&b"a"[..], None));
        take(&mut requests, "a", STORE);
        take(&mut requests, "b", STORE);
        let counts = requests.counts();
        assert_eq!((counts.restored, counts.writes), (1, 1));
        let all: Vec<_> = std::iter::from_fn(|| requests.next(true)).collect();
        assert_eq!((&*all[0].key, all[0].size), (&b"b"[..], Some(3)));
        let last = all.last().expect("the set is there");
        assert!(&*last.key == b"a" && last.writes);
    }

    #[test]
    fn requests_are_held_back_and_no_more_than_so_many() {
        let mut requests = Requests::default();
        for number in 0..WINDOW as u64 + 10 {
            requests.take(Line {
                number,
                time_us: number,
                key: format!("{number}").into_bytes().into(),
                connection: Some(1),
                event: HIT,
            });
        }
        let given = std::iter::from_fn(|| requests.next(false)).count();
        assert_eq!(given, 10);
    }
}
