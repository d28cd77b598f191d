//! CLIENT PAUSE at a worker: which connections have no turn, and how they go on.

use std::collections::HashSet;
use std::mem;
use std::time::Duration;

use nuthatch_engine::TICK;
use nuthatch_state::hold::Held;

use super::{SWEEP, Worker};

/// What waits at a worker.
#[derive(Default)]
pub(super) struct State {
    held: Held,
    /// How much longer.
    left: Duration,
    /// Connections of the run queue whose requests wait, while those of others do not.
    back: Vec<usize>,
}

impl State {
    /// True if Redis' clients' requests that write wait.
    pub(super) fn holds_writes(&self) -> bool {
        self.held == Held::Writes
    }
}

/// Drops the ids of connections that have closed meanwhile, and those that stand for a later one with the same id as well.
/// What is left is no more than the open connections.
fn forget_closed(back: &mut Vec<usize>, is_open: impl Fn(usize) -> bool) {
    let mut seen = HashSet::new();
    back.retain(|&id| is_open(id) && seen.insert(id));
}

impl Worker {
    /// Looks what waits from now on. A server that stops keeps nobody waiting.
    pub(super) fn look_at_hold(&mut self) {
        let (held, left) = match self.draining {
            Some(_) => Default::default(),
            None => self.shared.hold.at(self.now),
        };
        self.held.left = left;
        if mem::replace(&mut self.held.held, held) != held {
            self.release();
        }
    }

    /// Those that waited go on. Who has to wait still is held again in its turn.
    fn release(&mut self) {
        self.ready.append(&mut self.held.back);
        for (id, connection) in &mut self.connections {
            let waits = connection.phase.may_be_redis() && connection.state.waits_for_call();
            if waits && connection.state.call() {
                self.ready.push(id);
            }
        }
    }

    /// Takes those out of the run queue whose requests wait.
    pub(super) fn set_back(&mut self) {
        if !self.held.holds_writes() {
            return;
        }
        let (connections, back) = (&self.connections, &mut self.held.back);
        self.ready.retain(|&id| {
            let goes_on = connections.get(id).is_none_or(|it| it.phase.may_be_redis());
            if !goes_on {
                back.push(id);
            }
            goes_on
        });
        if self.held.back.len() > self.connections.len() {
            forget_closed(&mut self.held.back, |id| self.connections.contains(id));
        }
    }

    /// True if some requests wait.
    pub(super) fn is_holding(&self) -> bool {
        self.held.held != Held::Nothing
    }

    /// True if all requests wait.
    pub(super) fn holds_all(&self) -> bool {
        self.held.held == Held::All
    }

    /// How long to wait for events while requests wait.
    pub(super) fn patience_of_hold(&self) -> Duration {
        self.held.left.clamp(TICK, SWEEP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the order in which they began to wait.
    #[test]
    fn those_that_wait_are_no_more_than_are_open() {
        let mut back = vec![3, 1, 2, 1, 4, 3, 1];
        forget_closed(&mut back, |id| id != 2);
        assert_eq!(back, [3, 1, 4]);
    }
}
