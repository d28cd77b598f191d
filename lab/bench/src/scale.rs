//! A model of the distributed store on many machines. It is not a measurement. The costs of one-sided operations are
//! given (by default the orders of an FDR InfiniBand card, see docs/cluster.md). Throughput follows from them, from the
//! popularity of keys, and from the capacity of each server's network card and processor.
//!
//! Clients have a fixed number of requests under way. The time of a request is the client's own work, the latencies of
//! its operations one after the other, and the waits at the servers, which are queues: at a server that is busy for a
//! share `b` of the time, a request of service time `s` takes `s / (1 - b)`. The throughput is the one at which these
//! times yield the fixed number of requests under way.

use std::fmt::{self, Display};

use clap::Args;
use nuthatch_hash::KeyHasher;
use nuthatch_program::Failure;
use serde::{Deserialize, Serialize};

/// Options of the model.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    /// Latency of a Get of a block, in microseconds
    #[arg(long, value_name = "US", default_value_t = 2.0)]
    pub get: f64,
    /// Latency of a Put until it has arrived, in microseconds
    #[arg(long, value_name = "US", default_value_t = 1.5)]
    pub put: f64,
    /// Latency of a compare-swap, in microseconds
    #[arg(long, value_name = "US", default_value_t = 2.2)]
    pub cas: f64,
    /// Round trip of a message without the server's work, in microseconds
    #[arg(long, value_name = "US", default_value_t = 4.0)]
    pub message: f64,
    /// A client's own work for a request, in microseconds
    #[arg(long, value_name = "US", default_value_t = 0.3)]
    pub client: f64,
    /// A server's work for a message, in microseconds
    #[arg(long, value_name = "US", default_value_t = 0.5)]
    pub server: f64,
    /// One-sided operations that a server's network card takes, in millions per second
    #[arg(long, value_name = "MOPS", default_value_t = 35.0)]
    pub card: f64,
    /// Bytes that this card carries, in gigabytes per second
    #[arg(long, value_name = "GB", default_value_t = 6.0)]
    pub bandwidth: f64,
    /// Percentage of gets among the requests
    #[arg(long, default_value_t = 95.0)]
    pub gets: f64,
    /// Share of gets whose block the pointer directory finds, 0 to 1
    #[arg(long, default_value_t = 0.85)]
    pub directory: f64,
    /// Share of sets that need a message, 0 to 1
    #[arg(long, default_value_t = 0.05)]
    pub active: f64,
    /// Bytes of a value
    #[arg(long, default_value_t = 32)]
    pub value: usize,
    /// Number of keys
    #[arg(long, default_value_t = 10_000_000)]
    pub keys: u64,
    /// Zipf's exponent; 0: all keys equally popular
    #[arg(long, default_value_t = 0.99)]
    pub theta: f64,
    /// Requests that each client has in flight
    #[arg(long, default_value_t = 8)]
    pub window: usize,
    /// The largest number of machines, each a server and a client
    #[arg(long, default_value_t = 1024)]
    pub machines: usize,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The model's results for a number of machines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Machines.
    pub machines: usize,
    /// Millions of requests a second.
    pub mops: f64,
    /// The throughput / the one with all servers equally busy and no waits.
    pub of_ideal: f64,
    /// The hottest server's load / the mean load.
    pub hottest: f64,
    /// How busy the hottest server is.
    pub busy: f64,
    /// Microseconds of a request.
    pub latency: f64,
}

/// The model's results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The parameters.
    pub options: Options,
    /// By machines.
    pub rows: Vec<Row>,
}

/// Keys whose shares are counted one by one; the others are many and small, and spread evenly over all servers.
const COUNTED: u64 = 200_000;

/// Machines, at most: more than any store has, and still few enough to compute one by one.
const MACHINES_MAX: usize = 1 << 16;

impl Options {
    /// An error if the parameters are out of the model's range.
    fn check(&self) -> Result<(), Failure> {
        let (more_than_none, none) = (f64::MIN_POSITIVE, 0.0);
        for (name, value, least, most) in [
            ("--get", self.get, more_than_none, f64::MAX),
            ("--put", self.put, more_than_none, f64::MAX),
            ("--cas", self.cas, more_than_none, f64::MAX),
            ("--message", self.message, more_than_none, f64::MAX),
            ("--card", self.card, more_than_none, f64::MAX),
            ("--bandwidth", self.bandwidth, more_than_none, f64::MAX),
            ("--client", self.client, none, f64::MAX),
            ("--server", self.server, none, f64::MAX),
            ("--gets", self.gets, none, 100.0),
            ("--directory", self.directory, none, 1.0),
            ("--active", self.active, none, 1.0),
            ("--theta", self.theta, none, 10.0),
            ("--keys", self.keys as f64, 1.0, f64::MAX),
            ("--window", self.window as f64, 1.0, f64::MAX),
            ("--machines", self.machines as f64, 1.0, MACHINES_MAX as f64),
        ] {
            if !(least..=most).contains(&value) {
                let bound = match most {
                    f64::MAX if least < 1.0 && least > none => "more than 0".to_owned(),
                    f64::MAX => format!("at least {least}"),
                    most => format!("{least} to {most}"),
                };
                return Err(Failure::Usage(format!("{name}: {bound}")));
            }
        }
        Ok(())
    }

    /// One-sided operations of a request at its server, on average.
    fn operations(&self) -> f64 {
        let gets = self.gets / 100.0;
        let of_get = self.directory + 2.0 * (1.0 - self.directory);
        gets * of_get + (1.0 - gets) * 3.0
    }

