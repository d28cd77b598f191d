//! Checks of what `fence` and `quiet` order, and that words are whole.

use std::sync::atomic::Ordering;

use nuthatch_fabric::{Address, Fabric, WHOLE};

use super::{Check, wait};

/// Words of a message: more than a transport sends at once, a few, and one.
const LENGTHS: [usize; 4] = [1, 8, WHOLE, 5000];

/// Words that these checks take.
pub fn words(longest: usize) -> usize {
    // Five messages of each length, and words for signals.
    5 * lengths(longest).map(|words| words + 40).sum::<usize>()
}

fn lengths(longest: usize) -> impl Iterator<Item = usize> {
    LENGTHS.into_iter().filter(move |&words| words <= longest)
}

pub fn check<F: Fabric>(check: &mut Check<'_, F>) {
    for words in lengths(check.sizes.longest) {
        fenced(check, words, Signal::Set);
        fenced(check, words, Signal::Put);
        seen_by_a_third(check, words);
        if words <= WHOLE {
            whole_words(check, words);
            seen_by_loads(check, words);
        }
    }
}

/// How the word behind the fence is sent.
#[derive(Clone, Copy, Debug)]
enum Signal {
    Set,
    Put,
}

/// A message, a fence, a signal: a PE that sees the signal sees the message. Round a ring of PEs.
fn fenced<F: Fabric>(check: &mut Check<'_, F>, words: usize, signal: Signal) {
    let fabric = check.fabric;
    let message = check.take(words);
    let told = check.take(1);
    let answered = check.take(1);
    let (next, last) = (check.after(1), check.before(1));
    for round in 1..=check.sizes.rounds {
        let put = fabric.put(next, message, &vec![round; words]);
        check.done("put", put);
        fabric.fence();
        let sent = match signal {
            Signal::Set => fabric.set(next, told, round),
            Signal::Put => fabric.put(next, told, &[round]),
        };
        check.done("signal", sent);
        wait(fabric, || seen(fabric, told, round, signal));
        let local = fabric.local(message, words);
        // Relaxed: behind `seen`.
        let odd = local
            .iter()
            .position(|word| word.load(Ordering::Relaxed) != round);
        check.holds(odd.is_none(), || {
            format!("word {odd:?} of {words} comes behind a fenced {signal:?} of round {round}")
        });
        let set = fabric.set(last, answered, round);
        check.done("set", set);
        // The next message overwrites this one.
        wait(fabric, || seen(fabric, answered, round, Signal::Set));
    }
    fabric.barrier();
}

/// Whether this PE's word has come to a round.
fn seen<F: Fabric>(fabric: &F, word: Address, round: u64, signal: Signal) -> Option<()> {
    let found = match signal {
        Signal::Set => fabric.fetch(fabric.pe(), word).unwrap_or(round),
        // Acquire: what was put before a fence is seen after what was put behind it.
        Signal::Put => fabric.local(word, 1)[0].load(Ordering::Acquire),
    };
    std::sync::atomic::fence(Ordering::Acquire);
    (found >= round).then_some(())
}

/// A message to one PE, `quiet`, a signal to another: the PE that sees the signal gets the message from where it is.
fn seen_by_a_third<F: Fabric>(check: &mut Check<'_, F>, words: usize) {
    let fabric = check.fabric;
    let message = check.take(words);
    let told = check.take(1);
    let mut found = vec![0; words];
    for round in 1..=check.sizes.rounds {
        let put = fabric.put(check.after(1), message, &vec![round; words]);
        check.done("put", put);
        let quiet = fabric.quiet();
        check.done("quiet", quiet);
        let set = fabric.set(check.after(2), told, round);
        check.done("set", set);
        wait(fabric, || seen(fabric, told, round, Signal::Set));
        let got = fabric.get(check.before(1), message, &mut found);
        check.done("get", got);
        let odd = found.iter().find(|&&word| word != round).copied();
        check.holds(odd.is_none(), || {
            format!("a Get of {words} brings {odd:?} in round {round}, behind quiet")
        });
        fabric.barrier();
    }
}

/// What [`nuthatch_fabric::Verified::ordered_for_loads`] says, where it says so: a third PE that loads a word which was
/// put behind a fence loads the words from before it, too.
fn seen_by_loads<F: Fabric>(check: &mut Check<'_, F>, words: usize) {
    let fabric = check.fabric;
    let message = check.take(words);
    let told = check.take(1);
    let (next, written_by_next) = (check.after(1), check.after(2));
    for round in 1..=check.sizes.rounds {
        let put = fabric.put(next, message, &vec![round; words]);
        check.done("put", put);
        fabric.fence();
        let put = fabric.put(next, told, &[round]);
        check.done("put", put);
        fabric.fence();
        if !fabric.verified().ordered_for_loads {
            continue;
        }
        let there = |at, words| fabric.direct(written_by_next, at, words);
        let (Some(told), Some(message)) = (there(told, 1), there(message, words)) else {
            continue;
        };
        // Acquire: the message's words are loaded after it.
        let seen = told[0].load(Ordering::Acquire);
        // Relaxed: behind `seen`. A later message may be on its way already.
        let mut loaded = message.iter().map(|word| word.load(Ordering::Relaxed));
        let old = loaded.find(|&word| word < seen);
        check.holds(old.is_none(), || {
            format!("a load finds {old:?} behind a fenced Put of round {seen}")
        });
    }
    fabric.barrier();
}

/// A word is read as a PE has written it, by a Get and by a load, while Puts of many words come in pieces.
fn whole_words<F: Fabric>(check: &mut Check<'_, F>, words: usize) {
    let fabric = check.fabric;
    let place = check.take(words);
    let done = check.take(1);
    let next = check.after(1);
    let mut found = vec![0; words];
    for round in 0..check.sizes.rounds {
        // The same byte eight times.
        let word = (round % 251) * 0x0101_0101_0101_0101;
        let put = fabric.put(next, place, &vec![word; words]);
        check.done("put", put);
        let got = fabric.get(check.after(2), place, &mut found);
        check.done("get", got);
        let odd = found.iter().find(|&&word| !is_whole(word)).copied();
        check.holds(odd.is_none(), || {
            format!("a Get of {words} reads {:x}", odd.unwrap_or_default())
        });
        check_loads(check, place, words);
    }
    let quiet = fabric.quiet();
    check.done("quiet", quiet);
    let added = fabric.fetch_add(next, done, 1);
    check.done("fetch_add", added);
    // Meanwhile the one before may be writing.
    wait(fabric, || {
        check_loads(check, place, words);
        let done = fabric.fetch(fabric.pe(), done);
        (done != Ok(0)).then_some(())
    });
    fabric.barrier();
}

fn check_loads<F: Fabric>(check: &mut Check<'_, F>, place: Address, words: usize) {
    let loads = check.fabric.local(place, words).iter();
    // Relaxed: any value that was written will do.
    let odd = loads
        .map(|word| word.load(Ordering::Relaxed))
        .find(|&word| !is_whole(word));
    check.holds(odd.is_none(), || {
        format!(
            "a load, of {words} words put, reads {:x}",
            odd.unwrap_or_default()
        )
    });
}

fn is_whole(word: u64) -> bool {
    word == (word & 0xff) * 0x0101_0101_0101_0101
}
