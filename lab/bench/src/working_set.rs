//! The benchmark of the CPHash paper (section 6): random lookups and inserts over a working set, on
//! several engines side by side, and for engines that work by messages the counts that explain
//! their throughput (section 6.2).
//!
//! A working set is given in bytes, as the paper's table counts them: an element is a line of header and a line of
//! value, so a working set of 1 MiB is 8192 keys. A key has 8 bytes, and its value is the same 8 bytes. Threads are
//! hardware threads: an engine with threads of its own has fewer clients by that number.

use std::fmt::{self, Display};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use nuthatch_engine::Engine;
use nuthatch_engine::stats::MessageStats;
use serde::Serialize;

use crate::engine::{
    BATCH_MAX, Items, Load, Operations, Options, Ours, Room, Subject, Tally, Worker, preload,
    round, too_large,
};
use crate::report::Spread;
use nuthatch_program::Failure;

/// Bytes of an element as the paper's table counts them.
pub const ELEMENT: usize = 128;

/// Bytes of a key, and of its value.
pub const WORD: usize = 8;

/// What an element takes at most in any of the engines, their indexes included.
const ROOM: usize = 256;

/// Memory beside the elements: 4096 partitions need some each, however small the working set is.
const ROOM_LEAST: usize = 256 << 20;

/// The fewest and the most operations of a thread's list before it repeats.
const OPERATIONS: (usize, usize) = (1 << 16, 1 << 22);

/// The paper's batch.
pub const BATCH: usize = 1000;

/// The paper's parameters, beside those that every engine bench has.
#[derive(Args, Clone, Debug)]
pub struct Parameters {
    /// Run the CPHash paper's benchmark instead, over working sets of these sizes, as in 64K,1M,1G
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        value_parser = nuthatch_program::size::parse,
        conflicts_with_all = ["rivals", "items", "grow", "get_ratio", "memory"]
    )]
    pub working_set: Vec<usize>,
    /// Room for this many bytes of a working set [default: all of it]
    #[arg(long, value_name = "BYTES", value_parser = nuthatch_program::size::parse, requires = "working_set")]
    pub capacity: Option<usize>,
    /// The share of inserts; the rest are lookups
    #[arg(
        long,
        value_name = "R",
        default_value_t = 0.3,
        requires = "working_set"
    )]
    pub insert_ratio: f64,
}

/// An engine of the comparison: how it is made, and how many client threads it has.
pub struct Contender {
    clients: usize,
    build: BuildSide,
}

/// Makes a side with this room that gets this many operations at a time.
type BuildSide = Box<dyn Fn(Room, usize) -> io::Result<Box<dyn Side>>>;

impl Contender {
    /// The engine that `build` makes, with `clients` client threads.
    pub fn new<E: Engine>(
        clients: usize,
        build: impl Fn(Room) -> io::Result<Arc<E>> + 'static,
    ) -> Self {
        let build = move |room, batch| -> io::Result<Box<dyn Side>> {
            let engine = build(room)?;
            Ok(Box::new(EngineSide {
                subject: Ours::new(Arc::clone(&engine), batch),
                engine,
                rounds: Rounds::default(),
            }))
        };
        Self {
            clients,
            build: Box::new(build),
        }
    }
}

/// The results of one engine's rounds.
#[derive(Default)]
struct Rounds {
    mops: Vec<f64>,
    tally: Tally,
    evictions: u64,
    messages: Option<MessageStats>,
}

/// One engine of the comparison, whichever type it has.
trait Side {
    /// Stores all items.
    fn preload(&self, items: &Items) -> Result<(), String>;

    /// Goes through the operations once, unmeasured.
    fn warm_up(&self, lists: &[Operations]);

    /// One round of these operations, a thread each.
    fn round(
        &mut self,
        lists: &[Operations],
        batch: usize,
        number: usize,
        time: Duration,
    ) -> Result<(), String>;

    /// The results.
    fn rounds(&self) -> &Rounds;

