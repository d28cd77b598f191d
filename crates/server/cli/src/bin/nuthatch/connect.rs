//! A connection to a server of memcached's protocol: by TCP, under TLS or not, or by a unix socket, with a password or not.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nuthatch_server::address::TypedAddress;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme, StreamOwned,
};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest line, and the most of them in an answer, that are read.
const LINE_MAX: u64 = 4096;
const LINES_MAX: usize = 20_000;

/// The files in which systems keep the certificates that they trust.
const TRUSTED: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// A server, and how to log in to it.
pub(super) struct Target {
    /// HOST, HOST:PORT, an address of IPv6 with or without brackets and port, or a path.
    pub(super) server: String,
    /// The port, where none was typed.
    pub(super) port: u16,
    /// A name and its password.
    pub(super) login: Option<(String, String)>,
    /// Under TLS.
    pub(super) tls: Option<Arc<ClientConfig>>,
}

impl Target {
    /// Connects, and logs in. Errors name the server.
    pub(super) fn open(&self) -> Result<Connection, String> {
        let named = |error: io::Error| format!("{}: {error}", self.server);
        let stream = self.stream().map_err(named)?;
        let mut connection = Connection(BufReader::new(stream));
        if let Some((name, password)) = &self.login {
            connection.log_in(name, password)?;
        }
        Ok(connection)
    }

    fn stream(&self) -> io::Result<Box<dyn Stream>> {
        if self.server.starts_with('/') {
            let stream = UnixStream::connect(&self.server)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            return Ok(Box::new(stream));
        }
        let stream = self.tcp()?;
        let Some(config) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let name = ServerName::try_from(host(&self.server).to_owned());
        let name = name.map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        Ok(Box::new(StreamOwned::new(session, stream)))
    }

    fn tcp(&self) -> io::Result<TcpStream> {
        let mut failed = io::Error::other("no address");
        let addresses =
            TypedAddress::parse(&self.server).and_then(|address| address.addresses(self.port));
        for address in addresses.map_err(io::Error::other)? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(stream);
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

/// The host of a server as typed: its certificate must name it.
fn host(server: &str) -> &str {
    if let Some(rest) = server.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match server.rsplit_once(':') {
        // More than one colon: an address of IPv6 without a port.
        Some((host, _)) if !host.contains(':') => host,
        _ => server,
    }
}

/// The certificates to trust under TLS: those of a file in PEM, or those that the system trusts.
pub(super) fn trusting(ca: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let system = || TRUSTED.iter().map(PathBuf::from).find(|path| path.exists());
    let Some(path) = ca.map(Path::to_owned).or_else(system) else {
        return Err("--tls: the system has no file of certificates; --ca names one".to_owned());
    };
    let named = |error: &dyn std::fmt::Display| format!("--ca {}: {error}", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&path).map_err(|error| named(&error))? {
        let certificate = certificate.map_err(|error| named(&error))?;
        // Some of the system's certificates are of unsupported kinds: they are skipped, as browsers do.
        let added = roots.add(certificate);
        if ca.is_some() {
            added.map_err(|error| named(&error))?;
        }
    }
    if roots.is_empty() {
        return Err(named(&"no certificate in it"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| named(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Any certificate is fine: for who sends nothing secret, and believes nothing of the answer but that there is one.
pub(super) fn trusting_any() -> Result<Arc<ClientConfig>, String> {
    let provider = ring::default_provider();
    let any = AnyCertificate(provider.signature_verification_algorithms);
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(any))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Takes each certificate, and each signature by it. The algorithms are those that are offered.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// True if the server has ended the connection because it demands a certificate of its clients.
pub(super) fn wants_certificate(error: &io::Error) -> bool {
    let alert = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    cause == Some(&alert)
}

/// The password in a file: its first line.
pub(super) fn password(path: &Path) -> Result<String, String> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("--password-file {}: {error}", path.display()))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Bytes both ways.
trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

/// An open connection.
pub(super) struct Connection(BufReader<Box<dyn Stream>>);

impl Connection {
    /// Writes a request.
    pub(super) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        let stream = self.0.get_mut();
        stream.write_all(request)?;
        stream.flush()
    }

    /// Reads a line, without its end. Errors: the server has closed the connection.
    pub(super) fn read_line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        let mut limited = (&mut self.0).take(LINE_MAX);
        match limited.read_until(b'\n', &mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(String::from_utf8_lossy(&line).trim_end().to_owned()),
        }
    }

    /// Reads so many bytes. Errors: the server has closed the connection before.
    pub(super) fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read_exact(bytes)
    }

    fn line(&mut self) -> Result<String, String> {
        self.read_line().map_err(lost)
    }

    fn say(&mut self, text: &str) -> Result<(), String> {
        self.send(text.as_bytes()).map_err(lost)
    }

    /// As for memcached's `-Y`: a set whose value is the name and the password.
    fn log_in(&mut self, name: &str, password: &str) -> Result<(), String> {
        let value = format!("{name} {password}");
        self.say(&format!("set login 0 0 {}\r\n{value}\r\n", value.len()))?;
        match self.line()?.as_str() {
            "STORED" => Ok(()),
            answer => Err(format!("the server does not admit {name}: {answer}")),
        }
    }

    /// The lines of an answer, without its end. An error's line is an answer without lines.
    pub(super) fn ask(&mut self, command: &str) -> Result<Vec<String>, String> {
        self.say(&format!("{command}\r\n"))?;
        let mut lines = Vec::new();
        loop {
            let line = self.line()?;
            match line.as_str() {
                "END" | "OK" | "RESET" => return Ok(lines),
                _ if line.starts_with("ERROR") || line.contains("_ERROR") => {
                    return match line.contains("unauthenticated") {
                        true => Err("the server wants a password: --user".to_owned()),
                        false => Ok(Vec::new()),
                    };
                }
                _ if lines.len() >= LINES_MAX => {
                    return Err("no server of memcached's protocol".to_owned());
                }
                _ => lines.push(line),
            }
        }
    }
}

/// What to say of a connection that has failed.
pub(super) fn lost(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => format!("the server: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_in_a_certificate_is_the_host() {
        for (server, name) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1:5", "127.0.0.1"),
            ("::1", "::1"),
            ("[::1]", "::1"),
            ("[::1]:5", "::1"),
            ("cache.example:5", "cache.example"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(host(server), name);
        }
    }
}
