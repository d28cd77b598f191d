//! The unused input of a slice.

use nuthatch_protocol::resp::NO_TLS;

use crate::slice::Slice;
use crate::tls;

/// Unused input, and how much of it a step used.
pub struct RequestReader<'a> {
    pub input: &'a [u8],
    pub used: usize,
}

impl<'a> RequestReader<'a> {
    pub fn new(input: &'a [u8]) -> Self {
        Self { input, used: 0 }
    }

    #[inline]
    pub fn left(&self) -> &'a [u8] {
        &self.input[self.used..]
    }
}

/// True if the client uses TLS: then this refuses it and ends its connection.
#[cold]
pub fn refused_tls(slice: &mut Slice, reader: &mut RequestReader<'_>) -> bool {
    let speaks = tls::is_spoken(reader.left());
    if speaks {
        tls::refuse(slice, NO_TLS);
        reader.used = reader.input.len();
    }
    speaks
}
