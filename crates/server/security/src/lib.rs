//! Authentication and encryption: passwords and a bound on guesses, certificates and TLS.
//!
//! * [`passwords`]: names and passwords of a file, looked up in a time that does not reveal how much of a guess is
//!   right.
//! * [`guesses`]: how many wrong passwords a peer may try; [`login`]: how many a connection may.
//! * [`tls`]: certificates, which can be read again, and a connection's session; `certificates`: the server's own, and
//!   its key; `clients`: how those of clients are verified; [`ciphers`]: the allowed cipher suites.

mod certificates;
pub mod ciphers;
mod clients;
mod error;
mod files;
pub mod guesses;
pub mod login;
pub mod passwords;
pub mod tls;
mod validity;

pub use error::SettingsError;
