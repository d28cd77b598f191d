//! The login of a connection's client: counts its errors.

/// The number of wrong passwords, and of requests without a login, after which a connection is closed.
const ERRORS_MAX: u8 = 8;

/// The errors so far of a client that has to log in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Login {
    errors: u8,
}

impl Login {
    /// Counts an error. True if it was the last one allowed.
    pub fn is_enough(&mut self) -> bool {
        self.errors += 1;
        self.errors >= ERRORS_MAX
    }
}
