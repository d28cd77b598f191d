//! `nuthatch-lab flow theory`: the hit rates that the paper's analysis expects of each layout, how they are reached
//! (appendix D), and how many keys spill from a bucket into the next (appendix B).

use std::path::PathBuf;

use clap::Args;
use nuthatch_flow::theory::{self, Arrivals};
use nuthatch_flow::{Eviction, Layout};
use serde::Serialize;

use crate::figures;
use crate::report::{self, Row};
use nuthatch_program::{Failure, output};

/// The options of the analysis.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Oversubscription factors (keys / entries), separated by commas
    #[arg(
        long,
        value_name = "FACTORS",
        value_delimiter = ',',
        default_values_t = [0.5, 0.8, 0.9, 0.95, 1.0, 1.1, 1.25, 2.0],
        value_parser = crate::arguments::factor
    )]
    pub oversubscription: Vec<f64>,
    /// Print the hit rates during a warm-up instead, as the paper estimates them, after these numbers of lookups / key,
    /// separated by commas
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = crate::arguments::not_negative,
        conflicts_with_all = ["spill", "svg"])]
    pub warm_up: Vec<f64>,
    /// Print the probabilities instead that a number of keys spills from a bucket into the next
    #[arg(long, conflicts_with = "svg")]
    pub spill: bool,
    /// Print one line of JSON for each row; of the hit rates for each layout and factor
    #[arg(long)]
    pub json: bool,
    /// Draw the curves into a file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// The expected values at one factor.
#[derive(Clone, Debug, Serialize)]
struct Expected {
    layout: String,
    /// The eviction of the warm-up; the hit rate is the same for all evictions.
    eviction: &'static str,
    oversubscription: f64,
    theory: f64,
    /// Nothing is measured here; the objects of all commands have these fields.
    hit_rate: Option<f64>,
    cycles_per_lookup: Option<f64>,
    mpps: Option<f64>,
    /// Lookups / keys until the hit rate is within .005 of it, at a factor of 0.95.
    warm_up_rounds: Option<u32>,
}

/// A factor, and the expected hit rate of each layout there.
struct RatesAtFactor {
    oversubscription: f64,
    rates: Vec<f64>,
}

impl Row for RatesAtFactor {
    const COLUMNS: &'static [&'static str] = &[
        "keys / entry",
        "",
        "4-way",
        "8-way",
        "cuckoo-lite",
        "window",
        "blp-2-4",
        "blp-2-8",
        "ideal",
    ];

    fn cells(&self) -> Vec<String> {
        let rates = self.rates.iter().map(|rate| format!("{rate:.4}"));
        [self.oversubscription.to_string(), String::new()]
            .into_iter()
            .chain(rates)
            .collect()
    }
}

/// The estimated hit rate after a part of the warm-up.
#[derive(Clone, Debug, Serialize)]
struct WarmingUp {
    layout: String,
    oversubscription: f64,
    /// Lookups so far / keys of the working set.
    warm_up: f64,
    /// The hit rate then, as the paper estimates it.
    estimate: f64,
    /// The hit rate in the end.
    theory: f64,
}

impl Row for WarmingUp {
    const COLUMNS: &'static [&'static str] = &[
        "layout",
        "",
        "keys / entry",
        "lookups / key",
        "hit rate",
        "in the end",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.layout.clone(),
            String::new(),
            self.oversubscription.to_string(),
            self.warm_up.to_string(),
            format!("{:.4}", self.estimate),
            format!("{:.4}", self.theory),
        ]
    }
}

/// The probability that this many keys spill from a bucket into the next.
#[derive(Clone, Debug, Serialize)]
struct Spilled {
    layout: String,
    oversubscription: f64,
    /// Keys of a bucket, and of those before it, that are in later ones.
    spilled: usize,
    probability: f64,
}

impl Row for Spilled {
    const COLUMNS: &'static [&'static str] =
        &["layout", "", "keys / entry", "keys spilled", "probability"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.layout.clone(),
            String::new(),
            self.oversubscription.to_string(),
            self.spilled.to_string(),
            format!("{:.4}", self.probability),
        ]
    }
}

