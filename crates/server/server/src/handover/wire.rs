//! Messages of a handover over a unix socket: a length of 32 bits and that many bytes of text. Some messages carry a
//! descriptor.

use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, recvmsg, sendmsg};
use nuthatch_state::shutdown::Shutdown;

use super::{PATIENCE, RATE};
use crate::sys::{passing, peer};

/// The longest message: a path has 4096 bytes at most.
const MESSAGE_MAX: usize = 8 << 10;

/// The most descriptors that the kernel passes with one message.
const DESCRIPTORS_MAX: usize = 253;

/// Bytes of items under way that the kernel may buffer.
const KERNEL_BUFFER: usize = 4 << 20;

/// How often a side that waits checks whether it is to stop.
const STEP: Duration = Duration::from_millis(50);

/// One end of a conversation. It waits for the other end with a patience that runs out, and breaks off if its own
/// server is to stop.
///
/// Each wait takes from what is left of the patience, and bytes that go through give back what they need at [`RATE`],
/// up to all of the patience. So the other side may be silent for so long at most, and all waits together last the
/// patience and the time of all bytes at that rate at most, whether the other side is silent, slow, or both in turn.
pub(super) struct Wire {
    stream: UnixStream,
    shutdown: Shutdown,
    patience: Cell<Duration>,
    left: Cell<Duration>,
    /// False once the two sides are agreed: then the conversation ends as agreed, even if the server is to stop.
    may_stop: Cell<bool>,
}

impl Wire {
    /// Errors: the other end is a process of another user.
    pub(super) fn new(stream: UnixStream, shutdown: Shutdown) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // With a large buffer the two sides wait for each other less often. The kernel may allow a smaller one.
        let _ = socket2::SockRef::from(&stream).set_send_buffer_size(KERNEL_BUFFER);
        let (peer, me) = (peer::user(&stream)?, nix::unistd::geteuid());
        if peer != me.as_raw() && peer != 0 {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("the other side is a process of the user {peer}"),
            ));
        }
        Ok(Self {
            stream,
            shutdown,
            patience: Cell::new(PATIENCE),
            left: Cell::new(PATIENCE),
            may_stop: Cell::new(true),
        })
    }

    /// From here on it waits so long.
    pub(super) fn set_patience(&self, patience: Duration) {
        self.patience.set(patience);
        self.left.set(patience);
    }

    /// The two sides are agreed.
    pub(super) fn agree(&self) {
        self.may_stop.set(false);
    }

    /// Errors: this server is to stop.
    fn go_on(&self) -> io::Result<()> {
        match self.may_stop.get() && self.shutdown.is_requested() {
            // Not `Interrupted`, after which a reader or a writer tries again.
            true => Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "this server is to stop",
            )),
            false => Ok(()),
        }
    }

    /// Waits until the stream is ready. Errors: the patience is over, or this server is to stop.
    fn wait(&self, events: PollFlags) -> io::Result<()> {
        loop {
            self.go_on()?;
            let left = self.left.get();
            if left.is_zero() {
                let words = format!(
                    "the other side was silent, or too slow, for {} s",
                    self.patience.get().as_secs()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, words));
            }
            // Rounded up, so that the rest of a millisecond is not waited for in a busy loop.
            let millis = left.min(STEP).as_micros().div_ceil(1000) as u16;
            let begun = Instant::now();
            let polled = poll(
                &mut [PollFd::new(self.stream.as_fd(), events)],
                PollTimeout::from(millis),
            );
            self.left.set(left.saturating_sub(begun.elapsed()));
            match polled {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Repeats a call until it neither would block nor is interrupted. It returns how many bytes went through.
    fn until_done<T>(
        &self,
        events: PollFlags,
        mut call: impl FnMut() -> io::Result<(usize, T)>,
    ) -> io::Result<(usize, T)> {
        loop {
            self.go_on()?;
            match call() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(events)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok((bytes, with)) => {
                    let more = Duration::from_secs_f64(bytes as f64 / RATE as f64);
                    self.left
                        .set((self.left.get() + more).min(self.patience.get()));
                    return Ok((bytes, with));
                }
            }
        }
    }

    /// Sends a message, and a descriptor with it.
    pub(super) fn send(&self, text: &str, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let message = [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
        let descriptors: Vec<RawFd> = descriptor.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&descriptors)];
        let rights = if descriptors.is_empty() {
            &[][..]
        } else {
            &rights
        };
        let pieces = [IoSlice::new(&message)];
        let (socket, flags) = (self.stream.as_raw_fd(), passing::SENDING);
        let (sent, ()) = self.until_done(PollFlags::POLLOUT, || {
            Ok((sendmsg::<()>(socket, &pieces, rights, flags, None)?, ()))
        })?;
        // The descriptor went with the first bytes.
        let mut rest = self;
        rest.write_all(&message[sent..])
    }

    /// The next message.
    pub(super) fn receive(&self) -> io::Result<(String, Option<OwnedFd>)> {
        let mut length = [0; 4];
        let (count, descriptor) = self.begin(&mut length)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut rest = self;
        rest.read_exact(&mut length[count..])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MESSAGE_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "no message of a handover",
            ));
        }
        let mut text = vec![0; length];
        rest.read_exact(&mut text)?;
        let text = String::from_utf8(text);
        Ok((
            text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?,
            descriptor,
        ))
    }

    /// Reads the first bytes of a message, and the descriptor that came with them.
    fn begin(&self, room: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
        // If there were room for fewer than come, those that do come would have no owner.
        let mut space = cmsg_space!([RawFd; DESCRIPTORS_MAX]);
        let mut pieces = [IoSliceMut::new(room)];
        let (socket, flags) = (self.stream.as_raw_fd(), passing::RECEIVING);
        let (bytes, came) = self.until_done(PollFlags::POLLIN, || {
            let received = recvmsg::<()>(socket, &mut pieces, Some(&mut space), flags)?;
            Ok((received.bytes, received.cmsgs()?.collect::<Vec<_>>()))
        })?;
        let mut descriptors = Vec::new();
        for message in came {
            if let ControlMessageOwned::ScmRights(came) = message {
                // SAFETY: the kernel has just made these descriptors for this process, and no other code knows them.
                descriptors.extend(
                    came.into_iter()
                        .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
                );
            }
        }
        descriptors.iter().try_for_each(passing::settle)?;
        Ok((bytes, descriptors.pop()))
    }

    /// Receives this message. Errors: another message came.
    pub(super) fn expect(&self, text: &str) -> io::Result<()> {
        match self.receive()?.0 {
            came if came == text => Ok(()),
            came => Err(io::Error::new(io::ErrorKind::InvalidData, came)),
        }
    }
}

