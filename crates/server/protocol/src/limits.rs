//! What a server does not take.

/// The server's limits that a parser needs.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest value that the server accepts, in bytes.
    pub value_max: usize,
}
