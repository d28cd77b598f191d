//! The health check `/healthz`: whether every worker still serves.

use std::time::{Duration, Instant};

use nuthatch_state::server_state::ServerState;

/// How long a worker may take to come to its next iteration: a batch takes a thousandth of it.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a check looks whether all workers have come there.
pub(super) const STEP: Duration = Duration::from_millis(2);

/// A check under way.
pub(super) struct Check {
    /// The iterations of each worker when it began.
    before: Vec<u64>,
    latest: Instant,
}

impl Check {
    /// Wakes the workers: each is to begin another iteration.
    pub(super) fn begin(shared: &ServerState, now: Instant) -> Self {
        let before = iterations(shared).collect();
        shared.wake_workers();
        Self {
            before,
            latest: now + PATIENCE,
        }
    }

    /// `None` while workers are awaited. Errors: the names of the workers that did not come, as text.
    pub(super) fn outcome(&self, shared: &ServerState, now: Instant) -> Option<Result<(), String>> {
        let stuck = stuck(iterations(shared), &self.before);
        match stuck.is_empty() {
            true => Some(Ok(())),
            false if now < self.latest => None,
            false => Some(Err(format!("no iteration of {}\n", stuck.join(", ")))),
        }
    }
}

fn iterations(shared: &ServerState) -> impl Iterator<Item = u64> {
    shared.workers.iter().map(|it| it.iterations.get())
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