/// The bytes behind the messages.
impl Read for &Wire {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = || Ok(((&self.stream).read(bytes)?, ()));
        self.until_done(PollFlags::POLLIN, read)
            .map(|(count, ())| count)
    }
}

impl Write for &Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let write = || Ok(((&self.stream).write(bytes)?, ()));
        self.until_done(PollFlags::POLLOUT, write)
            .map(|(count, ())| count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::RecvTimeoutError;

    fn pair() -> (Wire, UnixStream) {
        let (one, other) = UnixStream::pair().unwrap();
        (Wire::new(one, Shutdown::default()).unwrap(), other)
    }

    #[test]
    fn descriptors_come_with_their_message() {
        let (one, other) = pair();
        let other = Wire::new(other, Shutdown::default()).unwrap();
        let (passed, mut held) = UnixStream::pair().unwrap();
        one.send("first", Some(passed.as_fd())).unwrap();
        one.send("second", None).unwrap();
        drop(passed);
        let (text, descriptor) = other.receive().unwrap();
        assert_eq!(text, "first");
        UnixStream::from(descriptor.unwrap())
            .write_all(b"x")
            .unwrap();
        assert_eq!(held.read(&mut [0; 4]).unwrap(), 1);
        let (text, descriptor) = other.receive().unwrap();
        assert!(text == "second" && descriptor.is_none());
        drop(one);
        assert_eq!(
            other.receive().unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    /// The patience of the tests.
    const SHORT: Duration = Duration::from_millis(200);

    /// Class of bug: each byte began the whole time anew.
    #[test]
    fn who_sends_a_byte_now_and_then_is_cut_off() {
        let (wire, mut other) = pair();
        wire.set_patience(SHORT);
        let sender = std::thread::spawn(move || {
            other.write_all(&100_u32.to_le_bytes()).unwrap();
            // Until the receiver has gone, or has got all of it.
            let mut sent = 0;
            while sent < 100 && other.write_all(b"x").is_ok() {
                std::thread::sleep(SHORT / 10);
                sent += 1;
            }
        });
        let error = wire.receive().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(wire);
        sender.join().unwrap();
    }

    /// What has gone through buys no more than the patience: after much of it, silence lasts as long as before.
    #[test]
    fn who_reads_a_little_now_and_then_is_cut_off() {
        let (wire, mut other) = pair();
        wire.set_patience(SHORT);
        let (given_up, is_given_up) = std::sync::mpsc::channel::<()>();
        let reader = std::thread::spawn(move || {
            let mut piece = vec![0; 1 << 20];
            for _ in 0..64 {
                // On a machine that is so busy that the writer waits for too long, it fails here.
                if other.read_exact(&mut piece).is_err() {
                    return;
                }
            }
            // Less than the rate by far, and no more silence than is allowed.
            while is_given_up.recv_timeout(SHORT / 10) == Err(RecvTimeoutError::Timeout) {
                other.read_exact(&mut piece[..100]).unwrap();
            }
        });
        let begun = Instant::now();
        let error = loop {
            match (&wire).write_all(&[0; 1 << 16]) {
                Ok(()) => assert!(begun.elapsed() < Duration::from_secs(100), "for ever"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(given_up);
        reader.join().unwrap();
    }

    #[test]
    fn a_stop_ends_a_wait_unless_the_two_are_agreed() {
        let (wire, mut other) = pair();
        let shutdown = wire.shutdown.clone();
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(SHORT);
            shutdown.request();
        });
        let error = wire.receive().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        stopper.join().unwrap();
        other.write_all(b"\x02\0\0\0go").unwrap();
        assert!(wire.expect("go").is_err());
        wire.agree();
        wire.expect("go").unwrap();
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for bytes in [
            &b"\xff\xff\xff\xff"[..],
            b"\x05\0\0\0ab",
            b"\x02\0\0\0\xff\xff",
            b"\x01",
        ] {
            let (wire, mut other) = pair();
            other.write_all(bytes).unwrap();
            drop(other);
            assert!(wire.receive().is_err(), "{bytes:?}");
        }
    }
}
