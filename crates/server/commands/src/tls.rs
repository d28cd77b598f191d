//! Clients that use TLS on a port without it.

use crate::turn::Turn;

/// The first byte of a client that uses TLS: a handshake. No text command begins with it.
pub const HANDSHAKE: u8 = 0x16;

/// True if the input is the beginning of TLS: a handshake, and the first byte of its version.
#[cold]
pub fn is_spoken(front: &[u8]) -> bool {
    front.starts_with(&[HANDSHAKE, 3])
}

/// Refuses TLS with this text, and ends the connection: otherwise the client would wait for an answer by TLS, and a
/// text parser for the end of a line.
#[cold]
pub fn refuse(turn: &mut Turn, words: &[u8]) {
    turn.output.text().extend_from_slice(words);
    turn.closing = true;
}
