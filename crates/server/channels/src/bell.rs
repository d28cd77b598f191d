//! A bell: other threads ring it when something waits for a connection, and its worker is called once, until it has come.
//!
//! A model explores it with the mailbox: `lab/models/tests/loom/mailbox.rs`.

use std::sync::Arc;

use nuthatch_base::sync::shim::{AtomicBool, Ordering};

use crate::Call;

/// That of a connection.
pub struct Bell {
    worker: Arc<dyn Call>,
    connection: usize,
    /// The worker was called, and has not come yet. Set by an AcqRel swap, cleared with Release.
    called: AtomicBool,
}

impl Bell {
    /// That of the connection with this id at its worker.
    pub fn new(worker: Arc<dyn Call>, connection: usize) -> Self {
        Self {
            worker,
            connection,
            called: AtomicBool::new(false),
        }
    }

    /// Something waits, and others can see it: calls the worker, unless it was called already.
    pub fn ring(&self) {
        // AcqRel: pairs with the Release store of `answer`, and with the swaps of other threads.
        if !self.called.swap(true, Ordering::AcqRel) {
            self.worker.call(self.connection);
        }
    }

    /// The worker comes, and looks behind this at what waits. What comes later rings again.
    pub fn answer(&self) {
        // Release: pairs with the swap of `ring`.
        self.called.store(false, Ordering::Release);
    }

    /// Makes the worker close the connection, which has this number.
    pub fn end(&self, serial: u64) {
        self.worker.end(self.connection, serial);
    }
}
