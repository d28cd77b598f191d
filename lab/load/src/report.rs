//! The results.

use std::fmt::{self, Display};

use hdrhistogram::Histogram;
use nuthatch_bench::host::Host;
use nuthatch_bench::report::Spread;
use nuthatch_program::Failure;
use nuthatch_workload::arrival::Spacing;
use serde::Serialize;

use crate::options::{Options, Pauses};
use crate::round::{Load, Round};
use crate::tally::Tally;
use crate::wire::Protocol;

/// A rate counts as kept if no larger share of the requests was never sent.
const KEPT: f64 = 0.01;

/// The largest share of the 99th percentile that the load's own lateness may have.
const LATE: f64 = 0.1;

/// The results of the load bench.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// The workload's name.
    pub workload: String,
    /// What was spoken.
    pub protocol: Protocol,
    /// `closed`, or the spacing of an open load: `poisson`, `constant` or `gpareto`.
    pub arrivals: &'static str,
    /// Requests a second that were due.
    pub rate: Option<f64>,
    /// Milliseconds of each burst and of each pause.
    pub bursts_ms: Option<[u64; 2]>,
    /// Items stored before the rounds.
    pub keys: u64,
    /// Connections.
    pub conns: usize,
    /// Most requests on a connection at once.
    pub pipeline: usize,
    /// Threads of the load.
    pub threads: usize,
    /// Seconds of each round.
    pub seconds: f64,
    /// Whether misses were stored.
    pub store_misses: bool,
    /// Why the run ended early, if it did: then the rest is what was measured until then.
    pub ended: Option<String>,
    /// The servers: ours first.
    pub sides: Vec<Side>,
}

/// What one server did. Spreads are over rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Its program, or its address.
    pub name: String,
    /// Its command line, if this run started it.
    pub command: Option<String>,
    /// The version that it reports.
    pub version: Option<String>,
    /// Why there are no times of it, if there are none.
    pub missing: Option<String>,
    /// Rounds that counted for a time.
    pub rounds: usize,
    /// Operations that were due in the rounds, and were answered.
    pub operations: u64,
    /// Operations that were answered in a second, whenever they were due.
    pub ops_per_s: Option<Spread>,
    /// The first server's by this one's, round by round.
    pub ratio_ops_per_s: Option<Spread>,
    /// The same of the 99th percentiles: less than 1 is faster.
    pub ratio_p99: Option<Spread>,
    /// False: of the requests that were due, more than a hundredth was never sent, for want of a free connection.
    pub kept: bool,
    /// How many those were. Each is among the times as what it had waited at the end: a lower bound.
    pub unserved: u64,
    /// Operations that were sent and not answered when a round was cut off: among the times in the same way.
    pub unanswered: u64,
    /// Times of all operations.
    pub latency: Option<Latency>,
    /// Of gets.
    pub gets: Option<Latency>,
    /// Of sets, deletes, and gets with a set behind them.
    pub writes: Option<Latency>,
    /// Of sets of what gets missed, which are no operations.
    pub refills: Option<Latency>,
    /// How late requests were sent, the 99th percentile: their wait for a free connection, or for the load itself.
    pub lag_p99_us: Option<Spread>,
    /// The same of those for which a connection was free when they were due: the load's own lateness.
    pub own_lag_p99_us: Option<Spread>,
    /// Rounds in which that was more than a tenth of the 99th percentile of all times, which tell of the load, too, then.
    pub late_rounds: usize,
    /// Keys that had a value.
    pub hits: u64,
    /// Keys that had none.
    pub misses: u64,
    /// Values stored.
    pub stored: u64,
    /// Of them, because a get had missed them.
    pub restored: u64,
    /// Values that the server did not take.
    pub refused: u64,
    /// Items deleted.
    pub deleted: u64,
    /// The server's CPU time for an operation, user and system.
    pub server_cpu_us_per_op: Option<Spread>,
}

