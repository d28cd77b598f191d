//! Settings that can change while the server runs: each is read where it is applied.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::{Engine, LimitError};
use nuthatch_security::SettingsError;

use crate::administration::{Action, Actions};
use crate::config::{By, Config, TlsSettings};
use crate::limits;
use crate::shared::Shared;

/// The settings of [`Config`] that can change in a running server.
///
/// All accesses of atomics are Relaxed: each value is independent, and publishes nothing. A worker sees a new value at
/// its next iteration at the latest.
pub struct Live {
    connections_max: AtomicUsize,
    /// 0 is none.
    address_connections_max: AtomicUsize,
    commands_per_slice: AtomicU32,
    /// In milliseconds; 0 is none.
    idle_timeout: AtomicU64,
    allow_shutdown: AtomicBool,
    allow_flush: AtomicBool,
    /// As [`Actions::bits`].
    disabled_actions: AtomicU8,
    allow_dump: AtomicBool,
    cas: AtomicBool,
    /// In milliseconds.
    login_timeout: AtomicU64,
    udp_reply_max: AtomicUsize,
    /// Read once for each connection by a unix socket.
    unix_peers: Mutex<Option<Vec<u32>>>,
}

impl Live {
    /// The settings of `config`.
    pub fn new(config: &Config) -> Self {
        let live = Self {
            connections_max: AtomicUsize::default(),
            address_connections_max: AtomicUsize::default(),
            commands_per_slice: AtomicU32::default(),
            idle_timeout: AtomicU64::default(),
            allow_shutdown: AtomicBool::default(),
            allow_flush: AtomicBool::default(),
            disabled_actions: AtomicU8::default(),
            allow_dump: AtomicBool::default(),
            cas: AtomicBool::default(),
            login_timeout: AtomicU64::default(),
            udp_reply_max: AtomicUsize::default(),
            unix_peers: Mutex::default(),
        };
        live.take(config, config.connections_max);
        live
    }

    /// Takes its settings from `config`, except for the connections.
    fn take(&self, config: &Config, connections_max: NonZeroUsize) {
        let Config {
            address_connections_max,
            commands_per_slice,
            idle_timeout,
            allow_shutdown,
            allow_flush,
            disabled_actions,
            allow_dump,
            cas,
            login_timeout,
            udp_reply_max,
            unix_peers,
            ..
        } = config;
        // A timeout is never rounded down to none.
        let idle_timeout = idle_timeout.map_or(0, |limit| (limit.as_millis() as u64).max(1));
        self.connections_max
            .store(connections_max.get(), Ordering::Relaxed);
        let address_connections_max = address_connections_max.map_or(0, NonZeroUsize::get);
        self.address_connections_max
            .store(address_connections_max, Ordering::Relaxed);
        self.commands_per_slice
            .store(commands_per_slice.get(), Ordering::Relaxed);
        self.idle_timeout.store(idle_timeout, Ordering::Relaxed);
        self.allow_shutdown
            .store(*allow_shutdown, Ordering::Relaxed);
        self.allow_flush.store(*allow_flush, Ordering::Relaxed);
        self.disabled_actions
            .store(disabled_actions.bits(), Ordering::Relaxed);
        self.allow_dump.store(*allow_dump, Ordering::Relaxed);
        self.cas.store(*cas, Ordering::Relaxed);
        let login_timeout = login_timeout.as_millis() as u64;
        self.login_timeout.store(login_timeout, Ordering::Relaxed);
        self.udp_reply_max
            .store(udp_reply_max.get(), Ordering::Relaxed);
        *self.unix_peers.lock() = unix_peers.clone();
    }

    /// See [`Config::connections_max`].
    pub fn connections_max(&self) -> NonZeroUsize {
        let most = self.connections_max.load(Ordering::Relaxed);
        NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN)
    }

    /// See [`Config::address_connections_max`].
    pub fn address_connections_max(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(self.address_connections_max.load(Ordering::Relaxed))
    }

    /// See [`Config::commands_per_slice`].
    #[inline]
    pub fn commands_per_slice(&self) -> NonZeroU32 {
        let most = self.commands_per_slice.load(Ordering::Relaxed);
        NonZeroU32::new(most).unwrap_or(NonZeroU32::MIN)
    }

    /// See [`Config::idle_timeout`].
    #[inline]
    pub fn idle_timeout(&self) -> Option<Duration> {
        let limit = self.idle_timeout.load(Ordering::Relaxed);
        (limit > 0).then(|| Duration::from_millis(limit))
    }

    /// See [`Config::allow_shutdown`].
    pub fn allow_shutdown(&self) -> bool {
        self.allow_shutdown.load(Ordering::Relaxed)
    }

    /// See [`Config::allow_flush`].
    pub fn allow_flush(&self) -> bool {
        self.allow_flush.load(Ordering::Relaxed)
    }

    /// See [`Config::disabled_actions`].
    pub fn disabled_actions(&self) -> Actions {
        Actions::from_bits(self.disabled_actions.load(Ordering::Relaxed))
    }

    /// True if a client may do this, who administrates the server or does not.
    pub fn lets(&self, action: Action, is_administrator: bool) -> bool {
        let is_on = match action {
            Action::Flush => self.allow_flush(),
            Action::Shutdown => self.allow_shutdown(),
            Action::Verbosity
            | Action::MemoryLimit
            | Action::RefreshCertificates
            | Action::ResetStats => true,
        };
        is_on && (is_administrator || !self.disabled_actions().contains(action))
    }

    /// See [`Config::allow_dump`].
    pub fn allow_dump(&self) -> bool {
        self.allow_dump.load(Ordering::Relaxed)
    }

    /// See [`Config::login_timeout`].
    pub fn login_timeout(&self) -> Duration {
        Duration::from_millis(self.login_timeout.load(Ordering::Relaxed))
    }

    /// See [`Config::udp_reply_max`].
    pub fn udp_reply_max(&self) -> usize {
        self.udp_reply_max.load(Ordering::Relaxed)
    }

    /// True if processes of this user may connect by unix sockets: see [`Config::unix_peers`].
    pub fn lets_user(&self, user: u32) -> bool {
        let users = self.unix_peers.lock();
        users.as_ref().is_none_or(|users| users.contains(&user))
    }

    /// See [`Config::cas`].
    pub fn cas(&self) -> bool {
        self.cas.load(Ordering::Relaxed)
    }
}