    /// Its name, and bytes in use.
    fn describe(&self) -> (&'static str, u64);
}

struct EngineSide<E> {
    subject: Ours<E>,
    engine: Arc<E>,
    rounds: Rounds,
}

impl<E: Engine> Side for EngineSide<E> {
    fn preload(&self, items: &Items) -> Result<(), String> {
        preload(&self.subject, items)
    }

    fn warm_up(&self, lists: &[Operations]) {
        for list in lists {
            self.subject.worker().run(list, 0, list.len());
        }
    }

    fn round(
        &mut self,
        lists: &[Operations],
        batch: usize,
        number: usize,
        time: Duration,
    ) -> Result<(), String> {
        let from = number * lists[0].len() / 7;
        let (evictions, messages) = (self.engine.stats().evictions, self.engine.message_stats());
        let (mops, tally) = round(&self.subject, lists, batch, from, time)?;
        let rounds = &mut self.rounds;
        rounds.mops.push(mops);
        rounds.tally.add(&tally);
        rounds.evictions += self.engine.stats().evictions - evictions;
        if let (Some(before), Some(after)) = (messages, self.engine.message_stats()) {
            add_difference(rounds.messages.get_or_insert_default(), &after, &before);
        }
        match rounds.tally.wrong {
            0 => Ok(()),
            wrong => Err(format!("{}: {wrong} wrong answers", self.engine.name())),
        }
    }

    fn rounds(&self) -> &Rounds {
        &self.rounds
    }

    fn describe(&self) -> (&'static str, u64) {
        (self.engine.name(), self.engine.stats().memory_used)
    }
}

/// Adds to `sum` the differences of the counters between two moments.
fn add_difference(sum: &mut MessageStats, after: &MessageStats, before: &MessageStats) {
    // Another thread that resets the counters meanwhile gets strange figures, but no panic.
    let counted = |after: u64, before: u64| after.saturating_sub(before);
    sum.server_threads = after.server_threads;
    sum.operations += counted(after.operations, before.operations);
    sum.lines_sent += counted(after.lines_sent, before.lines_sent);
    sum.messages_sent += counted(after.messages_sent, before.messages_sent);
    sum.lines_received += counted(after.lines_received, before.lines_received);
    sum.answers_received += counted(after.answers_received, before.answers_received);
    sum.messages_served += counted(after.messages_served, before.messages_served);
    sum.self_served += counted(after.self_served, before.self_served);
    sum.busy_nanos += counted(after.busy_nanos, before.busy_nanos);
    sum.polling_nanos += counted(after.polling_nanos, before.polling_nanos);
    sum.sleeping_nanos += counted(after.sleeping_nanos, before.sleeping_nanos);
    sum.hand_overs += counted(after.hand_overs, before.hand_overs);
}

/// The results of the benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Operations at a time.
    pub batch: usize,
    /// The share of inserts.
    pub insert_ratio: f64,
    /// Each working set in turn.
    pub working_sets: Vec<WorkingSet>,
}

/// The results for one working set.
#[derive(Clone, Debug, Serialize)]
pub struct WorkingSet {
    /// Its bytes.
    pub bytes: usize,
    /// Bytes of it that there is room for.
    pub capacity: usize,
    /// How many keys it has.
    pub keys: u64,
    /// The engines, in the order that they were named in.
    pub engines: Vec<EngineReport>,
}

/// The results of one engine.
#[derive(Clone, Debug, Serialize)]
pub struct EngineReport {
    /// The engine's name.
    pub engine: &'static str,
    /// Client threads.
    pub clients: usize,
    /// Bytes that the engine used.
    pub memory_used: u64,
    /// Million operations a second.
    pub mops: f64,
    /// The same with its spread.
    pub mops_spread: Spread,
    /// This engine / the one that was named first, round by round.
    pub ratio: Spread,
    /// Hits among lookups.
    pub hit_ratio: f64,
    /// Evictions an insert.
    pub evictions_per_insert: f64,
    /// The messages, for engines that work by messages.
    pub messages: Option<MessageReport>,
}

