//! The server's own certificates and key, as memcached (OpenSSL) reads them: whoever has made a certificate, no server
//! verifies its own. Clients do that.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use x509_cert::Certificate;
use x509_cert::der::{Decode, Encode};

use crate::error::SettingsError;
use crate::files;

/// The most bytes of a file of certificates or a key: the certificates of all authorities that browsers trust have a
/// hundredth of that.
const FILE_MAX: usize = 16 << 20;

/// The keys that ring signs with.
const KEYS: &str = "RSA of 2048 to 4096 bits, ECDSA with P-256 or P-384, and Ed25519";

/// A kind of keys that ring does not have.
struct OtherKind {
    name: &'static str,
    article: &'static str,
    /// The object identifier in such a key.
    identifier: &'static [u8],
    instead: &'static str,
}

const OTHER_KINDS: [OtherKind; 5] = [
    OtherKind::curve("P-521", &[0x06, 5, 0x2b, 0x81, 0x04, 0, 0x23]),
    OtherKind::curve("P-224", &[0x06, 5, 0x2b, 0x81, 0x04, 0, 0x21]),
    OtherKind::curve("secp256k1", &[0x06, 5, 0x2b, 0x81, 0x04, 0, 0x0a]),
    OtherKind {
        name: "Ed448",
        article: "an",
        identifier: &[0x06, 3, 0x2b, 0x65, 0x71],
        instead: "Ed25519",
    },
    OtherKind {
        name: "RSA-PSS",
        article: "an",
        identifier: b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a",
        instead: "RSA (`openssl genrsa`)",
    },
];

impl OtherKind {
    const fn curve(name: &'static str, identifier: &'static [u8]) -> Self {
        Self {
            name,
            article: "a",
            identifier,
            instead: "P-256 or P-384",
        }
    }
}

/// Why ring cannot use a key, public or private, if it is of a kind that this knows.
fn other_kind(der: &[u8]) -> Option<String> {
    let front = &der[..der.len().min(IDENTIFIER_WITHIN)];
    let mut kinds = OTHER_KINDS.iter();
    let kind = kinds.find(|kind| {
        let mut places = front.windows(kind.identifier.len());
        places.any(|at| at == kind.identifier)
    })?;
    let OtherKind {
        name,
        article,
        instead,
        ..
    } = kind;
    Some(format!(
        "{article} {name} key: ring has no {name}; use {instead}"
    ))
}

/// Why certificates of clients that this one has signed, or that are this one, are refused. `None` if they are not.
pub(crate) fn verifies_nobody(certificate: &CertificateDer<'_>) -> Option<String> {
    other_kind(&public_key(certificate)?)
}

/// A key's identifier is among so many bytes at its front.
const IDENTIFIER_WITHIN: usize = 128;

/// All certificates of a file, at least one.
pub(crate) fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let bytes = files::read(path, FILE_MAX).map_err(|error| SettingsError::file(path, error))?;
    let text = text(&bytes).map_err(|error| SettingsError::file(path, error))?;
    let found = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| SettingsError::file(path, cause(&error)))?;
    match found.is_empty() {
        true => Err(SettingsError::file(path, missing("certificate", text))),
        false => Ok(found),
    }
}

/// The first private key of a file, and a warning if everybody can read it.
pub(crate) fn private_key(
    path: &Path,
) -> Result<(Arc<dyn SigningKey>, Option<String>), SettingsError> {
    let bytes = files::read_secret(path, FILE_MAX, "private key");
    let (bytes, warning) = bytes.map_err(|error| SettingsError::file(path, error))?;
    let text = text(&bytes).map_err(|error| SettingsError::file(path, error))?;
    let key = match PrivateKeyDer::from_pem_slice(text) {
        Ok(key) => signing_key(key.secret_der()),
        Err(_) if is_encrypted(text) => {
            Err("the key is encrypted; `openssl pkey` writes it without a passphrase".to_owned())
        }
        Err(pem::Error::NoItemsFound) => Err(missing("private key", text)),
        Err(error) => Err(cause(&error)),
    };
    let key = key.map_err(|error| SettingsError::file(path, error))?;
    Ok((key, warning))
}

/// Reads a key. What its bytes are, they tell themselves: as OpenSSL, this goes by no label, since a wrong one is common.
fn signing_key(der: &[u8]) -> Result<Arc<dyn SigningKey>, String> {
    let readings = [
        PrivateKeyDer::Pkcs8(der.into()),
        PrivateKeyDer::Pkcs1(der.into()),
        PrivateKeyDer::Sec1(der.into()),
    ];
    let mut readings = readings.iter();
    let read = readings.find_map(|reading| any_supported_type(reading).ok());
    read.ok_or_else(|| {
        other_kind(der).unwrap_or_else(|| format!("no key that TLS has here: it has {KEYS}"))
    })
}

/// The chain with its key, which is from the file `key_path`. Errors: the first certificate is of another key.
pub(crate) fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: Arc<dyn SigningKey>,
    key_path: &Path,
) -> Result<Arc<CertifiedKey>, String> {
    let certified = CertifiedKey::new(chain, key);
    let has_key = match certified.keys_match() {
        Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch)) => false,
        // The library cannot read every certificate (version 1, say) that OpenSSL makes and serves.
        Err(rustls::Error::InvalidCertificate(_)) => {
            let public =
                public_key(&certified.cert[0]).ok_or("its first certificate is damaged")?;
            let expected = certified.key.public_key();
            expected.is_none_or(|expected| *expected == *public)
        }
        _ => true,
    };
    has_key.then(|| Arc::new(certified)).ok_or_else(|| {
        let key = key_path.display();
        format!("its first certificate does not belong to the key in {key}")
    })
}

fn public_key(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let read = Certificate::from_der(certificate).ok()?;
    let public = read.tbs_certificate.subject_public_key_info;
    public.to_der().ok()
}

/// The text of a file in PEM, without the byte-order mark that some editors write in front.
fn text(bytes: &[u8]) -> Result<&[u8], &'static str> {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err("UTF-16, and PEM is ASCII"),
        // A sequence of ASN.1.
        [0x30, length, ..] if *length >= 0x80 => Err("DER, and PEM is expected"),
        _ => Ok(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)),
    }
}

/// Why a file in PEM cannot be read.
fn cause(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { end_marker } => {
            let label = String::from_utf8_lossy(end_marker);
            format!("cut off: a line -----END {label}----- is missing")
        }
        // Not what is in the line.
        pem::Error::IllegalSectionStart { .. } => "a line -----BEGIN …----- is damaged".to_owned(),
        error => error.to_string(),
    }
}

/// The most labels that an error names.
const LABELS_MAX: usize = 3;

/// The error of a file without what is looked for: names what it has instead.
fn missing(what: &str, text: &[u8]) -> String {
    let labels = text.split(|&byte| byte == b'\n').filter_map(|line| {
        let label = line.trim_ascii().strip_prefix(b"-----BEGIN ")?;
        let label = str::from_utf8(label.strip_suffix(b"-----")?).ok()?;
        let is_label =
            |byte: u8| byte == b' ' || byte.is_ascii_uppercase() || byte.is_ascii_digit();
        label.bytes().all(is_label).then_some(label)
    });
    let labels: Vec<&str> = labels.take(LABELS_MAX).collect();
    match labels.is_empty() {
        true => format!("no {what}"),
        false => format!("no {what}, but: {}", labels.join(", ")),
    }
}

fn is_encrypted(text: &[u8]) -> bool {
    let word = b"ENCRYPTED";
    text.windows(word.len()).any(|at| at == word)
}