/// Percentiles in microseconds, from the moment at which a request was due to that at which its answer was seen.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Latency {
    /// Operations.
    pub count: u64,
    pub p50_us: Spread,
    pub p90_us: Spread,
    pub p99_us: Spread,
    pub p999_us: Spread,
    pub p9999_us: Spread,
    pub max_us: Spread,
}

impl Latency {
    /// Of the times of each round. None: there are none.
    fn of(rounds: impl Iterator<Item = Histogram<u64>>) -> Option<Self> {
        let rounds: Vec<_> = rounds.filter(|times| !times.is_empty()).collect();
        if rounds.is_empty() {
            return None;
        }
        let at = |quantile| Spread::of(rounds.iter().map(|times| at_us(times, quantile)));
        Some(Self {
            count: rounds.iter().map(Histogram::len).sum(),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            p9999_us: at(0.9999),
            max_us: at(1.0),
        })
    }
}

/// None: there are no rounds.
fn spread(rounds: impl Iterator<Item = f64>) -> Option<Spread> {
    let mut rounds = rounds.peekable();
    rounds.peek().is_some().then(|| Spread::of(rounds))
}

/// The 99th percentile of each round that has such times.
fn p99_of(rounds: &[Round], times: fn(&Tally) -> &Histogram<u64>) -> Option<Spread> {
    let times = rounds.iter().map(|round| times(&round.tally));
    spread(
        times
            .filter(|times| !times.is_empty())
            .map(|times| at_us(times, 0.99)),
    )
}

/// True if a round has answers and times: then it can be compared with another.
fn is_comparable(round: &Round) -> bool {
    round.ended.is_none() && round.tally.answered > 0 && round.tally.due() > 0
}

/// Ours by theirs, over those pairs of rounds of which both can be compared.
fn ratio(ours: &[Round], theirs: &[Round], of: fn(&Round) -> f64) -> Option<Spread> {
    let pairs = ours.iter().zip(theirs);
    let pairs = pairs.filter(|(ours, theirs)| is_comparable(ours) && is_comparable(theirs));
    let (ours, theirs): (Vec<_>, Vec<_>) =
        pairs.map(|(ours, theirs)| (of(ours), of(theirs))).collect();
    (!ours.is_empty()).then(|| Spread::of_ratios(&ours, &theirs))
}

fn at_us(times: &Histogram<u64>, quantile: f64) -> f64 {
    times.value_at_quantile(quantile) as f64 / 1e3
}

fn p99(round: &Round) -> f64 {
    at_us(&round.tally.all(), 0.99)
}

/// The 99th percentile of the load's own lateness.
fn own_lag_p99(round: &Round) -> f64 {
    at_us(&round.tally.own_lag, 0.99)
}

/// True if the times tell of the load, too.
fn is_late(round: &Round) -> bool {
    own_lag_p99(round) > LATE * p99(round)
}

impl Side {
    /// From its rounds. `nothing` says why there are no times, if there are none.
    pub fn new(
        name: String,
        command: Option<String>,
        version: Option<String>,
        rounds: &[Round],
        nothing: &str,
    ) -> Self {
        let mut sum = Tally::default();
        rounds.iter().for_each(|round| sum.add(&round.tally));
        let latency = Latency::of(rounds.iter().map(|round| round.tally.all()));
        let answering = rounds.iter().filter(|round| round.tally.answered > 0);
        let cpu: Option<Vec<f64>> = answering.map(Round::cpu_us_per_op).collect();
        let timed = || rounds.iter().filter(|round| !round.time.is_zero());
        Self {
            name,
            command,
            version,
            missing: latency.is_none().then(|| nothing.to_owned()),
            rounds: timed().count(),
            operations: sum.due() - sum.unserved - sum.unanswered,
            ops_per_s: spread(timed().map(Round::ops_per_s)),
            ratio_ops_per_s: None,
            ratio_p99: None,
            kept: sum.unserved as f64 <= KEPT * sum.due() as f64,
            unserved: sum.unserved,
            unanswered: sum.unanswered,
            latency,
            gets: Latency::of(rounds.iter().map(|round| round.tally.gets.clone())),
            writes: Latency::of(rounds.iter().map(|round| round.tally.writes.clone())),
            lag_p99_us: p99_of(rounds, |tally| &tally.lag),
            own_lag_p99_us: p99_of(rounds, |tally| &tally.own_lag),
            late_rounds: rounds.iter().filter(|round| is_late(round)).count(),
            refills: Latency::of(rounds.iter().map(|round| round.tally.refills.clone())),
            hits: sum.hits,
            misses: sum.misses,
            stored: sum.stored,
            restored: sum.restored,
            refused: sum.refused,
            deleted: sum.deleted,
            server_cpu_us_per_op: cpu.filter(|all| !all.is_empty()).map(Spread::of),
        }
    }
}

