//! Doors for the fuzz targets, which are in no other build than theirs and that of the tests.
//!
//! * [`session`]: any bytes from a client, in any pieces, through a worker of its own.
//! * [`successor`]: any bytes from a server that hands over.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown as Half;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::{io, mem};

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use nuthatch_engine::{AnyEngine, Clock};
use nuthatch_settings::config::{Config, Protocol};
use nuthatch_state::shutdown::Shutdown;

use crate::handover::HELLO;
use crate::handover::taking::Successor;
use crate::worker::alone::Alone;

/// More turns than any input needs.
const TURNS_MAX: usize = 1 << 20;

/// The pieces of an input are so many at most, about.
const PIECES_MAX: usize = 128;

/// How often two conversations may differ because time passed in one and not in the other.
const CHANCES: usize = 8;

/// Bytes of answers that the client takes at a time.
const ROOM: usize = 64 << 10;

/// Bytes that a connection's buffers may hold beside what the account allows: one read, one answer, its output.
const BESIDE: usize = 4 << 20;

/// Has a client of Redis' protocol say `input`, in one piece and in pieces of which `cuts` tells the lengths. The
/// answers are the same, the client makes the server hold no more than it may, and nothing of it is left.
pub fn session(input: &[u8], cuts: &[u8], engine: &dyn Fn() -> Arc<AnyEngine>) {
    let mut pieces = Vec::new();
    let mut left = input;
    let mut lengths = cuts.iter().cycle();
    while !left.is_empty() {
        let len = lengths.next().map_or(0, |&len| usize::from(len)).max(1);
        let len = len + input.len() / PIECES_MAX;
        let (piece, behind) = left.split_at(len.min(left.len()));
        pieces.push(piece);
        left = behind;
    }
    for chance in 1.. {
        let (whole, cut) = (converse(&[input], engine()), converse(&pieces, engine()));
        if whole == cut {
            return;
        }
        assert!(
            chance < CHANCES,
            "{input:?}\nin pieces {cuts:?}\nis answered\n{}\nand in one\n{}",
            cut.escape_ascii(),
            whole.escape_ascii()
        );
    }
}

/// The answers to these pieces, with all numbers as one digit: times, and what counts bytes or calls, may differ.
fn converse(pieces: &[&[u8]], engine: Arc<AnyEngine>) -> Vec<u8> {
    let mut talk = Talk::begin(engine).unwrap();
    for piece in pieces {
        talk.send(piece).unwrap();
    }
    let answers = talk.end().unwrap();
    let mut shown = Vec::new();
    for byte in answers {
        let digit = if byte.is_ascii_digit() { b'0' } else { byte };
        if digit != b'0' || shown.last() != Some(&b'0') {
            shown.push(digit);
        }
    }
    shown
}

/// A client, and the worker that serves it, by turns in one thread.
struct Talk {
    served: Alone,
    client: UnixStream,
    answers: Vec<u8>,
    room: Vec<u8>,
    /// The server has closed, or the client.
    over: bool,
}

impl Talk {
    fn begin(engine: Arc<AnyEngine>) -> io::Result<Self> {
        let config = Config {
            connections_max: const { NonZeroUsize::new(1).unwrap() },
            ..Config::default()
        };
        let served = Alone::start(config, engine, Vec::new())?;
        Ok(Self {
            client: served.connect(Protocol::Redis)?,
            served,
            answers: Vec::new(),
            room: vec![0; ROOM],
            over: false,
        })
    }

    /// Sends bytes, and takes the answers.
    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() && !self.over {
            match self.client.write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // It closed.
                Err(_) => self.over = true,
            }
            self.receive()?;
        }
        Ok(())
    }

    /// Takes answers until the worker has nothing to do.
    fn receive(&mut self) -> io::Result<()> {
        for _ in 0..TURNS_MAX {
            let mut more = self.served.turn()?;
            let (held, bound) = (
                self.served.memory(),
                self.served.shared.accounts.buffers.bound(),
            );
            assert!(held <= bound + BESIDE, "it holds {held} bytes");
            match self.client.read(&mut self.room) {
                Ok(0) => self.over = true,
                Ok(count) => {
                    self.answers.extend_from_slice(&self.room[..count]);
                    more = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.over = true,
            }
            if !more {
                return Ok(());
            }
        }
        panic!("it goes on for ever");
    }

    /// Sends the end, and takes the last answers. Nothing is left of the client.
    fn end(mut self) -> io::Result<Vec<u8>> {
        // It may have closed.
        let _ = self.client.shutdown(Half::Write);
        self.receive()?;
        assert!(
            self.over,
            "the server has received the end and does not close"
        );
        let (gone, _) = UnixStream::pair()?;
        drop(mem::replace(&mut self.client, gone));
        self.receive()?;
        let shared = &self.served.shared;
        assert_eq!(self.served.memory(), 0);
        assert_eq!(shared.accounts.buffers.held(), 0);
        assert_eq!(shared.accounts.uploads.reserved(), 0);
        assert_eq!(shared.connections(), 0);
        let nobody = |_: &_| panic!("it is still registered");
        assert_eq!(shared.telemetry.registry.some(0, usize::MAX, nobody), None);
        Ok(self.answers)
    }
}

