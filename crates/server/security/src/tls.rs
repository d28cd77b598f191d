//! TLS: certificates, which can be read again while the server runs, and a connection's session.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use nuthatch_base::sync::mutex::Mutex;
use rustls::crypto::ring;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{HandshakeKind, InvalidMessage, RootCertStore, ServerConfig, ServerConnection};

use crate::ciphers::Ciphers;
use crate::clients::Trusting;
use crate::error::SettingsError;
use crate::{certificates, validity};

/// The settings of listeners with TLS (`-o ssl_*`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// The server's certificate, and the rest of its chain (`ssl_chain_cert`), in PEM.
    pub chain_cert: PathBuf,
    /// Its private key (`ssl_key`), in PEM.
    pub key: PathBuf,
    /// The certificates that sign clients' certificates (`ssl_ca_cert`), in PEM.
    pub ca_cert: Option<PathBuf>,
    /// How clients are verified (`ssl_verify_mode`), unless a listener has its own setting.
    pub verify: Verify,
    /// Cipher suites (`ssl_ciphers`). `None` is all.
    pub ciphers: Option<Ciphers>,
    /// No version below 1.3 (`ssl_min_version=3`); else none below 1.2.
    pub only_1_3: bool,
    /// Clients may resume an earlier session (`ssl_session_cache`).
    pub session_cache: bool,
}

impl TlsSettings {
    /// The files that are read, at the start and at every later reading.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let ca_cert = self.ca_cert.as_deref();
        [self.chain_cert.as_path(), &self.key]
            .into_iter()
            .chain(ca_cert)
    }

    /// These settings with the files of `other`.
    fn with_files_of(&self, other: &Self) -> Self {
        Self {
            chain_cert: other.chain_cert.clone(),
            key: other.key.clone(),
            ca_cert: other.ca_cert.clone(),
            ..self.clone()
        }
    }
}

/// How clients are verified, the least demand first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verify {
    /// Nothing.
    #[default]
    Nothing,
    /// A certificate, if they have one (`ssl_verify_mode=1`).
    IfPresent,
    /// A certificate (`ssl_verify_mode=2`).
    Always,
}

/// The certificates of a running server.
pub struct Tls {
    /// The ways in which listeners verify their clients.
    asked: Vec<Verify>,
    current: Mutex<Current>,
    /// Held while the files are read again: of two readings the later one stays in use.
    reading: Mutex<()>,
}

/// The error if clients' certificates are demanded without the certificates that sign them.
pub const NO_CA: &str = "-o ssl_verify_mode=2: needs ssl_ca_cert (so does -l mtls:)";

/// The content of the files at the last reading.
struct Current {
    settings: TlsSettings,
    /// One for each way to verify. Each has sessions of its own: a client cannot resume a session that it began without
    /// a certificate at a listener that demands one.
    configs: Vec<(Verify, Arc<ServerConfig>)>,
    since: Instant,
    /// When all of the chain's certificates are valid, in unix time.
    valid: Option<RangeInclusive<u64>>,
    /// The warning about a key that everybody can read.
    open_key: Option<String>,
    /// Warnings about certificates for clients by which none can be verified.
    useless: Vec<String>,
}

impl Current {
    fn read(settings: TlsSettings, asked: &[Verify]) -> Result<Self, SettingsError> {
        let chain = certificates::read(&settings.chain_cert)?;
        let valid = validity::of_all(&chain);
        let (key, open_key) = certificates::private_key(&settings.key)?;
        let own = certificates::certified(chain, key, &settings.key);
        let own = own.map_err(|error| SettingsError::file(&settings.chain_cert, error))?;
        let configs = asked.iter().map(|&verify| {
            let config = configure(&settings, verify, &own)?;
            Ok((verify, config))
        });
        let configs = configs.collect::<Result<_, SettingsError>>()?;
        Ok(Self {
            useless: useless(&settings)?,
            settings,
            configs,
            since: Instant::now(),
            valid,
            open_key,
        })
    }

    /// Logs the warnings for the operator.
    fn warn(&self) {
        let open_key = self.open_key.clone();
        let warnings = open_key.into_iter().chain(self.concern());
        let useless = self.useless.iter().cloned();
        for warning in warnings.chain(self.without_ca()).chain(useless) {
            tracing::warn!("{warning}");
        }
    }

    /// A warning for the operator: certificates have expired, expire soon, or are not valid yet. They are served all
    /// the same: clients decide.
    fn concern(&self) -> Option<String> {
        let concern = validity::concern(self.valid.as_ref()?, validity::now())?;
        Some(format!("{}: {concern}", self.settings.chain_cert.display()))
    }