impl Report {
    /// The sides with their ratios, and what they were loaded with.
    pub fn new(
        options: &Options,
        load: &Load,
        mut sides: Vec<Side>,
        rounds: &[Vec<Round>],
        ended: Option<String>,
    ) -> Self {
        for (side, rival) in sides.iter_mut().zip(rounds).skip(1) {
            side.ratio_ops_per_s = ratio(&rounds[0], rival, Round::ops_per_s);
            side.ratio_p99 = ratio(&rounds[0], rival, p99);
        }
        Self {
            host: Host::ask(),
            workload: load.items.workload.to_string(),
            protocol: load.protocol,
            arrivals: match load.arrivals.map(|arrivals| arrivals.spacing) {
                None => "closed",
                Some(Spacing::Poisson) => "poisson",
                Some(Spacing::Constant) => "constant",
                Some(Spacing::Pareto) => "gpareto",
            },
            rate: options.rate,
            bursts_ms: options
                .bursts
                .map(|Pauses(bursts)| [bursts.on, bursts.off].map(|part| part.as_millis() as u64)),
            keys: load.items.count,
            conns: load.conns,
            pipeline: load.pipeline,
            threads: load.threads,
            seconds: load.time.as_secs_f64(),
            store_misses: load.store_misses,
            ended,
            sides,
        }
    }

    /// An error if the run ended early, or a server has no times.
    pub fn whole(&self) -> Result<(), Failure> {
        if let Some(why) = &self.ended {
            return Err(Failure::run(format!(
                "{why}; the results are of the time until then"
            )));
        }
        let missing = self.sides.iter().find_map(|side| {
            let why = side.missing.as_ref()?;
            Some(format!("{}: {why}", side.name))
        });
        missing.map_or(Ok(()), |words| Err(Failure::Run(words)))
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.host)?;
        let Self {
            workload,
            keys,
            conns,
            pipeline,
            ..
        } = self;
        write!(out, "{workload}: {keys} items, {conns} connections")?;
        if *pipeline > 1 {
            write!(out, " of {pipeline} requests")?;
        }
        match self.rate {
            Some(rate) => write!(out, ", {rate} requests a second ({})", self.arrivals)?,
            None => write!(out, ", closed")?,
        }
        if let Some([on, off]) = self.bursts_ms {
            write!(out, ", bursts of {on} ms with pauses of {off} ms")?;
        }
        writeln!(out)?;
        for side in &self.sides {
            side.fmt(out)?;
        }
        Ok(())
    }
}

impl Display for Side {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_deref().unwrap_or("version not told");
        let command = self.command.as_deref().unwrap_or("running");
        writeln!(out, "{}: {version}, {command}", self.name)?;
        if let Some(why) = &self.missing {
            writeln!(out, "  no times: {why}")?;
        }
        match self.ops_per_s {
            Some(speed) => write!(out, "  {speed:.0} operations a second; ")?,
            None => write!(out, "  no operations answered; ")?,
        }
        writeln!(
            out,
            "{} hits, {} misses, {} stored ({} of them missed), {} deleted, {} refused",
            self.hits, self.misses, self.stored, self.restored, self.deleted, self.refused
        )?;
        self.fmt_doubts(out)?;
        for (name, latency) in [
            ("all", self.latency),
            ("gets", self.gets),
            ("writes", self.writes),
            ("refills", self.refills),
        ] {
            if let Some(latency) = latency {
                writeln!(out, "  {name:<7} {latency}")?;
            }
        }
        if let Some(cpu) = self.server_cpu_us_per_op {
            writeln!(out, "  its CPU time: {cpu:.2} us an operation")?;
        }
        if let (Some(speed), Some(p99)) = (self.ratio_ops_per_s, self.ratio_p99) {
            writeln!(
                out,
                "  the first / it: operations a second {speed:.2}, p99 {p99:.2}"
            )?;
        }
        Ok(())
    }
}

