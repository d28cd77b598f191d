//! Who may use the server: users and passwords, the limit on guesses, certificates and their renewal.

use std::path::PathBuf;
use std::sync::Arc;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_security::SettingsError;
use nuthatch_security::guesses::Guesses;
use nuthatch_security::passwords::{Passwords, Role};
use nuthatch_security::tls::Tls;
use nuthatch_settings::config::{Config, NewestTls, TlsSettings};

use crate::refreshes::Refreshes;
use crate::telemetry::Telemetry;

/// What decides whether a client is admitted.
pub struct Security {
    /// The file of users and passwords, if clients have to log in.
    auth_file: Option<PathBuf>,
    /// Its content.
    passwords: Mutex<Option<Arc<Passwords>>>,
    /// Wrong passwords that peers tried recently.
    pub guesses: Guesses,
    /// Certificates, if there are listeners with TLS.
    pub tls: Option<Arc<Tls>>,
    /// Where the newest certificates are.
    newest_tls: NewestTls,
    /// Clients that wait until the certificates have been read again.
    pub refreshes: Arc<Refreshes>,
}

impl Security {
    /// As these settings say. It takes the passwords out of them.
    pub fn new(config: &mut Config) -> Self {
        Self {
            auth_file: config.auth_file.clone(),
            passwords: Mutex::new(config.passwords.take()),
            guesses: Guesses::new(config.login_guesses),
            tls: config.certificates.clone(),
            newest_tls: config.newest_tls.clone(),
            refreshes: Arc::default(),
        }
    }

    /// True if clients have to log in.
    pub fn has_passwords(&self) -> bool {
        self.auth_file.is_some()
    }

    /// True if a client is admitted only after a handshake or a login.
    pub fn admits_late(&self) -> bool {
        self.has_passwords() || self.tls.is_some()
    }

    /// The role of the user with this name and password, if there is one.
    pub fn admits(&self, name: &[u8], password: &[u8]) -> Option<Role> {
        let passwords = self.passwords.lock().clone();
        passwords?.admits(name, password)
    }

    /// The names and roles of all users, if clients have to log in.
    pub fn users(&self) -> Option<Vec<(Box<[u8]>, Role)>> {
        let passwords = self.passwords.lock().clone();
        Some(passwords?.users())
    }

    /// Reads the file of passwords again, if there is one. Errors: it cannot be read, and the old passwords stay valid.
    pub fn read_passwords(&self) -> Option<Result<(), SettingsError>> {
        let path = self.auth_file.as_deref()?;
        let read = Passwords::read(path).map(|read| *self.passwords.lock() = Some(Arc::new(read)));
        Some(read)
    }

    /// Reads certificates and keys again, if there are any, from the files that `newer` names, or from the same files
    /// as before. Watchers are notified. Errors: the old ones stay in use.
    pub fn refresh_certificates(
        &self,
        newer: Option<&TlsSettings>,
        telemetry: &Telemetry,
    ) -> Option<Result<(), SettingsError>> {
        let refreshed = self.tls.as_ref()?.refresh(newer);
        let state = if refreshed.is_ok() { "ok" } else { "failed" };
        telemetry.notify_watchers(format_args!("type=certificates state={state}"));
        Some(refreshed)
    }

    /// The same at a client's request, from the newest files. False if the old ones stay in use: the log says why, since
    /// the name of a file is not for every client.
    pub fn refresh_newest_certificates(&self, telemetry: &Telemetry) -> bool {
        let newest = self.newest_tls.find();
        match self.refresh_certificates(newest.as_ref(), telemetry) {
            Some(Err(error)) => {
                tracing::warn!(%error, "refresh_certs: the certificates of before stay");
                false
            }
            Some(Ok(())) | None => true,
        }
    }
}
