//! Counts requests: [`Counts::count`] maps what was asked and what the engine replied to the counters of `stats`, for
//! every protocol. A protocol only says what its command [is](Counted) in the statistics.

use nuthatch_engine::Reply;
use nuthatch_state::telemetry::counters::WorkerCounters;
use nuthatch_state::telemetry::prefixes::{Event, Recorder};
use nuthatch_state::telemetry::sizes::Lens;

/// What a command is in the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The counters.
    pub kind: Kind,
    /// Counted as a meta command too.
    pub is_meta: bool,
    /// Counted by the prefix of its key too, if that is switched on.
    pub by_prefix: bool,
}

/// The counters of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// None: a part of a command that is counted as a whole.
    Nothing,
    /// A read of a value.
    Get,
    /// A new expiry, also with a read of the value. One whose condition does not hold is neither a hit nor a miss.
    Touch,
    /// A touch if it finds an item, else a get: mg with T, as in memcached.
    GetOrTouch,
    /// A read of an item's properties.
    Look,
    /// A store, whatever its outcome.
    Store {
        /// Also as a compare-and-swap.
        is_cas: bool,
    },
    /// A store that got no memory for its value, a failure that is counted already.
    Refused,
    /// A delete. One whose condition does not hold is neither a hit nor a miss.
    Delete,
    /// md: one whose condition does not hold is a miss.
    MetaDelete {
        /// It only marks the item: neither a hit nor a miss if it does.
        marks: bool,
    },
    /// An addition or a subtraction.
    Delta {
        /// Down instead of up.
        is_down: bool,
    },
    /// ma: for want of memory it is a failed store.
    MetaDelta {
        /// Down instead of up.
        is_down: bool,
    },
    /// The last request of a command that reads, decides and writes. It counts only if it changes the item, else the
    /// command begins again.
    Change(Change),
}

/// What a command that reads, decides and writes is, if it stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A store.
    Store,
    /// An addition or a subtraction.
    Delta {
        /// Down instead of up.
        is_down: bool,
        /// It found a number.
        is_hit: bool,
    },
}

impl Counted {
    /// By these counters alone.
    #[inline(always)]
    pub const fn only(kind: Kind) -> Self {
        Self {
            kind,
            is_meta: false,
            by_prefix: false,
        }
    }

    /// By these counters, and by the prefix of the key.
    #[inline(always)]
    pub const fn with_prefix(kind: Kind) -> Self {
        Self {
            by_prefix: true,
            ..Self::only(kind)
        }
    }

    /// By these counters, and as a meta command.
    #[inline(always)]
    pub const fn meta(kind: Kind) -> Self {
        Self {
            is_meta: true,
            ..Self::only(kind)
        }
    }
}

impl From<Kind> for Counted {
    fn from(kind: Kind) -> Self {
        Self::only(kind)
    }
}

/// What came of a request.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'r> {
    /// A value of this many bytes.
    Value(usize),
    /// Any answer without a value.
    Reply(&'r Reply),
}

/// A request that the engine has executed.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// Its key.
    pub key: &'r [u8],
    /// Bytes of the value to store.
    pub value_len: usize,
    /// What came of it.
    pub outcome: Outcome<'r>,
}

/// The counters of a worker.
pub struct Counts<'w> {
    /// Those of all requests.
    pub counters: &'w WorkerCounters,
    /// Those by prefix, if they are switched on.
    pub prefixes: Option<Recorder<'w>>,
}

impl Counts<'_> {
    /// Counts a request.
    #[inline(always)]
    pub fn count(&mut self, counted: Counted, request: Request<'_>) {
        if counted.is_meta {
            self.counters.cmd_meta.bump();
        }
        match counted.kind {
            Kind::Get => self.counters.count_get(request.hit()),
            Kind::Store { is_cas: false } => request.count_store(self.counters),
            kind => request.count(kind, self.counters),
        }
        if let (true, Some(prefixes)) = (counted.by_prefix, &mut self.prefixes) {
            request.record(counted.kind, prefixes);
        }
    }
}

impl<'r> Request<'r> {
    /// A request that got a value of this many bytes.
    #[inline(always)]
    pub fn found(key: &'r [u8], value_len: usize) -> Self {
        Self {
            key,
            value_len: 0,
            outcome: Outcome::Value(value_len),
        }
    }

    /// A request that got no value.
    #[inline(always)]
    pub fn replied(key: &'r [u8], value_len: usize, reply: &'r Reply) -> Self {
        Self {
            key,
            value_len,
            outcome: Outcome::Reply(reply),
        }
    }

    /// The lengths of the key and of the value to store.
    #[inline(always)]
    fn offered(&self) -> Lens {
        self.lens(self.value_len)
    }

