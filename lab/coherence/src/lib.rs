//! A model of CPHash and LockHash on machines of many cores. It is not a measurement, but it runs the engines' own code:
//! their accesses are recorded line by line ([`record`]), and replayed by many threads on a machine with private caches,
//! sockets and a directory ([`replay`], [`memory`]), whose parameters are given ([`machine`]).
//!
//! ```text
//!  valgrind, one thread        recording                        replay                        report
//!  instructions, accesses -->  pieces of a client,  -->  n threads: caches, locks,  -->  operations a second,
//!  lackey, divide              items of servers          rings; machines/*.toml          and why
//! ```
//!
//! What it leaves out is in docs/coherence.md.

#![forbid(unsafe_code)]

pub mod divide;
pub mod figures;
mod kept;
pub mod lackey;
pub mod machine;
mod measured;
pub mod memory;
pub mod record;
pub mod recorded;
pub mod recording;
pub mod replay;
pub mod report;

use std::path::{Path, PathBuf};

use clap::Args;
use nuthatch_program::{Failure, child, output};

use machine::Machine;
use record::{Recorded, Wanted};
use recorded::Plan;
use recording::Recording;
use replay::Load;
use report::{RecordedReport, Report, Row};

/// Options of the model.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The machine: that of the paper, this one, or a file like lab/coherence/machines/paper.toml
    #[arg(long, value_name = "paper|here|FILE", default_value = "paper")]
    pub machine: String,
    /// The engines
    #[arg(
        long = "engine",
        value_enum,
        value_delimiter = ',',
        default_value = "cphash,lockhash"
    )]
    pub engines: Vec<Recorded>,
    /// Hardware threads; of those of cphash one half are servers
    #[arg(
        long,
        value_name = "T",
        value_delimiter = ',',
        default_value = "20,80,160"
    )]
    pub threads: Vec<usize>,
    /// Use one hardware thread of each core only
    #[arg(long)]
    pub one_a_core: bool,
    /// Bytes of the working set, as the paper's table counts them
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "1M",
        value_parser = nuthatch_program::size::parse
    )]
    pub working_set: usize,
    /// Model working sets that are so many times larger: copies of the recorded table
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1")]
    pub copies: Vec<usize>,
    /// The share of inserts; the rest are lookups
    #[arg(long, value_name = "R", default_value_t = 0.3)]
    pub insert_ratio: f64,
    /// Operations at a time [default: 1000 for cphash, 1 for lockhash, as in the paper]
    #[arg(long, value_name = "B")]
    pub batch: Option<usize>,
    /// Partitions [default: 4096 of lockhash; of cphash one for each server]
    #[arg(long, value_name = "NUM")]
    pub partitions: Option<usize>,
    /// Operations recorded
    #[arg(long, value_name = "N", default_value_t = 8000)]
    pub recorded: usize,
    /// Operations of a recorded piece, of which each thread picks one after another at random [default: the batch of cphash,
    /// 10 of lockhash]
    #[arg(long, value_name = "N")]
    pub piece: Option<usize>,
    /// Operations of each thread that are modelled and counted
    #[arg(long, value_name = "N", default_value_t = 4000)]
    pub operations: u64,
    /// Operations of each thread that are modelled before them, and not counted [default: as many as are recorded, so that
    /// it has used most lines]
    #[arg(long, value_name = "N")]
    pub warm_up: Option<u64>,
    /// Instructions a cycle, instead of the machine's
    #[arg(long, value_name = "IPC")]
    pub ipc: Option<f64>,
    /// Multiply the latencies of lines from other caches and from memory
    #[arg(long, value_name = "TIMES", default_value_t = 1.0)]
    pub latency: f64,
    /// What to replay: new recordings of --engine; kept ones, which an earlier run of this program with the same parameters
    /// made, or this one makes and keeps in ~/.cache/nuthatch-lab; tiny: two that come along, to see that it works; or
    /// files, each with all --threads
    #[arg(
        long,
        value_name = "new|kept|tiny|FILE",
        value_delimiter = ',',
        default_value = "new"
    )]
    pub recording: Vec<String>,
    /// Keep the last new recording in this file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Also measure the same on this machine, and tell the model's error; for --machine here
    #[arg(long)]
    pub measure: bool,
    /// Print the paper's own numbers of its Figures 6 and 7 instead
    #[arg(long)]
    pub published: bool,
    /// Be the program that is recorded
    #[arg(long, hide = true)]
    pub record: bool,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The paper's LockHash.
