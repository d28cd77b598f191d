//! The selector: whether operations go to blocks directly or to the server as messages, by measured cost (Cell, ATC'16).
//!
//! A get of a known block is one Get. A get without a pointer is two Gets, one after the other. A set of a known block
//! is a compare-swap, for which the session waits, and Puts. Messages take a round trip and some of the server's time,
//! but those of a wave travel together. So the cheaper way depends on the transport, on the server's load, and on how
//! many operations a wave has for one server. The cost of a direct operation depends on how many there are of its kind,
//! the cost of a message on how many travel together, of all kinds. Both are timed now and then. The dearer way is
//! tried now and then, a few times in a row: the dearer it is, the more seldom.

use crate::config::Operations;

/// One in this many waves is timed: a look at the clock takes as long as a Get from shared memory.
const TIMED: u32 = 16;

/// Trials of the dearer way may cost this part of what the cheaper way costs.
const TRIAL_PART: f64 = 64.0;

/// Trials are not more seldom than one in this many choices, on average.
const TRIAL_MAX: f64 = 4096.0;

/// Measurements that a cost is judged by.
const SAMPLES: usize = 7;

/// Trials come this many in a row. The first of a run finds the caches as the other way has left them, and its time
/// does not count.
const RUN: u32 = SAMPLES as u32 + 1;

/// An operation that a session may carry out itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A get of a known block.
    KnownGet,
    /// A get without a pointer.
    UnknownGet,
    /// A set of a known block.
    KnownSet,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; KINDS] = [Self::KnownGet, Self::UnknownGet, Self::KnownSet];
}

impl Kind {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::KnownGet => "known_gets",
            Self::UnknownGet => "unknown_gets",
            Self::KnownSet => "known_sets",
        }
    }
}

/// How many kinds there are.
pub const KINDS: usize = 3;

/// Operations for one server in a wave, by size: 1, up to 7, up to 31, more.
const SIZES: usize = 4;

fn size_of_wave(operations: usize) -> usize {
    match operations {
        0..=1 => 0,
        2..=7 => 1,
        8..=31 => 2,
        _ => 3,
    }
}

/// Nanoseconds an operation: the median of the last measurements. Not the mean: a page's first touch or a turn of the
/// scheduler takes a thousand times as long as a Get, and a way that looks dear is hardly measured again.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    median: f64,
    samples: [f64; SAMPLES],
    taken: usize,
}

impl Cost {
    fn note(&mut self, nanos: f64) {
        self.samples[self.taken % SAMPLES] = nanos;
        self.taken += 1;
        let mut sorted = self.samples;
        let sorted = &mut sorted[..self.taken.min(SAMPLES)];
        sorted.sort_unstable_by(f64::total_cmp);
        self.median = sorted[sorted.len() / 2];
    }

    fn is_known(&self) -> bool {
        self.taken >= RUN as usize
    }
}

/// What was chosen for the operations of one wave on one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The session carries the operations out directly, by kind.
    pub direct: [bool; KINDS],
    /// Costs are to be measured: some of the chosen ways are the dearer ones, or their cost is not known yet.
    pub trial: bool,
    /// How many operations are messages.
    pub messages: usize,
}

/// The judgement of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Verdict {
    /// Its operations go directly and leave the messages, unless something is tried.
    direct: bool,
    /// It is the dearer way's turn.
    trial: bool,
    /// The dearer way's cost by the cheaper one's, if both are known.
    ratio: Option<f64>,
}

/// The selector of one server.
#[derive(Debug)]
pub struct Selector {
    operations: Operations,
    direct: [[Cost; SIZES]; KINDS],
    active: [Cost; SIZES],
    /// Choices left before the dearer way has been tried [`RUN`] times; the last ones are trials.
    left: [[u32; SIZES]; KINDS],
    waves: u32,
}

impl Selector {
    /// With a policy.
    pub fn new(operations: Operations) -> Self {
        Self {
            operations,
            direct: Default::default(),
            active: Default::default(),
            left: [[RUN * TRIAL_PART as u32; SIZES]; KINDS],
            waves: 0,
        }
    }

    /// True if blocks may be read and written directly.
    #[inline(always)]
    pub fn goes_to_blocks(&self) -> bool {
        self.operations != Operations::Active
    }

