//! Commands by a ring pair: clients as processes, well-behaved, killed and hostile.

use std::fs::File;
use std::io::{ErrorKind, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use memmap2::MmapMut;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nuthatch_direct::Direct;
use nuthatch_engine::sharing::{Asks, WELCOME_BYTES, check_answer, hello};
use nuthatch_ring::{End, Offer, Want};

use crate::server::CLIENTS;

/// Asks for a ring. Errors: the server's words.
fn ask(shared: &Path) -> Result<(UnixStream, Offer), String> {
    let mut stream = UnixStream::connect(shared).unwrap();
    stream.write_all(&hello(Asks::Ring)).unwrap();
    receive(stream)
}

/// The same, and leaves the socket before the server has looked.
fn ask_and_leave(shared: &Path) -> Result<Offer, String> {
    let mut stream = UnixStream::connect(shared).unwrap();
    stream.write_all(&hello(Asks::Ring)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    receive(stream).map(|(_, offer)| offer)
}

fn receive(stream: UnixStream) -> Result<(UnixStream, Offer), String> {
    let mut answer = [0; WELCOME_BYTES];
    let mut space = nix::cmsg_space!([i32; 4]);
    let mut parts = [IoSliceMut::new(&mut answer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let received = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut space), flags).unwrap();
    let files: Vec<OwnedFd> = received
        .cmsgs()
        .unwrap()
        .flat_map(|message| match message {
            ControlMessageOwned::ScmRights(descriptors) => descriptors,
            other => panic!("{other:?}"),
        })
        // SAFETY: the kernel has just made them for this process.
        .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
        .collect();
    check_answer(&answer)?;
    let [_, _, memory, bell] = files.try_into().unwrap();
    Ok((stream, Offer { memory, bell }))
}

/// A client of the ring that waits, as a socket's does.
pub struct Client {
    end: End,
    /// The memory of the same server.
    pub direct: Direct,
}

impl Client {
    pub fn connect(shared: &Path) -> Result<Self, String> {
        let made = Direct::connect_with_ring(shared, Duration::from_secs(60));
        let (direct, end) = made.map_err(|error| error.to_string())?;
        Ok(Self { end, direct })
    }

    /// With a ring that came by a connection of its own, which is over.
    pub fn of_who_left(shared: &Path) -> Result<Self, String> {
        let end = End::of(ask_and_leave(shared)?).unwrap();
        let direct = Direct::connect(shared).map_err(|error| error.to_string())?;
        Ok(Self { end, direct })
    }

    fn sleep(&mut self, want: Want) {
        if self.end.may_sleep(want) {
            let mut bells = [PollFd::new(self.end.bell(), PollFlags::POLLIN)];
            poll(&mut bells, PollTimeout::NONE).unwrap();
        }
    }

    /// Sends bytes, and reads as many as the answer must have. False once the server has gone.
    fn exchange(&mut self, sent: &[u8], answer: &mut [u8]) -> bool {
        let (mut from, mut got) = (0, 0);
        while got < answer.len() {
            let wrote = match self.end.write(&sent[from..]) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return false,
                Err(error) => panic!("{error}"),
            };
            from += wrote;
            let read = match self.end.read(&mut answer[got..]) {
                Ok(0) => return false,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                Err(error) => panic!("{error}"),
            };
            got += read;
            if wrote + read == 0 {
                self.sleep(match from < sent.len() {
                    true => Want::BytesOrRoom,
                    false => Want::Bytes,
                });
            }
        }
        true
    }

    pub fn expect(&mut self, sent: &[u8], answer: &[u8]) {
        let mut got = vec![0; answer.len()];
        assert!(self.exchange(sent, &mut got), "the server has gone");
        assert!(got == answer, "{}", String::from_utf8_lossy(&got));
    }
}

/// All commands, values longer than the ring, pipelines.
pub fn commands(shared: &Path) {
    let mut client = Client::connect(shared).unwrap();
    client.expect(b"set n 0 0 1\r\n1\r\nincr n 4\r\n", b"STORED\r\n5\r\n");
    client.expect(b"mg missing v\r\n", b"EN\r\n");
    let mut read = Vec::new();
    assert!(client.direct.get(b"n", &mut read).unwrap().is_some() && read == b"5");
    let value: Vec<u8> = (0..900_000_u32).map(|at| (at * 7 % 251) as u8).collect();
    let stored = [b"set big 0 0 900000\r\n", value.as_slice(), b"\r\n"].concat();
    let got = [b"VALUE big 0 900000\r\n", value.as_slice(), b"\r\nEND\r\n"].concat();
    for _ in 0..5 {
        client.expect(&stored, b"STORED\r\n");
        client.expect(b"get big\r\n", &got);
    }
    client.expect(
        &b"incr n 1\r\n".repeat(9),
        b"6\r\n7\r\n8\r\n9\r\n10\r\n11\r\n12\r\n13\r\n14\r\n",
    );
    // More than both rings hold.
    client.expect(
        &b"mg missing v\r\n".repeat(50_000),
        &b"EN\r\n".repeat(50_000),
    );
    // Through a sleep of both sides.
    std::thread::sleep(Duration::from_millis(5));
    client.expect(b"get n\r\n", b"VALUE n 0 2\r\n14\r\nEND\r\n");
    // A large answer to who reads late: the server waits for room.
    client.end.write_all(b"get big\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    client.expect(b"", &got);
    client.end.write_all(b"quit\r\n").unwrap();
    assert!(!client.exchange(b"", &mut [0]), "it is the end");
    println!("done");
}

/// Stores for ever, until it is killed, or the server is.
pub fn write_on(shared: &Path) {
    let mut client = Client::connect(shared).unwrap();
    println!("connected");
    let value = [
        b"set churned 0 0 70000\r\n",
        [b'x'; 70_000].as_slice(),
        b"\r\n",
    ]
    .concat();
    while client.exchange(&value, &mut [0; 8]) {}
    println!("ended");
}

/// Garbage in the ring's counters and its bytes, and a client that never reads: each is cut off, and the next is served.
pub fn lie(shared: &Path, turns: usize) {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for turn in 0..turns {
        let (stream, offer) = retry(|| ask(shared));
        let file = File::from(offer.memory.try_clone().unwrap());
        assert!(file.set_len(0).is_err() && file.set_len(1 << 30).is_err());
        // SAFETY: nobody but this client is harmed by what is in it.
        let mut words = unsafe { MmapMut::map_mut(&file) }.unwrap();
        let mut end = End::of(offer).unwrap();
        let _ = end.write(b"get a\r\nset b 0 0 100000\r\n");
        for _ in 0..20 {
            let at = match random() % 2 {
                0 => (random() % 6) as usize * 128,
                _ => random() as usize % (words.len() / 8) * 8,
            };
            let word = match random() % 4 {
                0 => random() % 70_000,
                1 => u64::MAX - random() % 9,
                _ => random(),
            };
            words[at..at + 8].copy_from_slice(&word.to_le_bytes());
            let _ = nix::sys::socket::send(
                end.bell().as_raw_fd(),
                &vec![1; 1 + random() as usize % 5000],
                MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL,
            );
        }
        if turn % 3 == 0 {
            let _ = (&stream).write_all(b"more");
        }
    }
    let mut greedy = retry(|| Client::connect(shared));
    let value = [b"set big 0 0 60000\r\n", [b'x'; 60_000].as_slice(), b"\r\n"].concat();
    greedy.expect(&value, b"STORED\r\n");
    for _ in 0..10_000 {
        let _ = greedy.end.write(b"get big\r\n");
    }
    retry(|| Client::connect(shared)).expect(b"mn\r\n", b"MN\r\n");
    drop(greedy);
    // None of them holds a place any more.
    let all: Vec<Client> = (1..CLIENTS)
        .map(|_| retry(|| Client::connect(shared)))
        .collect();
    drop(all);
    println!("done");
}

/// Until the server has noticed that those before have gone.
pub fn retry<T>(mut connect: impl FnMut() -> Result<T, String>) -> T {
    loop {
        match connect() {
            Ok(made) => return made,
            Err(why) => assert!(why.contains("--shared-clients"), "{why}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