    #[inline(always)]
    fn lens(&self, value: usize) -> Lens {
        Lens {
            key: self.key.len(),
            value,
        }
    }

    /// The lengths of the item that a read found.
    #[inline(always)]
    fn hit(&self) -> Option<Lens> {
        match self.outcome {
            Outcome::Value(len) => Some(self.lens(len)),
            Outcome::Reply(Reply::Found(item)) => Some(self.lens(item.value_len)),
            Outcome::Reply(_) => None,
        }
    }

    #[inline(always)]
    fn is(&self, reply: &Reply) -> bool {
        matches!(self.outcome, Outcome::Reply(it) if it == reply)
    }

    fn count(&self, kind: Kind, counters: &WorkerCounters) {
        match kind {
            Kind::Nothing => {}
            Kind::Get => counters.count_get(self.hit()),
            Kind::Touch if self.is(&Reply::Exists) => counters.count_refused_touch(),
            Kind::Touch => counters.count_touch(self.hit()),
            Kind::GetOrTouch => match self.hit() {
                None => counters.count_get(None),
                hit => counters.count_touch(hit),
            },
            Kind::Look => counters.count_look(self.hit().is_some()),
            Kind::Store { is_cas } => {
                if let (true, Outcome::Reply(reply)) = (is_cas, self.outcome) {
                    counters.count_cas(self.offered(), reply);
                }
                self.count_store(counters);
            }
            Kind::Refused => counters.count_set(self.offered()),
            Kind::Delete if self.is(&Reply::Exists) => {}
            Kind::MetaDelete { marks: true } if self.is(&Reply::Removed) => {}
            Kind::Delete | Kind::MetaDelete { .. } => {
                counters.count_delete(self.is(&Reply::Removed));
            }
            Kind::Delta { is_down } => self.count_delta(is_down, counters),
            Kind::MetaDelta { is_down } => {
                self.count_delta(is_down, counters);
                self.count_failure(counters);
            }
            Kind::Change(change) => self.count_change(change, counters),
        }
    }

    #[inline(always)]
    fn count_store(&self, counters: &WorkerCounters) {
        counters.count_set(self.offered());
        self.count_failure(counters);
    }

    fn count_delta(&self, is_down: bool, counters: &WorkerCounters) {
        if let Outcome::Reply(reply) = self.outcome {
            counters.count_delta_reply(is_down, self.key.len(), reply);
        }
    }

    fn count_change(&self, change: Change, counters: &WorkerCounters) {
        match (self.outcome, change) {
            (Outcome::Reply(Reply::Stored(_)), Change::Store) => counters.count_set(self.offered()),
            (Outcome::Reply(Reply::Stored(_)), Change::Delta { is_down, is_hit }) => {
                counters.count_delta(is_down, is_hit.then(|| self.offered()));
            }
            // Changed where it lies.
            (Outcome::Reply(Reply::Number(_, item)), Change::Delta { is_down, .. }) => {
                counters.count_delta(is_down, Some(self.lens(item.value_len)));
            }
            (Outcome::Reply(Reply::Found(_)), _) => counters.count_touch(self.hit()),
            (Outcome::Reply(Reply::Removed), _) => counters.count_delete(true),
            _ => self.count_failure(counters),
        }
    }

    #[inline(always)]
    fn count_failure(&self, counters: &WorkerCounters) {
        if let Outcome::Reply(reply) = self.outcome
            && reply.is_failure()
        {
            counters.count_failure(reply);
        }
    }

