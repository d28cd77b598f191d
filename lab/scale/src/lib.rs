//! A model of the distributed store on many machines. It is not a measurement. The costs of one-sided operations are
//! given (by default the orders of an FDR InfiniBand card, see docs/cluster.md). Throughput follows from them, from the
//! popularity of keys, and from the capacity of each server's network card and processor.
//!
//! Clients have a fixed number of requests under way. The time of a request is the client's own work, the latencies of
//! its operations one after the other, and the waits at the servers, which are queues: at a server that is busy for a
//! share `b` of the time, a request of service time `s` takes `s / (1 - b)`. The throughput is the one at which these
//! times yield the fixed number of requests under way.
//!
//! A set locks its block from the compare-swap until its last Put has arrived, which the set itself does not wait for. So
//! there is a most of sets of one key. A get or set of a hot key that finds the block locked is repeated, as the store's sessions do it, and then becomes a
//! message, which the server's processor must carry out beside the others. Repeated operations load the card. The more
//! machines, the more often another session has set a key since this one knew its tail: then the first compare-swap of a
//! set is lost.
//!
//! A get raises a block's recency by a compare-swap if it is the first one of a version, or of an epoch.
//!
//! [`against`] compares it with runs of a few clients.

#![forbid(unsafe_code)]

pub mod against;
mod costs;

use std::fmt::{self, Display};
use std::path::PathBuf;

use clap::Args;
use nuthatch_base::hash::KeyHasher;
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
    /// Take Get, Put and compare-swap from this file, which `nuthatch-fabric latency --json` has printed, in place of the
    /// latencies above
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// A client's own work for a request, in microseconds
    #[arg(long, value_name = "US", default_value_t = 0.3)]
    pub client: f64,
    /// A server's work for a message, in microseconds
    #[arg(long, value_name = "US", default_value_t = 0.5)]
    pub server: f64,
    /// One-sided operations that a server's network card takes, in millions per second
    #[arg(long, value_name = "MOPS", default_value_t = 35.0)]
    pub card: f64,
    /// Compare-swaps that this card takes, in millions per second; by default as many as of any operation
    #[arg(long, value_name = "MOPS")]
    pub swaps: Option<f64>,
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
    /// Seconds of an epoch, in which a block's recency is raised once
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub epoch: f64,
    /// Requests that each client has in flight
    #[arg(long, default_value_t = 8)]
    pub window: usize,
    /// The largest number of machines, each a server and a client
    #[arg(long, default_value_t = 1024)]
    pub machines: usize,
    /// Also compare the model with the runs in this file, which `nuthatch-fabric throughput --json` has printed for 1 to
    /// 8 clients (one array of rows behind the other), and tell its error
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// Cores that these clients shared
    #[arg(long, default_value_t = 2)]
    pub cores: usize,
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
    /// The throughput / that of one machine times the machines.
    pub of_linear: f64,
    /// The hottest server's load / the mean load.
    pub hottest: f64,
    /// How busy the busiest server is: its card or its processor.
    pub busy: f64,
    /// Share of the time in which the hottest key's block is locked.
    pub locked: f64,
    /// Compare-swaps of locks that are lost, for each request.
    pub lost: f64,
    /// Compare-swaps of recencies, for each request.
    pub marks: f64,
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
    /// Runs and what the model says of them.
    pub checked: Vec<against::Checked>,
}

/// Keys whose shares are counted one by one; the others are many and small, and spread evenly over all servers.
const COUNTED: u64 = 200_000;

/// The hottest keys, whose blocks' locks are counted; those of others are hardly ever met.
const LOCKABLE: u64 = 200;

/// How often a session reads a locked block again before it sends a message, and how often it tries to lock one
/// (`nuthatch_cluster`'s client).
const READS: i32 = 3;
const LOCKS: i32 = 3;

/// Operations of a message at the server's card: message and position, and the same of the reply.
const MESSAGE: f64 = 4.0;

/// Bytes of a block beside its value: 16 of key, 56 of the block's own.
const PAIR: usize = 72;

/// Direct sets of a session after which it gets a head, to see that what it wrote has arrived (`nuthatch_cluster`'s
/// client: as many as a wave may have).
const UNDER_WAY: f64 = 64.0;

