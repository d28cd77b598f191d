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

use std::mem::MaybeUninit;

use nuthatch_engine::{
    Delta, Expiry, Item, Leave, Op, Read, Removal, Replies, Reply, Request, Store, Time,
};

/// Ticks by which the clocks may differ before a session changes its shift: they tick at different moments.
const SLACK: i64 = 1;

/// How far the store's clock is ahead of a caller's, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift(i64);

impl Shift {
    /// The shift if the two clocks show these times at one moment.
    pub fn between(callers: Time, stores: Time) -> Self {
        Self(i64::from(stores.0) - i64::from(callers.0))
    }

    /// True if the store's clock, which shows `stores`, is further ahead than by this shift, by more than a tick.
    #[inline]
    pub fn is_short(self, callers: Time, stores: Time) -> bool {
        Self::between(callers, stores).0 > self.0 + SLACK
    }

    /// True if the store's clock, which shows `stores`, is less far ahead, by more than a tick.
    #[inline]
    pub fn is_long(self, callers: Time, stores: Time) -> bool {
        Self::between(callers, stores).0 < self.0 - SLACK
    }

    /// True if the clocks agree.
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The shift from the store's clock to the caller's.
    pub fn back(self) -> Self {
        Self(-self.0)
    }

    /// Moves a moment.
    pub fn time(self, time: Time) -> Time {
        // A moment that never comes stays as it is.
        if time > Time::LAST {
            return time;
        }
        let moved = i64::from(time.0) + self.0;
        Time(moved.clamp(0, Time::LAST.0.into()) as u32)
    }

    /// Moves an expiry.
    pub fn expiry(self, expiry: Expiry) -> Expiry {
        match expiry {
            Expiry::Never => Expiry::Never,
            Expiry::At(time) => Expiry::At(self.time(time)),
        }
    }

    /// Moves the expiry of an item.
    pub fn item(self, item: &Item) -> Item {
        Item {
            expiry: self.expiry(item.expiry),
            ..*item
        }
    }

    /// Moves the moments of a request.
    pub fn request<'a>(self, request: &Request<'a>) -> Request<'a> {
        let expiry = |expiry: Option<Expiry>| expiry.map(|expiry| self.expiry(expiry));
        let op = match request.op {
            Op::Get => Op::Get,
            Op::Read(read) => Op::Read(Read {
                touch: expiry(read.touch),
                vivify: expiry(read.vivify),
                ..read
            }),
            Op::Store(store) => Op::Store(Store {
                expiry: self.expiry(store.expiry),
                vivify: expiry(store.vivify),
                ..store
            }),
            Op::Remove(removal) => Op::Remove(Removal {
                leave: self.leave(removal.leave),
                ..removal
            }),
            Op::Delta(delta) => Op::Delta(Delta {
                touch: expiry(delta.touch),
                vivify: (delta.vivify).map(|(number, expiry)| (number, self.expiry(expiry))),
                ..delta
            }),
        };
        Request {
            key: request.key,
            op,
        }
    }

    fn leave(self, leave: Leave) -> Leave {
        let moved = |expiry: Option<Expiry>| expiry.map(|expiry| self.expiry(expiry));
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
            other => other,
        }
    }
}

/// Replies whose moments are moved on their way to the caller.
pub struct Moved<'a, R> {
    pub replies: &'a mut R,
    pub back: Shift,
}

impl<V, R: Replies<V>> Replies<V> for Moved<'_, R> {
    fn begin(&mut self, index: usize, item: &Item) -> &mut [MaybeUninit<u8>] {
        self.replies.begin(index, &self.back.item(item))
    }

    fn commit(&mut self, index: usize) {
        self.replies.commit(index);
    }

    fn retract(&mut self, index: usize) {
        self.replies.retract(index);
    }

    fn large(&mut self, index: usize, item: &Item, value: V) {
        self.replies.large(index, &self.back.item(item), value);
    }

    fn done(&mut self, index: usize, reply: Reply) {
        self.replies.done(index, self.back.reply(reply));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_move_there_and_back_but_not_those_that_never_come() {
        let shift = Shift::between(Time(1000), Time(100));
        assert_eq!(shift.time(Time(1160)), Time(260));
        assert_eq!(shift.back().time(Time(260)), Time(1160));
        assert_eq!(shift.time(Time(5)), Time(0));
        assert_eq!(shift.time(Time(u32::MAX)), Time(u32::MAX));
        assert_eq!(shift.back().time(Time::LAST), Time::LAST);
        assert_eq!(shift.expiry(Expiry::Never), Expiry::Never);
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
