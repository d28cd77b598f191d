//! Authentication and encryption: passwords and a bound on guesses, certificates and TLS.
//!
//! * [`passwords`]: names and passwords of a file, looked up in a time that does not tell how much of one is right.
//! * [`guesses`]: how many wrong passwords a peer may try; [`login`]: and a connection.
//! * [`failures`]: what of many failures is told in the log.
//! * [`tls`]: certificates, which can be read again, and a connection's session; [`ciphers`]: how it may be encrypted.

pub mod ciphers;
mod error;
pub mod failures;
mod files;
pub mod guesses;
pub mod login;
pub mod passwords;
pub mod tls;
mod validity;

pub use error::SettingsError;
