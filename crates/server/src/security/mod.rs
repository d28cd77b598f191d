//! Authentication and encryption of the server's connections.
//!
//! * [`passwords`]: names and passwords, from a file.
//! * [`failures`]: what the log tells of clients that are refused.
//! * [`guesses`]: how many passwords a peer may try.
//! * [`login`]: how far a connection's client has come with its login.
//! * [`tls`]: certificates and sessions.

pub(crate) mod failures;
pub(crate) mod guesses;
pub(crate) mod login;
pub(crate) mod passwords;
pub(crate) mod tls;
