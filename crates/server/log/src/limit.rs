//! The limit on lines that peers can cause: neither an error that a peer repeats nor a level of detail that it asked for
//! may fill a disk. Every line passes here, so that no place that logs can forget it; what is left out is counted, and
//! the log tells the count.
//!
//! * A kind of line, which is a place in the program, has [`LINES`] lines in each [`SPAN`]. Lines of commands and replies
//!   (DEBUG and TRACE) have no kinds: who runs the server asked for all of them by `-vv`.
//! * Lines that are only written because a client raised the level (`verbosity`) share a [`Budget`] of bytes.
//!
//! The log's own lines pass: they are of the start, of who runs the server, and of this limit.

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::mem::take;
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata};
use tracing_subscriber::filter::LevelFilter;

/// Lines of a kind in a [`SPAN`].
const LINES: u32 = 10;

pub const SPAN: Duration = Duration::from_secs(10);

/// Bytes that lines of a client's level may have at once.
const BURST: u64 = 1 << 20;

/// Bytes of such lines that are written in a second when these are used up.
pub const RATE: u64 = 8 << 10;

/// The most bytes of a message that stands for lines that were left out.
const MESSAGE_MAX: usize = 200;

/// What was written lately.
pub struct Limiter {
    /// The level that who runs the server has set.
    own: LevelFilter,
    /// As many as the program has places that log.
    kinds: HashMap<Identifier, Kind>,
    budget: Budget,
}

struct Kind {
    begun: Instant,
    lines: u32,
    left_out: u64,
    /// The message of the first line that was left out.
    like: String,
}

/// Bytes for lines of a client's level.
struct Budget {
    bytes: u64,
    filled: Instant,
    left_out: u64,
    /// When the first of these was left out.
    begun: Instant,
}

/// Lines that were left out in a span that is over.
#[derive(Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// So many, each like this one.
    Like(u64, String),
    /// So many of a client's level.
    OfClient(u64),
}

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is written.
    Written,
    /// It is written, and [`Limiter::spend`] gets its length.
    Charged,
    /// It is left out.
    LeftOut,
}

impl Limiter {
    pub fn new(own: LevelFilter, now: Instant) -> Self {
        Self {
            own,
            kinds: HashMap::new(),
            budget: Budget {
                bytes: BURST,
                filled: now,
                left_out: 0,
                begun: now,
            },
        }
    }

    /// Who runs the server sets the level.
    pub fn set_own(&mut self, own: LevelFilter) {
        self.own = own;
    }

    /// Judges a line, and counts it.
    pub fn judge(&mut self, event: &Event<'_>, now: Instant) -> Verdict {
        let about = event.metadata();
        if is_ours(about) {
            return Verdict::Written;
        }
        if *about.level() > self.own {
            return self.budget.judge(now);
        }
        if *about.level() > Level::INFO {
            return Verdict::Written;
        }
        let kind = self.kinds.entry(about.callsite());
        let kind = kind.or_insert_with(|| Kind::begin(now));
        kind.judge(event, now)
    }

    /// A line that was charged has this many bytes.
    pub fn spend(&mut self, bytes: usize) {
        self.budget.bytes = self.budget.bytes.saturating_sub(bytes as u64);
    }

    /// What was left out in spans that are over, or in all of them. It is counted from 0 again.
    pub fn take_left_out(&mut self, is_over: impl Fn(Instant) -> bool) -> Vec<LeftOut> {
        let mut all = Vec::new();
        for kind in self.kinds.values_mut() {
            if kind.left_out > 0 && is_over(kind.begun) {
                all.push(LeftOut::Like(
                    take(&mut kind.left_out),
                    take(&mut kind.like),
                ));
            }
        }
        if self.budget.left_out > 0 && is_over(self.budget.begun) {
            all.push(LeftOut::OfClient(take(&mut self.budget.left_out)));
        }
        all
    }

    /// When the first of the spans ends in which lines were left out.
    pub fn next_end(&self) -> Option<Instant> {
        let kinds = self.kinds.values().map(|kind| (kind.left_out, kind.begun));
        let all = kinds.chain([(self.budget.left_out, self.budget.begun)]);
        let begun = all.filter(|(count, _)| *count > 0).map(|(_, begun)| begun);
        begun.min().map(|begun| begun + SPAN)
    }
}

impl Kind {
    fn begin(now: Instant) -> Self {
        Self {
            begun: now,
            lines: 0,
            left_out: 0,
            like: String::new(),
        }
    }

    fn judge(&mut self, event: &Event<'_>, now: Instant) -> Verdict {
        // A span in which lines were left out goes on until they are told.
        if self.left_out == 0 && now.duration_since(self.begun) >= SPAN {
            *self = Self::begin(now);
        }
        if self.lines < LINES {
            self.lines += 1;
            return Verdict::Written;
        }
        if self.left_out == 0 {
            event.record(&mut Message(&mut self.like));
        }
        self.left_out += 1;
        Verdict::LeftOut
    }
}

