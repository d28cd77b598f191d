//! How far a connection's client has come in saying who it is.

/// Wrong passwords, and requests of those who have given none, after which a connection is closed.
const ERRORS_MAX: u8 = 8;

/// What a client that is to log in has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Login {
    errors: u8,
}

impl Login {
    /// Counts an error. True if it was the last that is borne.
    pub fn is_enough(&mut self) -> bool {
        self.errors += 1;
        self.errors >= ERRORS_MAX
    }
}
