//! A server of a few lines that speaks get and set, well or badly.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// How the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As it should.
    Good,
    /// Every get is a miss.
    Forgetful,
    /// Every get has the value of one and the same key.
    Mixing,
    /// Every set is refused.
    Refusing,
    /// Closes after the first line.
    Closing,
    /// Answers no request for statistics.
    Silent,
}

/// The server; its threads end with the test's process, or with their connections.
pub struct FakeServer {
    address: SocketAddr,
}

type Table = Arc<Mutex<HashMap<String, Vec<u8>>>>;

impl FakeServer {
    /// Listens on a free port.
    pub fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let table = Table::default();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let table = table.clone();
                thread::spawn(move || serve(stream, manner, &table));
            }
        });
        Self { address }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves a connection until it closes.
fn serve(stream: TcpStream, manner: Manner, table: &Table) -> Option<()> {
    let mut input = BufReader::new(stream.try_clone().ok()?);
    let mut output = BufWriter::new(stream);
    let mut line = String::new();
    loop {
        if input.buffer().is_empty() {
            output.flush().ok()?;
        }
        line.clear();
        if input.read_line(&mut line).ok()? == 0 || manner == Manner::Closing {
            return None;
        }
        let mut words = line.split_whitespace();
        match words.next()? {
            "get" => {
                for key in words {
                    get(&mut output, manner, table, key)?;
                }
                output.write_all(b"END\r\n").ok()?;
            }
            "set" => {
                let key = words.next()?.to_owned();
                let length: usize = words.nth(2)?.parse().ok()?;
                let mut value = vec![0; length + 2];
                input.read_exact(&mut value).ok()?;
                table.lock().ok()?.insert(key, value);
                let refused = manner == Manner::Refusing;
                let reply: &[u8] = if refused {
                    b"SERVER_ERROR no\r\n"
                } else {
                    b"STORED\r\n"
                };
                output.write_all(reply).ok()?;
            }
            "stats" if manner == Manner::Silent => output.write_all(b"ERROR\r\n").ok()?,
            "stats" => {
                let items = table.lock().ok()?.len();
                write!(output, "STAT pid 1\r\nSTAT curr_items {items}\r\nEND\r\n").ok()?;
            }
            _ => return None,
        }
    }
}

fn get(output: &mut impl Write, manner: Manner, table: &Table, key: &str) -> Option<()> {
    let table = table.lock().ok()?;
    let asked = if manner == Manner::Mixing {
        table.keys().next()?
    } else {
        key
    };
    if manner == Manner::Forgetful {
        return Some(());
    }
    if let Some(value) = table.get(asked) {
        write!(output, "VALUE {key} 0 {}\r\n", value.len() - 2).ok()?;
        output.write_all(value).ok()?;
    }
    Some(())
}
