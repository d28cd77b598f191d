//! Both directions and the bell, as one of the two processes has them.
//!
//! The bell is a pair of connected sockets, one for each process. A byte rings; the end of its stream tells that the other
//! process has gone, however it ended. Each process has a socket of its own, whose flags the other cannot change: an
//! eventfd would be one file for both, and a client that makes it full and blocking would stop the server's thread at it.
//!
//! One thread of a side may sleep at the bell while another one writes. So only reads rise and take rings out of the bell
//! (`sleep.rs`, invariants 2 and 3).

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nuthatch_base::memory::Mapped;

use crate::sleep::{Sleep, Want};
use crate::stream::{Consumer, Memory, Producer, words};
use crate::{Broken, Side};

/// Bytes that may be under way in each direction.
pub const BYTES: usize = 64 << 10;

/// Bytes read at once from a bell, and reads until its other side is taken for hostile: more than a socket holds.
const RINGS: usize = 1024;
const RINGS_MAX: usize = 1024;

/// One end of a ring pair. Reads and writes never wait; they fail with `WouldBlock`, and with `InvalidData` for good once
/// the other side has broken the protocol.
pub struct End {
    input: Consumer,
    output: Producer,
    sleep: Sleep,
    bell: UnixStream,
    /// It has asked to be woken, and has not read since: the other side may have rung.
    is_asleep: bool,
    is_broken: bool,
}

/// What the other process needs: [`End::of`] takes these descriptors.
pub struct Offer {
    /// The memory of both rings.
    pub memory: OwnedFd,
    /// Its side of the bell.
    pub bell: OwnedFd,
}

impl End {
    /// The server's end, with an offer for a client. Errors: there is no memory, or no descriptor.
    pub fn new() -> io::Result<(Self, Offer)> {
        let (memory, file) = Mapped::for_both(words(BYTES))?;
        let (own, other) = UnixStream::pair()?;
        let end = Self::at(Arc::new(memory), Side::Server, own)?;
        let (memory, bell) = (file, other.into());
        Ok((end, Offer { memory, bell }))
    }

    /// The client's end. Errors: the memory is no ring pair of this size.
    pub fn of(offer: Offer) -> io::Result<Self> {
        let memory = Mapped::of_both(&offer.memory, words(BYTES))?;
        Self::at(Arc::new(memory), Side::Client, offer.bell.into())
    }

    fn at(memory: Memory, side: Side, bell: UnixStream) -> io::Result<Self> {
        bell.set_nonblocking(true)?;
        Ok(Self {
            input: Consumer::new(Arc::clone(&memory), side),
            output: Producer::new(Arc::clone(&memory), side),
            sleep: Sleep::new(memory, side),
            bell,
            is_asleep: false,
            is_broken: false,
        })
    }

    /// The socket that is readable when the other side rings, or has gone.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// True if a read would find something, or the reason why it never will.
    #[inline]
    pub fn has_input(&self) -> bool {
        self.input.is_ready()
    }