/// The counts that explain the throughput of an engine that works by messages (section 6.2).
#[derive(Clone, Debug, Serialize)]
pub struct MessageReport {
    /// The engine's own threads.
    pub server_threads: u64,
    /// Messages in a line to a server thread.
    pub messages_per_line: f64,
    /// Lines of messages an operation.
    pub lines_sent_per_op: f64,
    /// Lines of answers an operation.
    pub lines_received_per_op: f64,
    /// The share of the server threads' time, while awake, that they spent serving.
    pub serving_share: f64,
    /// Nanoseconds of serving a message.
    pub ns_per_message: f64,
    /// The share of messages that clients took themselves, while the server thread slept.
    pub self_served_share: f64,
    /// How often a partition changed its thread.
    pub hand_overs: u64,
}

impl MessageReport {
    fn of(stats: &MessageStats) -> Self {
        let by = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        Self {
            server_threads: stats.server_threads,
            messages_per_line: by(stats.messages_sent, stats.lines_sent),
            lines_sent_per_op: by(stats.lines_sent, stats.operations),
            lines_received_per_op: by(stats.lines_received, stats.operations),
            serving_share: by(stats.busy_nanos, stats.busy_nanos + stats.polling_nanos),
            ns_per_message: by(stats.busy_nanos, stats.messages_served),
            self_served_share: by(stats.self_served, stats.self_served + stats.messages_served),
            hand_overs: stats.hand_overs,
        }
    }
}

/// Runs the benchmark on these engines.
pub fn run(contenders: &[Contender], options: &Options) -> Result<Report, Failure> {
    let parameters = &options.paper;
    if !(0.0..=1.0).contains(&parameters.insert_ratio) {
        return Err(Failure::usage("--insert-ratio: 0 to 1"));
    }
    let batch = options.batch.unwrap_or(BATCH);
    if batch == 0 || options.rounds == 0 || contenders.iter().any(|one| one.clients == 0) {
        return Err(Failure::usage("--threads, --batch, --rounds: at least 1"));
    }
    if batch > BATCH_MAX {
        return Err(too_large(batch));
    }
    let mut working_sets = Vec::new();
    for &bytes in &parameters.working_set {
        if bytes < ELEMENT {
            let words = format!("--working-set: at least {ELEMENT} bytes");
            return Err(Failure::Usage(words));
        }
        working_sets.push(measure(contenders, options, batch, bytes)?);
    }
    Ok(Report {
        batch,
        insert_ratio: parameters.insert_ratio,
        working_sets,
    })
}

/// Measures all engines over one working set, in alternating rounds.
fn measure(
    contenders: &[Contender],
    options: &Options,
    batch: usize,
    bytes: usize,
) -> Result<WorkingSet, Failure> {
    let items = Items::alike((bytes / ELEMENT) as u64, WORD, WORD);
    let capacity = options
        .paper
        .capacity
        .map_or(bytes, |wanted| wanted.min(bytes));
    let room = if capacity == bytes {
        items.count as usize * ROOM + ROOM_LEAST
    } else {
        capacity
    };
    let room = Room {
        memory: room,
        items: Some(capacity / ELEMENT),
    };
    let insert_ratio = options.paper.insert_ratio;
    let lists = lists(contenders, options, &items);
    let mut sides = Vec::new();
    for contender in contenders {
        let side = (contender.build)(room, batch)?;
        // The paper's table is empty at first, and stays so if nothing is inserted.
        if insert_ratio > 0.0 {
            side.preload(&items)?;
        }
        side.warm_up(&lists[..contender.clients]);
        sides.push(side);
    }
    for number in 0..options.rounds {
        for (side, contender) in sides.iter_mut().zip(contenders) {
            let lists = &lists[..contender.clients];
            side.round(lists, batch, number, options.round_time())?;
        }
    }
    let first: Vec<f64> = match sides.first() {
        Some(side) => side.rounds().mops.clone(),
        None => return Err(Failure::usage("--engine: none is named")),
    };
    let engines = sides.iter().zip(contenders);
    Ok(WorkingSet {
        bytes,
        capacity,
        keys: items.count,
        engines: engines
            .map(|(side, contender)| report(side.as_ref(), contender.clients, &first))
            .collect(),
    })
}

