//! Memory of an engine that other processes read, and the two messages by which they get it.
//!
//! ```text
//!  a reader                                     the engine's process, at a unix socket
//!   "nuthatch", version (u32), 0 (u32)  ---->   (version 1: reads; 2: and asks for a ring pair)
//!                                       <----   "nuthatch", outcome (u32), bytes of text (u32), text (112);
//!                                               if it is welcome, with the descriptors of the file and of its hints,
//!                                               and in version 2 of the memory of the ring pair and of its bell
//!                                               ... nothing more; the socket is open while both are there
//! ```
//!
//! Numbers are little-endian. Nobody sends anything else.

use std::sync::Arc;

use nuthatch_base::memory::shared::SharedFile;
use nuthatch_base::sync::clock::Clock;

use crate::namespace::Namespace;

/// The memory of an engine, as far as other processes may read it. What lies in it is between the engine and its readers.
pub trait Sharing: Send + Sync {
    /// The file, whose size and content no other process can change.
    fn file(&self) -> &Arc<SharedFile>;

    /// From now on readers may believe what they find, with lifetimes that this clock counts. If the items are copies of
    /// others', an item that is not there may be elsewhere.
    fn begin(&self, clock: &Clock, holds_copies: bool);

    /// From now on readers look up keys of this namespace: database 0 has it.
    fn set_namespace(&self, namespace: Namespace);

    /// From now on they may not: the process ends, or another takes its place.
    fn end(&self);
}

/// What both messages begin with.
const MAGIC: &[u8; 8] = b"nuthatch";

/// What a process asks for. The number is the version of the messages. (The memory has one of its own.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// To read.
    Reads = 1,
    /// To read, and a ring pair for commands.
    Ring = 2,
}

/// Bytes of a reader's message.
pub const HELLO_BYTES: usize = 16;

/// Bytes of the answer.
pub const WELCOME_BYTES: usize = 128;

/// Bytes of an answer in front of its text.
const HEAD: usize = 16;

/// The message of a reader.
pub fn hello(asks: Asks) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&(asks as u32).to_le_bytes());
    bytes
}

/// What the message asks for, if it is one of these versions. Errors: why it is refused.
pub fn check_hello(bytes: &[u8; HELLO_BYTES]) -> Result<Asks, &'static str> {
    if bytes[..8] != *MAGIC || bytes[12..] != [0; 4] {
        return Err("this is the socket of nuthatch's shared memory, which has its own protocol");
    }
    match number(bytes, 8) {
        1 => Ok(Asks::Reads),
        2 => Ok(Asks::Ring),
        _ => Err("this server talks to its readers in another version"),
    }
}

/// The answer to a reader that is welcome, or why it is not (at most 112 bytes of it).
pub fn answer(refusal: Option<&str>) -> [u8; WELCOME_BYTES] {
    let mut bytes = [0; WELCOME_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    let text = refusal.unwrap_or_default();
    let end = (0..=text.len().min(WELCOME_BYTES - HEAD)).rfind(|&end| text.is_char_boundary(end));
    let text = &text[..end.unwrap_or(0)];
    bytes[8..12].copy_from_slice(&u32::from(refusal.is_some()).to_le_bytes());
    bytes[12..HEAD].copy_from_slice(&(text.len() as u32).to_le_bytes());
    bytes[HEAD..HEAD + text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// `Ok` if an answer is a welcome. Errors: the refusal, in the server's words; the other side is no such server.
pub fn check_answer(bytes: &[u8; WELCOME_BYTES]) -> Result<(), String> {
    let text = bytes[HEAD..].get(..number(bytes, 12) as usize);
    match (bytes[..8] == *MAGIC, number(bytes, 8), text) {
        (true, 0, Some([])) => Ok(()),
        (true, 1, Some(text)) => Err(String::from_utf8_lossy(text).into_owned()),
        _ => Err("no server that shares its memory listens there".to_owned()),
    }
}

/// The number of 32 bits that begins at a byte.
fn number(bytes: &[u8], at: usize) -> u32 {
    let word = bytes[at..].first_chunk().expect("inside of a message");
    u32::from_le_bytes(*word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_this_version_are_understood_and_others_refused() {
        assert_eq!(check_hello(&hello(Asks::Ring)), Ok(Asks::Ring));
        assert_eq!(check_hello(&hello(Asks::Reads)), Ok(Asks::Reads));
        for at in 0..HELLO_BYTES {
            let mut bytes = hello(Asks::Ring);
            bytes[at] ^= 0x10;
            assert!(check_hello(&bytes).is_err(), "byte {at}");
        }
        assert_eq!(check_answer(&answer(None)), Ok(()));
        assert_eq!(check_answer(&answer(Some("no"))), Err("no".to_owned()));
        let long = "ä".repeat(100);
        assert_eq!(
            check_answer(&answer(Some(&long))).unwrap_err(),
            "ä".repeat(56)
        );
        for at in [0, 7, 8, 11, 12, 15] {
            let mut bytes = answer(None);
            bytes[at] ^= 0x82;
            assert!(check_answer(&bytes).is_err(), "byte {at}");
        }
    }
}
