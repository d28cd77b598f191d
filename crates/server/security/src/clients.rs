//! The verification of clients' certificates.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::ext::pkix::ExtendedKeyUsage;

use crate::validity;

/// The purpose of a client's certificate, if it says what it is for.
const CLIENT: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");

/// A verifier that also takes a client's certificate which signs itself, and is trusted itself, whether or not it is
/// that of an authority, as OpenSSL does: `openssl req -x509` makes such. Whoever has its key could sign any other.
#[derive(Debug)]
pub(crate) struct Trusting {
    pub(crate) chains: Arc<dyn ClientCertVerifier>,
    pub(crate) trusted: Vec<CertificateDer<'static>>,
}

impl ClientCertVerifier for Trusting {
    fn offer_client_auth(&self) -> bool {
        self.chains.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.chains.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chains.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.chains.verify_client_cert(certificate, others, now);
        let is_trusted = || self.trusted.contains(certificate);
        match verified {
            Err(_) if is_trusted() && signs_itself_for_clients(certificate, now) => {
                Ok(ClientCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// True if the certificate is its own issuer's, valid now, and for no other purpose than a client's. That it is trusted
/// stands for the check of its signature.
fn signs_itself_for_clients(certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
    let Ok(read) = Certificate::from_der(certificate) else {
        return false;
    };
    let is_for_clients = match read.tbs_certificate.get::<ExtendedKeyUsage>() {
        Ok(None) => true,
        Ok(Some((_, ExtendedKeyUsage(purposes)))) => purposes.contains(&CLIENT),
        Err(_) => false,
    };
    let valid = validity::of_all(std::slice::from_ref(certificate));
    read.tbs_certificate.issuer == read.tbs_certificate.subject
        && is_for_clients
        && valid.is_some_and(|valid| valid.contains(&now.as_secs()))
}
