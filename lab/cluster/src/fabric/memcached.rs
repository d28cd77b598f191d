//! A client of a memcached over TCP, by the text protocol: what the store is measured beside.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// Bytes under way, requests and values together, at which replies are read first. Sockets hold more, so neither side
/// waits for the other to read.
const UNDER_WAY: usize = 32 << 10;

/// Bytes of the longest line of a reply.
const LINE_MAX: u64 = 512;

/// A request whose reply was not read.
#[derive(Clone, Copy)]
enum Sent {
    Get,
    Set,
}

/// A connection. Requests are sent together by [`finish`](Memcached::finish), or earlier if they are many.
pub struct Memcached {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
    /// Requests that were not sent.
    out: Vec<u8>,
    waiting: Vec<Sent>,
    under_way: usize,
    hits: usize,
    line: Vec<u8>,
    value: Vec<u8>,
}

impl Memcached {
    /// Connects to `HOST:PORT`, for values of up to `longest` bytes.
    pub fn connect(address: &str, longest: usize) -> io::Result<Self> {
        let writer = TcpStream::connect(address)?;
        writer.set_nodelay(true)?;
        Ok(Self {
            reader: BufReader::new(writer.try_clone()?),
            writer,
            out: Vec::new(),
            waiting: Vec::new(),
            under_way: 0,
            hits: 0,
            line: Vec::new(),
            // The value, and the end of its line.
            value: vec![0; longest + 2],
        })
    }

    /// Asks for a key.
    pub fn get(&mut self, key: &str) -> io::Result<()> {
        write!(self.out, "get {key}\r\n")?;
        self.sent(Sent::Get, self.value.len())
    }

    /// Stores a value.
    pub fn set(&mut self, key: &str, value: &[u8]) -> io::Result<()> {
        write!(self.out, "set {key} 0 0 {}\r\n", value.len())?;
        self.out.extend_from_slice(value);
        self.out.extend_from_slice(b"\r\n");
        self.sent(Sent::Set, value.len())
    }

    fn sent(&mut self, request: Sent, bytes: usize) -> io::Result<()> {
        self.waiting.push(request);
        self.under_way += bytes;
        match self.under_way > UNDER_WAY {
            true => self.exchange(),
            false => Ok(()),
        }
    }

    /// Waits for all replies. Returns how many requests since the last call hit or stored.
    pub fn finish(&mut self) -> io::Result<usize> {
        self.exchange()?;
        Ok(std::mem::take(&mut self.hits))
    }

    fn exchange(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.out)?;
        self.out.clear();
        self.under_way = 0;
        for sent in 0..self.waiting.len() {
            self.read_reply(self.waiting[sent])?;
        }
        self.waiting.clear();
        Ok(())
    }

    fn read_reply(&mut self, sent: Sent) -> io::Result<()> {
        self.read_line()?;
        match sent {
            Sent::Set if self.line == b"STORED\r\n" => {}
            Sent::Get if self.line == b"END\r\n" => return Ok(()),
            Sent::Get if self.line.starts_with(b"VALUE ") => {
                let line = String::from_utf8_lossy(&self.line);
                let len = line
                    .split_whitespace()
                    .nth(3)
                    .and_then(|len| len.parse::<usize>().ok());
                let room = len.and_then(|len| self.value.get_mut(..len.checked_add(2)?));
                let Some(room) = room else {
                    return Err(self.is_invalid());
                };
                self.reader.read_exact(room)?;
                self.read_line()?;
                if self.line != b"END\r\n" {
                    return Err(self.is_invalid());
                }
            }
            _ => return Err(self.is_invalid()),
        }
        self.hits += 1;
        Ok(())
    }

    fn read_line(&mut self) -> io::Result<()> {
        self.line.clear();
        let mut limited = (&mut self.reader).take(LINE_MAX);
        match limited.read_until(b'\n', &mut self.line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn is_invalid(&self) -> io::Error {
        let line = String::from_utf8_lossy(&self.line);
        io::Error::new(io::ErrorKind::InvalidData, format!("answered {line:?}"))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A peer that answers whatever comes with these bytes, and closes. Returns what the work returned.
    fn beside<T>(answer: &'static [u8], work: impl FnOnce(&mut Memcached) -> T) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 1000]).unwrap();
                stream.write_all(answer).unwrap();
            });
            work(&mut Memcached::connect(&address, 5).unwrap())
        })
    }

    #[test]
    fn hits_and_stores_are_counted_and_misses_are_not() {
        let answer = b"STORED\r\nVALUE a 0 3\r\nabc\r\nEND\r\nEND\r\n";
        let hits = beside(answer, |client| {
            client.set("a", b"abc").unwrap();
            client.get("a").unwrap();
            client.get("b").unwrap();
            client.finish().unwrap()
        });
        assert_eq!(hits, 2);
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        for answer in [
            &b"ERROR\r\n"[..],
            b"VALUE a 0 6\r\nabcdef\r\nEND\r\n",
            b"VALUE a 0 99999999999999999999\r\n",
            b"VALUE a 0 1\r\na\r\nVALUE\r\n",
            b"",
        ] {
            let found = beside(answer, |client| {
                client.get("a").unwrap();
                client.finish()
            });
            assert!(found.is_err(), "{answer:?}");
        }
    }
}