    /// How a wave's operations on the server are carried out: `counts` of each kind, beside `others` that are messages
    /// in any case.
    pub fn choose(&mut self, counts: &[u32; KINDS], others: usize) -> Choice {
        let Operations::Chosen = self.operations else {
            return Choice {
                direct: [self.goes_to_blocks(); KINDS],
                ..Choice::default()
            };
        };
        let mut choice = Choice {
            messages: others + counts.iter().sum::<u32>() as usize,
            ..Choice::default()
        };
        let mut verdicts = [Verdict::default(); KINDS];
        // Kinds that leave make the remaining messages dearer, so the remaining kinds are judged again until none
        // leaves. So in the end as many messages are sent as the kinds that stay were judged by, and their cost is
        // noted under the size at which it is looked up.
        loop {
            let mut leaves = [false; KINDS];
            for kind in 0..KINDS {
                if counts[kind] > 0 && !choice.direct[kind] {
                    verdicts[kind] = self.judge(kind, counts[kind] as usize, choice.messages);
                    leaves[kind] = verdicts[kind].direct;
                }
            }
            let none_leaves = leaves == [false; KINDS];
            if (0..KINDS).any(|kind| leaves[kind] && verdicts[kind].trial) {
                // This number of messages is tried now.
                break;
            }
            for kind in 0..KINDS {
                let direct_is_tried = none_leaves && !choice.direct[kind] && verdicts[kind].trial;
                if leaves[kind] || direct_is_tried {
                    choice.direct[kind] = true;
                    choice.messages -= counts[kind] as usize;
                }
            }
            if none_leaves {
                break;
            }
        }
        for kind in 0..KINDS {
            if counts[kind] > 0 {
                choice.trial |= self.count_down(kind, counts[kind] as usize, &verdicts[kind]);
            }
        }
        choice
    }

    /// Judges `count` operations of a kind, as if they were among `messages` messages.
    fn judge(&self, kind: usize, count: usize, messages: usize) -> Verdict {
        let size = size_of_wave(count);
        let direct = &self.direct[kind][size];
        let active = &self.active[size_of_wave(messages)];
        if !direct.is_known() || !active.is_known() {
            // A way of unknown cost is tried first, direct operations before messages.
            return Verdict {
                direct: !direct.is_known(),
                ..Verdict::default()
            };
        }
        let (direct, active) = (direct.median, active.median);
        Verdict {
            direct: direct <= active,
            trial: self.left[kind][size] < RUN,
            ratio: Some(direct.max(active) / direct.min(active)),
        }
    }

    /// The present choice for operations of a kind, by how many of them a wave has: the way, and the cost of an
    /// operation directly and by a message, in nanoseconds.
    pub fn choice(&self, kind: Kind) -> String {
        match self.operations {
            Operations::Direct => return "direct".to_owned(),
            Operations::Active => return "message".to_owned(),
            Operations::Chosen => {}
        }
        let least = [1, 2, 8, 32];
        let words = least.map(|count| {
            let size = size_of_wave(count);
            let (direct, active) = (self.direct[kind as usize][size], self.active[size]);
            if !direct.is_known() || !active.is_known() {
                return format!("{count}:unknown");
            }
            let way = match self.judge(kind as usize, count, count).direct {
                true => "direct",
                false => "message",
            };
            format!("{count}:{way}({:.0},{:.0})", direct.median, active.median)
        });
        words.join(" ")
    }

    /// One choice less before the next trial. True if costs are to be measured now.
    fn count_down(&mut self, kind: usize, count: usize, verdict: &Verdict) -> bool {
        let Some(ratio) = verdict.ratio else {
            return true;
        };
        let left = &mut self.left[kind][size_of_wave(count)];
        *left = match *left {
            0 => RUN * (TRIAL_PART * ratio).min(TRIAL_MAX) as u32 + RUN - 1,
            left => left - 1,
        };
        verdict.trial
    }

    /// True if a get that was led to the wrong block reads the bucket itself.
    #[inline]
    pub fn reads_buckets(&self) -> bool {
        match self.operations {
            Operations::Direct => true,
            Operations::Active => false,
            Operations::Chosen => {
                let (direct, active) =
                    (&self.direct[Kind::UnknownGet as usize][0], &self.active[0]);
                !active.is_known() || direct.median <= active.median
            }
        }
    }

    /// True if this wave is to be timed.
    #[inline]
    pub fn times(&mut self) -> bool {
        self.waves = self.waves.wrapping_add(1);
        self.operations == Operations::Chosen && self.waves.is_multiple_of(TIMED)
    }

    /// Notes that each of `count` direct operations took `nanos`.
    pub fn note_direct(&mut self, kind: Kind, count: usize, nanos: f64) {
        self.direct[kind as usize][size_of_wave(count)].note(nanos);
    }