impl Side {
    /// What to bear in mind with the times.
    fn fmt_doubts(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = self.unserved + self.unanswered;
        if lost > 0 {
            writeln!(
                out,
                "  {lost} requests were due and not answered; high percentiles are lower bounds"
            )?;
        }
        if !self.kept {
            writeln!(
                out,
                "  the rate was not kept: {} requests were due and never sent",
                self.unserved
            )?;
        }
        if let (1.., Some(lag)) = (self.late_rounds, self.own_lag_p99_us) {
            writeln!(
                out,
                "  the load was late itself in {} rounds: {lag:.0} us, more than a tenth of the p99",
                self.late_rounds
            )?;
        }
        Ok(())
    }
}

impl Display for Latency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "us: p50 {:.0}  p90 {:.0}  p99 {:.0}  p99.9 {:.0}  p99.99 {:.0}  max {:.0}",
            self.p50_us.median,
            self.p90_us.median,
            self.p99_us.median,
            self.p999_us.median,
            self.p9999_us.median,
            self.max_us.max
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tally::Kind;

    /// A round with so many answers a second, to requests of which each waited so long.
    fn round(answered: u64, waited: Option<Duration>) -> Round {
        let mut tally = Tally {
            answered,
            ..Tally::default()
        };
        waited
            .into_iter()
            .for_each(|waited| tally.unanswered(Kind::Get, waited));
        Round {
            tally,
            time: Duration::from_secs(1),
            cpu: None,
            items: 0,
            ended: None,
        }
    }

    fn side(rounds: &[Round]) -> Side {
        Side::new("x".to_owned(), None, None, rounds, "nothing was due")
    }

    /// The kind of fault is a ratio of nothing: no number, or that of rounds that were no neighbours.
    #[test]
    fn only_rounds_that_both_have_times_are_compared() {
        let some = |answered| round(answered, Some(Duration::from_millis(1)));
        let ours = [some(10), round(0, None), some(40), some(80)];
        let theirs = [
            round(0, None),
            some(5),
            some(10),
            Round::ended("x".to_owned(), 0),
        ];
        let speed = ratio(&ours, &theirs, Round::ops_per_s).unwrap();
        assert_eq!((speed.min, speed.max), (4.0, 4.0));
        assert_eq!(ratio(&ours, &theirs, p99).unwrap().median, 1.0);
        assert!(ratio(&ours[..2], &theirs[..2], p99).is_none());
    }

    #[test]
    fn a_server_without_times_says_why() {
        let none = side(&[round(0, None)]);
        assert_eq!(none.missing.as_deref(), Some("nothing was due"));
        assert!(none.to_string().contains("no times: nothing was due"));
        assert!(none.latency.is_none() && none.own_lag_p99_us.is_none());
        let not_reached = side(&[Round::ended("x".to_owned(), 0)]);
        assert_eq!((not_reached.rounds, not_reached.ops_per_s), (0, None));
    }

    #[test]
    fn what_was_not_answered_is_told_beside_the_times() {
        let one = side(&[round(0, Some(Duration::from_secs(3)))]);
        assert_eq!((one.operations, one.unanswered, one.kept), (0, 1, true));
        assert!(one.latency.unwrap().max_us.max > 2.9e6);
        let text = one.to_string();
        assert!(text.contains("1 requests were due and not answered; high percentiles"));
        assert!(!text.contains("the rate was not kept"));
        assert!(one.missing.is_none());
    }
}
