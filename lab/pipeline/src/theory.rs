//! `nuthatch-lab flow theory`: the hit rates that the paper's analysis expects of each layout.

use std::path::PathBuf;

use clap::Args;
use nuthatch_flow::{Eviction, Layout, theory};
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
    /// Print one line of JSON for each layout and factor
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

/// Computes and prints.
pub fn run(options: &Options) -> Result<(), Failure> {
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
}