    /// Counts it by the prefix of its key.
    #[cold]
    fn record(&self, kind: Kind, prefixes: &mut Recorder<'_>) {
        let event = match kind {
            Kind::Get | Kind::Touch | Kind::GetOrTouch | Kind::Look => match self.hit() {
                Some(_) => Event::Hit,
                None => Event::Miss,
            },
            Kind::Store { .. } | Kind::Refused => Event::Set,
            Kind::Delete | Kind::MetaDelete { .. } => Event::Delete,
            // memcached has no such counts.
            Kind::Nothing | Kind::Delta { .. } | Kind::MetaDelta { .. } | Kind::Change(_) => return,
        };
        prefixes.record(self.key, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_engine::Item;
    use nuthatch_state::telemetry::counters::Totals;
    use nuthatch_state::telemetry::sizes::SizeClasses;

    /// The counters that are not 0 after a request of this kind with this outcome.
    fn counted(kind: Kind, outcome: Outcome<'_>) -> Vec<&'static str> {
        let counters = WorkerCounters::new(SizeClasses::default());
        let request = Request {
            key: b"key",
            value_len: 5,
            outcome,
        };
        let mut counts = Counts {
            counters: &counters,
            prefixes: None,
        };
        counts.count(Counted::only(kind), request);
        let mut totals = Totals::default();
        counters.add_to(&mut totals);
        let all = [
            ("get_hits", totals.get_hits),
            ("get_misses", totals.get_misses),
            ("cmd_touch", totals.cmd_touch),
            ("touch_hits", totals.touch_hits),
            ("touch_misses", totals.touch_misses),
            ("look_hits", totals.look_hits),
            ("look_misses", totals.look_misses),
            ("cmd_set", totals.cmd_set),
            ("cas_hits", totals.cas_hits),
            ("cas_badval", totals.cas_badval),
            ("cas_misses", totals.cas_misses),
            ("delete_hits", totals.delete_hits),
            ("delete_misses", totals.delete_misses),
            ("incr_hits", totals.incr_hits),
            ("incr_misses", totals.incr_misses),
            ("decr_hits", totals.decr_hits),
            ("decr_misses", totals.decr_misses),
            ("store_too_large", totals.store_too_large),
            ("store_no_memory", totals.store_no_memory),
        ];
        all.iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, _)| *name)
            .collect()
    }

    #[test]
    fn each_outcome_has_its_counters() {
        let item = Item::default();
        let (stored, found) = (Reply::Stored(item), Reply::Found(item));
        let number = Reply::Number(1, item);
        let cas = Kind::Store { is_cas: true };
        let plain = Kind::Store { is_cas: false };
        let (up, down) = [false, true].map(|is_down| Kind::Delta { is_down }).into();
        let (md, marking) = [false, true].map(|marks| Kind::MetaDelete { marks }).into();
        let ma = Kind::MetaDelta { is_down: true };
        let (is_down, is_hit) = (true, false);
        let made = Kind::Change(Change::Delta { is_down, is_hit });
        let (is_down, is_hit) = (false, true);
        let counted_up = Kind::Change(Change::Delta { is_down, is_hit });
        let change = Kind::Change(Change::Store);
        for (kind, reply, expected) in [
            (Kind::Nothing, Reply::Removed, &[][..]),
            (Kind::Get, Reply::Miss, &["get_misses"]),
            (Kind::Get, found, &["get_hits"]),
            (Kind::Touch, found, &["cmd_touch", "touch_hits"]),
            (Kind::Touch, Reply::Miss, &["cmd_touch", "touch_misses"]),
            (Kind::Touch, Reply::Exists, &["cmd_touch"]),
            (Kind::GetOrTouch, found, &["cmd_touch", "touch_hits"]),
            (Kind::GetOrTouch, Reply::Miss, &["get_misses"]),
            (Kind::Look, found, &["look_hits"]),
            (Kind::Look, Reply::Miss, &["look_misses"]),
            (plain, stored, &["cmd_set"]),
            (plain, Reply::NotStored, &["cmd_set"]),
            (plain, Reply::TooLarge, &["cmd_set", "store_too_large"]),
            (plain, Reply::OutOfMemory, &["cmd_set", "store_no_memory"]),
            (cas, stored, &["cmd_set", "cas_hits"]),
            (cas, Reply::Exists, &["cmd_set", "cas_badval"]),
            (cas, Reply::NotFound, &["cmd_set", "cas_misses"]),
            (Kind::Refused, Reply::TooLarge, &["cmd_set"]),
            (Kind::Delete, Reply::Removed, &["delete_hits"]),
            (Kind::Delete, Reply::NotFound, &["delete_misses"]),
            (Kind::Delete, Reply::Exists, &[]),
            (md, Reply::Exists, &["delete_misses"]),
            (marking, Reply::Removed, &[]),
            (up, number, &["incr_hits"]),
            (up, Reply::Created(1, item), &[]),
            (up, Reply::NotFound, &["incr_misses"]),
            (up, Reply::NotNumeric, &[]),
            (down, number, &["decr_hits"]),
            (down, Reply::OutOfMemory, &[]),
            (ma, Reply::OutOfMemory, &["store_no_memory"]),
            (made, stored, &["decr_misses"]),
            (made, Reply::Exists, &[]),
            (counted_up, number, &["incr_hits"]),
            (change, stored, &["cmd_set"]),
            (change, Reply::NotStored, &[]),
            (change, found, &["cmd_touch", "touch_hits"]),
            (change, Reply::Removed, &["delete_hits"]),
            (change, Reply::TooLarge, &["store_too_large"]),
        ] {
            let counters = counted(kind, Outcome::Reply(&reply));
            assert_eq!(counters, expected, "{kind:?} {reply:?}");
        }
        assert_eq!(counted(Kind::Get, Outcome::Value(7)), ["get_hits"]);
        let both = ["cmd_touch", "touch_hits"];
        assert_eq!(counted(Kind::GetOrTouch, Outcome::Value(7)), both);
    }
}
