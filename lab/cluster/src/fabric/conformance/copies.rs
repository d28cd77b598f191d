//! Checks of Put and Get, blocking and non-blocking, of all lengths, between all pairs of PEs; and of direct loads
//! where they are possible.

use std::sync::atomic::Ordering;

use nuthatch_fabric::{Address, Fabric};

use super::{Check, fill, own, pattern};

/// Lengths around those at which transports change how they copy.
const LENGTHS: [usize; 12] = [1, 2, 3, 7, 8, 9, 64, 127, 512, 1025, 8192, 32_766];

/// The least number of words that these checks take twice.
pub const LEAST: usize = 1 << 10;

pub fn check<F: Fabric>(check: &mut Check<'_, F>) {
    let longest = check.sizes.longest;
    let place = check.take(longest.max(LEAST));
    let second = check.take(longest.max(LEAST));
    let lengths = LENGTHS.into_iter().filter(|words| words + 2 <= longest);
    for (round, words) in lengths.enumerate() {
        for distance in 0..check.fabric.pes() {
            puts(check, place, round as u64, words, distance);
            gets(check, place, round as u64, words, distance);
            non_blocking(check, [place, second], round as u64, words, distance);
        }
    }
    many_at_once(check, place, second);
    direct(check, place);
}

/// A Put writes its words and no others.
fn puts<F: Fabric>(
    check: &mut Check<'_, F>,
    place: Address,
    round: u64,
    words: usize,
    distance: usize,
) {
    let fabric = check.fabric;
    fill(fabric, place, &vec![u64::MAX; words + 2]);
    fabric.barrier();
    let sent = pattern(fabric.pe(), round, words);
    let put = fabric.put(check.after(distance), place.plus(1), &sent);
    check.done("put", put);
    let quiet = fabric.quiet();
    check.done("quiet", quiet);
    fabric.barrier();
    let mut expected = vec![u64::MAX];
    expected.extend(pattern(check.before(distance), round, words));
    expected.push(u64::MAX);
    let found = own(fabric, place, words + 2);
    check.holds(found == expected, || {
        format!("a Put of {words} words from {distance} PEs before brings others")
    });
    fabric.barrier();
}

/// A Get reads its words, and they are there when it returns.
fn gets<F: Fabric>(
    check: &mut Check<'_, F>,
    place: Address,
    round: u64,
    words: usize,
    distance: usize,
) {
    let fabric = check.fabric;
    fill(fabric, place.plus(1), &pattern(fabric.pe(), round, words));
    fabric.barrier();
    let mut found = vec![u64::MAX; words];
    let got = fabric.get(check.after(distance), place.plus(1), &mut found);
    check.done("get", got);
    let expected = pattern(check.after(distance), round, words);
    check.holds(found == expected, || {
        format!("a Get of {words} words from {distance} PEs after brings others")
    });
    fabric.barrier();
}

/// The same, completed by `quiet`: a Put there, and a Get back of what was put.
fn non_blocking<F: Fabric>(
    check: &mut Check<'_, F>,
    [place, second]: [Address; 2],
    round: u64,
    words: usize,
    distance: usize,
) {
    let fabric = check.fabric;
    let sent = pattern(fabric.pe(), round + 100, words);
    fill(fabric, second, &sent);
    fabric.barrier();
    let peer = check.after(distance);
    let put = fabric.put_nbi(peer, place, second, words);
    check.done("put_nbi", put);
    let quiet = fabric.quiet();
    check.done("quiet", quiet);
    fill(fabric, second, &vec![u64::MAX; words]);
    let got = fabric.get_nbi(peer, place, second, words);
    check.done("get_nbi", got);
    let quiet = fabric.quiet();
    check.done("quiet", quiet);
    let found = own(fabric, second, words);
    check.holds(found == sent, || {
        format!("{words} words put to and got from {distance} PEs after are others")
    });
    fabric.barrier();
}

/// Several Gets under way at once, from all PEs.
fn many_at_once<F: Fabric>(check: &mut Check<'_, F>, place: Address, second: Address) {
    let fabric = check.fabric;
    const EACH: usize = 16;
    let pes = fabric.pes().min(LEAST / EACH / 8);
    fill(fabric, place, &pattern(fabric.pe(), 200, EACH * 8));
    fill(fabric, second, &vec![0; pes * EACH * 8]);
    fabric.barrier();
    for pe in 0..pes {
        for part in 0..8 {
            let from = place.plus(part * EACH);
            let into = second.plus((pe * 8 + part) * EACH);
            let got = fabric.get_nbi(pe, from, into, EACH);
            check.done("get_nbi", got);
        }
    }
    let quiet = fabric.quiet();
    check.done("quiet", quiet);
    for pe in 0..pes {
        let found = own(fabric, second.plus(pe * 8 * EACH), EACH * 8);
        check.holds(found == pattern(pe, 200, EACH * 8), || {
            format!("one of many Gets from PE {pe} brings others")
        });
    }
    fabric.barrier();
}

/// A load by a pointer and a Get read the same, and a Get reads what was stored by the pointer.
fn direct<F: Fabric>(check: &mut Check<'_, F>, place: Address) {
    let fabric = check.fabric;
    fill(fabric, place, &pattern(fabric.pe(), 300, 100));
    fabric.barrier();
    let peer = check.after(1);
    if let Some(words) = fabric.direct(peer, place, 100) {
        let loads = words.iter().map(|word| word.load(Ordering::Relaxed));
        let found: Vec<u64> = loads.collect();
        check.holds(found == pattern(peer, 300, 100), || {
            "a pointer shows other words".into()
        });
        // Relaxed: the barrier orders it.
        words[99].store(99, Ordering::Relaxed);
    }
    fabric.barrier();
    if fabric.direct(peer, place, 100).is_some() {
        let mut found = [0];
        let got = fabric.get(peer, place.plus(99), &mut found);
        check.done("get", got);
        check.equal("stored by a pointer", found, [99]);
    }
    fabric.barrier();
}
