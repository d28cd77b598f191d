//! A connection's bytes: as they are, or within TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mio::net::TcpStream;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};

/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of an answer that are read, at most.
const ANSWER_MAX: u64 = 1 << 20;

/// A socket that does not block, and a session of TLS if there is one.
pub struct Stream {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Stream {
    /// Connects, and waits until the connection stands, and its handshake is done.
    pub fn connect(target: SocketAddr, tls: bool) -> io::Result<Self> {
        let mut stream = connect_patiently(target)?;
        let tls = match tls {
            true => {
                let mut session = session(target)?;
                while session.is_handshaking() {
                    session.complete_io(&mut stream)?;
                }
                Some(Box::new(session))
            }
            false => None,
        };
        stream.set_nonblocking(true)?;
        Ok(Self {
            socket: TcpStream::from_std(stream),
            tls,
        })
    }

    /// The socket, to be registered.
    pub fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// As a socket's.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(session) = &mut self.tls else {
            return self.socket.write(bytes);
        };
        // Bytes that the session keeps are sent first. So when the socket is full, the wait is for that socket, and its
        // next event says that it has room.
        while session.wants_write() {
            session.write_tls(&mut self.socket)?;
        }
        session.writer().write(bytes)
    }

    /// Sends what the session keeps, as far as the socket takes it.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(session) = &mut self.tls else {
            return Ok(());
        };
        while session.wants_write() {
            match session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// As a socket's.
    pub fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &mut self.tls else {
            return self.socket.read(room);
        };
        loop {
            match session.reader().read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            session.read_tls(&mut self.socket)?;
            session.process_new_packets().map_err(io::Error::other)?;
        }
    }
}

/// What a server answers to one request: [`ANSWER_MAX`] bytes of it at most.
pub type Answer = Box<dyn Read>;

/// Sends one request, on a connection of its own that blocks; the answer is to be read.
pub fn ask(target: SocketAddr, request: &[u8], tls: bool) -> io::Result<Answer> {
    let mut stream = connect_patiently(target)?;
    if tls {
        let mut stream = rustls::StreamOwned::new(session(target)?, stream);
        stream.write_all(request)?;
        return Ok(Box::new(stream.take(ANSWER_MAX)));
    }
    stream.write_all(request)?;
    Ok(Box::new(stream.take(ANSWER_MAX)))
}

/// A connection that blocks, for requests that are answered soon.
pub fn connect_patiently(target: SocketAddr) -> io::Result<std::net::TcpStream> {
    let stream = std::net::TcpStream::connect_timeout(&target, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// A session that has not begun.
fn session(target: SocketAddr) -> io::Result<ClientConnection> {
    let name = ServerName::IpAddress(target.ip().into());
    ClientConnection::new(config()?, name).map_err(io::Error::other)
}

/// The configuration of all sessions.
fn config() -> io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Accepts any certificate: the server under load is the user's own.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
