//! What holds at one end of a ring pair, whatever the other process does: body of a property test and of a fuzz target.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use nuthatch_base::memory::Mapped;
use nuthatch_base::sync::shim::{AtomicU64, Ordering};
use nuthatch_ring::stream::words;
use nuthatch_ring::{APART, BYTES, End, HEAD, Want};

/// Carries out what `input` says: as a server, as an honest client, and as one that writes into their memory what it likes.
///
/// # Panics
///
/// If an end invents, loses or changes a byte while its peer is honest, or goes on after it has found a lie.
pub fn check(input: &[u8]) {
    let mut pair = Pair::new();
    let mut input = input.iter().copied();
    while let Some(what) = input.next() {
        pair.step(what, &mut input);
    }
}

/// Sizes of parts: from nothing to more than there is room for.
const SIZES: [usize; 8] = [0, 1, 7, 8, 100, 4096, BYTES - 1, BYTES + 9];

struct Pair {
    server: Checked,
    client: Checked,
    /// What the client's process can reach behind its end: the memory, and its side of the bell.
    memory: Mapped<AtomicU64>,
    bell: UnixStream,
    is_honest: bool,
}

impl Pair {
    fn new() -> Self {
        let (server, offer) = End::new().expect("there is memory");
        let memory = Mapped::of_both(&offer.memory, words(BYTES)).expect("it has this size");
        let bell = offer.bell.try_clone().expect("there is a descriptor");
        let client = End::of(offer).expect("it has this size");
        Self {
            server: Checked::new(server),
            client: Checked::new(client),
            memory,
            bell: bell.into(),
            is_honest: true,
        }
    }

    fn step(&mut self, what: u8, input: &mut impl Iterator<Item = u8>) {
        let mut byte = || input.next().unwrap_or(0);
        let place = usize::from(what >> 4);
        let size = SIZES[place % SIZES.len()];
        let counter = place % (HEAD / APART) * APART;
        match what & 15 {
            0 | 1 => self.client.write(size, &self.server, self.is_honest),
            2 | 3 => self.client.read(size, &self.server, self.is_honest),
            4 | 5 => self.server.write(size, &self.client, self.is_honest),
            6..=8 => self.server.read(size, &self.client, self.is_honest),
            9 => self.server.sleep(),
            10 => self.client.sleep(),
            // A bell that is full, or has no room, is none of the server's business.
            11 => {
                self.bell.set_nonblocking(true).expect("it is a socket");
                _ = (&self.bell).write(&[0; 300]);
            }
            12 => self.server.end.rise(),
            // Lies: another value of a counter or a flag, one that is near, other bytes.
            13 => {
                let value = u64::from_le_bytes(std::array::from_fn(|_| byte()));
                self.lie(counter, value);
            }
            14 => {
                let near = self.memory[counter].load(Ordering::Relaxed);
                self.lie(counter, near.wrapping_add_signed((byte() as i8).into()));
            }
            _ => {
                let place = usize::from(u16::from_le_bytes([byte(), byte()]));
                self.lie(place % self.memory.len(), u64::from(byte()) << 8);
            }
        }
    }

    fn lie(&mut self, place: usize, value: u64) {
        self.is_honest = false;
        self.memory[place].store(value, Ordering::Relaxed);
    }
}

/// An end, with what it has moved. A byte tells its place in its stream.
struct Checked {
    end: End,
    written: usize,
    read: usize,
    is_broken: bool,
}

impl Checked {
    fn new(end: End) -> Self {
        Self {
            end,
            written: 0,
            read: 0,
            is_broken: false,
        }
    }

    fn write(&mut self, size: usize, other: &Self, is_honest: bool) {
        let bytes: Vec<u8> = (self.written..).map(byte_at).take(size).collect();
        let result = self.end.write(&bytes);
        let written = self.judge(result, is_honest);
        if is_honest {
            assert_eq!(written, size.min(BYTES - (self.written - other.read)));
        }
        assert!(written <= size);
        self.written += written;
    }

    fn read(&mut self, size: usize, other: &Self, is_honest: bool) {
        let mut room = vec![0; size];
        let result = self.end.read(&mut room);
        let read = self.judge(result, is_honest);
        if is_honest {
            assert_eq!(read, size.min(other.written - self.read));
            let expected = (self.read..).map(byte_at).take(read);
            assert!(room[..read].iter().copied().eq(expected));
        }
        self.read += room[..read].len();
    }

    fn sleep(&mut self) {
        // With no other process there is nobody to wait for.
        _ = self.end.may_sleep(Want::BytesOrRoom);
    }

    /// The bytes that were moved. What was broken once stays so.
    fn judge(&mut self, result: std::io::Result<usize>, is_honest: bool) -> usize {
        let kind = result.as_ref().err().map(|error| error.kind());
        assert!(!self.is_broken || kind == Some(ErrorKind::InvalidData));
        self.is_broken |= kind == Some(ErrorKind::InvalidData);
        assert!(!(is_honest && self.is_broken), "an honest peer is believed");
        result.unwrap_or(0)
    }
}

/// The byte at a place of a stream. No power of two is its period, so that a byte of an older turn is noticed.
fn byte_at(place: usize) -> u8 {
    (place % 251) as u8
}
