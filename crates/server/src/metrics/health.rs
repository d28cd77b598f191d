//! Whether the server serves: `/healthz`.

use std::time::{Duration, Instant};

use nuthatch_context::shared::Shared;

/// How long a worker may take to come to its next turn: a batch takes a thousandth of it.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it is looked whether all have.
const STEP: Duration = Duration::from_millis(2);

/// Wakes the workers, and waits until each has made a turn. Errors: those that did not, in words.
pub(super) fn check(shared: &Shared) -> Result<(), String> {
    let turns: Vec<u64> = shared.inboxes.iter().map(|it| it.turns.get()).collect();
    shared.wake_workers();
    let latest = Instant::now() + PATIENCE;
    loop {
        let stuck = stuck(shared.inboxes.iter().map(|it| it.turns.get()), &turns);
        if stuck.is_empty() {
            return Ok(());
        }
        if Instant::now() >= latest {
            return Err(format!("no turn of {}\n", stuck.join(", ")));
        }
        std::thread::sleep(STEP);
    }
}

/// The names of the workers that have made no turn since.
fn stuck(now: impl Iterator<Item = u64>, before: &[u64]) -> Vec<String> {
    let both = now.zip(before).enumerate();
    both.filter(|(_, (now, before))| now == *before)
        .map(|(number, _)| format!("worker-{number}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_made_no_turn_is_named() {
        assert_eq!(stuck([5, 6].into_iter(), &[5, 5]), ["worker-0"]);
        assert!(stuck([6, 6].into_iter(), &[5, 5]).is_empty());
    }
}