/// Computes and prints.
pub fn run(options: &Options) -> Result<(), Failure> {
    if !options.warm_up.is_empty() {
        let title = "Hit rates during a warm-up, as the paper estimates them (appendix D):";
        return report::print(title, &warming_up(options), options.json);
    }
    if options.spill {
        let title = "Keys that spill from a bucket into the next (appendix B):";
        return report::print(title, &spilled(&options.oversubscription), options.json);
    }
    if let Some(path) = &options.svg {
        report::save(path, figures::expected(&options.oversubscription))?;
    }
    if options.json {
        return report::print_json(&expected(&options.oversubscription));
    }
    let rows: Vec<RatesAtFactor> = options
        .oversubscription
        .iter()
        .map(|&factor| RatesAtFactor {
            oversubscription: factor,
            rates: Layout::ALL
                .iter()
                .map(|&layout| theory::hit_rate(layout, factor))
                .chain([theory::ideal(factor)])
                .collect(),
        })
        .collect();
    report::print_table(
        "Expected hit rates, equally likely keys, after a long warm-up:",
        &rows,
    )?;
    let warm_up = |eviction| {
        let rounds = theory::warm_up_rounds(Layout::Blp2x4, eviction);
        format!("{rounds} lookups / key with {}", eviction.name())
    };
    output::print(&format!(
        "Warm-up of blp-2-4 at 0.95 until within .005: {}, {}.\n",
        warm_up(Eviction::Random),
        warm_up(Eviction::RandomSecond),
    ))
}

fn warming_up(options: &Options) -> Vec<WarmingUp> {
    let mut rows = Vec::new();
    for layout in Layout::ALL {
        for &oversubscription in &options.oversubscription {
            let theory = theory::hit_rate(layout, oversubscription);
            rows.extend(options.warm_up.iter().map(|&warm_up| WarmingUp {
                layout: layout.to_string(),
                oversubscription,
                warm_up,
                estimate: theory::warm_up_hit_rate(theory, warm_up),
                theory,
            }));
        }
    }
    rows
}

/// Of the layouts whose buckets are neighbours.
fn spilled(factors: &[f64]) -> Vec<Spilled> {
    let mut rows = Vec::new();
    let spills = |layout: &Layout| layout.is_consecutive() && layout.buckets() > 1;
    for layout in Layout::ALL.into_iter().filter(spills) {
        for &oversubscription in factors {
            let (buckets, slots) = (layout.buckets(), layout.slots());
            let probabilities =
                theory::spill_probabilities(buckets, slots, oversubscription, Arrivals::Poisson);
            let row = |(spilled, probability)| Spilled {
                layout: layout.to_string(),
                oversubscription,
                spilled,
                probability,
            };
            rows.extend(probabilities.into_iter().enumerate().map(row));
        }
    }
    rows
}

fn expected(factors: &[f64]) -> Vec<Expected> {
    let pairs = factors
        .iter()
        .flat_map(|&factor| Layout::ALL.map(|layout| (factor, layout)));
    let mut rows: Vec<Expected> = pairs
        .map(|(factor, layout)| Expected {
            layout: layout.to_string(),
            eviction: Eviction::Random.name(),
            oversubscription: factor,
            theory: theory::hit_rate(layout, factor),
            hit_rate: None,
            cycles_per_lookup: None,
            mpps: None,
            warm_up_rounds: Some(theory::warm_up_rounds(layout, Eviction::Random)),
        })
        .collect();
    rows.extend(factors.iter().map(|&factor| Expected {
        layout: "ideal".to_owned(),
        eviction: "-",
        oversubscription: factor,
        theory: theory::ideal(factor),
        hit_rate: None,
        cycles_per_lookup: None,
        mpps: None,
        warm_up_rounds: None,
    }));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_the_layouts_in_their_order() {
        let names = Layout::ALL.map(Layout::name);
        assert_eq!(RatesAtFactor::COLUMNS[2..2 + names.len()], names);
    }

    #[test]
    fn spills_of_neighbours_sum_up_to_one() {
        let rows = spilled(&[0.95]);
        for layout in ["window", "blp-2-4", "blp-2-8"] {
            let own = rows.iter().filter(|row| row.layout == layout);
            let sum: f64 = own.map(|row| row.probability).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{layout}: {sum}");
        }
        assert!(rows.iter().all(|row| row.layout != "4-way"));
        // One bucket's slots at most go on from a bucket to the next.
        let most = rows.iter().filter(|row| row.layout == "blp-2-4");
        assert_eq!(most.map(|row| row.spilled).max(), Some(4));
    }
}
