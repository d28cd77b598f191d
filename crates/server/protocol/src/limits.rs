//! What a server does not take.

use crate::key::KEY_LEN_MAX;

/// The server's limits that a parser needs.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest value that the server accepts, in bytes.
    pub value_max: usize,
    /// The longest key that it accepts of Redis' clients, in bytes. memcached's clients have [`KEY_LEN_MAX`].
    pub key_max: usize,
}

impl Limits {
    /// Limits with memcached's keys for all.
    pub const fn of_values(value_max: usize) -> Self {
        Self {
            value_max,
            key_max: KEY_LEN_MAX,
        }
    }
}
