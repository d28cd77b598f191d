//! `nuthatch-lab hash live`: the histogram of a running server's index, and what its searches cost.
//!
//! * [`target`]: the server's address, and the request to it.
//! * [`view`]: the server's answer, parsed and checked.
//! * [`show`]: the same for people and for programs.

mod show;
mod target;
mod view;

use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use nuthatch_program::Failure;
use nuthatch_program::output::{Output, Reader};
use target::{Connection, Target};
use view::View;

/// Which server, and how often.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The server: HOST:PORT, or the path of its unix socket
    #[arg(long, value_name = "HOST:PORT")]
    pub target: Target,
    /// Take samples at this interval, in seconds (0.1 to 86400), until the server or the reader of the output ends
    #[arg(long, value_name = "S", value_parser = interval)]
    pub interval: Option<Duration>,
    /// With --interval: the number of samples
    #[arg(long, value_name = "N", requires = "interval",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Print one line of JSON for each sample
    #[arg(long)]
    pub json: bool,
}

/// A number of seconds.
fn interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("a number of seconds from 0.1 to 86400".to_owned()),
    }
}

/// Queries, prints, and repeats if an interval is set. Errors: no server, one that is no Nuthatch.
pub fn run(options: &Options) -> Result<(), Failure> {
    let target = &options.target;
    let mut connection = Connection::open(target)?;
    let mut output = Output::open(None)?;
    let looks = match options.interval {
        Some(_) => options.count.unwrap_or(u64::MAX),
        None => 1,
    };
    let mut before: Option<(Instant, View)> = None;
    for look in 0..looks {
        if let (Some(interval), 1..) = (options.interval, look) {
            thread::sleep(interval);
        }
        let at = Instant::now();
        let view = View::read(&connection.query()?, target)?;
        let since = before.as_ref().map(|(then, view)| (at - *then, view));
        let text = match options.json {
            true => show::json(target, &view)?,
            false => show::text(target, &view, since),
        };
        if output.write(text.as_bytes())? == Reader::Left || output.flush()? == Reader::Left {
            return Ok(());
        }
        before = Some((at, view));
    }
    output.finish()
}
