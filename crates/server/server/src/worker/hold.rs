//! CLIENT PAUSE at a worker: which connections have no turn, and how they go on.

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
            let waits = connection.phase.is_redis() && connection.state.waits_for_call();
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
            let goes_on = connections.get(id).is_none_or(|it| it.phase.is_redis());
            if !goes_on {
                back.push(id);
            }
            goes_on
        });
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