const LOCKHASH_PARTITIONS: usize = 4096;

/// The paper's batch.
const BATCH: usize = 1000;

/// Recordings of a few operations with 16 keys, by an optimised build.
const TINY: [&[u8]; 2] = [
    include_bytes!("../recordings/tiny-cphash.json"),
    include_bytes!("../recordings/tiny-lockhash.json"),
];

/// Operations of a piece of LockHash. They are independent, and threads that went through the same long pieces would meet at
/// the same locks again and again, which threads that ask for random keys do not.
const PIECE: usize = 10;

impl Options {
    fn check(&self) -> Result<(), Failure> {
        let told = |words: &str| Err(Failure::usage(words));
        if !(0.0..=1.0).contains(&self.insert_ratio) {
            return told("--insert-ratio: 0 to 1");
        }
        let counts = [self.batch, self.partitions, self.piece, Some(self.recorded)];
        if counts.contains(&Some(0)) || self.operations == 0 {
            return told("--batch, --partitions, --piece, --recorded, --operations: at least 1");
        }
        if self.threads.is_empty() || self.copies.is_empty() || self.copies.contains(&0) {
            return told("--threads, --copies: at least one number, and none of them 0");
        }
        if self.ipc.is_some_and(|ipc| !(0.01..=100.0).contains(&ipc)) {
            return told("--ipc: 0.01 to 100");
        }
        if !(0.01..=100.0).contains(&self.latency) {
            return told("--latency: 0.01 to 100");
        }
        Ok(())
    }

    /// What is recorded of an engine for so many threads.
    fn wanted(&self, engine: Recorded, threads: usize) -> Wanted {
        let servers = (threads / 2).max(1);
        let (partitions, batch) = match engine {
            Recorded::Cphash => (servers.max(2), BATCH),
            Recorded::Lockhash => (LOCKHASH_PARTITIONS, 1),
        };
        let batch = self.batch.unwrap_or(batch);
        let piece = self.piece.unwrap_or(match engine {
            Recorded::Cphash => batch,
            Recorded::Lockhash => PIECE,
        });
        Wanted {
            engine,
            partitions: self.partitions.unwrap_or(partitions),
            plan: Plan {
                working_set: self.working_set,
                insert_ratio: self.insert_ratio,
                batch,
                piece,
                pieces: (self.recorded / piece).max(1),
            },
        }
    }

    /// Operations of each thread before those that are counted.
    fn warm_up(&self, recording: &Recording) -> u64 {
        self.warm_up.unwrap_or(recording.all_operations() as u64)
    }

    fn recorded_report(&self, recording: &Recording) -> RecordedReport {
        RecordedReport::of(recording, self.warm_up(recording), self.operations)
    }

    fn load(&self, recording: &Recording, threads: usize, copies: usize) -> Load {
        Load {
            threads,
            alone: self.one_a_core,
            copies,
            warm_up: self.warm_up(recording) * threads as u64,
            measured: self.operations * threads as u64,
        }
    }
}

/// Runs the model, or is recorded.
pub fn run(options: &Options) -> Result<(), Failure> {
    options.check()?;
    if options.record {
        let threads = options.threads[0];
        return options
            .engines
            .iter()
            .try_for_each(|&engine| record::recorded(&options.wanted(engine, threads)));
    }
    if options.published {
        return output::print(&format!("{}\n", published()?));
    }
    // They end what is recorded, and measured, too.
    child::die_on_signals()?;
    nuthatch_bench::report::print("coherence", &model(options)?, options.json)
}

/// The paper's own numbers, as JSON.
fn published() -> Result<String, Failure> {
    let text = serde_json::to_string(&figures::published());
    text.map_err(|error| error.to_string().into())
}

