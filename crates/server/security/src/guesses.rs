//! A limit on the passwords that a peer may guess, over any number of connections: some in a minute, and then none
//! before that minute is over, not even the right one. A password that the peer has just tried is not counted again: so
//! a program that tries an old password again and again does not lock out other clients at its address.
//!
//! The peers that failed recently are in a table of a fixed size. A full table drops the peer that has guessed least.
//! So an attacker with more addresses than the table has places is not bounded: a server that refused all peers that
//! are not in the table would let that attacker lock everyone out.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::Time;

/// How long guesses count, from the first guess on.
pub const SPAN: Duration = Duration::from_secs(60);

/// The places of a set. A peer may be in one set only.
const WAYS: usize = 8;

const SETS: usize = 128;

/// The number of a peer's last guesses that are recognised when they are repeated.
const RECENT: usize = 8;

/// The origin of guesses that count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// An address.
    V4(Ipv4Addr),
    /// The first 64 bits, with zeros behind them: a host can choose the others freely.
    V6(Ipv6Addr),
    /// All clients by unix sockets.
    Unix,
}

impl Origin {
    /// The origin of a peer with this address. `None` for unix sockets.
    pub fn of(ip: Option<IpAddr>) -> Self {
        match ip.map(|ip| ip.to_canonical()) {
            None => Self::Unix,
            Some(IpAddr::V4(ip)) => Self::V4(ip),
            Some(IpAddr::V6(ip)) => {
                let network = ip.to_bits() & !u128::from(u64::MAX);
                Self::V6(Ipv6Addr::from_bits(network))
            }
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(ip) => ip.fmt(out),
            Self::V6(network) => write!(out, "{network}/64"),
            Self::Unix => out.write_str("unix"),
        }
    }
}

/// A name and a password. `None` if the client sent something else.
pub type Credentials<'s> = Option<(&'s [u8], &'s [u8])>;

/// The guesses of all peers.
pub struct Guesses {
    /// The most guesses of a peer in a [`SPAN`]. 0 is no limit. Threads that check at the same time may each allow one
    /// more. Relaxed: no other memory depends on it.
    max: AtomicU32,
    /// The seed of the hashes of peers and of guesses, so that no client can choose them to collide.
    seed: RandomState,
    /// [`SETS`] times [`WAYS`], or empty before the first guess.
    places: Mutex<Vec<Option<Guesser>>>,
}

/// A peer that guesses.
#[derive(Clone, Copy, Debug)]
struct Guesser {
    origin: Origin,
    begun: Time,
    guesses: u32,
    /// Hashes of the last guesses, each at the place of its number.
    recent: [u64; RECENT],
}

impl Guesser {
    fn is_over(&self, now: Time) -> bool {
        now.since(self.begun) >= SPAN
    }

    /// True if a guess is one of the last ones.
    fn knows(&self, guess: u64) -> bool {
        let count = (self.guesses as usize).min(RECENT);
        self.recent[..count].contains(&guess)
    }
}

impl Guesses {
    /// Allows `max` guesses per peer.
    pub fn new(max: Option<NonZeroU32>) -> Self {
        Self {
            max: AtomicU32::new(max.map_or(0, NonZeroU32::get)),
            seed: RandomState::new(),
            places: Mutex::default(),
        }
    }

    /// From now on allows `max` guesses per peer.
    pub fn set_max(&self, max: Option<NonZeroU32>) {
        self.max.store(max.map_or(0, NonZeroU32::get), Relaxed);
    }

    fn max(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.max.load(Relaxed))
    }

    /// True if a peer may try another password.
    pub fn are_left(&self, origin: Origin, now: Time) -> bool {
        let Some(max) = self.max() else {
            return true;
        };
        let mut places = self.places.lock();
        let mut set = self.set(&mut places, origin).iter().flatten();
        let guesser = set.find(|guesser| guesser.origin == origin);
        guesser.is_none_or(|guesser| guesser.is_over(now) || guesser.guesses < max.get())
    }

    /// Counts a wrong password of a peer. True if that was its last guess for now.
    pub fn spend(&self, origin: Origin, said: Credentials<'_>, now: Time) -> bool {
        let Some(max) = self.max() else {
            return false;
        };
        let guess = self.seed.hash_one(said);
        let mut places = self.places.lock();
        if places.is_empty() {
            places.resize(SETS * WAYS, None);
        }
        let set = self.set(&mut places, origin);
        let own = |place: &Option<Guesser>| place.is_some_and(|guesser| guesser.origin == origin);
        let place = match set.iter().position(own) {
            Some(place) => place,
            None => {
                let place = least(set, now);
                set[place] = None;
                place
            }
        };
        let before = set[place].filter(|guesser| !guesser.is_over(now));
        let mut guesser = before.unwrap_or(Guesser {
            origin,
            begun: now,
            guesses: 0,
            recent: [0; RECENT],
        });
        let is_other = !guesser.knows(guess);
        if is_other {
            guesser.recent[guesser.guesses as usize % RECENT] = guess;
            guesser.guesses += 1;
        }
        set[place] = Some(guesser);
        is_other && guesser.guesses == max.get()
    }

    /// The set of places where a peer may be. Empty before the first guess.
    fn set<'p>(
        &self,
        places: &'p mut [Option<Guesser>],
        origin: Origin,
    ) -> &'p mut [Option<Guesser>] {
        if places.is_empty() {
            return places;
        }
        let begin = self.seed.hash_one(origin) as usize % SETS * WAYS;
        &mut places[begin..begin + WAYS]
    }
}

