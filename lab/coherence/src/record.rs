//! Records an engine: the program runs itself under valgrind, and divides what lackey prints.
//!
//! ```text
//!  this process                              valgrind --tool=lackey, this program with --record
//!    divide <---- a pipe: each access ---------- the engine, filled, then the pieces with their marks
//!           <---- a pipe: layout, summary ------
//! ```

use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nuthatch_base::sync::ring::Array;
use nuthatch_cphash::CpHash;
use nuthatch_cphash::config::{CpHashConfig, ServerThreads};
use nuthatch_engine::{Engine, Inspect, KeyHasher};
use nuthatch_partition::layout::ORDER_WORD;
use nuthatch_partition::lockhash::LockHash;
use nuthatch_partition::lockhash::config::LockHashConfig;
use nuthatch_program::child::{Group, Running};
use nuthatch_program::{Failure, output};
use serde::{Deserialize, Serialize};

use crate::divide::{Divided, Events, Layout, Mark, divide};
use crate::lackey::{Line, parse};
use crate::recorded::{Moment, Plan};
use crate::recording::Recording;

/// An engine that can be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Recorded {
    /// Partitions with server threads
    Cphash,
    /// The same partitions behind locks
    Lockhash,
}

impl Recorded {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cphash => "cphash",
            Self::Lockhash => "lockhash",
        }
    }
}

/// What is recorded.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The engine.
    pub engine: Recorded,
    /// Its partitions.
    pub partitions: usize,
    /// The operations.
    pub plan: Plan,
}

/// The recorded program's words at its end.
#[derive(Serialize, Deserialize)]
struct Summary {
    layout: Layout,
    partitions: usize,
    lines_sent: u64,
}

/// Stored to at each moment, so that it shows among the accesses. On lines of their own.
#[repr(align(64))]
struct Marks([AtomicU8; Mark::COUNT]);

static MARKS: Marks = Marks([const { AtomicU8::new(0) }; Mark::COUNT]);

fn mark(mark: Mark) {
    MARKS.0[mark as usize].store(1, Ordering::Relaxed);
}

/// Memory beside the elements: as `bench engine` gives it.
const ROOM: usize = 256 << 20;

/// The same keys lie in the same partitions in every recording.
const SEED: u64 = 1;

/// Bytes of the thread's stack below and above a variable of the function that carries the plan out.
const STACK: (u64, u64) = (512 << 10, 64 << 10);