/// Has a successor receive `input` from the server that is to hand over. Each message comes with as many descriptors as
/// the next of `descriptors` says, up to seven. Nothing of them is left.
pub fn successor(input: &[u8], descriptors: &[u8], engine: &Arc<AnyEngine>) {
    let (mut kept, passed) = UnixStream::pair().unwrap();
    kept.set_nonblocking(true).unwrap();
    // Errors are the rule.
    let _ = hand_over(input, descriptors, passed, engine);
    let read = kept.read(&mut [0]);
    assert_eq!(read.ok(), Some(0), "a descriptor is still open");
}

fn hand_over(
    input: &[u8],
    descriptors: &[u8],
    passed: UnixStream,
    engine: &Arc<AnyEngine>,
) -> io::Result<()> {
    let (server, stream) = UnixStream::pair()?;
    let mut counts = descriptors.iter().map(|&count| usize::from(count % 8));
    let mut left = input;
    while let Some(length) = left.first_chunk::<4>() {
        let len = u32::from_le_bytes(*length) as usize;
        let (message, behind) = left.split_at(left.len().min(len.saturating_add(4)));
        send(&server, message, &passed, counts.next().unwrap_or_default())?;
        left = behind;
    }
    send(&server, left, &passed, 0)?;
    drop(passed);
    server.shutdown(Half::Write)?;
    let shutdown = Shutdown::default();
    let successor = Successor::receive(stream, Path::new("a successor"), HELLO, &shutdown)?;
    let clock = Clock::start();
    let mut go_on = || ControlFlow::Continue(());
    successor.take_over(engine, &clock, &mut go_on, &shutdown)?;
    Ok(())
}

/// Sends bytes, and with them so many descriptors of what is passed.
fn send(socket: &UnixStream, bytes: &[u8], passed: &UnixStream, count: usize) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let descriptors = vec![passed.as_raw_fd(); count];
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let rights = if count == 0 { &[][..] } else { &rights };
    let pieces = [io::IoSlice::new(bytes)];
    // What has no room in the socket is not sent: few inputs are so long.
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(socket.as_raw_fd(), &pieces, rights, flags, None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_check::naive::{Naive, Options};
    use nuthatch_engine::Engine;

    fn engine() -> Arc<AnyEngine> {
        let options = Options {
            memory_limit: 1 << 20,
            memory_limit_max: 1 << 20,
            ..Options::default()
        };
        Naive::new(options).any()
    }

    #[test]
    fn sessions_are_the_same_in_any_pieces() {
        let long = "v".repeat(40_000);
        let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$40000\r\n{long}\r\n");
        let eval = "return redis.call('get', KEYS[1])";
        let eval = format!(
            "*4\r\n$4\r\nEVAL\r\n${}\r\n{eval}\r\n$1\r\n1\r\n$1\r\nk\r\n",
            eval.len()
        );
        for input in [
            "WATCH k\r\nMULTI\r\nSET k v\r\nGET k\r\nEXEC\r\nGET k\r\n".to_owned(),
            "CLIENT REPLY OFF\r\nSET k v\r\nCLIENT REPLY ON\r\nGET k\r\nCLIENT REPLY SKIP\r\nGET k\r\n".to_owned(),
            format!("HELLO 3\r\n{set}MULTI\r\n{set}{eval}EXEC\r\n{eval}GET k\r\nQUIT\r\n"),
            "MULTI\r\nnonsense\r\nEXEC\r\nDISCARD\r\nSCAN 0\r\nINFO\r\nRESET\r\n".to_owned(),
            format!("MULTI\r\n{}", &set[..20_000]),
            "*1\r\n$-7\r\n".to_owned(),
        ] {
            for cuts in [&[0][..], &[1, 7, 3], &[255]] {
                session(input.as_bytes(), cuts, &engine);
            }
        }
    }

    #[test]
    fn what_a_server_hands_over_leaves_no_descriptor() {
        let message = |text: &str| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
        let whole: Vec<u8> = ["socket control", "lock /a", "alive", "end"]
            .map(message)
            .concat();
        for descriptors in [&[][..], &[1, 1, 1], &[4, 2, 1], &[7], &[0, 1]] {
            for end in 0..=whole.len() {
                successor(&whole[..end], descriptors, &engine());
            }
        }
    }
}
