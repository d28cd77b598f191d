//! The program that a launcher starts on each PE: `oshrun -n 4 nuthatch-cluster --servers 2`.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, ValueEnum};
use nuthatch_check::conformance::Setup;
use nuthatch_check::suite::{self, Extent as SuiteExtent};
use nuthatch_cluster::Operations;
use nuthatch_cluster_lab::histories::{self, Extent};
use nuthatch_cluster_lab::rounds::{self, Rounds};
use nuthatch_engine::AnyEngine;
use nuthatch_fabric::Fabric;
use nuthatch_fabric::openshmem::{self, OpenShmem};

/// Checks the distributed store on the OpenSHMEM library of this machine, or of several. Its launcher starts this
/// program once for each PE: the first PEs serve, the last one sends the requests.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Number of PEs that serve, which are the first ones
    #[arg(long, default_value_t = 1)]
    servers: usize,
    /// How sessions carry out operations: direct (themselves, where they can), active (by messages to the server) or
    /// chosen (as measured costs suggest)
    #[arg(long, value_enum, default_value = "chosen")]
    operations: How,
    /// Run the conformance cases whose names contain one of these words; the empty word selects all
    #[arg(long, value_delimiter = ',', default_value = "")]
    cases: Vec<String>,
    /// Run the random checks whose names contain one of these words; the empty word selects all; see --part
    #[arg(long, value_delimiter = ',', default_value = "")]
    checks: Vec<String>,
    /// Run 1/PART of the random operations that an engine in one process gets; 0: no random checks
    #[arg(long, default_value_t = 20)]
    part: usize,
    /// Repeat all cases and checks until this file exists, then once more, and print the number of stores made so far
    #[arg(long, value_name = "FILE")]
    until: Option<PathBuf>,
    /// Instead of cases and checks, record and check a history of this many rounds of all PEs that do not serve, at the
    /// same time
    #[arg(long, value_name = "ROUNDS")]
    histories: Option<usize>,
    /// Seed of the histories' requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// [`Operations`] as typed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    Chosen,
    Direct,
    Active,
}

impl From<How> for Operations {
    fn from(how: How) -> Self {
        match how {
            How::Chosen => Self::Chosen,
            How::Direct => Self::Direct,
            How::Active => Self::Active,
        }
    }
}

/// A check of the suite.
type Check = fn(&dyn Fn(Setup) -> Arc<AnyEngine>, &SuiteExtent);

/// The checks that one driver can do.
const CHECKS: &[(&str, Check)] = &[
    ("sequences", suite::answers_sequences_as_the_model_does),
    (
        "sequences under pressure",
        suite::forgets_only_whole_items_under_pressure,
    ),
    ("stress", suite::stress_in_ample_memory),
    (
        "stress under pressure",
        suite::stress_under_pressure_with_mixed_sizes,
    ),
    ("increments", suite::no_increment_is_lost),
    (
        "histories under growth",
        suite::histories_are_linearizable_under_growth,
    ),
    (
        "histories under eviction",
        suite::histories_are_linearizable_under_eviction,
    ),
];

fn main() -> ExitCode {
    let options = Options::parse();
    let pes = openshmem::launched().unwrap_or(1);
    if options.servers == 0 || options.servers >= pes {
        eprintln!("nuthatch-cluster: --servers: at least 1, and fewer than the {pes} PEs");
        return ExitCode::from(2);
    }
    if let Some(rounds) = options.histories {
        return match histories(rounds, &options, pes) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("nuthatch-cluster: {error}");
                ExitCode::FAILURE
            }
        };
    }
    // SAFETY: the only thread there is, and the only place that starts OpenSHMEM.
    let opened = unsafe { OpenShmem::open(rounds::words(options.servers, pes)) };
    match opened
        .map_err(|error| error.to_string())
        .and_then(|fabric| {
            let fabric = Arc::new(fabric);
            let rounds = Rounds::new(fabric, options.servers, options.operations.into());
            Ok((rounds.map_err(|error| error.to_string())?, options))
        }) {
        Ok((rounds, options)) => {
            check(&rounds, &options);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("nuthatch-cluster: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs histories: several PEs use a store at once.
fn histories(rounds: usize, options: &Options, pes: usize) -> Result<(), String> {
    let extent = Extent {
        rounds,
        servers: options.servers,
        operations: options.operations.into(),
        seed: options.seed,
    };
    let words = histories::words(extent, pes).map_err(|error| error.to_string())?;
    // SAFETY: the only thread there is, and the only place that starts OpenSHMEM.
    let fabric = unsafe { OpenShmem::open(words) }.map_err(|error| error.to_string())?;
    for seen in histories::run(&Arc::new(fabric), extent)? {
        println!(
            "cluster: {} servers, {} clients at once, {:?}: {seen:?}",
            options.servers,
            pes - options.servers,
            options.operations
        );
    }
    Ok(())
}

/// A check that fails panics, and that ends the job.
fn check<F: Fabric>(rounds: &Rounds<F>, options: &Options) {
    if !rounds.is_driver() {
        rounds.follow();
        return;
    }
    rounds.drive(|make| {
        let Some(end) = options.until.as_deref() else {
            return once(make, options);
        };
        let made = Cell::new(0);
        let make = |setup: Setup| {
            made.set(made.get() + 1);
            println!("cluster: store {}", made.get());
            make(setup)
        };
        while !is_there(end) {
            once(&make, options);
        }
        once(&make, options);
    });
}

/// True if a file exists. A missing file is no error.
fn is_there(file: &Path) -> bool {
    file.try_exists().expect("the end's file can be looked for")
}

/// Runs the chosen cases and checks once.
fn once(make: &dyn Fn(Setup) -> Arc<AnyEngine>, options: &Options) {
    let cases: Vec<_> = options.cases.iter().map(String::as_str).collect();
    let (passed, failed) = nuthatch_check::conformance::judge(&cases, make);
    assert!(failed.is_empty(), "cases failed: {}", failed.join(", "));
    let mut checks = 0;
    if options.part > 0 {
        let extent = SuiteExtent::SMOKE.part(options.part);
        let wanted = |name: &str| options.checks.iter().any(|part| name.contains(part));
        for (name, check) in CHECKS.iter().filter(|(name, _)| wanted(name)) {
            println!("cluster: {name}");
            check(make, &extent);
            checks += 1;
        }
    }
    println!(
        "cluster: {} servers, {:?}: {} cases and {checks} checks passed",
        options.servers,
        options.operations,
        passed.len()
    );
}
