//! TLS over a socket that never waits.

use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::Error;
use crate::address::invalid;
use crate::options::TlsFiles;
use crate::transport::{Socket, at_present};

/// What all connections of a client have in common.
pub(crate) type Config = Arc<ClientConfig>;

/// Reads the files.
pub(crate) fn config(files: &TlsFiles) -> Result<Config, Error> {
    let Some(ca) = &files.ca else {
        return Err(invalid(
            "tls:// needs ca=FILE: the certificates to trust, in PEM".to_owned(),
        ));
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca)? {
        roots
            .add(certificate)
            .map_err(|error| unusable(ca, error))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid(error.to_string()))?
        .with_root_certificates(roots);
    let config = match (&files.cert, &files.key) {
        (Some(cert), Some(key)) => {
            let chain = certificates(cert)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, error))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| unusable(cert, error))?
        }
        (None, None) => builder.with_no_client_auth(),
        _ => return Err(invalid("cert=FILE and key=FILE need each other".to_owned())),
    };
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.map_err(|error| unusable(path, error))?;
    if found.is_empty() {
        return Err(unusable(path, "no certificate in it"));
    }
    Ok(found)
}

fn unusable(path: &Path, error: impl std::fmt::Display) -> Error {
    invalid(format!("{}: {error}", path.display()))
}

/// A connection's session. The handshake takes place as bytes are sent and received.
#[derive(Debug)]
pub(crate) struct Session {
    session: Mutex<ClientConnection>,
}

impl Session {
    /// A session with the server of this name, or IP address, which its certificate has to have.
    pub fn new(config: &Config, host: &str) -> Result<Self, String> {
        let name =
            ServerName::try_from(host.to_owned()).map_err(|error| format!("{host}: {error}"))?;
        let session =
            ClientConnection::new(config.clone(), name).map_err(|error| error.to_string())?;
        Ok(Self {
            session: Mutex::new(session),
        })
    }

    fn lock(&self) -> MutexGuard<'_, ClientConnection> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn send(&self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        let mut session = self.lock();
        let taken = session.writer().write(bytes)?;
        write_out(&mut session, socket)?;
        Ok(taken)
    }

    /// True: nothing is left to be sent.
    pub fn flush(&self, socket: &Socket) -> io::Result<bool> {
        write_out(&mut self.lock(), socket)
    }

    pub fn receive(&self, socket: &Socket, room: &mut [u8]) -> io::Result<Option<usize>> {
        let mut session = self.lock();
        loop {
            // Some(0): the server has said that it sends no more.
            if let Some(length) = at_present(|| session.reader().read(room))? {
                return Ok(Some(length));
            }
            match at_present(|| session.read_tls(&mut &*socket))? {
                None => return Ok(None),
                Some(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Some(_) => {}
            }
            let processed = session.process_new_packets();
            // The rest of the handshake; an alert, if it failed.
            let sent = write_out(&mut session, socket);
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            sent?;
        }
    }
}

fn write_out(session: &mut ClientConnection, socket: &Socket) -> io::Result<bool> {
    while session.wants_write() {
        if at_present(|| session.write_tls(&mut &*socket))?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