    /// A warning that clients' certificates are not asked for, since none could be verified.
    fn without_ca(&self) -> Option<String> {
        let mut configs = self.configs.iter();
        let is_asked = configs.any(|(verify, _)| *verify == Verify::IfPresent);
        let is_missing = is_asked && self.settings.ca_cert.is_none();
        is_missing.then(|| "-o ssl_verify_mode=1: no client's certificate is verified, for there is no ssl_ca_cert".to_owned())
    }

    fn config(&self, verify: Verify) -> Option<Arc<ServerConfig>> {
        let mut configs = self.configs.iter();
        let found = configs.find(|(asked, _)| *asked == verify)?;
        Some(Arc::clone(&found.1))
    }
}

impl Tls {
    /// Reads the files, for listeners that verify their clients in these ways. Errors name the file. Logs nothing:
    /// there may be no log yet. See [`warn`](Self::warn).
    pub fn read(settings: &TlsSettings, mut asked: Vec<Verify>) -> Result<Self, SettingsError> {
        asked.sort();
        asked.dedup();
        Ok(Self {
            current: Mutex::new(Current::read(settings.clone(), &asked)?),
            asked,
            reading: Mutex::default(),
        })
    }

    /// Logs the warnings about the files: everybody can read the key; certificates end soon.
    pub fn warn(&self) {
        self.current.lock().warn();
    }

    /// Reads the files again, or those that `newer` names, for connections from now on. Errors: the old content stays
    /// in use, and so do the names of the files.
    pub fn refresh(&self, newer: Option<&TlsSettings>) -> Result<(), SettingsError> {
        let _reading = self.reading.lock();
        let settings = self.settings();
        let settings = match newer {
            Some(newer) => settings.with_files_of(newer),
            None => settings,
        };
        let fresh = Current::read(settings, &self.asked)?;
        fresh.warn();
        *self.current.lock() = fresh;
        Ok(())
    }

    /// The settings in use.
    pub fn settings(&self) -> TlsSettings {
        self.current.lock().settings.clone()
    }

    /// Seconds since the files were read.
    pub fn seconds_since_refresh(&self) -> u64 {
        self.current.lock().since.elapsed().as_secs()
    }

    /// The time in which all of its certificates are valid, in unix time, if it is known.
    pub fn validity(&self) -> Option<RangeInclusive<u64>> {
        self.current.lock().valid.clone()
    }

    /// Days until the first of its certificates expires. Negative if it has expired.
    pub fn days_left(&self) -> Option<i64> {
        let valid = self.validity()?;
        let [end, now] = [*valid.end(), validity::now()].map(|time| i64::try_from(time).ok());
        Some((end? - now?).div_euclid(validity::DAY as i64))
    }

    /// A session for a new connection of a listener that verifies its clients like this. Errors: there is no such
    /// listener.
    pub fn session(&self, verify: Verify) -> io::Result<Session> {
        let config = self.current.lock().config(verify);
        let config = config.ok_or_else(|| io::Error::other("no listener asks this"))?;
        let connection = ServerConnection::new(config).map_err(io::Error::other)?;
        Ok(Session {
            connection: Box::new(connection),
            is_dry: false,
            has_ended: false,
        })
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Tls")
    }
}

/// See [`Current::useless`].
fn useless(settings: &TlsSettings) -> Result<Vec<String>, SettingsError> {
    let Some(path) = &settings.ca_cert else {
        return Ok(Vec::new());
    };
    let trusted = certificates::read(path)?;
    let why = trusted.iter().filter_map(certificates::verifies_nobody);
    let warnings = why.map(|why| format!("{}: no client is verified by {why}", path.display()));
    Ok(warnings.collect())
}

