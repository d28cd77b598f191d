//! A client of servers that speak memcached's text protocol, one request at a time.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use nuthatch_bench::os;

use super::{Cache, MemoryUse, Values};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most bytes of sets that wait for the next get to be sent with it.
const UNSENT_MAX: usize = 1 << 18;
/// Bytes read at a time.
const BUFFER: usize = 64 << 10;

/// A connection to a server.
pub struct ServerCache {
    stream: TcpStream,
    /// The server's process, if it runs here.
    pid: Option<u32>,
    /// What is sent with the next get.
    unsent: Vec<u8>,
    received: Vec<u8>,
    /// The buffer of reads.
    buffer: Box<[u8]>,
    /// How many of the received bytes are parsed.
    at: usize,
    values: Values,
}

impl ServerCache {
    /// Connects. `pid` is the server's process, if it is known.
    pub fn connect(address: SocketAddr, pid: Option<u32>) -> Result<Self, String> {
        let connect = || {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        let stream = connect().map_err(|error: std::io::Error| format!("{address}: {error}"))?;
        Ok(Self {
            stream,
            pid,
            unsent: Vec::new(),
            received: Vec::new(),
            buffer: vec![0; BUFFER].into(),
            at: 0,
            values: Values::default(),
        })
    }

    /// A number of `stats`; None if the server does not have it.
    pub fn stat(&mut self, name: &str) -> Result<Option<u64>, String> {
        self.unsent.extend_from_slice(b"stats\r\n");
        self.send()?;
        let mut number = None;
        loop {
            let line = self.line()?;
            let line = String::from_utf8_lossy(&self.received[line]).into_owned();
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("STAT"), Some(found), Some(value)) if found == name => {
                    number = value.parse().ok();
                }
                (Some("STAT"), ..) => {}
                (Some("END"), None, None) => return Ok(number),
                _ => return Err(format!("an answer that is not memcached's: {line}")),
            }
        }
    }

    /// Flushes all items.
    pub fn flush(&mut self) -> Result<(), String> {
        self.unsent.extend_from_slice(b"flush_all\r\n");
        self.send()?;
        let line = self.line()?;
        match &self.received[line] {
            b"OK" => Ok(()),
            line => Err(odd(line)),
        }
    }

    fn ask(&mut self, key: &[u8]) {
        for part in [b"get ", key, b"\r\n"] {
            self.unsent.extend_from_slice(part);
        }
    }

    /// Reads the answer to a get.
    fn answer(&mut self, key: &[u8]) -> Result<bool, String> {
        if self.at >= BUFFER {
            self.received.drain(..self.at);
            self.at = 0;
        }
        let mut hit = false;
        loop {
            let line = self.line()?;
            let line = &self.received[line];
            if line == b"END" {
                return Ok(hit);
            } else if let Some(rest) = line.strip_prefix(b"VALUE ") {
                let size = value_size(rest, key).ok_or_else(|| odd(line))?;
                self.skip(size + 2)?;
                hit = true;
            } else if !line.starts_with(b"SERVER_ERROR ") {
                return Err(odd(line));
            }
            // An error line belongs to the set before, which was refused: the item is too large, or there is no memory
            // for it.
        }
    }

    fn send(&mut self) -> Result<(), String> {
        let sent = self.stream.write_all(&self.unsent);
        self.unsent.clear();
        sent.map_err(|error| format!("sending: {error}"))
    }

    /// The next line, without its end, as a range of the received bytes.
    fn line(&mut self) -> Result<std::ops::Range<usize>, String> {
        let mut looked = self.at;
        loop {
            if let Some(end) = find(&self.received[looked..], b'\n') {
                let end = looked + end;
                let start = std::mem::replace(&mut self.at, end + 1);
                let cut = self.received[start..end].ends_with(b"\r");
                return Ok(start..end - usize::from(cut));
            }
            looked = self.received.len();
            self.receive()?;
        }
    }

    /// Skips this number of bytes, and keeps none of them.
    fn skip(&mut self, mut bytes: usize) -> Result<(), String> {
        while self.received.len() - self.at < bytes {
            bytes -= self.received.len() - self.at;
            self.received.clear();
            self.at = 0;
            self.receive()?;
        }
        self.at += bytes;
        Ok(())
    }

    fn receive(&mut self) -> Result<(), String> {
        loop {
            match self.stream.read(&mut self.buffer) {
                Ok(0) => return Err("the server closed the connection".to_owned()),
                Ok(count) => {
                    self.received.extend_from_slice(&self.buffer[..count]);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("receiving: {error}")),
            }
        }
    }
}