/// Throughput below this share of the linear one is a bend.
const BEND: f64 = 0.9;

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
            (
                "--swaps",
                self.swaps.unwrap_or(self.card),
                more_than_none,
                f64::MAX,
            ),
            ("--epoch", self.epoch, more_than_none, f64::MAX),
            ("--cores", self.cores as f64, 1.0, MACHINES_MAX as f64),
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

    /// Microseconds in which a direct set has its block locked: the compare-swap's way back, and two Puts.
    fn lock(&self) -> f64 {
        self.cas / 2.0 + 2.0 * self.put
    }

    /// Microseconds of an operation for which its server's card or cable is busy, whichever takes longer.
    fn operation(&self) -> f64 {
        let bytes = (self.value + PAIR) as f64;
        (1.0 / self.card).max(bytes / (self.bandwidth * 1000.0))
    }

    /// Microseconds for which the card is busy with what requests cost.
    fn card_work(&self, cost: Cost) -> f64 {
        let swap = self.swaps.map_or(0.0, |swaps| 1.0 / swaps);
        (cost.operations - cost.swaps) * self.operation() + cost.swaps * self.operation().max(swap)
    }

    /// How likely a get of a key raises the recency, by the key's requests a microsecond: it is the first one after a
    /// set, or of an epoch.
    fn marks(&self, requests: f64) -> f64 {
        let gets = requests * self.gets / 100.0 * self.epoch * 1e6;
        let of_epoch = if gets > 1e-9 {
            (1.0 - (-gets).exp()) / gets
        } else {
            1.0
        };
        1.0 - (self.gets / 100.0) * (1.0 - of_epoch)
    }

    /// What a request of a key costs whose block is locked for a share of the time, without waits at the server.
    fn cost(&self, contention: Contention) -> Cost {
        let (gets, sets) = (self.gets / 100.0, 1.0 - self.gets / 100.0);
        let (get, set) = (self.get_cost(contention), self.set_cost(contention));
        let sum = |of: fn(&Cost) -> f64| gets * of(&get) + sets * of(&set);
        Cost {
            operations: sum(|cost| cost.operations),
            swaps: sum(|cost| cost.swaps),
            lost: sum(|cost| cost.lost),
            again: sum(|cost| cost.again),
            marks: sum(|cost| cost.marks),
            messages: sum(|cost| cost.messages),
            micros: self.client + sum(|cost| cost.micros),
        }
    }

    /// A get reads a block that it finds locked up to [`READS`] times again.
    fn get_cost(&self, Contention { locked, marks, .. }: Contention) -> Cost {
        let still = self.still_locked(locked);
        let again: f64 = (0..READS).map(|tries| locked * still.powi(tries)).sum();
        let reads = self.directory + 2.0 * (1.0 - self.directory) + again;
        let messages = locked * still.powi(READS);
        Cost {
            operations: reads + marks + messages * MESSAGE,
            swaps: marks,
            lost: 0.0,
            again,
            marks,
            messages,
            micros: reads * self.get + marks * self.cas + messages * self.message,
        }
    }

    fn set_cost(&self, contention: Contention) -> Cost {
        let direct = 1.0 - self.active;
        let Locking { lost, gives_up } = self.locking(contention);
        let (reads, swaps, writes) = (1.0 + lost, 1.0 + lost, 1.0 - gives_up);
        let messages = self.active + direct * gives_up;
        // The key is read while the first compare-swap is under way. A write is content and head, and now and then a Get
        // of the head.
        let first = (self.get - self.cas).max(0.0);
        let waits = first + lost * self.get + swaps * self.cas;
        let micros = waits + writes * self.get / UNDER_WAY;
        Cost {
            operations: direct * (reads + swaps + writes * (2.0 + 1.0 / UNDER_WAY))
                + messages * MESSAGE,
            swaps: direct * swaps,
            lost: direct * lost,
            // What was read behind a lost compare-swap was locked.
            again: direct * gives_up,
            marks: 0.0,
            messages,
            micros: direct * micros + messages * self.message,
        }
    }

    /// A direct set's compare-swap is lost if the block is locked, or if another session has set it since this one knew
    /// its tail. Then the session reads the block: it tries again, [`LOCKS`] times in all, unless the block is locked.
    fn locking(&self, Contention { locked, stale, .. }: Contention) -> Locking {
        let still = self.still_locked(locked);
        // The first attempt has the tail that the directory knows.
        let stale_only = (1.0 - locked) * stale;
        let mut lost = locked + stale_only;
        let mut gives_up = locked * still + stale_only * locked;
        let mut goes_on = lost - gives_up;
        for _ in 1..LOCKS {
            let lost_again = goes_on * locked;
            lost += lost_again;
            gives_up += lost_again * still;
            goes_on = lost_again * (1.0 - still);
        }
        Locking {
            lost,
            gives_up: gives_up + goes_on,
        }
    }

    /// How likely a block that was locked is locked when it is read again: by the same set, or by another one.
    fn still_locked(&self, locked: f64) -> f64 {
        let same = (1.0 - self.get / self.lock()).max(0.0);
        same + (1.0 - same) * locked
    }

    /// How likely another session has set a key since a session last used it. Each of the sessions uses it as often.
    fn stale(&self, clients: usize) -> f64 {
        let others = (1.0 - self.gets / 100.0) * (clients - 1) as f64;
        others / (1.0 + others)
    }

    /// The share of the time in which a block is locked, by its sets a microsecond. It grows with the sets, and sets that
    /// become messages lock the block for the server's work alone.
    fn locked(&self, sets: f64, stale: f64) -> f64 {
        let by_sets = |locked: f64| {
            let direct = 1.0 - self.active;
            let contention = Contention {
                locked,
                stale,
                marks: 0.0,
            };
            let gives_up = self.locking(contention).gives_up;
            let messages = self.active + direct * gives_up;
            sets * (messages * self.server + (1.0 - messages) * self.lock())
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..40 {
            let locked = (low + high) / 2.0;
            match by_sets(locked) > locked {
                true => low = locked,
                false => high = locked,
            }
        }
        low
    }

    /// Shares of the requests: of each server, of the hottest keys with their servers, and of keys by popularity.
    fn shares(&self, servers: usize) -> Shares {
        let mut shares = vec![0.0; servers];
        let mut hottest = Vec::new();
        let weight = |rank: u64| (rank as f64).powf(-self.theta);
        let counted = self.keys.min(COUNTED);
        let rest = self.weight_beyond(counted);
        let all = (1..=counted).map(weight).sum::<f64>() + rest;
        for rank in 1..=counted {
            let hash = KeyHasher::seeded(1).hash(&rank.to_le_bytes());
            let server = nuthatch_cluster::server_of(hash, servers);
            let share = weight(rank) / all;
            shares[server] += share;
            if rank <= LOCKABLE {
                hottest.push((server, share));
            }
        }
        let beyond = rest / servers as f64 / all;
        shares.iter_mut().for_each(|share| *share += beyond);
        // Twice as many keys in each group as in the one before, and all others.
        let mut groups = Vec::new();
        let mut first = 1;
        while first <= counted {
            let last = (2 * first - 1).min(counted);
            let share = (first..=last).map(weight).sum::<f64>() / all;
            groups.push((share / (last - first + 1) as f64, share));
            first = last + 1;
        }
        if self.keys > counted {
            groups.push((rest / all / (self.keys - counted) as f64, rest / all));
        }
        Shares {
            servers: shares,
            hottest,
            groups,
        }
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

    /// The load at a rate, in requests a microsecond; `None` if some server cannot carry it.
    fn load(&self, rate: f64, shares: &Shares, clients: usize) -> Option<Load> {
        let stale = self.stale(clients);
        let sets = rate * (1.0 - self.gets / 100.0);
        let groups = shares.groups.iter();
        let marks = groups
            .map(|&(each, all)| all * self.marks(rate * each))
            .sum();
        let free = self.cost(Contention {
            locked: 0.0,
            stale,
            marks,
        });
        let mut servers: Vec<Cost> = shares
            .servers
            .iter()
            .map(|&share| free.times(share))
            .collect();
        let mut hottest_locked = 0.0_f64;
        for &(server, share) in &shares.hottest {
            let locked = self.locked(sets * share, stale);
            // Marks of hot keys are among those of all.
            let contention = Contention {
                locked,
                stale,
                marks,
            };
            let more = self.cost(contention).less(free);
            servers[server] = servers[server].plus(more.times(share));
            hottest_locked = hottest_locked.max(locked);
        }
        let mut load = Load {
            locked: hottest_locked,
            ..Load::default()
        };
        for &server in &servers {
            let (card, processor) = (self.card_work(server), server.messages * self.server);
            let busy = [card, processor].map(|work| rate * work);
            load.busy = load.busy.max(busy[0]).max(busy[1]);
            load.latency += server.micros + card / (1.0 - busy[0]) + processor / (1.0 - busy[1]);
            load.lost += server.lost;
            load.again += server.again;
            load.marks += server.marks;
        }
        (load.busy < 1.0).then_some(load)
    }

    /// The rate and load of some clients with so many requests under way in all. The more requests a microsecond, the
    /// longer each takes, so there is one rate at which their number is that of the requests under way.
    fn at(&self, servers: usize, clients: usize, under_way: f64) -> At {
        let shares = self.shares(servers);
        let hottest = shares.servers.iter().copied().fold(0.0, f64::max);
        let (mut low, mut high) = (0.0, self.card / hottest);
        // Enough halvings for any card.
        for _ in 0..80 {
            let rate = (low + high) / 2.0;
            match self.load(rate, &shares, clients) {
                Some(load) if rate * load.latency < under_way => low = rate,
                _ => high = rate,
            }
        }
        At {
            rate: low,
            hottest,
            load: self.load(low, &shares, clients).unwrap_or_default(),
        }
    }

    /// The same with all costs in time multiplied.
    fn scaled(&self, factor: f64) -> Self {
        Self {
            get: self.get * factor,
            put: self.put * factor,
            cas: self.cas * factor,
            message: self.message * factor,
            client: self.client * factor,
            server: self.server * factor,
            ..self.clone()
        }
    }

    /// The results for some machines; `one`: the throughput of one machine, unless this is it.
    fn row(&self, machines: usize, one: Option<f64>) -> Row {
        let under_way = (machines * self.window) as f64;
        let At {
            rate,
            hottest,
            load,
        } = self.at(machines, machines, under_way);
        Row {
            machines,
            mops: rate,
            of_linear: rate / (machines as f64 * one.unwrap_or(rate)),
            hottest: hottest * machines as f64,
            busy: load.busy,
            locked: load.locked,
            lost: load.lost,
            marks: load.marks,
            latency: under_way / rate,
        }
    }
}

/// How requests are shared out.
struct Shares {
    /// Of each server.
    servers: Vec<f64>,
    /// Of the hottest keys, with their servers.
    hottest: Vec<(usize, f64)>,
    /// Of groups of keys: of each key, and of all in the group.
    groups: Vec<(f64, f64)>,
}

/// Where the model comes to rest.
struct At {
    /// Requests a microsecond.
    rate: f64,
    /// The hottest server's share of them.
    hottest: f64,
    load: Load,
}

/// How much the sessions are in each other's way at a key.
#[derive(Clone, Copy)]
struct Contention {
    /// Share of the time in which its block is locked.
    locked: f64,
    /// How likely a session's tail of it is not the last one.
    stale: f64,
    /// How likely a get raises its recency.
    marks: f64,
}

/// How a direct set locks its block.
struct Locking {
    /// Compare-swaps that are lost.
    lost: f64,
    /// How likely the set becomes a message instead.
    gives_up: f64,
}

/// What requests cost.
#[derive(Clone, Copy)]
struct Cost {
    /// Operations at the server's card.
    operations: f64,
    /// Compare-swaps among them.
    swaps: f64,
    /// Those of locks that are lost.
    lost: f64,
    /// Reads that found the block locked.
    again: f64,
    /// Those of recencies.
    marks: f64,
    /// Messages to the server's processor.
    messages: f64,
    /// Time without waits at the server.
    micros: f64,
}

impl Cost {
    fn times(self, factor: f64) -> Self {
        Self {
            operations: self.operations * factor,
            swaps: self.swaps * factor,
            lost: self.lost * factor,
            again: self.again * factor,
            marks: self.marks * factor,
            messages: self.messages * factor,
            micros: self.micros * factor,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            swaps: self.swaps + other.swaps,
            lost: self.lost + other.lost,
            again: self.again + other.again,
            marks: self.marks + other.marks,
            messages: self.messages + other.messages,
            micros: self.micros + other.micros,
        }
    }

    fn less(self, other: Self) -> Self {
        self.plus(other.times(-1.0))
    }
}

/// What a rate of requests means.
#[derive(Clone, Copy, Default)]
struct Load {
    /// Microseconds of a request.
    latency: f64,
    /// How busy the busiest server is.
    busy: f64,
    /// How long the hottest key's block is locked.
    locked: f64,
    /// Lost compare-swaps of a request.
    lost: f64,
    /// Its reads that found the block locked.
    again: f64,
    /// Compare-swaps of recencies of a request.
    marks: f64,
}

/// Computes the model.
pub fn run(options: &Options) -> Result<Report, Failure> {
    options.check()?;
    let options = &options.with_costs()?;
    let machines = (0..).map(|power| 1 << power);
    let mut rows: Vec<Row> = Vec::new();
    for machines in machines.take_while(|&machines| machines <= options.machines) {
        let one = rows.first().map(|row| row.mops);
        rows.push(options.row(machines, one));
    }
    let against = options.against.as_ref();
    let checked = against.map_or(Ok(Vec::new()), |file| against::compare(options, file))?;
    Ok(Report {
        options: options.clone(),
        rows,
        checked,
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
            "machines   M requests/s   of linear   hottest/mean   busiest   hottest key locked   us a request"
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "{:>8}{:>15.1}{:>10.0} %{:>15.2}{:>8.0} %{:>19.0} %{:>15.1}",
                row.machines,
                row.mops,
                100.0 * row.of_linear,
                row.hottest,
                100.0 * row.busy,
                100.0 * row.locked,
                row.latency
            )?;
        }
        if !self.checked.is_empty() {
            against::Summary(&self.checked).fmt(f)?;
        }
        match self.rows.iter().find(|row| row.of_linear < BEND) {
            Some(row) => writeln!(
                f,
                "It bends at {} machines: the hottest server has {:.1} times the mean load, the busiest is {:.0} % busy, \
                 and the hottest key's block is locked {:.0} % of the time.",
                row.machines,
                row.hottest,
                100.0 * row.busy,
                100.0 * row.locked
            ),
            None => writeln!(
                f,
                "It does not bend: at least {:.0} % of one machine's throughput for each machine.",
                100.0 * BEND
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    pub struct Line {
        #[command(flatten)]
        pub options: Options,
    }

    fn report(words: &[&str]) -> Report {
        let line = Line::parse_from(["scale"].iter().chain(words));
        run(&line.options).unwrap()
    }

    #[test]
    fn without_skew_it_scales() {
        let report = report(&["--theta", "0", "--machines", "256"]);
        assert!(
            report.rows.iter().all(|row| row.of_linear > 0.9),
            "{report}"
        );
        let mops: Vec<f64> = report.rows.iter().map(|row| row.mops).collect();
        assert!(mops.windows(2).all(|pair| pair[1] > 1.8 * pair[0]));
    }

    #[test]
    fn skew_bends_it_where_the_hottest_server_is_full() {
        let report = report(&["--gets", "100"]);
        let last = &report.rows[report.rows.len() - 1];
        assert_eq!(last.machines, 1024);
        assert!(last.busy > 0.95 && last.of_linear < 0.9 && last.hottest > 10.0);
        let text = report.to_string();
        assert!(text.contains("It bends at") && text.ends_with("of the time.\n"));
        // Shares are of one whole.
        let sum: f64 = report.options.shares(64).servers.iter().sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }

    #[test]
    fn no_more_sets_of_a_key_than_its_lock_allows() {
        // Sets of one key alone, none of which may become a message: a server takes very long for one.
        let report = report(&[
            "--gets", "0", "--keys", "1", "--active", "0", "--server", "1e6",
        ]);
        let lock = report.options.lock();
        for row in &report.rows {
            assert!(row.mops * lock <= 1.0 && row.locked <= 1.0, "{report}");
        }
        // By default, the hottest key's sets lock its block for no longer than there is time.
        let report = self::report(&[]);
        let options = &report.options;
        for row in &report.rows {
            let hottest = options.shares(row.machines).hottest;
            let sets = row.mops * hottest[0].1 * (1.0 - options.gets / 100.0);
            let contention = Contention {
                locked: row.locked,
                stale: options.stale(row.machines),
                marks: 0.0,
            };
            let direct = (1.0 - options.active) * (1.0 - options.locking(contention).gives_up);
            let locks = sets * direct * options.lock();
            assert!(locks <= row.locked + 1e-6 && row.locked < 1.0, "{report}");
        }
        let last = &report.rows[report.rows.len() - 1];
        assert!(last.locked > 0.3 && last.busy > 0.9, "{report}");
    }

    #[test]
    fn a_set_that_always_meets_the_lock_becomes_a_message() {
        let options = report(&["--machines", "1"]).options;
        let locking = |locked, stale| {
            options.locking(Contention {
                locked,
                stale,
                marks: 0.0,
            })
        };
        let Locking { lost, gives_up } = locking(1.0, 0.0);
        assert_eq!((lost, gives_up), (1.0, 1.0));
        // A tail that is not the last one takes another compare-swap.
        let Locking { lost, gives_up } = locking(0.0, 1.0);
        assert_eq!((lost, gives_up), (1.0, 0.0));
        for locked in (0..=100).map(|percent| f64::from(percent) / 100.0) {
            let Locking { lost, gives_up } = locking(locked, 0.5);
            assert!((0.0..=1.0).contains(&gives_up) && (gives_up..=3.0).contains(&lost));
        }
    }

    #[test]
    fn one_machine_is_the_measure_and_does_not_bend() {
        // However many requests wait in one machine's queue.
        let report = report(&["--theta", "0", "--window", "500", "--machines", "64"]);
        assert!((report.rows[0].of_linear - 1.0).abs() < 1e-9);
        assert!(report.to_string().contains("It does not bend"), "{report}");
    }

    #[test]
    fn recencies_are_raised_after_sets_and_once_an_epoch() {
        let options = report(&["--machines", "1", "--gets", "50"]).options;
        // A hot key: every second get follows a set. One that is hardly asked for: every get is the first of its epoch.
        assert!((options.marks(1.0) - 0.5).abs() < 1e-3);
        assert!(options.marks(1e-12) > 0.99);
        let slower = report(&["--gets", "50", "--machines", "64", "--swaps", "1"]);
        let faster = report(&["--gets", "50", "--machines", "64"]);
        let last = |report: &Report| report.rows[report.rows.len() - 1].mops;
        assert!(last(&slower) < 0.7 * last(&faster), "{slower}{faster}");
    }

    #[test]
    fn its_error_beside_runs_is_told() {
        let folder = std::env::temp_dir();
        let file = folder.join(format!("nuthatch-scale-{}.json", std::process::id()));
        let run = |clients: usize, per_second: f64| {
            format!(
                "{{\"system\": \"store\", \"keys\": 1000, \"value\": 32, \"gets\": 100, \"batch\": 1, \
                 \"clients\": {clients}, \"of_all_per_second\": {per_second}, \"directory_hits\": 1.0, \
                 \"messages\": 0.0, \"locks_lost\": 0.0, \"reads_again\": 0.0, \"recency_swaps\": 0.1}}"
            )
        };
        let words = ["--machines", "1", "--against", file.to_str().unwrap()];
        // Two cores carry out twice as much as one, and no more.
        std::fs::write(
            &file,
            format!("[{}, {}]\n[{}]\n", run(1, 2e6), run(2, 4e6), run(8, 5e6)),
        )
        .unwrap();
        let found = report(&words);
        let errors: Vec<_> = found.checked.iter().map(against::Checked::error).collect();
        assert!(
            errors[0].abs() < 0.01 && (errors[1] + 0.2).abs() < 0.3,
            "{found}"
        );
        assert!(found.to_string().contains("at most, in 2 runs"), "{found}");
        // A request of which the operations are a small part: the rest is the client's own work.
        let slow = format!("[{}, {}]", run(1, 1e4), run(2, 1e4));
        std::fs::write(&file, slow).unwrap();
        let found = report(&words);
        assert!((found.checked[0].error() - 1.0).abs() < 0.05, "{found}");
        for wrong in ["", "[]", "{}", &format!("[{}]", run(2, 4e6))] {
            std::fs::write(&file, wrong).unwrap();
            let line = Line::parse_from(["scale"].iter().chain(&words));
            assert!(run_fails(&line.options), "{wrong}");
        }
        std::fs::remove_file(&file).unwrap();
    }

    fn run_fails(options: &Options) -> bool {
        matches!(run(options), Err(Failure::Usage(_)))
    }
}