fn configure(
    settings: &TlsSettings,
    verify: Verify,
    own: &Arc<CertifiedKey>,
) -> Result<Arc<ServerConfig>, SettingsError> {
    let versions: &[_] = match settings.only_1_3 {
        true => &[&TLS13],
        false => &[&TLS12, &TLS13],
    };
    let mut provider = ring::default_provider();
    if let Some(ciphers) = &settings.ciphers {
        provider.cipher_suites = ciphers.of(&provider.cipher_suites);
    }
    let provider = Arc::new(provider);
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(SettingsError::tls)?;
    let builder = match (verify, &settings.ca_cert) {
        (Verify::Nothing, _) | (Verify::IfPresent, None) => builder.with_no_client_auth(),
        (Verify::Always, None) => return Err(SettingsError::Contradiction(NO_CA)),
        (verify, Some(path)) => {
            let mut roots = RootCertStore::empty();
            let trusted = certificates::read(path)?;
            for certificate in &trusted {
                let added = roots.add(certificate.clone());
                added.map_err(|error| SettingsError::file(path, error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let verifier = match verify {
                Verify::Always => verifier,
                _ => verifier.allow_unauthenticated(),
            };
            let chains = verifier.build();
            let chains = chains.map_err(|error| SettingsError::file(path, error))?;
            builder.with_client_cert_verifier(Arc::new(Trusting { chains, trusted }))
        }
    };
    let own = SingleCertAndKey::from(Arc::clone(own));
    let mut config = builder.with_cert_resolver(Arc::new(own));
    match settings.session_cache {
        true => {
            let ticketer = ring::Ticketer::new();
            config.ticketer = ticketer.map_err(SettingsError::tls)?;
        }
        false => {
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
    }
    Ok(Arc::new(config))
}

/// A connection's TLS, between its socket and its clear text. rustls bounds its buffers: a record of input, and 64 KiB
/// of output.
pub struct Session {
    connection: Box<ServerConnection>,
    /// True if the last read left no bytes, neither in the socket nor here.
    is_dry: bool,
    /// True if the client has ended its stream (close_notify). A read finds the end after it has returned all earlier
    /// bytes.
    has_ended: bool,
}

/// A socket that records whether a read emptied it.
struct ReadTracker<'s, S> {
    socket: &'s mut S,
    short: bool,
}

impl<S: Read> Read for ReadTracker<'_, S> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let count = self.socket.read(room)?;
        self.short = count < room.len();
        Ok(count)
    }
}

impl Session {
    /// True if the handshake is done.
    pub fn is_ready(&self) -> bool {
        !self.connection.is_handshaking()
    }

    /// True if the handshake is done, and did not resume an earlier session.
    pub fn is_new(&self) -> bool {
        let kind = self.connection.handshake_kind();
        self.is_ready() && kind.is_some_and(|kind| kind != HandshakeKind::Resumed)
    }

    /// True if bytes after the last read make an event.
    pub fn is_dry(&self) -> bool {
        self.is_dry
    }

    /// True if bytes wait for the socket.
    pub fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    /// Reads clear text, like a socket's read.
    pub fn read<S: Read + Write>(&mut self, socket: &mut S, room: &mut [u8]) -> io::Result<usize> {
        let mut emptied = false;
        loop {
            match self.connection.reader().read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // A client that closes the socket without TLS's close_notify has ended its stream too.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                done => {
                    let is_short = matches!(done, Ok(count) if count < room.len());
                    self.is_dry = emptied && is_short && !self.has_ended;
                    return done;
                }
            }
            let mut noted = ReadTracker {
                socket,
                short: false,
            };
            let count = self.connection.read_tls(&mut noted)?;
            emptied = noted.short;
            let processed = self.connection.process_new_packets();
            // Send the answer of TLS, or the alert that tells the error.
            let sent = self.send(socket);
            let state = processed.map_err(|error| match error {
                rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                    io::Error::new(ErrorKind::InvalidData, "the client does not speak TLS")
                }
                error => io::Error::new(ErrorKind::InvalidData, error),
            })?;
            self.has_ended = state.peer_has_closed();
            sent?;
            if count == 0 && self.connection.is_handshaking() {
                return Ok(0);
            }
        }
    }

    /// Accepts clear text, like a socket's write: less than all of it only if the socket is full.
    pub fn write<S: Write>(&mut self, socket: &mut S, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut taken = 0;
        for piece in pieces {
            let mut rest = &piece[..];
            while !rest.is_empty() {
                if !self.send(socket)? {
                    return match taken {
                        0 => Err(ErrorKind::WouldBlock.into()),
                        taken => Ok(taken),
                    };
                }
                let count = self.connection.writer().write(rest)?;
                rest = &rest[count..];
                taken += count;
            }
        }
        self.send(socket)?;
        Ok(taken)
    }

    /// Sends the bytes that wait for the socket. False if the socket does not take all of them.
    pub fn send<S: Write>(&mut self, socket: &mut S) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Sends the end of the stream.
    pub fn finish<S: Write>(&mut self, socket: &mut S) -> io::Result<()> {
        self.connection.send_close_notify();
        self.send(socket).map(|_| ())
    }
}