impl Budget {
    fn judge(&mut self, now: Instant) -> Verdict {
        let filled = now.duration_since(self.filled).as_millis() as u64 * RATE / 1000;
        // A moment that fills nothing is counted with the next one.
        if filled > 0 {
            self.bytes = (self.bytes + filled).min(BURST);
            self.filled = now;
        }
        if self.bytes > 0 {
            return Verdict::Charged;
        }
        if self.left_out == 0 {
            self.begun = now;
        }
        self.left_out += 1;
        Verdict::LeftOut
    }
}

/// True for a line of this crate.
fn is_ours(about: &Metadata<'_>) -> bool {
    about.target().split("::").next() == Some(env!("CARGO_CRATE_NAME"))
}

/// Takes an event's message.
struct Message<'m>(&'m mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // Writing to a String does not fail.
            let _ = write!(self.0, "{value:?}");
            self.0.truncate(self.0.floor_char_boundary(MESSAGE_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

    /// A limiter, the time for it, and its verdicts.
    struct Judge {
        limiter: Limiter,
        now: Instant,
        verdicts: Vec<Verdict>,
    }

    #[derive(Clone)]
    struct Judging(Arc<Mutex<Judge>>);

    impl<S: tracing::Subscriber> Layer<S> for Judging {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut judge = self.0.lock().unwrap();
            let now = judge.now;
            let verdict = judge.limiter.judge(event, now);
            judge.verdicts.push(verdict);
        }
    }

    impl Judging {
        fn new(own: LevelFilter) -> Self {
            let now = Instant::now();
            let limiter = Limiter::new(own, now);
            let verdicts = Vec::new();
            Self(Arc::new(Mutex::new(Judge {
                limiter,
                now,
                verdicts,
            })))
        }

        /// The verdicts on the lines of `write`, this long after the last ones.
        fn judge(&self, after: Duration, write: impl FnOnce()) -> Vec<Verdict> {
            self.0.lock().unwrap().now += after;
            let subscriber = tracing_subscriber::registry().with(self.clone());
            tracing::subscriber::with_default(subscriber, write);
            take(&mut self.0.lock().unwrap().verdicts)
        }

        fn left_out(&self) -> Vec<LeftOut> {
            let mut judge = self.0.lock().unwrap();
            let now = judge.now;
            judge.limiter.take_left_out(|begun| now >= begun + SPAN)
        }
    }

    fn login(peer: u64) {
        tracing::warn!(target: "server", peer, "a login failed");
    }

    #[test]
    fn of_many_lines_of_a_kind_a_few_are_written_and_the_others_are_counted() {
        let judging = Judging::new(LevelFilter::WARN);
        let verdicts = judging.judge(Duration::ZERO, || {
            (0..100).for_each(login);
            // Another place is another kind, and the log's own lines are of none.
            tracing::warn!(target: "server", "a handshake failed");
            tracing::warn!("one of ours");
        });
        let [first @ .., handshake, ours] = verdicts.as_slice() else {
            panic!("{verdicts:?}");
        };
        let (written, left_out) = first.split_at(LINES as usize);
        assert!(written.iter().all(|it| *it == Verdict::Written));
        assert!(left_out.iter().all(|it| *it == Verdict::LeftOut));
        assert_eq!((*handshake, *ours), (Verdict::Written, Verdict::Written));
        // They are told when the span is over, and then lines are written again.
        assert_eq!(judging.left_out(), []);
        let verdicts = judging.judge(SPAN, || login(1));
        assert_eq!(verdicts, [Verdict::LeftOut]);
        let told = LeftOut::Like(91, "a login failed".to_owned());
        assert_eq!(judging.left_out(), [told]);
        assert_eq!(
            judging.judge(Duration::ZERO, || login(2)),
            [Verdict::Written]
        );
        assert_eq!(
            (
                judging.left_out(),
                judging.0.lock().unwrap().limiter.next_end()
            ),
            (vec![], None)
        );
    }

    #[test]
    fn a_level_that_a_client_asked_for_has_a_budget() {
        let detail = || tracing::debug!(target: "server", "<28 get a");
        let judging = Judging::new(LevelFilter::WARN);
        assert_eq!(judging.judge(Duration::ZERO, detail), [Verdict::Charged]);
        judging.0.lock().unwrap().limiter.spend(BURST as usize + 5);
        let verdicts = judging.judge(Duration::ZERO, || (0..3).for_each(|_| detail()));
        assert_eq!(verdicts, [Verdict::LeftOut; 3]);
        let second = Duration::from_secs(1);
        assert_eq!(judging.judge(second, detail), [Verdict::Charged]);
        assert_eq!(judging.0.lock().unwrap().limiter.budget.bytes, RATE);
        assert_eq!(judging.left_out(), []);
        judging.judge(SPAN, || ());
        assert_eq!(judging.left_out(), [LeftOut::OfClient(3)]);
        // Who runs the server has all that he asks for.
        judging
            .0
            .lock()
            .unwrap()
            .limiter
            .set_own(LevelFilter::DEBUG);
        judging.0.lock().unwrap().limiter.spend(2 * BURST as usize);
        let verdicts = judging.judge(Duration::ZERO, || (0..100).for_each(|_| detail()));
        assert_eq!(verdicts, [Verdict::Written; 100]);
    }
}
