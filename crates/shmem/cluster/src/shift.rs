//! Conversion of moments between a caller's clock and the store's.
//!
//! PEs' clocks begin with the job and drift apart. If each PE judged by its own clock, the PE that is ahead would end
//! others' pairs early. So the first server's clock decides: that server tells every PE its tick, and a session moves
//! the moments of requests by the difference to its caller's clock.
//!
//! A PE's copy of the tick may be old: over TCP words arrive only when the PE calls the fabric, and a server tells
//! nothing while it is kept from its core. So the copy says how far the store's clock is ahead at least. Two polls of
//! the server's own word say how far it is ahead at most: if the second poll sees a later moment, the clock reached
//! that moment after the first poll had begun. If the polls do not end, because the link is cut, or always see the same
//! tick, the session keeps the shift.
//!
//! So the shift may be too small by [`MARGIN`] ticks. No pair may end before its time, so an expiry on its way to the
//! store is moved that much further, and on its way back that much less.

use std::mem::MaybeUninit;

use nuthatch_engine::{
    Delta, Expiry, Item, Leave, Op, Read, Removal, Replies, Reply, Request, Store, Time,
};

/// Ticks by which the clocks may differ before a session changes its shift: they tick at different moments.
const SLACK: i64 = 1;

/// Ticks by which the store's clock may be further ahead than by the shift: the slack, and one because both times of
/// which it is the difference are rounded down.
const MARGIN: u32 = SLACK as u32 + 1;

/// How far the store's clock is ahead of a caller's. By default they are one clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    /// In ticks.
    ahead: i64,
    /// How much further it may be ahead.
    margin: u32,
}

impl Shift {
    /// The shift if the two clocks show these times at one moment.
    pub fn between(callers: Time, stores: Time) -> Self {
        Self {
            ahead: i64::from(stores.0) - i64::from(callers.0),
            margin: MARGIN,
        }
    }

    /// True if the store's clock, which shows `stores`, is further ahead than by this shift, by more than a tick.
    #[inline]
    pub fn is_short(self, callers: Time, stores: Time) -> bool {
        Self::between(callers, stores).ahead > self.ahead + SLACK
    }

    /// True if the store's clock, which shows `stores`, is less far ahead, by more than a tick.
    #[inline]
    pub fn is_long(self, callers: Time, stores: Time) -> bool {
        Self::between(callers, stores).ahead < self.ahead - SLACK
    }

    /// True if the clocks are one.
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Moves a moment from the caller's clock to the store's.
    pub fn time(self, time: Time) -> Time {
        moved(time, self.ahead)
    }

    /// Moves an expiry from the caller's clock to the store's, no further if it is past at `now`.
    fn expiry(self, expiry: Expiry, now: Time) -> Expiry {
        match expiry {
            Expiry::Never => Expiry::Never,
            Expiry::At(end) if end <= now => Expiry::At(self.time(end)),
            Expiry::At(end) => Expiry::At(moved(end, self.ahead + i64::from(self.margin))),
        }
    }

    /// Moves the expiry of an item from the store's clock to the caller's.
    pub fn item(self, item: &Item) -> Item {
        let back = -self.ahead - i64::from(self.margin);
        Item {
            expiry: match item.expiry {
                Expiry::Never => Expiry::Never,
                Expiry::At(end) => Expiry::At(moved(end, back)),
            },
            ..*item
        }
    }

    /// Moves the moments of a request, which a caller makes at `now`.
    pub fn request<'a>(self, request: &Request<'a>, now: Time) -> Request<'a> {
        let expiry = |expiry: Option<Expiry>| expiry.map(|expiry| self.expiry(expiry, now));
        let op = match request.op {
            Op::Get => Op::Get,
            Op::Read(read) => Op::Read(Read {
                touch: expiry(read.touch),
                vivify: expiry(read.vivify),
                ..read
            }),
            Op::Store(store) => Op::Store(Store {
                expiry: self.expiry(store.expiry, now),
                vivify: expiry(store.vivify),
                ..store
            }),
            Op::Remove(removal) => Op::Remove(Removal {
                leave: self.leave(removal.leave, now),
                ..removal
            }),
            Op::Delta(delta) => Op::Delta(Delta {
                touch: expiry(delta.touch),
                vivify: (delta.vivify).map(|(number, expiry)| (number, self.expiry(expiry, now))),
                ..delta
            }),
        };
        Request {
            key: request.key,
            op,
        }
    }

    fn leave(self, leave: Leave, now: Time) -> Leave {
        let moved = |expiry: Option<Expiry>| expiry.map(|expiry| self.expiry(expiry, now));
        match leave {
            Leave::Nothing => Leave::Nothing,
            Leave::Stale { expiry, new_cas } => Leave::Stale {
                expiry: moved(expiry),
                new_cas,
            },
            Leave::Empty {
                stale,
                expiry,
                new_cas,
            } => Leave::Empty {
                stale,
                expiry: moved(expiry),
                new_cas,
            },
        }
    }

    fn reply(self, reply: Reply) -> Reply {
        match reply {
            Reply::Found(item) => Reply::Found(self.item(&item)),
            Reply::Stored(item) => Reply::Stored(self.item(&item)),
            Reply::Number(number, item) => Reply::Number(number, self.item(&item)),
            Reply::Created(number, item) => Reply::Created(number, self.item(&item)),
            other => other,
        }
    }
}

