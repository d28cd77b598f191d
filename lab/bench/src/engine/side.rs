//! The sides of the comparison, ours and rivals, whatever their types, and what their rounds gave.

use std::time::Duration;

use crate::engine::operations::{Items, Operations};
use crate::engine::subject::{Subject, Tally, Worker, preload, round};

/// Times that each side goes through all operations before the clock starts: as often as an item of quick_cache's
/// is written to when it is read. (One of ours is once.)
const WARM_UPS: usize = 2;

/// One side.
pub trait Side {
    /// One more round, each list on a thread of its own.
    fn round(
        &mut self,
        lists: &[Operations],
        batch: usize,
        number: usize,
        time: Duration,
    ) -> Result<(), String>;

    /// Million operations a second of each round.
    fn mops(&self) -> &[f64];

    /// What it did in all rounds.
    fn tally(&self) -> &Tally;
}

/// A side that holds the items, and has had its warm-up.
pub fn filled<'a, S: Subject + 'a>(
    subject: S,
    items: &Items,
    lists: &[Operations],
) -> Result<Box<dyn Side + 'a>, String> {
    preload(&subject, items)?;
    let mut tally = Tally::default();
    for list in (0..WARM_UPS).flat_map(|_| lists) {
        tally.add(&subject.worker().run(list, 0, list.len()));
    }
    let stored: u64 = lists.iter().map(Operations::hits).sum();
    match tally.wrong {
        0 if tally.hits > stored * WARM_UPS as u64 => {
            Err("values of keys that were never stored".to_owned())
        }
        0 => Ok(as_it_is(subject)),
        wrong => Err(format!("{wrong} wrong answers")),
    }
}

/// A side of a table that holds the items and has had its warm-up already.
pub fn as_it_is<'a, S: Subject + 'a>(subject: S) -> Box<dyn Side + 'a> {
    Box::new(Rounds {
        subject,
        mops: Vec::new(),
        tally: Tally::default(),
    })
}

struct Rounds<S> {
    subject: S,
    mops: Vec<f64>,
    tally: Tally,
}

impl<S: Subject> Side for Rounds<S> {
    fn round(
        &mut self,
        lists: &[Operations],
        batch: usize,
        number: usize,
        time: Duration,
    ) -> Result<(), String> {
        let from = number * lists[0].len() / 7;
        let (mops, tally) = round(&self.subject, lists, batch, from, time)?;
        self.mops.push(mops);
        self.tally.add(&tally);
        match self.tally.wrong {
            0 => Ok(()),
            wrong => Err(format!("{wrong} wrong answers")),
        }
    }

    fn mops(&self) -> &[f64] {
        &self.mops
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }
}