    /// Notes that `sent` messages took `nanos` in all, where `chosen` were chosen; 0 if there was nothing to choose.
    /// More are sent than chosen if direct operations fail.
    pub fn note_active(&mut self, chosen: usize, sent: usize, nanos: u64) {
        let together = if chosen == 0 { sent } else { chosen };
        self.active[size_of_wave(together)].note(nanos as f64 / sent as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of `count` operations of one kind.
    fn only(kind: Kind, count: usize) -> [u32; KINDS] {
        let mut counts = [0; KINDS];
        counts[kind as usize] = count as u32;
        counts
    }

    /// Whether `count` operations of a kind, and no others, go directly, and whether that is a trial.
    fn choose(selector: &mut Selector, kind: Kind, count: usize) -> (bool, bool) {
        let choice = selector.choose(&only(kind, count), 0);
        (choice.direct[kind as usize], choice.trial)
    }

    fn directly(selector: &mut Selector, kind: Kind, count: usize, choices: usize) -> usize {
        let direct = (0..choices).filter(|_| choose(selector, kind, count).0);
        direct.count()
    }

    /// Both ways' costs are known.
    fn measured(kind: Kind, count: usize, direct: f64, active: u64) -> Selector {
        let mut selector = Selector::new(Operations::Chosen);
        note(&mut selector, kind, count, direct, active);
        selector
    }

    fn note(selector: &mut Selector, kind: Kind, count: usize, direct: f64, active: u64) {
        for _ in 0..RUN {
            selector.note_direct(kind, count, direct);
            selector.note_active(count, count, active);
        }
    }

    #[test]
    fn what_is_chosen_is_told_by_how_many_there_are() {
        let mut selector = measured(Kind::KnownSet, 1, 300.0, 900);
        note(&mut selector, Kind::KnownSet, 10, 400.0, 1000);
        let told = selector.choice(Kind::KnownSet);
        assert_eq!(
            told,
            "1:direct(300,900) 2:unknown 8:message(400,100) 32:unknown"
        );
        assert_eq!(
            Selector::new(Operations::Active).choice(Kind::KnownGet),
            "message"
        );
    }

    #[test]
    fn what_is_not_known_is_measured_first() {
        let mut selector = Selector::new(Operations::Chosen);
        for _ in 0..RUN {
            assert_eq!(choose(&mut selector, Kind::KnownSet, 1), (true, true));
            selector.note_direct(Kind::KnownSet, 1, 1000.0);
        }
        for _ in 0..RUN {
            assert_eq!(choose(&mut selector, Kind::KnownSet, 1), (false, true));
            selector.note_active(1, 1, 2000);
        }
        assert_eq!(choose(&mut selector, Kind::KnownSet, 1), (true, false));
    }

    #[test]
    fn a_measurement_that_was_disturbed_changes_no_choice() {
        let mut selector = measured(Kind::UnknownGet, 1, 300.0, 900);
        // Kept from its core.
        selector.note_direct(Kind::UnknownGet, 1, 1e6);
        assert_eq!(directly(&mut selector, Kind::UnknownGet, 1, 64), 64);
        // The first touch of a page.
        let mut new = Selector::new(Operations::Chosen);
        new.note_direct(Kind::UnknownGet, 1, 1e5);
        for _ in 0..RUN {
            new.note_direct(Kind::UnknownGet, 1, 300.0);
            new.note_active(1, 1, 900);
        }
        assert_eq!(directly(&mut new, Kind::UnknownGet, 1, 64), 64);
    }

    #[test]
    fn the_cheaper_is_chosen_and_the_dearer_tried_as_seldom_as_it_is_dear() {
        let mut selector = measured(Kind::UnknownGet, 1, 300.0, 900);
        directly(&mut selector, Kind::UnknownGet, 1, 64 * 8 + 1);
        let run = 8 * 3 * 64;
        let direct = directly(&mut selector, Kind::UnknownGet, 1, 10 * (run + 8));
        assert_eq!(direct, 10 * run);
        note(&mut selector, Kind::KnownSet, 1, 300.0, 75);
        let direct = directly(&mut selector, Kind::UnknownGet, 1, 10 * 8 * 4 * 64);
        assert!((72..=88).contains(&direct), "{direct}");
        assert!((0..32).filter(|_| selector.times()).count() == 2);
    }

    #[test]
    fn a_way_that_is_dear_while_caches_are_cold_is_judged_by_how_it_is_when_they_are_not() {
        let mut selector = measured(Kind::UnknownGet, 1, 5000.0, 900);
        let mut since_message = 0;
        let mut direct = 0;
        for _ in 0..10_000 {
            if choose(&mut selector, Kind::UnknownGet, 1).0 {
                direct += 1;
                let nanos = if since_message == 0 { 5000.0 } else { 300.0 };
                since_message += 1;
                selector.note_direct(Kind::UnknownGet, 1, nanos);
            } else {
                since_message = 0;
            }
        }
        assert!(direct > 6000, "{direct}");
    }

    #[test]
    fn a_wave_of_many_sets_goes_as_messages_where_those_travel_together() {
        // As over TCP: a compare-swap is a round trip, and so is a message, but also 64 of them.
        let mut selector = measured(Kind::KnownSet, 1, 30_000.0, 40_000);
        note(&mut selector, Kind::KnownSet, 64, 30_000.0, 150_000);
        assert!(choose(&mut selector, Kind::KnownSet, 1).0);
        assert!(!choose(&mut selector, Kind::KnownSet, 50).0);
    }

    /// The costs in a wave: of a direct operation, and of a number of messages.
    struct Prices {
        direct: f64,
        messages: fn(u64) -> u64,
    }

    const OVER_TCP: Prices = Prices {
        direct: 30_000.0,
        messages: |count| 40_000 + 1000 * count,
    };

    /// Lets a selector choose for waves of such operations, and tells it their costs. Returns its choices, wave by
    /// wave.
    fn live(
        selector: &mut Selector,
        prices: &Prices,
        counts: [u32; KINDS],
        others: usize,
        waves: usize,
    ) -> Vec<Choice> {
        let mut wave = || {
            let choice = selector.choose(&counts, others);
            let mut messages = others;
            for kind in Kind::ALL {
                let count = counts[kind as usize] as usize;
                match choice.direct[kind as usize] {
                    true if count > 0 => selector.note_direct(kind, count, prices.direct),
                    true => {}
                    false => messages += count,
                }
            }
            assert_eq!(messages, choice.messages);
            if messages > 0 {
                let nanos = (prices.messages)(messages as u64);
                selector.note_active(messages, messages, nanos);
            }
            choice
        };
        (0..waves).map(|_| wave()).collect()
    }

    #[test]
    fn kinds_of_which_each_is_few_are_judged_by_what_travels_together() {
        let mut selector = Selector::new(Operations::Chosen);
        // 20 gets and 20 sets: 40 messages, which is another size than 20.
        let counts = [0, 20, 20];
        let choices = live(&mut selector, &OVER_TCP, counts, 0, 40);
        let last = choices.last().unwrap();
        assert_eq!((last.direct, last.messages), ([false; KINDS], 40));
        assert!(!last.trial);
    }

    #[test]
    fn messages_are_measured_now_and_then_where_all_go_directly() {
        let mut selector = Selector::new(Operations::Chosen);
        let dear = Prices {
            direct: 300.0,
            messages: |count| 900 * count,
        };
        let counts = [0, 20, 20];
        let choices = live(&mut selector, &dear, counts, 0, 20_000);
        let messages = choices.iter().filter(|choice| choice.messages > 0).count();
        assert!((40..400).contains(&messages), "{messages}");
        let trials = choices.iter().filter(|choice| choice.trial).count();
        assert!(trials < 400, "{trials}");
        // When messages suddenly become cheap, the selector finds out.
        let cheap = Prices {
            direct: 300.0,
            messages: |count| 90 * count,
        };
        let choices = live(&mut selector, &cheap, counts, 0, 20_000);
        let messages = choices
            .iter()
            .filter(|choice| choice.messages == 40)
            .count();
        assert!(messages > 15_000, "{messages}");
    }

    #[test]
    fn messages_in_place_of_direct_operations_hide_no_cost() {
        // One in ten direct operations fails, so that more messages are sent than were chosen.
        let mut selector = Selector::new(Operations::Chosen);
        for _ in 0..3 * RUN {
            let choice = selector.choose(&[0, 30, 0], 6);
            let sent = choice.messages + if choice.direct[1] { 3 } else { 0 };
            if choice.direct[1] {
                selector.note_direct(Kind::UnknownGet, 30, 300.0);
            }
            selector.note_active(choice.messages, sent, 900 * sent as u64);
        }
        let choice = selector.choose(&[0, 30, 0], 6);
        assert!(choice.direct[1] && !choice.trial && choice.messages == 6);
    }

    #[test]
    fn kinds_that_stay_are_judged_without_those_that_leave() {
        let mut selector = Selector::new(Operations::Chosen);
        // A single message is dearer than a direct set, 33 are not.
        live(&mut selector, &OVER_TCP, [0, 0, 1], 0, 40);
        for _ in 0..RUN {
            selector.note_direct(Kind::UnknownGet, 40, 100.0);
            selector.note_active(41, 41, 41_000);
        }
        let choice = selector.choose(&[0, 40, 1], 0);
        assert_eq!(choice.direct, [false, true, true]);
        assert!(!choice.trial);
        // Beside others that are messages in any case it is one more.
        let choice = selector.choose(&[0, 0, 1], 40);
        assert_eq!(choice.direct, [false; KINDS]);
    }

    #[test]
    fn a_policy_is_kept() {
        let mut direct = Selector::new(Operations::Direct);
        let mut active = Selector::new(Operations::Active);
        for kind in Kind::ALL {
            direct.note_direct(kind, 1, 1e12);
            assert!(choose(&mut direct, kind, 1).0 && !choose(&mut active, kind, 1).0);
        }
        assert!(direct.reads_buckets() && !active.reads_buckets());
        assert!(direct.goes_to_blocks() && !active.goes_to_blocks());
        assert!((0..100).all(|_| !direct.times()));
    }
}