/// The place of the peer that has guessed least.
fn least(set: &[Option<Guesser>], now: Time) -> usize {
    let guesses = |place: &Option<Guesser>| match place {
        Some(guesser) if !guesser.is_over(now) => guesser.guesses,
        _ => 0,
    };
    let places = (0..set.len()).min_by_key(|&place| guesses(&set[place]));
    places.expect("a set has places")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(5);

    fn origin(ip: &str) -> Origin {
        Origin::of(Some(ip.parse().unwrap()))
    }

    fn guesses(max: u32) -> Guesses {
        Guesses::new(NonZeroU32::new(max))
    }

    /// Tries this many passwords, all different.
    fn guess(guesses: &Guesses, origin: Origin, count: u32, now: Time) -> u32 {
        let spend = |number: u32| {
            let password = format!("{number}");
            guesses.spend(origin, Some((b"ann", password.as_bytes())), now)
        };
        (0..count).map(|number| u32::from(spend(number))).sum()
    }

    #[test]
    fn a_peer_guesses_so_often_until_its_time_is_over() {
        let table = guesses(5);
        let (one, other) = (origin("127.0.0.1"), origin("127.0.0.2"));
        assert_eq!(guess(&table, one, 4, NOW), 0);
        assert!(table.are_left(one, NOW));
        assert!(table.spend(one, None, NOW), "the fifth is the last");
        assert!(!table.are_left(one, NOW) && table.are_left(other, NOW));
        let end = NOW.after(SPAN);
        assert!(table.are_left(one, end));
        assert_eq!(guess(&table, one, 5, end), 1);
        assert!(!table.are_left(one, end));
    }

    #[test]
    fn the_limit_may_change_while_peers_guess() {
        let table = guesses(5);
        let peer = Origin::of(None);
        assert_eq!(guess(&table, peer, 3, NOW), 0);
        table.set_max(NonZeroU32::new(2));
        assert!(!table.are_left(peer, NOW));
        table.set_max(None);
        assert!(table.are_left(peer, NOW));
    }

    #[test]
    fn who_tries_the_same_again_does_not_guess() {
        let table = guesses(5);
        let peer = Origin::of(None);
        for _ in 0..100 {
            assert!(!table.spend(peer, Some((b"ann", b"old")), NOW));
            assert!(!table.spend(peer, Some((b"bob", b"old")), NOW));
            assert!(!table.spend(peer, None, NOW));
        }
        assert!(table.are_left(peer, NOW));
        assert_eq!(guess(&table, peer, 2, NOW), 1);
        assert!(!table.are_left(peer, NOW));
    }

    #[test]
    fn whose_guesses_count_together() {
        assert_eq!(origin("::ffff:10.0.0.1"), origin("10.0.0.1"));
        assert_ne!(origin("10.0.0.1"), origin("10.0.0.2"));
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:0:0:2"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
        assert_eq!(origin("2001:db8::1").to_string(), "2001:db8::/64");
        assert_eq!(origin("::ffff:10.0.0.1").to_string(), "10.0.0.1");
    }

    #[test]
    fn the_table_is_bounded_and_forgets_who_guessed_least() {
        let table = guesses(5);
        let one = origin("192.0.2.1");
        guess(&table, one, 5, NOW);
        for number in 0..100_000u32 {
            let other = Origin::V4(Ipv4Addr::from_bits(number));
            table.spend(other, None, NOW);
        }
        assert_eq!(table.places.lock().len(), SETS * WAYS);
        assert!(!table.are_left(one, NOW));
    }

    #[test]
    fn without_a_limit_nobody_is_remembered() {
        let table = guesses(0);
        assert_eq!(guess(&table, origin("::1"), 1000, NOW), 0);
        assert!(table.are_left(origin("::1"), NOW) && table.places.lock().is_empty());
    }
}