/// Lists of operations for the largest number of client threads of any engine.
fn lists(contenders: &[Contender], options: &Options, items: &Items) -> Vec<Operations> {
    let threads = contenders.iter().map(|one| one.clients).max().unwrap_or(0);
    let count = (2 * items.count as usize).clamp(OPERATIONS.0, OPERATIONS.1);
    let load = Load::new(1.0 - options.paper.insert_ratio, options.dist);
    (0..threads)
        .map(|thread| Operations::random(items, count, &load, thread))
        .collect()
}

fn report(side: &dyn Side, clients: usize, first: &[f64]) -> EngineReport {
    let (engine, memory_used) = side.describe();
    let rounds = side.rounds();
    let mops_spread = Spread::of(rounds.mops.iter().copied());
    let inserts = rounds.tally.operations - rounds.tally.gets;
    EngineReport {
        engine,
        clients,
        memory_used,
        mops: mops_spread.median,
        mops_spread,
        ratio: Spread::of_ratios(&rounds.mops, first),
        hit_ratio: rounds.tally.hit_ratio(),
        evictions_per_insert: rounds.evictions as f64 / inserts.max(1) as f64,
        messages: rounds.messages.as_ref().map(MessageReport::of),
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "batches of {}, {:.0} % inserts; a ratio is to the engine named first",
            self.batch,
            self.insert_ratio * 100.0
        )?;
        for set in &self.working_sets {
            writeln!(
                out,
                "working set {} KiB, {} keys, room for {} KiB",
                set.bytes >> 10,
                set.keys,
                set.capacity >> 10
            )?;
            for engine in &set.engines {
                write!(out, "{engine}")?;
            }
        }
        Ok(())
    }
}

impl Display for EngineReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "  {:<14} {:.2} Mop/s, ratio {:.2}; {} clients, {} KiB, hit ratio {:.4}, {:.3} evictions \
             an insert",
            self.engine,
            self.mops_spread,
            self.ratio,
            self.clients,
            self.memory_used >> 10,
            self.hit_ratio,
            self.evictions_per_insert
        )?;
        let Some(messages) = &self.messages else {
            return Ok(());
        };
        writeln!(
            out,
            "  {:<14} {} server threads, {:.2} messages a line; lines an operation: {:.3} sent, \
             {:.3} received; serving {:.0} % of their time, {:.1} ns a message",
            "",
            messages.server_threads,
            messages.messages_per_line,
            messages.lines_sent_per_op,
            messages.lines_received_per_op,
            messages.serving_share * 100.0,
            messages.ns_per_message
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_add_up() {
        let before = MessageStats {
            operations: 10,
            lines_sent: 3,
            messages_sent: 15,
            lines_received: 2,
            messages_served: 15,
            busy_nanos: 500,
            polling_nanos: 500,
            server_threads: 1,
            ..MessageStats::default()
        };
        let after = MessageStats {
            operations: 30,
            lines_sent: 8,
            messages_sent: 55,
            lines_received: 6,
            messages_served: 55,
            busy_nanos: 2500,
            polling_nanos: 3500,
            ..before
        };
        let mut sum = MessageStats::default();
        add_difference(&mut sum, &after, &before);
        add_difference(&mut sum, &after, &before);
        let report = MessageReport::of(&sum);
        assert_eq!(
            (report.messages_per_line, report.lines_sent_per_op),
            (8.0, 0.25)
        );
        assert_eq!(
            (report.lines_received_per_op, report.serving_share),
            (0.2, 0.4)
        );
        assert_eq!(report.ns_per_message, 50.0);
        let nothing = MessageReport::of(&MessageStats::default());
        assert_eq!((nothing.serving_share, nothing.ns_per_message), (0.0, 0.0));
    }
}
