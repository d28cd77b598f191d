//! The effect of the machine alone on two busy threads: how long it stops them, and how long new memory takes.
//!
//! A thread that does nothing but read the clock sees each stop as a gap between two readings. One of the two threads
//! also touches new memory, page by page at even distances, since a machine may stop threads that take memory longer
//! than others: while its host backs the memory, or by a quota of its host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nuthatch_base::memory::Mapped;
use serde::{Deserialize, Serialize};

use crate::engine::on_cores;
use crate::times::{Times, Timings};

/// Bytes touched at a time: as much as the engines back in one piece.
const PAGE: usize = 1 << 20;

/// Bytes of the smallest page that a system backs.
const SMALLEST: usize = 4096;

/// The results.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Distances of two readings of the clock, in the thread that also touches memory.
    pub clock: Times,
    /// The same in the other thread, which does nothing else.
    pub other_clock: Times,
    /// Touching a new mebibyte.
    pub pages: Times,
}

/// Measures for `time`, with `bytes` of new memory.
pub(crate) fn measure(time: Duration, bytes: usize) -> Result<Machine, String> {
    let done = AtomicBool::new(false);
    let each = on_cores(2, |thread| {
        let done = &done;
        move || {
            if thread == 0 {
                let found = touch(time, bytes);
                // Relaxed: the flag publishes no other memory.
                done.store(true, Ordering::Relaxed);
                found
            } else {
                let mut clock = Timings::new();
                read_clock(&mut clock, |_| done.load(Ordering::Relaxed));
                Ok((clock, Timings::new()))
            }
        }
    })?;
    let each: Vec<_> = each.into_iter().collect::<Result<_, String>>()?;
    match &each[..] {
        [(clock, pages), (other, _)] => Ok(Machine {
            clock: clock.times(),
            other_clock: other.times(),
            pages: pages.times(),
        }),
        _ => Err("a thread is missing".to_owned()),
    }
}

/// Touches `bytes` of new memory in about `time`, and reads the clock in between.
fn touch(time: Duration, bytes: usize) -> Result<(Timings, Timings), String> {
    // Mapped as for the engines.
    let mut new = Mapped::<u8>::reserve(bytes.max(PAGE))
        .map_err(|error| format!("cannot map {bytes} bytes: {error}"))?;
    let (mut clock, mut touching) = (Timings::new(), Timings::new());
    let started = Instant::now();
    let pages = new.chunks_mut(PAGE);
    let distance = time / pages.len() as u32;
    for (number, page) in (1..).zip(pages) {
        touching.time(|| page.iter_mut().step_by(SMALLEST).for_each(|byte| *byte = 1));
        read_clock(&mut clock, |now| now >= started + distance * number);
    }
    Ok((clock, touching))
}

/// Reads the clock until `enough`, twice at least.
fn read_clock(clock: &mut Timings, enough: impl Fn(Instant) -> bool) {
    let mut last = Instant::now();
    loop {
        let now = Instant::now();
        clock.record(now - last);
        last = now;
        if enough(now) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_are_read_and_all_memory_is_touched() {
        let machine = measure(Duration::from_millis(2), 3 * PAGE + 1).unwrap();
        assert_eq!(machine.pages.count, 4);
        assert!(machine.clock.count >= 4 && machine.other_clock.count >= 1);
        assert!(machine.clock.max_us > 0.0 && machine.pages.p50_us > 0.0);
    }
}
