//! The model beside runs of the store: what it says of more clients, if one client's throughput is the measured one.
//!
//! `nuthatch-fabric throughput --json` prints the runs: one server, and clients with one request under way each, on a
//! machine whose cores they share. What the given costs leave of one client's time is its own work; if they are more than
//! that, they keep their proportions and are scaled together.

use std::fmt::{self, Display};
use std::path::Path;

use nuthatch_program::Failure;
use serde::{Deserialize, Serialize};

use crate::Options;

/// A run, as far as the model has something to say of it.
#[derive(Clone, Debug, Deserialize)]
struct Run {
    system: String,
    keys: u64,
    value: usize,
    gets: u32,
    batch: usize,
    clients: usize,
    of_all_per_second: f64,
    directory_hits: f64,
    messages: f64,
    locks_lost: f64,
    reads_again: f64,
    recency_swaps: f64,
}

/// A measured number and the model's.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Both {
    /// Of the run.
    pub measured: f64,
    /// Of the model.
    pub modelled: f64,
}

/// A run of several clients and what the model says of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checked {
    /// Percentage of gets.
    pub gets: u32,
    /// Bytes of a value.
    pub value: usize,
    /// Clients.
    pub clients: usize,
    /// Millions of requests a second.
    pub mops: Both,
    /// Lost compare-swaps of locks for each request.
    pub locks_lost: Both,
    /// Reads that found their block locked, for each request.
    pub reads_again: Both,
    /// Compare-swaps of recencies for each request.
    pub recency_swaps: Both,
}

impl Checked {
    /// By how much the model's throughput is off: a share of the measured one.
    pub fn error(&self) -> f64 {
        self.mops.modelled / self.mops.measured - 1.0
    }
}

impl Run {
    fn is_like(&self, other: &Self) -> bool {
        (self.keys, self.value) == (other.keys, other.value) && self.gets == other.gets
    }

    /// The model of this run's requests, with one server and no network card between it and its clients.
    fn options(&self, given: &Options) -> Options {
        const NO_LIMIT: f64 = 1e9;
        let gets = f64::from(self.gets);
        let sets = 1.0 - gets / 100.0;
        // Messages of a single client are those of gets without a pair in a bucket, and of sets that are not known.
        let active = if sets > 0.0 {
            self.messages / sets
        } else {
            0.0
        };
        Options {
            gets,
            keys: self.keys,
            value: self.value,
            directory: self.directory_hits,
            active: active.min(1.0),
            window: 1,
            card: NO_LIMIT,
            swaps: None,
            bandwidth: NO_LIMIT,
            ..given.clone()
        }
    }
}

/// Compares the model with the runs in a file.
///
/// # Errors
/// The file cannot be read or holds no such runs; of some requests there is no run of one client.
pub fn compare(given: &Options, file: &Path) -> Result<Vec<Checked>, Failure> {
    let named = |error: String| Failure::Usage(format!("--against {}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
    let arrays = serde_json::Deserializer::from_str(&text).into_iter::<Vec<Run>>();
    let runs = arrays.collect::<Result<Vec<_>, _>>();
    let runs = runs.map_err(|error| named(error.to_string()))?;
    let of_store: Vec<&Run> = runs
        .iter()
        .flatten()
        .filter(|run| run.system == "store" && run.batch == 1)
        .collect();
    let mut checked = Vec::new();
    for run in of_store.iter().filter(|run| run.clients > 1) {
        let mut alike = of_store.iter().filter(|other| other.is_like(run));
        let one = alike.find(|other| other.clients == 1);
        let one = one.ok_or_else(|| named("a run of one client is missing".to_owned()))?;
        checked.push(check(given, one, run));
    }
    match checked.is_empty() {
        true => Err(named(
            "no run of several clients, a request each".to_owned(),
        )),
        false => Ok(checked),
    }
}

fn check(given: &Options, one: &Run, run: &Run) -> Checked {
    let cores = given.cores as f64;
    let options = one.options(given).fitted(one.of_all_per_second / 1e6);
    let found = options.at(1, run.clients, cores.min(run.clients as f64));
    let both = |measured, modelled| Both { measured, modelled };
    Checked {
        gets: run.gets,
        value: run.value,
        clients: run.clients,
        mops: both(run.of_all_per_second / 1e6, found.rate),
        locks_lost: both(run.locks_lost, found.load.lost),
        reads_again: both(run.reads_again, found.load.again),
        recency_swaps: both(run.recency_swaps, found.load.marks),
    }
}

impl Options {
    /// The same for a client that alone has so many million requests a second.
    fn fitted(&self, rate: f64) -> Self {
        let (modelled, measured) = (1.0 / self.at(1, 1, 1.0).rate, 1.0 / rate);
        let client = self.client + measured - modelled;
        match client > 0.0 {
            true => Self {
                client,
                ..self.clone()
            },
            false => self.scaled(measured / modelled),
        }
    }
}

/// The errors in words.
pub struct Summary<'c>(pub &'c [Checked]);

impl Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Runs beside the model, which is fitted to one client's throughput:"
        )?;
        writeln!(
            f,
            "gets   value  clients   M requests/s  modelled    error   locks lost  modelled   reads again  modelled   \
             recency swaps  modelled"
        )?;
        for one in self.0 {
            writeln!(
                f,
                "{:>3} %{:>8}{:>9}{:>15.3}{:>10.3}{:>7.0} %{:>13.4}{:>10.4}{:>14.4}{:>10.4}{:>16.4}{:>10.4}",
                one.gets,
                one.value,
                one.clients,
                one.mops.measured,
                one.mops.modelled,
                100.0 * one.error(),
                one.locks_lost.measured,
                one.locks_lost.modelled,
                one.reads_again.measured,
                one.reads_again.modelled,
                one.recency_swaps.measured,
                one.recency_swaps.modelled,
            )?;
        }
        let mut errors: Vec<f64> = self.0.iter().map(|one| one.error().abs()).collect();
        errors.sort_unstable_by(f64::total_cmp);
        writeln!(
            f,
            "The model's throughput is off by {:.0} % in the median, and by {:.0} % at most, in {} runs.",
            100.0 * errors[errors.len() / 2],
            100.0 * errors[errors.len() - 1],
            errors.len()
        )
    }
}
