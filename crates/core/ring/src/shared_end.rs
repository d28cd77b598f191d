//! A ring pair as the threads of a client share it: one reads, and sleeps if nothing is there; the others write meanwhile.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{End, Want};

/// A client's end. At most one thread at a time reads or sleeps; any may write.
pub struct SharedEnd {
    state: Mutex<State>,
    /// The same socket as that of the end, which can be waited for without the lock.
    bell: OwnedFd,
}

struct State {
    end: End,
    /// The last write found no room, and nobody was told of any since.
    wants_room: bool,
}

impl fmt::Debug for SharedEnd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SharedEnd").finish_non_exhaustive()
    }
}

/// The bell: a connected unix socket, readable when the server rings, or has gone.
impl AsFd for SharedEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl SharedEnd {
    /// Shares this end. Errors: there is no descriptor.
    pub fn new(end: End) -> io::Result<Self> {
        let bell = end.bell().try_clone_to_owned()?;
        let wants_room = false;
        let state = Mutex::new(State { end, wants_room });
        Ok(Self { state, bell })
    }

    /// Reads as [`End`] does.
    pub fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        self.lock().end.read(room)
    }

    /// Writes as [`End`] does. If there is no room, who sleeps is woken when there is.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.lock();
        let written = state.write(bytes);
        if !state.wants_room || !state.end.is_asleep() {
            return written;
        }
        state.end.announce(Want::BytesOrRoom);
        // Behind the announcement: for room that was made before it nobody rings.
        state.write(bytes)
    }

    /// True if a read would find something.
    pub fn has_input(&self) -> bool {
        self.lock().end.has_input()
    }

    /// True if a write found no room and would find some now.
    pub fn has_wanted_room(&self) -> bool {
        self.lock().has_wanted_room()
    }

    /// The same, once for each such write.
    pub fn take_wanted_room(&self) -> bool {
        let mut state = self.lock();
        let found = state.has_wanted_room();
        state.wants_room &= !found;
        found
    }

    /// True if the caller may sleep at the bell: there is nothing to be read, and no room that a write has missed; and the
    /// server will ring.
    pub fn may_sleep(&self) -> bool {
        let mut state = self.lock();
        let want = match state.wants_room {
            true => Want::BytesOrRoom,
            false => Want::Bytes,
        };
        state.end.may_sleep(want)
    }

    /// Who has slept has woken, and has taken the rings out of the bell. Reads do both by themselves.
    pub fn rise(&self) {
        self.lock().end.rise();
    }

    /// Ends both directions. Who sleeps wakes, and reads the end.
    pub fn shut_down(&self) -> io::Result<()> {
        self.lock().end.shut_down()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.end.write(bytes);
        let is_full = |error: &io::Error| error.kind() == ErrorKind::WouldBlock;
        self.wants_room = written.as_ref().is_err_and(is_full);
        written
    }

    fn has_wanted_room(&self) -> bool {
        self.wants_room && self.end.has_room()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;
    use crate::BYTES;

    /// Sleeps until there is something, as a client does.
    fn wait(shared: &SharedEnd) {
        if shared.may_sleep() {
            let mut bells = [PollFd::new(shared.as_fd(), PollFlags::POLLIN)];
            poll(&mut bells, PollTimeout::NONE).unwrap();
        }
    }

    fn read(shared: &SharedEnd, room: &mut [u8]) -> usize {
        loop {
            match shared.read(room) {
                Ok(count) => return count,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            wait(shared);
        }
    }

    /// A server that sends back what it gets, until its client has gone. It sleeps whenever nothing is there.
    fn echo(mut end: End) {
        let mut room = vec![0; 10_000];
        loop {
            let got = match end.read(&mut room) {
                Ok(0) => return,
                Ok(count) => count,
                Err(_) => {
                    sleep(&mut end, Want::Bytes);
                    continue;
                }
            };
            let mut sent = 0;
            while sent < got {
                match end.write(&room[sent..got]) {
                    Ok(count) => sent += count,
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => return,
                    Err(_) => sleep(&mut end, Want::BytesOrRoom),
                }
            }
        }
    }

    fn sleep(end: &mut End, want: Want) {
        if end.may_sleep(want) {
            let mut bells = [PollFd::new(end.bell(), PollFlags::POLLIN)];
            poll(&mut bells, PollTimeout::NONE).unwrap();
        }
    }

    /// Class of fault: a write takes back what the other thread has announced, or takes the ring that was for it.
    #[test]
    fn a_write_leaves_the_announcement_of_who_sleeps() {
        let (mut server, offer) = End::new().unwrap();
        let shared = SharedEnd::new(End::of(offer).unwrap()).unwrap();
        assert!(shared.may_sleep());
        // This would be another thread.
        shared.write(b"a").unwrap();
        let rung = || {
            let mut bells = [PollFd::new(shared.as_fd(), PollFlags::POLLIN)];
            poll(&mut bells, PollTimeout::ZERO).unwrap() == 1
        };
        assert!(!rung());
        server.write_all(b"b").unwrap();
        assert!(rung());
        // Nor does one that finds no room.
        assert_eq!(shared.write(&vec![0; BYTES]).unwrap(), BYTES - 1);
        assert!(shared.write(b"x").is_err() && rung());
        assert_eq!(shared.read(&mut [0; 8]).unwrap(), 1);
        assert!(!rung());
        // Who sleeps for bytes is woken for the room that a write has missed meanwhile.
        assert!(shared.may_sleep());
        assert!(shared.write(b"x").is_err() && !shared.has_wanted_room());
        assert_eq!(server.read(&mut [0; 8]).unwrap(), 8);
        assert!(rung() && !shared.may_sleep());
        assert!(shared.take_wanted_room() && !shared.take_wanted_room());
    }

    /// The same with threads: one is always about to sleep while the other writes. What sleeps on never ends.
    #[test]
    fn one_thread_sleeps_while_another_writes() {
        const MESSAGES: u32 = 3_000;
        let (server, offer) = End::new().unwrap();
        let shared = SharedEnd::new(End::of(offer).unwrap()).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| echo(server));
            scope.spawn(|| {
                for number in 0..MESSAGES {
                    shared.write(&number.to_le_bytes()).unwrap();
                    // Often the reader has read all, and sleeps or is about to.
                    (0..number % 500).for_each(|_| std::hint::spin_loop());
                }
            });
            let mut got = Vec::new();
            let mut room = [0; 64];
            while got.len() < 4 * MESSAGES as usize {
                let count = read(&shared, &mut room);
                got.extend(&room[..count]);
            }
            shared.shut_down().unwrap();
            let numbers = got
                .chunks(4)
                .map(|four| u32::from_le_bytes(four.try_into().unwrap()));
            assert!(numbers.eq(0..MESSAGES));
        });
    }

    /// A writer that finds no room is told of it by the thread that sleeps.
    #[test]
    fn who_sleeps_hears_of_room() {
        const BYTES_SENT: usize = 20 * BYTES;
        let (server, offer) = End::new().unwrap();
        let shared = SharedEnd::new(End::of(offer).unwrap()).unwrap();
        let (hears, told) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| echo(server));
            let shared = &shared;
            scope.spawn(move || {
                let mut sent = 0;
                while sent < BYTES_SENT {
                    match shared.write(&vec![7; BYTES_SENT - sent]) {
                        Ok(count) => sent += count,
                        // From nobody else.
                        Err(_) => told.recv().unwrap(),
                    }
                }
            });
            let mut got = 0;
            let mut room = vec![0; 3 * BYTES / 4];
            while got < BYTES_SENT {
                if shared.take_wanted_room() {
                    hears.send(()).unwrap();
                }
                match shared.read(&mut room) {
                    Ok(count) => got += count,
                    Err(_) => wait(shared),
                }
            }
            shared.shut_down().unwrap();
        });
    }
}
