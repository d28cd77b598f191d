//! `nuthatch-lab flow optimum`: the hits that an eviction could have that knows the future, by two yardsticks.
//!
//! * `belady`: on the very requests that `flow bench` makes with the same options, evicts the candidate whose next
//!   request is latest, or does not insert the new key if its own is ([`belady`]).
//! * `best-content`: the table holds, for ever, keys of the greatest popularity that have places in it at the same time
//!   ([`content`]). For requests that are independent of each other no eviction that does not know the future has more
//!   hits in the long run.
//!
//! Both are computed for the slots of each layout, and for a table in which any key may be in any slot (`ideal`).

pub mod belady;
pub mod content;
mod places;

use clap::Args;
use nuthatch_bench::report::Spread;
use nuthatch_flow::theory;
use nuthatch_workload::Distribution;
use serde::Serialize;

use crate::arguments::{self, Skew};
use crate::bench::keys::{Keys, ROUNDS_MAX};
use crate::bench::{WorkingSet, sizes};
use crate::design::{OneOrAll, Place, chosen};
use crate::report::{self, Row};
use nuthatch_program::Failure;
use nuthatch_program::progress::Progress;
pub use places::Places;

/// Requests that are recorded, at most: each takes 9 bytes.
const RECORDED_MAX: u64 = 1 << 27;
/// Keys of the working set, at most.
const KEYS_MAX: u64 = 1 << 27;
/// Lookups of the warm-up / keys, at most: an eviction that knows the future needs no more to fill its table.
const WARM_UP_MAX: f64 = 4.0;

/// The options; those that `flow bench` has, too, mean the same.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Layouts, separated by commas: 4-way, 8-way, cuckoo-lite, window, blp-2-4, blp-2-8, hopscotch; or all but the
    /// last, which has the slots of window
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "blp-2-4"
    )]
    pub layout: Vec<OneOrAll<Place>>,
    /// The tables' sizes, and the keys.
    #[command(flatten)]
    pub working_set: WorkingSet,
    /// How popular the keys are.
    #[command(flatten)]
    pub skew: Skew,
    /// Lookups of the warm-up / keys of the working set; more than 4 count as 4
    #[arg(long, value_name = "TIMES", default_value_t = 100.0, value_parser = arguments::not_negative)]
    pub warm_up: f64,
    /// Lookups of a round
    #[arg(long, default_value = "1m", value_parser = arguments::positive_count)]
    pub lookups: u64,
    /// Number of rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=ROUNDS_MAX))]
    pub rounds: u64,
    /// Seed of the keys
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one line of JSON for each layout and yardstick
    #[arg(long)]
    pub json: bool,
}

/// The hits of one yardstick.
#[derive(Clone, Debug, Serialize)]
pub struct Computed {
    /// Which slots may hold a key; `ideal` if any may.
    pub layout: String,
    /// `belady` or `best-content`.
    pub eviction: &'static str,
    /// Slots.
    pub entries: u64,
    /// Keys of the working set.
    pub keys: u64,
    /// Keys / slots.
    pub oversubscription: f64,
    /// How popular they are.
    pub distribution: String,
    /// Hits / lookups.
    pub hit_rate: f64,
    /// The same round by round; of a content it is always the same.
    pub hit_rate_spread: Spread,
    /// The hit rate that the analysis expects, if keys are equally likely.
    pub theory: Option<f64>,
    /// Nothing is timed here; the objects of all commands have these fields.
    pub cycles_per_lookup: Option<f64>,
    /// Likewise.
    pub mpps: Option<f64>,
}

impl Row for Computed {
    const COLUMNS: &'static [&'static str] = &[
        "layout",
        "yardstick",
        "entries",
        "keys",
        "hit rate",
        "theory",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.layout.clone(),
            self.eviction.to_owned(),
            self.entries.to_string(),
            self.keys.to_string(),
            format!("{:.4}", self.hit_rate),
            self.theory
                .map_or("-".to_owned(), |rate| format!("{rate:.4}")),
        ]
    }
}

