//! The health check `/healthz`: whether every worker still serves.

use std::time::{Duration, Instant};

use nuthatch_context::shared::Shared;

/// How long a worker may take to come to its next iteration: a batch takes a thousandth of it.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often the check looks whether all workers have come there.
const STEP: Duration = Duration::from_millis(2);

/// Wakes the workers, and waits until each has begun another iteration. Errors: the names of the workers that did not,
/// as text.
pub(super) fn check(shared: &Shared) -> Result<(), String> {
    let before: Vec<u64> = shared
        .inboxes
        .iter()
        .map(|it| it.iterations.get())
        .collect();
    shared.wake_workers();
    let latest = Instant::now() + PATIENCE;
    loop {
        let stuck = stuck(shared.inboxes.iter().map(|it| it.iterations.get()), &before);
        if stuck.is_empty() {
            return Ok(());
        }
        if Instant::now() >= latest {
            return Err(format!("no iteration of {}\n", stuck.join(", ")));
        }
        std::thread::sleep(STEP);
    }
}

/// The names of the workers that have begun no iteration since.
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
    fn who_begins_no_iteration_is_named() {
        assert_eq!(stuck([5, 6].into_iter(), &[5, 5]), ["worker-0"]);
        assert!(stuck([6, 6].into_iter(), &[5, 5]).is_empty());
    }
}
