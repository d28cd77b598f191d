//! Fill of another server: how many items it holds at the first eviction.

use std::fmt::{self, Display};
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use crate::engine::{Operations, Sizes};
use crate::os;
use crate::started::{Started, stop_on_signals};
use nuthatch_program::Failure;

/// Items stored between two looks at the server's numbers.
const PIECE: u64 = 64;

/// The results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FilledServer {
    /// Its version, as the server reports it.
    pub version: String,
    /// Items held at the first eviction.
    pub items_before_eviction: u64,
}

/// Starts a server, stores items until it reports an eviction or refuses one, and ends it.
pub(crate) fn run(command: &str, sizes: &Sizes) -> Result<FilledServer, Failure> {
    let stop = stop_on_signals()?;
    let server = Started::start(command, &os::cores(), &stop)?;
    let named = |error: io::Error| format!("{}: {error}", server.command());
    let mut client = Client::new(server.connect().map_err(named)?);
    let (mut from, mut held) = (0, 0);
    loop {
        // Relaxed: the flag publishes no other memory.
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::run("interrupted"));
        }
        let items = sizes.items(from + PIECE)?;
        let list = Operations::sets(&items, from, from + PIECE);
        match client.held_after(&list).map_err(named)? {
            Some(items) => (from, held) = (from + PIECE, items),
            None => break,
        }
    }
    Ok(FilledServer {
        version: server.version(false)?,
        items_before_eviction: held,
    })
}

/// A connection that speaks memcached's protocol.
struct Client {
    replies: BufReader<TcpStream>,
    requests: Vec<u8>,
    line: String,
}

/// A server's statistics.
#[derive(Default)]
struct Numbers {
    items: u64,
    evictions: u64,
}

impl Client {
    fn new(stream: TcpStream) -> Self {
        Self {
            replies: BufReader::new(stream),
            requests: Vec::new(),
            line: String::new(),
        }
    }

    /// Stores items: how many it holds then, or `None` if one was refused or has been evicted.
    fn held_after(&mut self, list: &Operations) -> io::Result<Option<u64>> {
        let stored = self.store(list)?;
        let numbers = self.numbers()?;
        Ok((stored && numbers.evictions == 0).then_some(numbers.items))
    }

    /// Stores items. False if the server refused one.
    fn store(&mut self, list: &Operations) -> io::Result<bool> {
        self.requests.clear();
        for one in list.range(0, list.len()) {
            let value = one.set.unwrap_or_default();
            let size = format!(" 0 0 {}\r\n", value.len());
            let parts: [&[u8]; 5] = [b"set ", one.key, size.as_bytes(), value, b"\r\n"];
            self.requests.extend_from_slice(&parts.concat());
        }
        self.replies.get_ref().write_all(&self.requests)?;
        let mut all = true;
        for _ in 0..list.len() {
            all &= self.line()? == "STORED";
        }
        Ok(all)
    }

    fn numbers(&mut self) -> io::Result<Numbers> {
        self.replies.get_ref().write_all(b"stats\r\n")?;
        let mut numbers = Numbers::default();
        loop {
            let mut words = self.line()?.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("STAT"), Some(name), Some(value)) => {
                    let number = || value.parse().map_err(|_| odd(value));
                    match name {
                        "curr_items" => numbers.items = number()?,
                        "evictions" => numbers.evictions = number()?,
                        _ => {}
                    }
                }
                (Some("END"), None, None) => return Ok(numbers),
                _ => return Err(odd(&self.line)),
            }
        }
    }

    /// The next line of its answers.
    fn line(&mut self) -> io::Result<&str> {
        self.line.clear();
        match self.replies.read_line(&mut self.line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(self.line.trim_end()),
        }
    }
}

fn odd(answer: &str) -> io::Error {
    io::Error::other(format!("an answer that is not memcached's: {answer}"))
}

impl Display for FilledServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "memcached {}: {} items before the first eviction",
            self.version, self.items_before_eviction
        )
    }
}
