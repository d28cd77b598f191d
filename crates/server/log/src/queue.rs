//! The queue between the threads that log and the one that writes.
//!
//! A log may be slow, or stuck for ever: a pipe without a reader, a disk or a system's log that hangs. So no thread of
//! the server writes to it. It puts its lines into this queue, and if there is no more room, it drops and counts them:
//! a log that is not read costs lines, never a client's time. The log itself says how many were lost, at the place
//! where they would stand. Before that, the [`limit`](crate::limit) keeps lines that peers cause from being too many.

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem::{replace, take};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use nuthatch_base::sync::mutex::{Condvar, Mutex};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer};

use crate::limit::{LeftOut, Limiter, RATE, SPAN, Verdict};
use crate::lines::Lines;
use crate::record::Record;

/// Bytes of waiting items, at most; twice that while as much is being written.
const ROOM: usize = 2 << 20;

/// How long the end of the process waits for a log that is stuck.
const PATIENCE: Duration = Duration::from_secs(1);

thread_local! {
    static IS_WRITER: Cell<bool> = const { Cell::new(false) };
}

/// True in the thread that writes.
pub fn is_writer() -> bool {
    IS_WRITER.get()
}

/// Work for the thread that writes.
pub enum Item {
    /// An event.
    Event(Record),
    /// Text for people, written as it is.
    Words(String),
    /// Open the file again: items before this one go to the old file.
    Reopen,
}

impl Item {
    fn bytes(&self) -> usize {
        match self {
            Self::Event(record) => record.bytes(),
            Self::Words(words) => size_of::<Self>() + words.len(),
            Self::Reopen => 0,
        }
    }
}

/// The destination of items.
pub struct Sink {
    /// Writes events.
    pub events: Box<dyn Subscriber + Send + Sync>,
    /// The writer of the events' lines, if the destination is not the system's log.
    pub lines: Option<Arc<Lines>>,
}

impl Sink {
    fn write(&self, item: &Item) {
        match (item, &self.lines) {
            (Item::Event(record), _) => record.replay(&*self.events),
            (Item::Words(words), Some(lines)) => lines.append(words.as_bytes()),
            (Item::Reopen, Some(lines)) => {
                if let Err(error) = lines.reopen() {
                    tracing::warn!("{error}; the old one is still written");
                }
            }
            (Item::Words(_) | Item::Reopen, None) => {}
        }
    }

    fn flush(&self) {
        if let Some(lines) = &self.lines {
            lines.flush();
        }
    }

    /// How many writes were made.
    fn progress(&self) -> u64 {
        self.lines.as_ref().map_or(0, |lines| lines.progress())
    }
}

/// Items in their order, and the sink that writes them.
pub struct Queue {
    state: Mutex<State>,
    /// There is something to write.
    filled: Condvar,
    /// All was written.
    emptied: Condvar,
    lost: Arc<AtomicU64>,
    sink: Sink,
}

struct State {
    limiter: Limiter,
    waiting: VecDeque<Item>,
    bytes: usize,
    /// Items dropped behind those that wait.
    lost: u64,
    /// There is a thread that writes.
    has_writer: bool,
    is_writing: bool,
    /// Items that were written.
    written: u64,
}

/// Work for the thread that writes.
struct Work {
    items: VecDeque<Item>,
    /// Items dropped behind these.
    lost: u64,
    /// Lines that were never items.
    left_out: Vec<LeftOut>,
}

impl Queue {
    /// An empty queue, without a thread. `own` is the level that who runs the server wants, and `lost` counts the items
    /// that are dropped.
    pub fn new(sink: Sink, own: LevelFilter, lost: Arc<AtomicU64>) -> Self {
        let state = State {
            limiter: Limiter::new(own, Instant::now()),
            waiting: VecDeque::new(),
            bytes: 0,
            lost: 0,
            has_writer: false,
            is_writing: false,
            written: 0,
        };
        Self {
            state: Mutex::new(state),
            filled: Condvar::default(),
            emptied: Condvar::default(),
            lost,
            sink,
        }
    }

    /// Who runs the server wants this level from now on.
    pub fn set_own(&self, own: LevelFilter) {
        self.state.lock().limiter.set_own(own);
    }

