//! Cipher suites by their names, as OpenSSL and IANA write them.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

use rustls::SupportedCipherSuite;
use rustls::crypto::ring::ALL_CIPHER_SUITES;

/// A list of cipher suites (`ssl_ciphers`): of TLS 1.2, of 1.3, or of both. If the list names no suite of a version,
/// that version keeps all of its suites, as with memcached, whose list is for 1.2.
#[derive(Clone, Debug, PartialEq)]
pub struct Ciphers(Vec<SupportedCipherSuite>);

/// Suites are equal if they have the same number.
impl Eq for Ciphers {}

impl Ciphers {
    /// Parses names with colons between. Errors: an unknown name, because the purpose of a list is to exclude the
    /// others.
    pub fn parse(names: &str) -> Result<Self, UnknownCipher> {
        let find = |name: &str| {
            let mut all = ALL_CIPHER_SUITES.iter();
            let found = all.find(|suite| iana(suite) == name || openssl(suite) == name);
            found.ok_or_else(|| UnknownCipher(name.to_owned())).copied()
        };
        names
            .split(':')
            .map(find)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Those of `suites` that the list allows.
    pub fn of(&self, suites: &[SupportedCipherSuite]) -> Vec<SupportedCipherSuite> {
        let names_version_of = |suite: &SupportedCipherSuite| {
            let mut named = self.0.iter();
            named.any(|named| named.version() == suite.version())
        };
        let is_let =
            |suite: &&SupportedCipherSuite| self.0.contains(suite) || !names_version_of(suite);
        suites.iter().filter(is_let).copied().collect()
    }
}

impl Display for Ciphers {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(openssl).collect();
        out.write_str(&names.join(":"))
    }
}

/// A name that is no cipher suite's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCipher(String);

impl Display for UnknownCipher {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let known: Vec<String> = ALL_CIPHER_SUITES.iter().map(openssl).collect();
        let Self(name) = self;
        write!(out, "there is no `{name}`; there are {}", known.join(", "))
    }
}

impl Error for UnknownCipher {}

/// IANA's name: `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`, `TLS_AES_128_GCM_SHA256`.
fn iana(suite: &SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    // The library's names for 1.3 have another prefix.
    name.replacen("TLS13_", "TLS_", 1)
}

/// OpenSSL's name: `ECDHE-RSA-AES128-GCM-SHA256`, `TLS_AES_128_GCM_SHA256`.
fn openssl(suite: &SupportedCipherSuite) -> String {
    let name = iana(suite);
    let Some((exchange, cipher)) = name.split_once("_WITH_") else {
        return name;
    };
    let exchange = exchange.trim_start_matches("TLS_").replace('_', "-");
    let cipher = cipher
        .replace("AES_", "AES")
        .replace("POLY1305_SHA256", "POLY1305");
    format!("{exchange}-{}", cipher.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_the_names_of_openssl_and_iana() {
        let list = "ECDHE-RSA-AES128-GCM-SHA256:TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
        let ciphers = Ciphers::parse(list).unwrap();
        assert_eq!(
            ciphers.to_string(),
            "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305"
        );
        for wrong in ["", "HIGH", "ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA"] {
            assert!(Ciphers::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_version_of_which_none_is_named_keeps_its_own() {
        let let_by = |list| Ciphers::parse(list).unwrap().of(ALL_CIPHER_SUITES).len();
        let of_1_3 = ALL_CIPHER_SUITES
            .iter()
            .filter(|suite| suite.tls13().is_some());
        let (of_1_3, all) = (of_1_3.count(), ALL_CIPHER_SUITES.len());
        assert_eq!(let_by("ECDHE-RSA-AES128-GCM-SHA256"), 1 + of_1_3);
        assert_eq!(let_by("TLS_AES_256_GCM_SHA384"), all - of_1_3 + 1);
        assert_eq!(
            let_by("TLS_AES_256_GCM_SHA384:ECDHE-RSA-AES256-GCM-SHA384"),
            2
        );
    }
}
