//! Atomic operations: none is lost, none is seen twice.

use nuthatch_fabric::{Address, Fabric};

use super::{Check, own, wait};

pub fn check<F: Fabric>(check: &mut Check<'_, F>) {
    results(check);
    for target in 0..check.fabric.pes() {
        additions(check, target);
        swaps(check, target);
        increments_by_comparison(check, target);
    }
    sets(check);
}

/// What each operation returns and leaves, on a word of its own at every PE.
fn results<F: Fabric>(check: &mut Check<'_, F>) {
    let fabric = check.fabric;
    let place = check.take(fabric.pes());
    let word = place.plus(fabric.pe());
    for target in 0..fabric.pes() {
        let top = u64::MAX - 3;
        let results = [
            fabric.fetch(target, word),
            fabric.swap(target, word, 5),
            fabric.compare_swap(target, word, 6, 7),
            fabric.compare_swap(target, word, 5, top),
            fabric.fetch_add(target, word, 4),
            fabric.fetch_add(target, word, u64::MAX),
            fabric.fetch(target, word),
        ];
        let results = results.map(|result| check.done("an atomic operation", result));
        let expected = [0, 0, 5, 5, top, 0, u64::MAX];
        check.equal("what atomic operations return", results, expected);
    }
    fabric.barrier();
    let left = own(fabric, place, fabric.pes());
    check.equal(
        "what atomic operations leave",
        left,
        vec![u64::MAX; fabric.pes()],
    );
    fabric.barrier();
}

/// All PEs take numbers of one counter: each number is given once, and rising to each PE.
fn additions<F: Fabric>(check: &mut Check<'_, F>, target: usize) {
    let fabric = check.fabric;
    let rounds = check.sizes.rounds as usize;
    let counter = check.take(1);
    let given = check.take(rounds * fabric.pes());
    let mut last = None;
    for _ in 0..rounds {
        let number = fabric.fetch_add(target, counter, 1);
        let number = check.done("fetch_add", number);
        check.holds(last < Some(number), || {
            format!("number {number} comes after {last:?}")
        });
        last = Some(number);
        let place = given.plus(number as usize % (rounds * fabric.pes()));
        let given = fabric.fetch_add(0, place, 1);
        let given = check.done("fetch_add", given);
        check.equal("a number that was given before", given, 0);
    }
    fabric.barrier();
    let total = fabric.fetch(target, counter);
    let total = check.done("fetch", total);
    check.equal("numbers", total, (rounds * fabric.pes()) as u64);
    fabric.barrier();
}

/// Words that are swapped through one place: none is lost or doubled, as sum and sum of squares show.
fn swaps<F: Fabric>(check: &mut Check<'_, F>, target: usize) {
    let fabric = check.fabric;
    let place = check.take(1);
    let sums = check.take(2);
    let add = |check: &mut Check<'_, F>, sign: bool, word: u64| {
        let squares = word.wrapping_mul(word);
        for (at, by) in [word, squares].into_iter().enumerate() {
            let by = if sign { by } else { by.wrapping_neg() };
            let added = fabric.fetch_add(0, sums.plus(at), by);
            check.done("fetch_add", added);
        }
    };
    for round in 0..check.sizes.rounds {
        let word = (fabric.pe() as u64) << 32 | (round + 1);
        let before = fabric.swap(target, place, word);
        let before = check.done("swap", before);
        add(check, true, word);
        add(check, false, before);
    }
    fabric.barrier();
    if fabric.pe() == target {
        let last = fabric.fetch(target, place);
        let last = check.done("fetch", last);
        add(check, false, last);
    }
    fabric.barrier();
    for at in 0..2 {
        let left = fabric.fetch(0, sums.plus(at));
        let left = check.done("fetch", left);
        check.equal("what swaps lost", left, 0);
    }
    fabric.barrier();
}

/// A counter that rises by comparison only: one PE wins each time.
fn increments_by_comparison<F: Fabric>(check: &mut Check<'_, F>, target: usize) {
    let fabric = check.fabric;
    let counter = check.take(1);
    for _ in 0..check.sizes.rounds {
        let mut expected = 0;
        wait(fabric, || {
            let found = fabric.compare_swap(target, counter, expected, expected + 1);
            let won = found == Ok(expected);
            expected = found.unwrap_or(expected);
            (won || found.is_err()).then_some(())
        });
    }
    fabric.barrier();
    let total = fabric.fetch(target, counter);
    let total = check.done("fetch", total);
    let expected = check.sizes.rounds * fabric.pes() as u64;
    check.equal("increments by comparison", total, expected);
    fabric.barrier();
}

/// A `set` arrives: at `quiet` at the latest, and without it by and by, as long as a PE waits.
fn sets<F: Fabric>(check: &mut Check<'_, F>) {
    let fabric = check.fabric;
    let place: Address = check.take(2 * fabric.pes());
    for pe in 0..fabric.pes() {
        let set = fabric.set(pe, place.plus(fabric.pe()), 1 + fabric.pe() as u64);
        check.done("set", set);
    }
    let quiet = fabric.quiet();
    check.done("quiet", quiet);
    fabric.barrier();
    for pe in 0..fabric.pes() {
        let found = fabric.fetch(fabric.pe(), place.plus(pe));
        let found = check.done("fetch", found);
        check.equal("a word that was set", found, 1 + pe as u64);
    }
    // Round a ring of PEs.
    let told = place.plus(fabric.pes());
    for round in 1..=check.sizes.rounds {
        // Otherwise an earlier one might arrive later.
        fabric.fence();
        let set = fabric.set(check.after(1), told, round);
        check.done("set", set);
        let found = wait(fabric, || {
            let told = fabric.fetch(fabric.pe(), told);
            told.map_or(Some(u64::MAX), |told| (told >= round).then_some(told))
        });
        // The neighbour is a round ahead at most: it waits for its own, which waits for ours.
        check.holds(found <= round + fabric.pes() as u64, || {
            format!("in round {round} the neighbour tells of {found}")
        });
    }
    fabric.barrier();
}