    /// Takes an event, unless it is left out.
    fn take(&self, event: &Event<'_>) {
        let mut state = self.state.lock();
        let ended = state.limiter.next_end();
        let verdict = state.limiter.judge(event, Instant::now());
        if verdict == Verdict::LeftOut {
            // The writer waits for the end of the span.
            if ended.is_none() && !state.is_writing {
                self.filled.notify_one();
            }
            return;
        }
        drop(state);
        let record = Record::of(event);
        let mut state = self.state.lock();
        if verdict == Verdict::Charged {
            state.limiter.spend(record.bytes());
        }
        self.put(&mut state, Item::Event(record));
    }

    /// Takes an item, or drops it.
    pub fn push(&self, item: Item) {
        self.put(&mut self.state.lock(), item);
    }

    fn put(&self, state: &mut State, item: Item) {
        let bytes = state.bytes + item.bytes();
        if bytes > ROOM && !matches!(item, Item::Reopen) {
            state.lost += 1;
            // Relaxed: a statistic.
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.bytes = bytes;
        state.waiting.push_back(item);
        if !state.is_writing {
            self.filled.notify_one();
        }
    }

    /// Starts the thread that writes, if there is none.
    pub fn begin(self: &Arc<Self>) -> io::Result<()> {
        if replace(&mut self.state.lock().has_writer, true) {
            return Ok(());
        }
        let queue = Arc::clone(self);
        let writer = thread::Builder::new().name("log".to_owned());
        writer.spawn(move || {
            IS_WRITER.set(true);
            while queue.survives(|| queue.write()) {
                // Not of a line: it may be met again at once.
                thread::sleep(PATIENCE);
            }
        })?;
        Ok(())
    }

    /// Runs a part of the writer, and counts a line as lost if that panics: the hook tells of it. A log that has lost a
    /// line is better than none. True if it panicked.
    fn survives(&self, part: impl FnOnce()) -> bool {
        // Unwind safe: what a sink holds is a buffer of lines, each of which comes in one call, and the queue's own state
        // is valid at each step.
        let panicked = catch_unwind(AssertUnwindSafe(part)).is_err();
        if panicked {
            // Relaxed: a statistic.
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        panicked
    }

    /// Writes for ever.
    fn write(&self) {
        loop {
            let Work {
                items,
                lost,
                left_out,
            } = self.next();
            left_out.into_iter().for_each(log_left_out);
            if lost > 0 {
                // It is the next item of the queue: behind all of `items`, where the lost ones were.
                tracing::warn!(lost, "lines of the log were lost: it is written too slowly");
            }
            for item in items {
                self.survives(|| self.sink.write(&item));
                self.state.lock().written += 1;
            }
            self.survives(|| self.sink.flush());
        }
    }

    /// Waits for items, and takes all of them, how many were dropped behind them, and what was left out.
    fn next(&self) -> Work {
        let mut state = self.state.lock();
        loop {
            let now = Instant::now();
            let left_out = state.limiter.take_left_out(|begun| now >= begun + SPAN);
            if !state.waiting.is_empty() || !left_out.is_empty() {
                state.is_writing = true;
                state.bytes = 0;
                return Work {
                    items: take(&mut state.waiting),
                    lost: take(&mut state.lost),
                    left_out,
                };
            }
            state.is_writing = false;
            self.emptied.notify_all();
            state = match state.limiter.next_end() {
                Some(end) => self.filled.wait_for(state, end.duration_since(now)),
                None => self.filled.wait(state),
            };
        }
    }

    /// Waits until all is written, unless the log is stuck.
    pub fn flush(self: &Arc<Self>) {
        // The process may end before `begin` was called. If no thread can be started, no error can be reported.
        let _ = self.begin();
        let left_out = self.state.lock().limiter.take_left_out(|_| true);
        left_out.into_iter().for_each(log_left_out);
        let mut state = self.state.lock();
        while state.is_writing || !state.waiting.is_empty() {
            let seen = (state.written, self.sink.progress());
            state = self.emptied.wait_for(state, PATIENCE);
            if (state.written, self.sink.progress()) == seen {
                break;
            }
        }
    }
}

/// Logs how many lines were left out.
fn log_left_out(left_out: LeftOut) {
    let seconds = SPAN.as_secs();
    match left_out {
        LeftOut::Like(count, message) => tracing::warn!(
            count,
            "lines were left out, in {seconds} seconds or more: {message}"
        ),
        LeftOut::OfClient(count) => tracing::warn!(
            count,
            "lines were left out: by the verbosity that a client sets, {} KiB a second are written",
            RATE >> 10
        ),
    }
}

/// The subscriber that puts events into the queue.
pub struct Queueing(pub Arc<Queue>);

impl<S: Subscriber> Layer<S> for Queueing {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.take(event);
    }
}
