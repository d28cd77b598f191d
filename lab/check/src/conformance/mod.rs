//! The conformance cases: what every engine must do, case by case.
//!
//! A case asserts what the documentation of the engine's interface says, with plain values: no oracle. It runs on an
//! engine of its own with ample memory, unless its setup says otherwise, and ends with
//! [`Audit::audit`](nuthatch_engine::Audit::audit). Each runs in a thread named after it, so a failure has a name.

mod batches;
mod client;
mod deltas;
mod keys;
mod lifetimes;
mod memory;
mod reads;
mod removals;
mod reservations;
mod sizes;
mod stores;
mod visits;

use std::sync::Arc;

use nuthatch_engine::AnyEngine;

pub use client::Client;

/// How an engine under test is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Its memory limit in bytes.
    pub memory_limit: usize,
    /// The largest item, in bytes.
    pub item_size_max: usize,
    /// False: it answers that it is out of memory instead of evicting.
    pub evicts: bool,
}

impl Setup {
    /// Room for all that a case stores: nothing may be missed.
    pub const AMPLE: Self = Self {
        memory_limit: 256 << 20,
        item_size_max: 1 << 20,
        evicts: true,
    };

    /// Far too little room.
    pub const TIGHT: Self = Self {
        memory_limit: 16 << 20,
        ..Self::AMPLE
    };

    /// So little that it is soon filled again.
    pub const SMALL: Self = Self {
        memory_limit: 8 << 20,
        item_size_max: 256 << 10,
        ..Self::TIGHT
    };
}

/// One thing that an engine must do.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// The engine that it needs.
    pub setup: Setup,
    /// Panics if the engine fails.
    pub check: fn(&mut Client),
}

impl Case {
    const fn new(name: &'static str, check: fn(&mut Client)) -> Self {
        Self::on(Setup::AMPLE, name, check)
    }

    const fn on(setup: Setup, name: &'static str, check: fn(&mut Client)) -> Self {
        Self { name, setup, check }
    }
}

/// All cases.
pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    all.extend(reads::cases());
    all.extend(stores::cases());
    all.extend(removals::cases());
    all.extend(deltas::cases());
    all.extend(lifetimes::cases());
    all.extend(sizes::cases());
    all.extend(keys::cases());
    all.extend(batches::cases());
    all.extend(reservations::cases());
    all.extend(visits::cases());
    all.extend(memory::cases());
    all
}

/// Runs the cases with one of `parts` in their names, and panics at the end with the names of those
/// that failed.
pub fn run(parts: &[&str], make: &dyn Fn(Setup) -> Arc<AnyEngine>) {
    let (passed, failed) = judge(parts, make);
    assert!(
        failed.is_empty(),
        "{} of {} cases failed: {}",
        failed.len(),
        passed.len() + failed.len(),
        failed.join(", ")
    );
}

/// Runs the cases with one of `parts` in their names: the names of those that passed, and of those
/// that failed.
pub fn judge(
    parts: &[&str],
    make: &dyn Fn(Setup) -> Arc<AnyEngine>,
) -> (Vec<&'static str>, Vec<&'static str>) {
    let wanted = |case: &Case| parts.iter().any(|part| case.name.contains(part));
    let chosen: Vec<_> = cases().into_iter().filter(wanted).collect();
    assert!(
        !chosen.is_empty(),
        "no case has one of {parts:?} in its name"
    );
    let names = chosen
        .iter()
        .map(|case| (case.name, passes(case, make(case.setup))));
    let (passed, failed): (Vec<_>, Vec<_>) = names.partition(|(_, passed)| *passed);
    let only_names = |cases: Vec<(&'static str, bool)>| cases.into_iter().map(|(name, _)| name);
    (only_names(passed).collect(), only_names(failed).collect())
}

/// Runs one case in a thread of its name; the panic of a failure is printed by that thread.
fn passes(case: &Case, engine: Arc<AnyEngine>) -> bool {
    let check = case.check;
    let body = move || {
        let mut client = Client::new(engine);
        check(&mut client);
        client.audit();
    };
    let thread = std::thread::Builder::new().name(case.name.to_owned());
    let running = thread.spawn(body).expect("a thread can be started");
    running.join().is_ok()
}