    /// True if a write would find room, or the reason why it never will.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.output.is_ready()
    }

    /// From now on the other side rings for what it does. The caller looks behind this at what is there, and sleeps at
    /// its bell only if that is nothing.
    pub fn announce(&mut self, want: Want) {
        self.is_asleep = true;
        self.sleep.announce(want);
    }

    /// True if this side may sleep at its bell: nothing of what it wants is there, and the other side will ring.
    pub fn may_sleep(&mut self, want: Want) -> bool {
        self.announce(want);
        let has_some = self.has_input() || want == Want::BytesOrRoom && self.has_room();
        if has_some {
            self.wake();
        }
        !has_some
    }

    /// True if somebody of this side may sleep at the bell: since the last announcement it has not read.
    pub fn is_asleep(&self) -> bool {
        self.is_asleep
    }

    /// This side has woken: the other need not ring. The caller takes the rings out of the bell; reads do both by themselves.
    pub fn rise(&mut self) {
        self.is_asleep = false;
        self.sleep.rise();
    }

    #[cold]
    fn wake(&mut self) {
        self.rise();
        // One read, of one byte most often. What is more the next one finds; and the end, which is found again, too.
        let _ = (&self.bell).read(&mut [0; RINGS]);
    }

    /// Takes all bytes out of the bell. False if the other side has gone. Errors: it rings without end.
    fn silence(&self) -> io::Result<bool> {
        for _ in 0..RINGS_MAX {
            match (&self.bell).read(&mut [0; RINGS]) {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Err(broken(Broken))
    }

    /// Tells the other side that nothing more comes: once it has read all, it reads the end.
    pub fn finish(&self) -> io::Result<()> {
        self.bell.shutdown(Shutdown::Write)
    }

    /// The same, and this side reads the end, too: who sleeps at its bell wakes.
    pub fn shut_down(&self) -> io::Result<()> {
        self.bell.shutdown(Shutdown::Both)
    }

    /// What a read finds in an empty ring: the end of the stream if the other side has gone, and nothing if not.
    #[cold]
    fn read_empty(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.silence()? {
            return Err(ErrorKind::WouldBlock.into());
        }
        // What it wrote before it went is seen by now.
        let read = self.input.read(room);
        self.judge(read)
    }

    /// Why a write finds no room: the other side does not read, or has gone. The bell stays as it is.
    #[cold]
    fn write_full(&self) -> io::Error {
        let mut bells = [PollFd::new(self.bell(), PollFlags::empty())];
        match poll(&mut bells, PollTimeout::ZERO) {
            Ok(0) => ErrorKind::WouldBlock.into(),
            Ok(_) => ErrorKind::BrokenPipe.into(),
            Err(error) => error.into(),
        }
    }

    fn ring(&self) {
        // A bell that is full has rung, and that the other side has gone is found by the next read.
        let _ = (&self.bell).write(&[1]);
    }

    /// Errors: the other side broke the protocol before.
    #[inline]
    fn check(&self) -> io::Result<()> {
        match self.is_broken {
            false => Ok(()),
            true => Err(broken(Broken)),
        }
    }

    #[inline]
    fn judge(&mut self, result: Result<usize, Broken>) -> io::Result<usize> {
        self.is_broken |= result.is_err();
        result.map_err(broken)
    }

    /// Writes what there is room for of several pieces, as if they were one.
    fn write_pieces<B: AsRef<[u8]>>(&mut self, pieces: &[B]) -> io::Result<usize> {
        self.check()?;
        let written = self.output.write_all_of(pieces);
        match self.judge(written)? {
            0 if pieces.iter().all(|piece| piece.as_ref().is_empty()) => Ok(0),
            0 => Err(self.write_full()),
            count => {
                if self.sleep.is_due_for_bytes() {
                    self.ring();
                }
                Ok(count)
            }
        }
    }
}

impl Read for End {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        if self.is_asleep {
            self.wake();
        }
        let read = self.input.read(room);
        match self.judge(read)? {
            0 if room.is_empty() => Ok(0),
            0 => self.read_empty(room),
            count => {
                if self.sleep.is_due_for_room() {
                    self.ring();
                }
                Ok(count)
            }
        }
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_pieces(&[bytes])
    }

    fn write_vectored(&mut self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let mut parts = [[].as_slice(); 64];
        let count = pieces.len().min(parts.len());
        for (part, piece) in parts.iter_mut().zip(pieces) {
            *part = piece;
        }
        self.write_pieces(&parts[..count])
    }

    /// What was written is under way already.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cold]
fn broken(why: Broken) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unused_io_amount,
        reason = "what is moved is looked at behind it"
    )]

    use super::*;

    fn pair() -> (End, End) {
        let (server, offer) = End::new().unwrap();
        (server, End::of(offer).unwrap())
    }

    #[test]
    fn bytes_come_in_order_whatever_the_parts() {
        let (mut server, mut client) = pair();
        let sent: Vec<u8> = (0..300_000_u32)
            .map(|number| (number * 7 % 251) as u8)
            .collect();
        let (mut from, mut got) = (0, Vec::<u8>::new());
        let mut room = [0; 5003];
        while got.len() < sent.len() {
            let part = &sent[from..(from + 7919).min(sent.len())];
            from += client.write(part).unwrap_or(0);
            let count = server.read(&mut room).unwrap_or(0);
            got.extend(&room[..count]);
        }
        assert!(got == sent);
        assert_eq!(
            server
                .write_pieces(&[b"an".as_slice(), b"", b"swer"])
                .unwrap(),
            6
        );
        assert_eq!(client.read(&mut room).unwrap(), 6);
        assert_eq!(&room[..6], b"answer");
    }

    #[test]
    fn who_sleeps_is_woken_once_and_who_is_awake_is_not() {
        let (mut server, mut client) = pair();
        let rung = |end: &End| (&end.bell).read(&mut [0; 8]).unwrap_or(0);
        client.write(b"a").unwrap();
        assert_eq!(rung(&server), 0);
        assert!(!server.may_sleep(Want::Bytes), "a byte is there");
        server.read(&mut [0; 8]).unwrap();
        assert!(server.may_sleep(Want::Bytes));
        client.write(b"b").unwrap();
        client.write(b"c").unwrap();
        assert_eq!(rung(&server), 1);
        // Room alone wakes who waits for room.
        assert_eq!(client.write(&vec![0; 2 * BYTES]).unwrap(), BYTES - 2);
        assert!(client.may_sleep(Want::Bytes));
        server.read(&mut [0; 8]).unwrap();
        assert_eq!(rung(&client), 0);
        client.write(&[0; 8]).unwrap();
        assert!(client.may_sleep(Want::BytesOrRoom));
        server.read(&mut [0; 8]).unwrap();
        assert_eq!(rung(&client), 1);
    }

    /// Class of fault: a counter of the other process is believed.
    #[test]
    fn a_counter_that_cannot_be_true_is_the_end() {
        use nuthatch_base::sync::shim::{AtomicU64, Ordering};
        for lie in [1, 7, BYTES as u64 + 8, u64::MAX, 1 << 63] {
            let (mut server, offer) = End::new().unwrap();
            let file = offer.memory.try_clone().unwrap();
            let words = Mapped::<AtomicU64>::of_both(&file, words(BYTES)).unwrap();
            let mut client = End::of(offer).unwrap();
            client.write(&[1; 8]).unwrap();
            server.read(&mut [0; 4]).unwrap();
            let kind = |result: io::Result<usize>| result.unwrap_err().kind();
            words[0].store(lie, Ordering::Relaxed);
            assert_eq!(
                kind(server.read(&mut [0; 64])),
                io::ErrorKind::InvalidData,
                "{lie}"
            );
            // For good, in both directions.
            words[0].store(8, Ordering::Relaxed);
            assert_eq!(kind(server.write(b"x")), io::ErrorKind::InvalidData);
        }
        for lie in [1, 8, u64::MAX, 1 << 40] {
            let (mut server, offer) = End::new().unwrap();
            let words = Mapped::<AtomicU64>::of_both(&offer.memory, words(BYTES)).unwrap();
            words[3 * crate::APART].store(lie, Ordering::Relaxed);
            let error = server.write(b"x").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{lie}");
        }
    }

    #[test]
    fn other_memory_is_refused() {
        let (_, offer) = End::new().unwrap();
        let (_, hints) = Mapped::<nuthatch_base::sync::shim::AtomicU64>::for_both(64).unwrap();
        let swapped = Offer {
            memory: hints,
            ..offer
        };
        assert!(End::of(swapped).is_err());
    }

    #[test]
    fn who_has_gone_is_found_behind_its_last_bytes() {
        let (mut server, mut client) = pair();
        client.write_all(b"last").unwrap();
        // More rings than one read takes out.
        (0..300).for_each(|_| client.ring());
        drop(client);
        let mut got = Vec::new();
        server.read_to_end(&mut got).unwrap();
        assert_eq!(got, b"last");
        // Who has gone makes no room any more.
        let (mut server, client) = pair();
        assert_eq!(server.write(&vec![0; 2 * BYTES]).unwrap(), BYTES);
        let kind = |server: &mut End| server.write(b"x").unwrap_err().kind();
        assert_eq!(kind(&mut server), ErrorKind::WouldBlock);
        drop(client);
        assert_eq!(kind(&mut server), ErrorKind::BrokenPipe);
        let (server, mut client) = pair();
        server.finish().unwrap();
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }

    proptest::proptest! {
        #[test]
        fn parts_of_any_size_arrive(parts in proptest::collection::vec((0_usize..90_000, 0_usize..90_000), 1..40)) {
            let (mut server, mut client) = pair();
            let (mut next, mut expected) = (0_u8, 0_u8);
            let mut room = vec![0; 90_000];
            let mut waiting = 0;
            for (write, read) in parts {
                let part: Vec<u8> = (0..write).map(|at| next.wrapping_add(at as u8)).collect();
                let written = server.write(&part).unwrap_or(0);
                proptest::prop_assert_eq!(written, write.min(BYTES - waiting));
                next = next.wrapping_add(written as u8);
                waiting += written;
                let count = client.read(&mut room[..read]).unwrap_or(0);
                proptest::prop_assert_eq!(count, read.min(waiting));
                waiting -= count;
                for byte in &room[..count] {
                    proptest::prop_assert_eq!(*byte, expected);
                    expected = expected.wrapping_add(1);
                }
            }
        }
    }
}
