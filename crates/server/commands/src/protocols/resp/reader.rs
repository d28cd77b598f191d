//! The unused input of a turn.

use nuthatch_resp::NO_TLS;

use crate::tls;
use crate::turn::Turn;

/// Unused input, and how much of it a step used.
pub struct RequestReader<'a> {
    pub input: &'a [u8],
    pub used: usize,
    /// What it used was no request: an empty line, or a request of no words.
    pub was_nothing: bool,
}

impl<'a> RequestReader<'a> {
    pub fn new(input: &'a [u8]) -> Self {
        Self {
            input,
            used: 0,
            was_nothing: false,
        }
    }

    /// What lies in front is no request, and as long as this.
    pub fn pass_nothing(&mut self, consumed: usize) -> usize {
        self.was_nothing = true;
        consumed
    }

    #[inline]
    pub fn left(&self) -> &'a [u8] {
        &self.input[self.used..]
    }
}

/// True if the client uses TLS: then this refuses it and ends its connection.
#[cold]
pub fn refused_tls(turn: &mut Turn, reader: &mut RequestReader<'_>) -> bool {
    let speaks = tls::is_spoken(reader.left());
    if speaks {
        tls::refuse(turn, NO_TLS);
        reader.used = reader.input.len();
    }
    speaks
}
