//! `nuthatch-lab record`: the requests of a running server as a trace.
//!
//! ```text
//!  the server's lines (`watch`) --> line --> in the server's order --> requests --> file
//! ```
//!
//! The server makes the lines and waits for nobody: it leaves out what its watcher does not read in time, and says how many.

#![forbid(unsafe_code)]

mod file;
mod line;
mod requests;
mod watch;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use nuthatch_bench::started::stop_on_signals;
use nuthatch_program::{Failure, output, size};

use file::{Kept, TraceFile};
use line::{Line, Read};
use requests::{Counts, Requests};
use watch::{Heard, Watch};

/// Lines of several threads of a server that are put in order.
const UNORDERED: usize = 4096;

/// What to record.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The server: Nuthatch or memcached
    #[arg(value_name = "HOST:PORT")]
    pub target: String,
    /// The trace's file. With .csv in its name it has times and lifetimes too; .zst and .gz compress it
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// End after so many seconds [default: with Ctrl-C]
    #[arg(long = "for", value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// End after so many gets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// End at so many bytes of the trace before compression
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size::parse)]
    pub max_size: usize,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The time that was asked for is over.
    Time,
    /// There are as many requests as were asked for.
    Limit,
    /// The file is as large as it may become.
    Size,
    /// There is no room for more of it, as its end says.
    Room,
    /// Nobody reads it any more.
    Reader,
    /// Somebody ended it.
    Interrupted,
    /// The server closed the connection.
    Server,
}

/// Records until one of the ends.
pub fn run(options: &Options) -> Result<(), Failure> {
    let time = match options.seconds {
        Some(seconds) if !(seconds > 0.0 && seconds <= 1e9) => {
            return Err(Failure::usage("--for: more than 0, at most a billion"));
        }
        seconds => seconds.map(Duration::from_secs_f64),
    };
    let stop = stop_on_signals()?;
    let mut file = TraceFile::create(&options.output)?;
    let mut watch = Watch::begin(&options.target, &stop)?;
    let path = options.output.display();
    output::note(&format!("recording from {} to {path}", options.target));
    let mut recording = Recording::default();
    let until = time.map(|time| Instant::now() + time);
    let end = recording.run(&mut watch, &mut file, options, until, &stop)?;
    recording.finish(&mut file, options.limit)?;
    let Kept { bytes, cut } = file.finish()?;
    output::print(&format!("{path}: {bytes} bytes; {recording}\n"))?;
    if let Some(why) = cut {
        return Err(why);
    }
    match end {
        End::Time | End::Limit | End::Room | End::Reader | End::Interrupted => Ok(()),
        End::Size => Err(Failure::run(format!(
            "--max-size {}: ended there; what was recorded until then is kept",
            options.max_size
        ))),
        End::Server => Err(Failure::run(
            "the server closed the connection; what was recorded until then is kept",
        )),
    }
}

/// A recording under way.
#[derive(Default)]
struct Recording {
    unordered: BinaryHeap<Reverse<Line>>,
    requests: Requests,
    /// Lines that the server left out.
    skipped: u64,
    written: Written,
}

/// What is in the file.
#[derive(Default)]
struct Written {
    gets: u64,
    writes: u64,
    without_size: u64,
}

impl Recording {
    fn run(
        &mut self,
        watch: &mut Watch,
        file: &mut TraceFile,
        options: &Options,
        until: Option<Instant>,
        stop: &AtomicBool,
    ) -> Result<End, Failure> {
        loop {
            // Relaxed: the flag publishes no other memory.
            if stop.load(Ordering::Relaxed) {
                return Ok(End::Interrupted);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(End::Time);
            }
            match watch.hear() {
                Ok(Heard::Line(text)) => {
                    self.take(&String::from_utf8_lossy(text));
                    self.order(UNORDERED);
                }
                Ok(Heard::Part) => {}
                // Lines of one moment have all come.
                Ok(Heard::Nothing) => self.order(0),
                Ok(Heard::End) => return Ok(End::Server),
                Err(error) => {
                    output::note(&format!("{}: {error}", options.target));
                    return Ok(End::Server);
                }
            }
            self.write(file, None, false)?;
            // With one get more it is known which of those before were look-ups of changes.
            let gets = self.requests.counts().gets();
            if options.limit.is_some_and(|limit| gets > limit) {
                return Ok(End::Limit);
            }
            if file.bytes() >= options.max_size as u64 {
                return Ok(End::Size);
            }
            if file.is_full() {
                return Ok(End::Room);
            }
            if file.is_abandoned() {
                return Ok(End::Reader);
            }
        }
    }

    fn take(&mut self, text: &str) {
        match line::parse(text) {
            Read::Item(line) => self.unordered.push(Reverse(line)),
            // Any number: the sum is for people.
            Read::Skipped(lines) => self.skipped = self.skipped.saturating_add(lines),
            Read::Other => {}
        }
    }

    /// Passes lines on in order, but for so many.
    fn order(&mut self, keep: usize) {
        while self.unordered.len() > keep
            && let Some(Reverse(line)) = self.unordered.pop()
        {
            self.requests.take(line);
        }
    }

    /// Writes what is held back no longer, up to the first get beyond the limit.
    fn write(
        &mut self,
        file: &mut TraceFile,
        limit: Option<u64>,
        all: bool,
    ) -> Result<(), Failure> {
        while let Some(request) = self.requests.next(all) {
            if !request.writes && limit.is_some_and(|limit| self.written.gets >= limit) {
                return Ok(());
            }
            file.add(&request)?;
            let Written {
                gets,
                writes,
                without_size,
            } = &mut self.written;
            *gets += u64::from(!request.writes);
            *writes += u64::from(request.writes);
            *without_size += u64::from(request.size.is_none());
        }
        Ok(())
    }

    /// Writes what is held back.
    fn finish(&mut self, file: &mut TraceFile, limit: Option<u64>) -> Result<(), Failure> {
        self.order(0);
        self.write(file, limit, true)
    }
}

impl Display for Recording {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Written {
            gets,
            writes,
            without_size,
        } = self.written;
        let Counts {
            hits,
            misses,
            deletes,
            evictions,
            ..
        } = self.requests.counts();
        write!(
            out,
            "{gets} gets and {writes} other sets; here {hits} gets hit and {misses} missed, {evictions} items were evicted"
        )?;
        if without_size > 0 {
            write!(
                out,
                "\n  {without_size} of them without a size, since nothing was stored behind the miss: --value-size of hit-ratio"
            )?;
        }
        if deletes > 0 {
            write!(
                out,
                "\n  {deletes} items were deleted, which a trace does not tell"
            )?;
        }
        if self.skipped > 0 {
            write!(
                out,
                "\n  {} lines are missing: the server had more than this could read",
                self.skipped
            )?;
        }
        Ok(())
    }
}