/// Computes and prints.
pub fn run(options: &Options) -> Result<(), Failure> {
    let rows = compute(options)?;
    let title = format!(
        "{} keys, {} rounds of {} lookups:",
        options.skew.name(),
        options.rounds,
        options.lookups
    );
    report::print(&title, &rows, options.json)
}

/// Computes both yardsticks for each layout, then for a table without one.
pub fn compute(options: &Options) -> Result<Vec<Computed>, Failure> {
    let layouts = chosen(&options.layout, &Place::ALL);
    let points = sizes(&options.working_set)?;
    let bar = Progress::steps(points.len() * (layouts.len() + 1) * 2);
    let mut rows = Vec::new();
    for (entries, keys) in points {
        let working_set = Recorded::of(keys, options)?;
        let tables = layouts.iter().copied().map(Some).chain([None]);
        for table in tables {
            let places = match table {
                Some(place) => Places::of(place.candidates(), entries),
                None => Places::anywhere(entries),
            };
            bar.step(format!("best content of {entries} entries"));
            let content = working_set.best_content(&places);
            bar.add(1);
            bar.step(format!("Belady in {entries} entries"));
            let belady = working_set.belady(&places);
            bar.add(1);
            for (eviction, rates) in [("belady", belady), ("best-content", vec![content])] {
                rows.push(row(
                    table,
                    &places,
                    (eviction, rates),
                    &working_set,
                    options,
                ));
            }
        }
    }
    Ok(rows)
}