/// Changes settings of a running server, from any thread.
#[derive(Clone)]
pub struct Controls(Arc<dyn Control>);

impl fmt::Debug for Controls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Controls")
    }
}

/// The functions of [`Controls`], for an engine of any type.
trait Control: Send + Sync {
    fn apply(&self, config: &Config);
    fn memory_limit(&self) -> usize;
    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError>;
    fn verbosity(&self) -> u32;
    fn set_verbosity(&self, level: u32);
    fn refresh_certificates(
        &self,
        newer: Option<&TlsSettings>,
    ) -> Option<Result<(), SettingsError>>;
    fn read_passwords(&self) -> Option<Result<(), SettingsError>>;
    fn save(&self) -> bool;
}

impl Controls {
    /// The controls of this server.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self(Arc::new(shared))
    }

    /// Takes the settings that can change from `config`: `connections_max`, `address_connections_max`, `commands_per_slice`, `idle_timeout`,
    /// `allow_shutdown`, `allow_flush`, `disabled_actions`, `allow_dump`, `cas`, `login_guesses`, `login_timeout`, `udp_reply_max` and
    /// `unix_peers`. The rest is ignored. Open connections stay open, even if fewer are allowed now.
    pub fn apply(&self, config: &Config) {
        self.0.apply(config);
    }

    /// The engine's memory limit now, in bytes: commands change it too.
    pub fn memory_limit(&self) -> usize {
        self.0.memory_limit()
    }

    /// Changes the engine's memory limit, in bytes. Errors: the engine cannot be of that size.
    pub fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        self.0.set_memory_limit(bytes)
    }

    /// Reads certificates and keys again, for connections from now on: from the files that `newer` names, whose other
    /// settings are ignored, or from the same files as before. Errors: the old ones stay in use. `None` if the server
    /// has no TLS.
    pub fn refresh_certificates(
        &self,
        newer: Option<&TlsSettings>,
    ) -> Option<Result<(), SettingsError>> {
        self.0.refresh_certificates(newer)
    }

    /// Reads the file of passwords again, for logins from now on. Errors: the old ones stay in use. `None` if the
    /// server has no such file.
    pub fn read_passwords(&self) -> Option<Result<(), SettingsError>> {
        self.0.read_passwords()
    }

    /// Asks for a copy of all items now (`--save`), and returns at once. If another copy is being written, the new one
    /// follows it. False if there is no file for it.
    pub fn save(&self) -> bool {
        self.0.save()
    }

    /// The verbosity of the log now: a command changes it too.
    pub fn verbosity(&self) -> u32 {
        self.0.verbosity()
    }

    /// Does what the `verbosity` command does, and without its bound on the log.
    pub fn set_verbosity(&self, level: u32) {
        self.0.set_verbosity(level);
    }
}

impl Control for Arc<Shared> {
    fn apply(&self, config: &Config) {
        let connections_max = limits::connections(config.connections_max, self.config.threads);
        self.live.take(config, connections_max);
        self.guesses.set_max(config.login_guesses);
        // This also wakes the workers: a worker that sleeps without a timeout must learn that there is one now.
        self.set_bounds();
        self.tell_watchers(format_args!("type=settings state=applied"));
    }

    fn memory_limit(&self) -> usize {
        self.engine.stats().memory_limit as usize
    }

    fn set_memory_limit(&self, bytes: usize) -> Result<(), LimitError> {
        self.engine.set_memory_limit(bytes)?;
        self.follow_memory_limit();
        Ok(())
    }

    fn refresh_certificates(
        &self,
        newer: Option<&TlsSettings>,
    ) -> Option<Result<(), SettingsError>> {
        Shared::refresh_certificates(self, newer)
    }

    fn read_passwords(&self) -> Option<Result<(), SettingsError>> {
        Shared::read_passwords(self)
    }

    fn save(&self) -> bool {
        self.shutdown.ask(&self.save_asked);
        self.config.keeping.save.is_some()
    }

    fn verbosity(&self) -> u32 {
        // Relaxed: a switch for logging.
        self.verbosity.load(Ordering::Relaxed)
    }

    fn set_verbosity(&self, level: u32) {
        Shared::set_verbosity(self, level, By::Operator);
    }
}