fn range(range: &Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

fn layout(of: &nuthatch_partition::layout::Layout, served: bool) -> Layout {
    let here = 0_u8;
    let here = (&raw const here).addr() as u64;
    Layout {
        marks: (&raw const MARKS).addr() as u64,
        stack: here.saturating_sub(STACK.0)..here + STACK.1,
        partitions: range(&of.partitions),
        partition_size: of.partition_size as u64,
        blocks: range(&of.blocks),
        bookkeeping: of.bookkeeping.iter().map(range).collect(),
        buckets: of.buckets.iter().map(range).collect(),
        order_word: ORDER_WORD as u8,
        served,
    }
}

/// The recorded program: runs the engine, and prints its layout and a summary.
pub fn recorded(wanted: &Wanted) -> Result<(), Failure> {
    let memory_limit = wanted.plan.keys() * 256 + ROOM;
    let (hasher, initial_items) = (KeyHasher::seeded(SEED), Some(wanted.plan.keys()));
    match wanted.engine {
        Recorded::Cphash => {
            // The server thread sleeps, since clients serve themselves: so their turns are in one thread's accesses.
            let engine = Arc::new(CpHash::<Array>::new(CpHashConfig {
                memory_limit,
                partitions: wanted.partitions,
                server_threads: ServerThreads::Adaptive { min: 1, max: 1 },
                hasher,
                initial_items,
                ..CpHashConfig::default()
            })?);
            let drain = |engine: &CpHash<Array>| {
                engine.stats();
            };
            let layout = |engine: &CpHash<Array>| layout(&engine.layout(), true);
            carry_out(&wanted.plan, &engine, layout, is_asleep, drain)
        }
        Recorded::Lockhash => {
            let engine = Arc::new(LockHash::new(LockHashConfig {
                memory_limit,
                partitions: Some(wanted.partitions as u32),
                hasher,
                initial_items,
                ..LockHashConfig::default()
            })?);
            let layout = |engine: &LockHash| layout(&engine.layout(), false);
            carry_out(&wanted.plan, &engine, layout, |_| true, |_| {})
        }
    }
}

/// How long the server thread gets to fall asleep, each time twice as long as before: it looks around a hundred times
/// first, and is slow here.
const PAUSES: [u64; 9] = [20, 40, 80, 160, 320, 640, 1280, 2560, 5120];

/// True once the server thread sleeps, so that clients serve all partitions themselves. It is left alone before it is
/// asked: here only one thread runs at a time, and one that waits for another takes millions of instructions.
fn is_asleep(engine: &CpHash<Array>) -> bool {
    let self_served = || engine.message_stats().map_or(0, |stats| stats.self_served);
    let asks = || {
        let before = self_served();
        engine.stats();
        self_served() - before >= engine.partition_count() as u64
    };
    PAUSES.iter().any(|&pause| {
        std::thread::sleep(Duration::from_millis(pause));
        asks()
    })
}

fn carry_out<E: Engine + Inspect>(
    plan: &Plan,
    engine: &Arc<E>,
    layout: impl Fn(&E) -> Layout,
    is_asleep: impl Fn(&E) -> bool,
    drain: impl Fn(&E),
) -> Result<(), Failure> {
    let mut awake = !is_asleep(engine);
    tell(&layout(engine))?;
    let sent = || engine.message_stats().map_or(0, |stats| stats.lines_sent);
    let mut before = None;
    plan.run(engine, |moment| match moment {
        Moment::Begin => {
            awake |= !is_asleep(engine);
            before.get_or_insert_with(sent);
            mark(Mark::Begin);
        }
        Moment::Done => {
            mark(Mark::Done);
            drain(engine);
            mark(Mark::Drained);
        }
    })?;
    if awake {
        return Err(Failure::run("the server thread does not go to sleep"));
    }
    let (layout, lines_sent) = (layout(engine), sent() - before.unwrap_or(0));
    tell(&Summary {
        partitions: ((layout.partitions.end - layout.partitions.start) / layout.partition_size)
            as usize,
        layout,
        lines_sent,
    })
}

fn tell(words: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(words).map_err(|error| error.to_string())?;
    output::print(&format!("{text}\n"))?;
    std::io::stdout().flush()?;
    Ok(())
}

/// Records an engine.
pub fn record(wanted: &Wanted) -> Result<Recording, Failure> {
    output::note(&format!(
        "recording {} with {} partitions",
        wanted.engine.name(),
        wanted.partitions
    ));
    let mut child = start(wanted)?;
    let (Some(told), Some(accesses)) = (child.stdout(), child.stderr()) else {
        unreachable!("both are pipes");
    };
    let layout = OnceLock::new();
    let (events, summary) = std::thread::scope(|scope| {
        let listener = scope.spawn(|| listen(told, &layout));
        let events = follow(accesses, &layout);
        let summary = listener
            .join()
            .unwrap_or_else(|_| Err("the listener failed".to_owned()));
        (events, summary)
    });
    let Followed { events, words } = events?;
    let status = child.wait()?;
    if !status.success() {
        let words = words.join("\n");
        return Err(format!("the recorded program failed ({status}): {words}").into());
    }
    let Summary {
        layout,
        partitions,
        lines_sent,
    } = summary?;
    let events =
        events.ok_or_else(|| Failure::run("the recorded program ended before it began"))?;
    let Divided {
        pieces,
        lines,
        instructions,
        served_instructions,
    } = divide(&events, &layout)?;
    let recording = Recording {
        engine: wanted.engine.name().to_owned(),
        working_set: wanted.plan.working_set,
        batch: wanted.plan.batch,
        operations: wanted.plan.piece,
        partitions,
        served: layout.served,
        instructions,
        served_instructions,
        lines_sent,
        lines,
        pieces,
    };
    recording.check()?;
    Ok(recording)
}

fn start(wanted: &Wanted) -> Result<Running, Failure> {
    let Plan {
        working_set,
        insert_ratio,
        batch,
        piece,
        pieces,
    } = wanted.plan;
    let mut command = Command::new(std::env::var_os("VALGRIND").unwrap_or("valgrind".into()));
    command
        .args(["--tool=lackey", "--trace-mem=yes", "--log-fd=2"])
        .arg(std::env::current_exe()?)
        .args([
            "bench",
            "coherence",
            "--record",
            "--engine",
            wanted.engine.name(),
        ])
        .args(["--partitions", &wanted.partitions.to_string()])
        .args(["--working-set", &working_set.to_string()])
        .args(["--insert-ratio", &insert_ratio.to_string()])
        .args(["--batch", &batch.to_string()])
        .args(["--piece", &piece.to_string()])
        .args(["--recorded", &(piece * pieces).to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // In this program's group: a figure ends all of that.
    Running::start(&mut command, Group::Shared).map_err(|error| {
        Failure::from(format!(
            "valgrind: {error} (Debian's package valgrind has it; --recording FILE needs none)"
        ))
    })
}

/// Reads what the recorded program tells.
fn listen(told: impl Read, layout: &OnceLock<Layout>) -> Result<Summary, String> {
    let mut lines = BufReader::new(told).lines();
    let mut next = || {
        let line = lines.next().ok_or("the recorded program told nothing")?;
        line.map_err(|error| error.to_string())
    };
    let first = serde_json::from_str(&next()?).map_err(|error| error.to_string())?;
    // It is the only one that sets it.
    let _ = layout.set(first);
    serde_json::from_str(&next()?).map_err(|error| error.to_string())
}

/// What was read of the accesses.
struct Followed {
    events: Option<Events>,
    /// The last lines that are no accesses.
    words: Vec<String>,
}

/// Words that are kept.
const WORDS: usize = 8;

/// A pipe that is read a large piece at a time. Lackey writes each line by a system call of its own: were a reader waiting
/// at the pipe, each of them would wake it.
struct Unhurried<R>(R);

/// What a pipe holds by default, in bytes.
const PIPE: usize = 64 << 10;

/// While it fills.
const PAUSE: Duration = Duration::from_micros(500);

impl<R: Read> Read for Unhurried<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(buffer)?;
        if (1..PIPE / 2).contains(&read) {
            std::thread::sleep(PAUSE);
        }
        Ok(read)
    }
}

/// Reads the accesses. Those before the layout is known are the engine's making.
fn follow(accesses: impl Read, layout: &OnceLock<Layout>) -> Result<Followed, String> {
    let mut reader = BufReader::with_capacity(1 << 20, Unhurried(accesses));
    let mut events: Option<Events> = None;
    let mut words = Vec::new();
    let mut line = Vec::new();
    let mut number = 0_u64;
    loop {
        line.clear();
        number += 1;
        let bytes = reader
            .read_until(b'\n', &mut line)
            .map_err(|error| error.to_string())?;
        if bytes == 0 {
            return Ok(Followed { events, words });
        }
        if events.is_none()
            && let Some(layout) = layout.get()
        {
            events = Some(Events::new(layout.clone()));
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        match (parse(text), &mut events) {
            (Some(Line::Words) | None, Some(events)) if events.is_recording() => {
                let text = String::from_utf8_lossy(text);
                return Err(format!(
                    "line {number} of the recording is no access: {text}"
                ));
            }
            (Some(Line::Words), _) => {}
            (None, _) => {
                words.push(String::from_utf8_lossy(text).into_owned());
                if words.len() > WORDS {
                    words.remove(0);
                }
            }
            (Some(line), Some(events)) => events.take(line),
            (Some(_), None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(served: bool) -> OnceLock<Layout> {
        let layout = OnceLock::new();
        let marks = Layout {
            marks: 0x1000,
            served,
            ..Layout::default()
        };
        layout.set(marks).unwrap();
        layout
    }

    #[test]
    fn a_bad_line_in_the_recording_is_told_with_its_number() {
        let text = "==1== Lackey\nI  0,3\n S 1000,1\n L 50,8\n L 5z,8\n";
        let failure = follow(text.as_bytes(), &known(false)).err().unwrap();
        assert!(
            failure.contains("line 5") && failure.contains("5z"),
            "{failure}"
        );
        // Outside of it, it is the program's own words.
        let followed = follow("no memory\n".as_bytes(), &known(false)).unwrap();
        assert_eq!(followed.words, ["no memory"]);
    }

    #[test]
    fn a_recording_that_is_cut_off_is_refused() {
        let followed = follow(" S 1000,1\n L 50,8\n L 5".as_bytes(), &known(false));
        assert!(followed.err().unwrap().contains("line 3"));
        let followed = follow(" S 1000,1\n L 50,8\n".as_bytes(), &known(false)).unwrap();
        let layout = known(false);
        assert!(divide(&followed.events.unwrap(), layout.get().unwrap()).is_err());
    }
}
