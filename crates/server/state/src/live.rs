//! Settings that can change while the server runs: one snapshot of all, which is exchanged whole.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use nuthatch_engine::{Engine, LimitError};
use nuthatch_security::SettingsError;

use crate::limits;
use crate::server_state::ServerState;
use nuthatch_settings::config::{By, Config, TlsSettings};

pub use nuthatch_settings::Live;

/// The settings of this moment. They change once in a long while, and whoever reads them sees all of one moment.
pub struct LiveCell {
    live: RwLock<Arc<Live>>,
    /// How often they have changed, for [`View`].
    changes: AtomicU64,
}

impl LiveCell {
    /// The settings of a start.
    pub fn new(live: Live) -> Self {
        Self {
            live: RwLock::new(Arc::new(live)),
            changes: AtomicU64::new(0),
        }
    }

    /// The settings now.
    pub fn load(&self) -> Arc<Live> {
        // Nothing can panic while it is locked.
        Arc::clone(&self.live.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Other settings from now on.
    fn store(&self, live: Live) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
        // Relaxed: it only asks to look again, under the lock. Workers are woken afterwards.
        self.changes.fetch_add(1, Ordering::Relaxed);
    }
}

/// A thread's own view of the settings, for one that reads them all the time: it costs a load of a counter that hardly
/// ever changes.
pub struct View {
    live: Arc<Live>,
    changes: u64,
}

impl View {
    /// The settings now.
    pub fn new(cell: &LiveCell) -> Self {
        // The counter first: if they change in between, the next call looks again.
        let changes = cell.changes.load(Ordering::Relaxed);
        Self {
            live: cell.load(),
            changes,
        }
    }

    /// Takes the present settings, if there are others.
    #[inline]
    pub fn update(&mut self, cell: &LiveCell) {
        // Relaxed: see `LiveCell::store`.
        if cell.changes.load(Ordering::Relaxed) != self.changes {
            *self = Self::new(cell);
        }
    }
}

impl Deref for View {
    type Target = Live;

    fn deref(&self) -> &Live {
        &self.live
    }
}

/// Changes settings of a running server, from any thread.
#[derive(Clone)]
pub struct Controls(Arc<ServerState>);

impl fmt::Debug for Controls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Controls")
    }
}

impl Controls {
    /// The controls of this server.
    pub fn new(shared: Arc<ServerState>) -> Self {
        Self(shared)
    }

    /// Takes the settings that can change ([`Live`]) from `config`, all at once, and ignores the rest. Open connections
    /// stay open, even if fewer are allowed now.
    pub fn apply(&self, config: &Config) {
        let shared = &self.0;
        shared.live.store(Live {
            connections_max: limits::connections(config.connections_max, shared.config.threads),
            ..Live::from(config)
        });
        shared.security.guesses.set_max(config.login_guesses);
        // This also wakes the workers: a worker that sleeps without a timeout must learn that there is one now.
        shared.set_bounds();
    }

    /// Notifies watchers that a setting was applied.
    pub fn notify_applied(&self) {
        let ServerState { telemetry, .. } = &*self.0;
        telemetry.notify_watchers(format_args!("type=settings state=applied"));
    }

    /// The engine's memory limit now, in bytes: commands change it too.
    pub fn memory_limit(&self) -> usize {
        self.0.engine.stats().memory_limit as usize
    }

    /// Changes the engine's memory limit, in bytes. Errors: the engine cannot be of that size.
    pub fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        self.0.engine.set_memory_limit(bytes)?;
        self.0.follow_memory_limit();
        Ok(())
    }

    /// Reads certificates and keys again, for connections from now on: from the files that `newer` names, whose other
    /// settings are ignored, or from the same files as before. Errors: the old ones stay in use. `None` if the server
    /// has no TLS.
    pub fn refresh_certificates(
        &self,
        newer: Option<&TlsSettings>,
    ) -> Option<Result<(), SettingsError>> {
        let ServerState {
            security,
            telemetry,
            ..
        } = &*self.0;
        security.refresh_certificates(newer, telemetry)
    }

    /// Reads the file of passwords again, for logins from now on. Errors: the old ones stay in use. `None` if the
    /// server has no such file.
    pub fn read_passwords(&self) -> Option<Result<(), SettingsError>> {
        self.0.security.read_passwords()
    }

    /// Asks for a copy of all items now (`--save`), and returns at once. If another copy is being written, the new one
    /// follows it. False if there is no file for it.
    pub fn save(&self) -> bool {
        self.0.saves.request(&self.0.shutdown);
        self.0.config.persistence.save.is_some()
    }

    /// The verbosity of the log now: a command changes it too.
    pub fn verbosity(&self) -> u32 {
        self.0.verbosity()
    }

    /// Does what the `verbosity` command does, and without its bound on the log.
    pub fn set_verbosity(&self, level: u32) {
        self.0.set_verbosity(level, By::Operator);
    }
}