fn row(
    table: Option<Place>,
    places: &Places,
    (eviction, rates): (&'static str, Vec<f64>),
    working_set: &Recorded,
    options: &Options,
) -> Computed {
    let (entries, keys) = (places.entries(), working_set.hashes.len() as u64);
    let oversubscription = keys as f64 / entries as f64;
    let theory = options.skew.is_uniform().then(|| match table {
        Some(place) => theory::hit_rate(place.candidates(), oversubscription),
        None => theory::ideal(oversubscription),
    });
    Computed {
        layout: table.map_or("ideal", Place::name).to_owned(),
        eviction,
        entries,
        keys,
        oversubscription,
        distribution: options.skew.name(),
        hit_rate: rates.iter().sum::<f64>() / rates.len() as f64,
        hit_rate_spread: Spread::of(rates),
        theory,
        cycles_per_lookup: None,
        mpps: None,
    }
}

/// The keys of a working set, and the requests for them.
struct Recorded {
    /// The hash of each key, by its rank: that of the most popular first.
    hashes: Vec<u64>,
    /// How popular the key of each rank is, as a share of all requests.
    shares: Vec<f64>,
    /// The requested ranks.
    requests: Vec<u32>,
    /// The requests that warm the table up; the rest are those of the rounds.
    warm_up: usize,
    rounds: usize,
}

impl Recorded {
    /// Draws the requests that `flow bench` makes.
    fn of(count: u64, options: &Options) -> Result<Self, Failure> {
        let warm_up = (count as f64 * options.warm_up.min(WARM_UP_MAX)) as u64;
        let rounds = options.lookups.saturating_mul(options.rounds);
        if count > KEYS_MAX || warm_up.saturating_add(rounds) > RECORDED_MAX {
            return Err(Failure::Usage(format!(
                "at most {KEYS_MAX} keys and {RECORDED_MAX} lookups, those of a warm-up included"
            )));
        }
        let mut keys = Keys::new(count, options.skew.distribution(), 0, options.seed);
        let mut ranks = vec![0_u32; count as usize];
        let mut hashes = Vec::with_capacity(count as usize);
        for rank in 0..count {
            let key = keys.key_of_rank(rank + 1);
            ranks[key as usize] = rank as u32;
            hashes.push(keys.hash(key));
        }
        let mut requests = Vec::with_capacity((warm_up + rounds) as usize);
        let mut record = |keys: &mut Keys, lookups| {
            requests.extend((0..lookups).map(|_| ranks[keys.next_key() as usize]));
        };
        record(&mut keys, warm_up);
        for round in 0..options.rounds {
            keys.begin(round, 0);
            record(&mut keys, options.lookups);
        }
        Ok(Self {
            hashes,
            shares: shares(options.skew.distribution(), count),
            requests,
            warm_up: warm_up as usize,
            rounds: options.rounds as usize,
        })
    }

    fn best_content(&self, places: &Places) -> f64 {
        let held = content::best(places, &self.hashes);
        let of_held = held.iter().zip(&self.shares).filter(|(held, _)| **held);
        of_held.map(|(_, share)| share).sum()
    }

    /// Hits / lookups of each round.
    fn belady(&self, places: &Places) -> Vec<f64> {
        let hits = belady::hits(places, &self.hashes, &self.requests);
        let lookups = (self.requests.len() - self.warm_up) / self.rounds;
        let rounds = hits[self.warm_up..].chunks(lookups);
        let rate =
            |round: &[bool]| round.iter().filter(|hit| **hit).count() as f64 / round.len() as f64;
        rounds.map(rate).collect()
    }
}

/// The share of the requests that each rank has.
fn shares(distribution: Distribution, count: u64) -> Vec<f64> {
    let (theta, head, rare) = match distribution {
        Distribution::Uniform => (0.0, count, 0.0),
        Distribution::Halves { theta, rare } if count > 1 => (theta, count.div_ceil(2), rare),
        Distribution::Zipf { theta } | Distribution::Halves { theta, .. } => (theta, count, 0.0),
    };
    let weights: Vec<f64> = (1..=head).map(|rank| (rank as f64).powf(-theta)).collect();
    // From the least on, so that small ones are not lost beside the sum.
    let sum: f64 = weights.iter().rev().sum();
    let popular = weights
        .into_iter()
        .map(|weight| (1.0 - rare) * weight / sum);
    let seldom = (head..count).map(|_| rare / (count - head) as f64);
    popular.chain(seldom).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        options: Options,
    }

    fn computed(line: &str) -> Vec<Computed> {
        let line = format!("optimum {line}");
        compute(&Arguments::parse_from(line.split(' ')).options)
            .ok()
            .unwrap()
    }

    fn rate(rows: &[Computed], layout: &str, eviction: &str) -> f64 {
        let found = rows
            .iter()
            .find(|row| row.layout == layout && row.eviction == eviction);
        found.unwrap().hit_rate
    }

    /// With equally popular keys the best content is as many keys as have places: what the analysis computes.
    #[test]
    fn the_best_content_of_equal_keys_is_the_theorys() {
        let rows = computed("--entries 64k --lookups 1k --warm-up 0 --layout all");
        for row in rows.iter().filter(|row| row.eviction == "best-content") {
            let theory = row.theory.unwrap();
            let off = (row.hit_rate - theory).abs();
            assert!(off < 0.003, "{}: {} and {theory}", row.layout, row.hit_rate);
        }
    }

    /// What knows the future has more hits than what knows the popularities, and that has more than the engines' own;
    /// a layout takes hits from both.
    #[test]
    fn yardsticks_are_in_their_order() {
        let rows = computed(
            "--entries 4k --oversubscription 4 --dist zipf --lookups 64k --rounds 2 --layout 4-way,blp-2-4",
        );
        for eviction in ["belady", "best-content"] {
            let rates = ["4-way", "blp-2-4", "ideal"].map(|layout| rate(&rows, layout, eviction));
            assert!(rates[0] < rates[1] && rates[1] < rates[2], "{rates:?}");
        }
        for layout in ["4-way", "blp-2-4", "ideal"] {
            assert!(rate(&rows, layout, "belady") > rate(&rows, layout, "best-content"));
        }
        // The formula: the share of the first quarter of the ranks.
        let top = shares(Distribution::Zipf { theta: 0.99 }, 16 << 10);
        let expected: f64 = top[..4 << 10].iter().sum();
        assert!((rate(&rows, "ideal", "best-content") - expected).abs() < 1e-12);
    }

    #[test]
    fn too_many_lookups_are_refused() {
        let line = "optimum --lookups 4g --entries 64 --layout blp-2-4";
        let options = Arguments::parse_from(line.split(' ')).options;
        assert!(matches!(compute(&options), Err(Failure::Usage(_))));
    }
}