    /// Microseconds of a request without any wait.
    fn latency(&self) -> f64 {
        let gets = self.gets / 100.0;
        let of_get = self.get * (self.directory + 2.0 * (1.0 - self.directory));
        let direct = self.cas + 2.0 * self.put;
        let of_set = (1.0 - self.active) * direct + self.active * self.message;
        self.client + gets * of_get + (1.0 - gets) * of_set
    }

    /// Microseconds of a request for which its server is busy: card, cable, or processor, whichever takes longest.
    fn service(&self) -> f64 {
        // 16 bytes of key, 56 of block.
        let bytes = (self.value + 72) as f64;
        let card = self.operations() / self.card;
        let cable = bytes * self.operations() / (self.bandwidth * 1000.0);
        let processor = (1.0 - self.gets / 100.0) * self.active * self.server;
        card.max(cable).max(processor)
    }

    /// Each server's share of the requests.
    fn shares(&self, servers: usize) -> Vec<f64> {
        let mut shares = vec![0.0; servers];
        let weight = |rank: u64| (rank as f64).powf(-self.theta);
        let counted = self.keys.min(COUNTED);
        let mut sum = 0.0;
        for rank in 1..=counted {
            let hash = KeyHasher::seeded(1).hash(&rank.to_le_bytes());
            shares[nuthatch_cluster::server_of(hash, servers)] += weight(rank);
            sum += weight(rank);
        }
        let rest = self.weight_beyond(counted);
        let all = sum + rest;
        shares
            .iter()
            .map(|share| (share + rest / servers as f64) / all)
            .collect()
    }

    /// The weights of all keys behind the first `counted`: an integral.
    fn weight_beyond(&self, counted: u64) -> f64 {
        let (from, to) = (counted as f64, self.keys as f64);
        match (1.0 - self.theta).abs() < 1e-9 {
            true => (to / from).ln(),
            false => {
                let power = 1.0 - self.theta;
                (to.powf(power) - from.powf(power)) / power
            }
        }
    }

    fn row(&self, machines: usize) -> Row {
        let shares = self.shares(machines);
        let (service, alone) = (self.service(), self.latency());
        let hottest = shares.iter().copied().fold(0.0, f64::max);
        let under_way = (machines * self.window) as f64;
        let latency = |rate: f64| {
            let waits = shares.iter().map(|share| {
                let busy = (rate * share * service).min(1.0 - 1e-12);
                share * service / (1.0 - busy)
            });
            alone + waits.sum::<f64>()
        };
        // Requests a microsecond: the more, the longer each takes, so there is one rate at which their number is that
        // of the requests under way.
        let (mut low, mut high) = (0.0, 1.0 / (hottest * service));
        for _ in 0..100 {
            let rate = (low + high) / 2.0;
            match rate * latency(rate) < under_way {
                true => low = rate,
                false => high = rate,
            }
        }
        let ideal = under_way / (alone + service);
        Row {
            machines,
            mops: low,
            of_ideal: low / ideal,
            hottest: hottest * machines as f64,
            busy: low * hottest * service,
            latency: under_way / low,
        }
    }
}

/// Computes the model.
pub fn run(options: &Options) -> Result<Report, Failure> {
    options.check()?;
    let machines = (0..).map(|power| 1 << power);
    let rows = machines
        .take_while(|&machines| machines <= options.machines)
        .map(|machines| options.row(machines))
        .collect();
    Ok(Report {
        options: options.clone(),
        rows,
    })
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        writeln!(
            f,
            "A model, not a measurement: Get {} us, Put {} us, compare-swap {} us, {} M operations a second a card,",
            options.get, options.put, options.cas, options.card
        )?;
        writeln!(
            f,
            "{} % gets, directory hits {:.0} %, {} keys, Zipf {}, {} requests under way a client.",
            options.gets,
            100.0 * options.directory,
            options.keys,
            options.theta,
            options.window
        )?;
        writeln!(
            f,
            "machines   M requests/s   of ideal   hottest/mean   hottest busy   us a request"
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "{:>8}{:>15.1}{:>10.0} %{:>15.2}{:>13.0} %{:>15.1}",
                row.machines,
                row.mops,
                100.0 * row.of_ideal,
                row.hottest,
                100.0 * row.busy,
                row.latency
            )?;
        }
        match self.rows.iter().find(|row| row.of_ideal < 0.9) {
            Some(row) => writeln!(
                f,
                "It bends at {} machines: the hottest server has {:.1} times the mean load, and is {:.0} % busy.",
                row.machines,
                row.hottest,
                100.0 * row.busy
            ),
            None => writeln!(
                f,
                "It does not bend: at least 90 % of the ideal everywhere."
            ),
        }
    }
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

    fn report(words: &[&str]) -> Report {
        let line = Line::parse_from(["scale"].iter().chain(words));
        run(&line.options).unwrap()
    }

    #[test]
    fn without_skew_it_scales() {
        let report = report(&["--theta", "0", "--machines", "256"]);
        assert!(report.rows.iter().all(|row| row.of_ideal > 0.9), "{report}");
        let mops: Vec<f64> = report.rows.iter().map(|row| row.mops).collect();
        assert!(mops.windows(2).all(|pair| pair[1] > 1.8 * pair[0]));
    }

    #[test]
    fn skew_bends_it_where_the_hottest_server_is_full() {
        let report = report(&[]);
        let last = &report.rows[report.rows.len() - 1];
        assert_eq!(last.machines, 1024);
        assert!(last.busy > 0.95 && last.of_ideal < 0.9 && last.hottest > 10.0);
        let text = report.to_string();
        assert!(text.contains("It bends at") && text.ends_with("busy.\n"));
        // Shares are of one whole.
        let sum: f64 = report.options.shares(64).iter().sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
}