/// A moment moved by so many ticks. One that never comes stays as it is.
fn moved(time: Time, ticks: i64) -> Time {
    if time > Time::LAST {
        return time;
    }
    let moved = i64::from(time.0) + ticks;
    Time(moved.clamp(0, Time::LAST.0.into()) as u32)
}

/// Replies whose moments are moved on their way to the caller.
pub struct Moved<'a, R> {
    pub replies: &'a mut R,
    pub shift: Shift,
}

impl<V, R: Replies<V>> Replies<V> for Moved<'_, R> {
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.replies.begin(index, &self.shift.item(item))
    }

    fn commit(&mut self, index: usize) {
        self.replies.commit(index);
    }

    fn retract(&mut self, index: usize) {
        self.replies.retract(index);
    }

    fn large(&mut self, index: usize, item: &Item, value: V) {
        self.replies.large(index, &self.shift.item(item), value);
    }

    fn done(&mut self, index: usize, reply: Reply) {
        self.replies.done(index, self.shift.reply(reply));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_move_there_and_back_but_not_those_that_never_come() {
        let shift = Shift::between(Time(1000), Time(100));
        assert_eq!(shift.time(Time(1160)), Time(260));
        assert_eq!(shift.time(Time(5)), Time(0));
        assert_eq!(shift.time(Time(u32::MAX)), Time(u32::MAX));
        assert_eq!(moved(Time::LAST, 900), Time::LAST);
        assert_eq!(shift.expiry(Expiry::Never, Time(1000)), Expiry::Never);
        let there = shift.expiry(Expiry::At(Time(1160)), Time(1000));
        let item = Item {
            expiry: there,
            ..Item::default()
        };
        assert_eq!(shift.item(&item).expiry, Expiry::At(Time(1160)));
    }

    /// The two times of which a shift is the difference are rounded down, and a session keeps a shift that seems wrong by
    /// a tick.
    #[test]
    fn no_pair_ends_early_because_the_shift_is_rounded() {
        // In tenths of a tick, of which the clocks show whole ones.
        let shown = |tenths: u32| Time(1 + tenths / 10);
        for (seen, ahead) in (0..40).flat_map(|seen| (0..40).map(move |ahead| (seen, ahead))) {
            let shift = Shift::between(shown(seen), shown(seen + ahead));
            for now in seen..seen + 40 {
                assert!(!shift.is_short(shown(now), shown(now + ahead)));
                for end in (3..9).map(|ticks| Time(shown(now).0 + ticks)) {
                    let Expiry::At(there) = shift.expiry(Expiry::At(end), shown(now)) else {
                        panic!("it ends")
                    };
                    // When the store's clock reaches it, the caller's has reached the end.
                    let over = (there.0 - 1) * 10 - ahead.min((there.0 - 1) * 10);
                    assert!(over >= (end.0 - 1) * 10, "{seen} {ahead} {now}");
                }
                // What is past stays past.
                let past = shift.expiry(Expiry::At(shown(now)), shown(now));
                assert!(past.is_past(shift.time(shown(now))));
            }
        }
    }

    #[test]
    fn clocks_that_tick_at_different_moments_agree() {
        let shift = Shift::default();
        for (callers, stores) in [(7, 8), (8, 8), (8, 7)] {
            let (callers, stores) = (Time(callers), Time(stores));
            assert!(!shift.is_short(callers, stores) && !shift.is_long(callers, stores));
        }
        assert!(shift.is_short(Time(7), Time(9)) && shift.is_long(Time(9), Time(7)));
        let shift = Shift::between(Time(7), Time(9));
        assert_eq!(shift.time(Time(7)), Time(9));
        assert!(!shift.is_short(Time(8), Time(9)) && !shift.is_long(Time(8), Time(9)));
    }
}