impl Cache for ServerCache {
    fn get(&mut self, key: &[u8]) -> Result<bool, String> {
        self.ask(key);
        self.send()?;
        self.answer(key)
    }

    fn get_all<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<Vec<bool>, String> {
        for key in keys {
            self.ask(key.as_ref());
        }
        self.send()?;
        keys.iter().map(|key| self.answer(key.as_ref())).collect()
    }

    fn set(&mut self, key: &[u8], size: u32) -> Result<(), String> {
        // The set is sent with the next get, which the server carries out after it.
        let head = format!(" 0 0 {size} noreply\r\n");
        let value = self.values.of(size);
        for part in [b"set ", key, head.as_bytes(), value, b"\r\n"] {
            self.unsent.extend_from_slice(part);
        }
        match self.unsent.len() {
            many if many > UNSENT_MAX => self.send(),
            _ => Ok(()),
        }
    }

    fn memory(&mut self) -> MemoryUse {
        let status = |name| self.pid.and_then(|pid| os::memory_of(pid, name));
        MemoryUse {
            resident: status("VmRSS:"),
            resident_peak: status("VmHWM:"),
            used: None,
        }
    }
}

fn find(bytes: &[u8], byte: u8) -> Option<usize> {
    bytes.iter().position(|&found| found == byte)
}

/// The size in `KEY FLAGS SIZE`, which a trace can have.
fn value_size(words: &[u8], key: &[u8]) -> Option<usize> {
    let rest = words.strip_prefix(key)?.strip_prefix(b" ")?;
    let mut words = std::str::from_utf8(rest).ok()?.split(' ');
    let size: u32 = words.nth(1)?.parse().ok()?;
    Some(size as usize)
}

fn odd(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(&line[..line.len().min(200)]);
    format!("an answer that is not memcached's: {line}")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A server that answers each line that it is sent with the next of these texts.
    fn answering(
        answers: &'static [&'static str],
    ) -> (SocketAddr, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut asked = Vec::new();
            for answer in answers {
                let Some(Ok(line)) = lines.next() else { break };
                asked.push(line);
                (&stream).write_all(answer.as_bytes()).unwrap();
            }
            asked
        });
        (address, server)
    }

    #[test]
    fn gets_hit_or_miss_and_sets_travel_with_them() {
        let (address, server) = answering(&[
            "END\r\n",
            "",
            "SERVER_ERROR object too large for cache\r\n",
            "VALUE k 0 3\r\nEND\r\nEND\r\n",
        ]);
        let mut cache = ServerCache::connect(address, None).unwrap();
        assert_eq!(cache.get(b"k"), Ok(false));
        cache.set(b"k", 3).unwrap();
        // For this server the value is a line of its own.
        assert_eq!(cache.get(b"k"), Ok(true));
        let asked = server.join().unwrap();
        assert_eq!(asked, ["get k", "set k 0 0 3 noreply", "\0\0\0", "get k"]);
    }

    #[test]
    fn answers_that_are_not_memcacheds_are_errors() {
        for answer in [
            "HELLO\r\n",
            "VALUE other 0 3\r\nabc\r\nEND\r\n",
            "VALUE k\r\n",
            "VALUE k 0 18446744073709551615\r\n",
            "VALUE k 0 4294967295\r\n",
            "x",
        ] {
            let answers: &'static [&'static str] = Box::leak(Box::new([answer]));
            let (address, server) = answering(answers);
            let mut cache = ServerCache::connect(address, None).unwrap();
            assert!(cache.get(b"k").is_err(), "{answer}");
            server.join().unwrap();
        }
    }

    #[test]
    fn statistics_are_numbers() {
        let (address, server) = answering(&["STAT pid 7\r\nSTAT curr_items 12\r\nEND\r\n"]);
        let mut cache = ServerCache::connect(address, None).unwrap();
        assert_eq!(cache.stat("curr_items"), Ok(Some(12)));
        server.join().unwrap();
    }
}
