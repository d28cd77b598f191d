//! Checks of allocation, barriers, broadcasts, and the small rest.

use nuthatch_fabric::Fabric;

use super::{Check, own};

pub fn check<F: Fabric>(check: &mut Check<'_, F>) {
    numbers(check);
    allocation(check);
    barriers(check);
    broadcasts(check);
    clock(check);
}

fn numbers<F: Fabric>(check: &mut Check<'_, F>) {
    let (pe, pes) = (check.fabric.pe(), check.fabric.pes());
    check.holds(pe < pes, || format!("is PE {pe} of {pes}"));
    // Each PE's number is taken once.
    let taken = check.take(pes);
    let before = check.fabric.fetch_add(0, taken.plus(pe), 1);
    let before = check.done("fetch_add", before);
    check.equal("PEs of this number before", before, 0);
    check.fabric.barrier();
}

fn allocation<F: Fabric>(check: &mut Check<'_, F>) {
    let fabric = check.fabric;
    let places = [1, 7, 64, 1000].map(|words| {
        let place = fabric.allocate(words);
        (check.done("allocate", place), words)
    });
    for (place, words) in places {
        check.equal("a new place", own(fabric, place, words), vec![0; words]);
        let mut others = [place.0];
        fabric.broadcast(0, &mut others);
        check.equal("PE 0's number of the same place", others[0], place.0);
    }
    for pair in places.windows(2) {
        let [(first, words), (second, _)] = pair else {
            continue;
        };
        check.holds(first.plus(*words) <= *second, || {
            format!("places overlap: {first:?} and {second:?}")
        });
    }
    let refused = fabric.allocate(1 << 57).err();
    check.holds(
        refused.is_some_and(|refused| !refused.advice.is_empty()),
        || "an exbibyte is not refused with advice".into(),
    );
    fabric.barrier();
}

/// No PE leaves a barrier before all have come.
fn barriers<F: Fabric>(check: &mut Check<'_, F>) {
    let fabric = check.fabric;
    let pes = fabric.pes() as u64;
    let come = check.take(1);
    for round in 0..check.sizes.rounds {
        let target = round as usize % fabric.pes();
        let added = fabric.fetch_add(target, come, 1);
        check.done("fetch_add", added);
        fabric.barrier();
        let seen = fabric.fetch(target, come);
        let seen = check.done("fetch", seen);
        // Each target is met once in as many rounds as there are PEs.
        let expected = (round / pes + 1) * pes;
        check.equal("came to the barrier", seen, expected);
        fabric.barrier();
    }
}

fn broadcasts<F: Fabric>(check: &mut Check<'_, F>) {
    let fabric = check.fabric;
    for root in 0..fabric.pes() {
        for words in [0, 1, 5, 511, 512, 513, 2000] {
            let sent = super::pattern(root, words as u64, words);
            let mut held = match fabric.pe() == root {
                true => sent.clone(),
                false => vec![7; words],
            };
            fabric.broadcast(root, &mut held);
            check.holds(held == sent, || {
                format!("a broadcast of {words} words from {root} brings others")
            });
        }
    }
}

fn clock<F: Fabric>(check: &mut Check<'_, F>) {
    let mut last = check.fabric.nanos();
    for turn in 0..1000 {
        check.fabric.pause(turn);
        let now = check.fabric.nanos();
        check.holds(now >= last, || format!("the clock falls: {last}, {now}"));
        last = now;
    }
    check.fabric.barrier();
}
