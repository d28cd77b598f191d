//! Messages of a handover over a unix socket: a length of 32 bits and that many bytes of text. Some messages carry a
//! descriptor.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, getsockopt, recv, recvmsg, sendmsg, sockopt,
};

use super::PATIENCE;

/// The longest message: a path has 4096 bytes at most.
const MESSAGE_MAX: usize = 8 << 10;

/// Bytes of items under way that the kernel may buffer.
const KERNEL_BUFFER: usize = 4 << 20;

/// How often a side that waits checks whether to go on waiting.
const STEP: Duration = Duration::from_millis(50);

/// One end of a conversation.
pub(super) struct Wire(UnixStream);

impl Wire {
    /// Errors: the other end is a process of another user.
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        // With a large buffer the two sides wait for each other less often. The kernel may allow a smaller one.
        let _ = socket2::SockRef::from(&stream).set_send_buffer_size(KERNEL_BUFFER);
        let (peer, me) = (
            getsockopt(&stream, sockopt::PeerCredentials)?.uid(),
            nix::unistd::geteuid(),
        );
        match peer == me.as_raw() || peer == 0 {
            true => Ok(Self(stream)),
            false => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("the other side is a process of the user {peer}"),
            )),
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
        let flags = MsgFlags::MSG_NOSIGNAL;
        let sent = loop {
            match sendmsg::<()>(self.0.as_raw_fd(), &pieces, rights, flags, None) {
                // On a socket with a timeout a signal interrupts the call, even if its handler asks for a restart.
                Err(Errno::EINTR) => {}
                sent => break sent?,
            }
        };
        // The descriptor went with the first bytes.
        (&self.0).write_all(&message[sent..])
    }

    /// Waits until bytes arrive, `goes_on` returns false, or the patience is over (both errors).
    pub(super) fn wait(&self, goes_on: impl Fn() -> bool) -> io::Result<()> {
        let begun = Instant::now();
        self.0.set_read_timeout(Some(STEP))?;
        loop {
            match recv(self.0.as_raw_fd(), &mut [0], MsgFlags::MSG_PEEK) {
                Ok(_) => break,
                Err(Errno::EAGAIN | Errno::EINTR) if goes_on() && begun.elapsed() < PATIENCE => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.0.set_read_timeout(Some(PATIENCE))
    }

    /// The next message.
    pub(super) fn receive(&self) -> io::Result<(String, Option<OwnedFd>)> {
        let mut length = [0; 4];
        let (count, descriptor) = self.begin(&mut length)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (&self.0).read_exact(&mut length[count..])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MESSAGE_MAX {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "no message of a handover",
            ));
        }
        let mut text = vec![0; length];
        (&self.0).read_exact(&mut text)?;
        let text = String::from_utf8(text);
        Ok((
            text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?,
            descriptor,
        ))
    }

    /// Reads the first bytes of a message, and the descriptor that came with them.
    fn begin(&self, room: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
        let mut space = cmsg_space!([RawFd; 4]);
        let mut pieces = [IoSliceMut::new(room)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let socket = self.0.as_raw_fd();
        let received = loop {
            match recvmsg::<()>(socket, &mut pieces, Some(&mut space), flags) {
                // As above.
                Err(Errno::EINTR) => {}
                received => break received?,
            }
        };
        let mut descriptors = Vec::new();
        for message in received.cmsgs()? {
            if let ControlMessageOwned::ScmRights(came) = message {
                // SAFETY: the kernel has just made these descriptors for this process, and no other code knows them.
                descriptors.extend(
                    came.into_iter()
                        .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
                );
            }
        }
        Ok((received.bytes, descriptors.pop()))
    }

    /// Receives this message. Errors: another message came.
    pub(super) fn expect(&self, text: &str) -> io::Result<()> {
        match self.receive()?.0 {
            came if came == text => Ok(()),
            came => Err(io::Error::new(io::ErrorKind::InvalidData, came)),
        }
    }

    /// The bytes behind the messages.
    pub(super) fn stream(&self) -> &UnixStream {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn pair() -> (Wire, UnixStream) {
        let (one, other) = UnixStream::pair().unwrap();
        (Wire::new(one).unwrap(), other)
    }

    #[test]
    fn descriptors_come_with_their_message() {
        let (one, other) = pair();
        let other = Wire::new(other).unwrap();
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