/// The model's results.
pub fn model(options: &Options) -> Result<Report, Failure> {
    options.check()?;
    let mut machine = Machine::named(&options.machine)?;
    if let Some(ipc) = options.ipc {
        machine = machine.with_ipc(ipc);
    }
    if options.latency != 1.0 {
        machine = machine.with_latency(options.latency);
    }
    let mut report = Report {
        recorded: Vec::new(),
        rows: Vec::new(),
        machine,
    };
    for source in &options.recording {
        match source.as_str() {
            "new" | "kept" => options.engines.iter().try_for_each(|&engine| {
                of_engine(options, engine, source == "kept", &mut report)
            })?,
            "tiny" => {
                for text in TINY {
                    add(options, Recording::parse(text)?, &mut report)?;
                }
            }
            file => add(options, Recording::read(Path::new(file))?, &mut report)?,
        }
    }
    report.compare();
    Ok(report)
}

/// Records an engine, once for each number of partitions, or takes the recordings that are kept, and replays them.
fn of_engine(
    options: &Options,
    engine: Recorded,
    keeps: bool,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut last: Option<Recording> = None;
    for &threads in &options.threads {
        let wanted = options.wanted(engine, threads);
        let fits = |recording: &Recording| recording.partitions == wanted.partitions;
        let recording = match last.take().filter(fits) {
            Some(recording) => recording,
            None => {
                let recording = match keeps {
                    true => kept::recording(&wanted)?,
                    false => record::record(&wanted)?,
                };
                report.recorded.push(options.recorded_report(&recording));
                recording
            }
        };
        replay_with(options, &recording, threads, report)?;
        last = Some(recording);
    }
    match (&options.save, last) {
        (Some(path), Some(recording)) => recording.write(path),
        _ => Ok(()),
    }
}

/// Replays a recording with all numbers of threads.
fn add(options: &Options, recording: Recording, report: &mut Report) -> Result<(), Failure> {
    report.recorded.push(options.recorded_report(&recording));
    let mut threads = options.threads.iter();
    threads.try_for_each(|&threads| replay_with(options, &recording, threads, report))
}

fn replay_with(
    options: &Options,
    recording: &Recording,
    threads: usize,
    report: &mut Report,
) -> Result<(), Failure> {
    for &copies in &options.copies {
        let load = options.load(recording, threads, copies);
        let counted = replay::replay(recording, &report.machine, load)
            .map_err(|words| Failure::Usage(format!("--threads {threads}: {words}")))?;
        let mut row = Row::of(recording, &report.machine, &load, &counted);
        if options.measure && copies == 1 {
            let measured = measured::mops(recording, options.insert_ratio, threads)?;
            row.measured_mops = Some(measured);
            row.of_measured = Some(row.mops / measured);
        }
        report.rows.push(row);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn run(words: &[&str]) -> Result<Report, Failure> {
        let line = Line::parse_from(["coherence"].iter().chain(words));
        model(&line.options)
    }

    #[test]
    fn the_recordings_that_come_along_are_replayed() {
        let report = run(&[
            "--recording",
            "tiny",
            "--threads",
            "4",
            "--operations",
            "40",
        ])
        .unwrap();
        let engines: Vec<_> = report.rows.iter().map(|row| row.engine.as_str()).collect();
        assert_eq!(engines, ["cphash", "lockhash"]);
        let [cphash, lockhash] = &report.rows[..] else {
            panic!("two rows");
        };
        assert!(cphash.mops > 0.0 && cphash.server_busy > 0.0);
        assert_eq!(lockhash.cphash_ratio, Some(cphash.mops / lockhash.mops));
        // Each line of messages that the engine counted is an item; beside them, one a piece is of its background work.
        for recorded in &report.recorded {
            let more = recorded.lines_recorded_per_op - recorded.lines_counted_per_op;
            assert!((0.0..=1.0 / 20.0 + 1e-9).contains(&more), "{recorded:?}");
        }
        assert!(report.to_string().starts_with("A model, not a measurement"));
    }

    #[test]
    fn bad_options_are_told_by_name() {
        let tiny = ["--recording", "tiny"];
        for (words, name) in [
            (["--threads", "500"], "--threads"),
            (["--machine", "none"], "--machine"),
            (["--ipc", "0"], "--ipc"),
            (["--insert-ratio", "2"], "--insert-ratio"),
            (["--copies", "0"], "--copies"),
            (["--latency", "0"], "--latency"),
        ] {
            let failure = run(&[&tiny[..], &words[..]].concat()).err().unwrap();
            assert!(failure.to_string().contains(name), "{failure}");
        }
        let failure = run(&["--recording", "no-such-file"]).err().unwrap();
        assert!(failure.to_string().contains("--recording no-such-file"));
    }
}
