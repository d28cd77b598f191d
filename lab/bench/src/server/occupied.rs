//! A load stores items, replaces those of the same keys, and evicts others. So a server that holds items
//! already is refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use nuthatch_program::Failure;

/// Bytes of statistics that are read, at most.
const STATS_MAX: u64 = 1 << 20;

/// Refuses a server that holds items, or that does not say whether it does.
pub fn refuse(target: SocketAddr) -> Result<(), Failure> {
    match items(target) {
        Ok(0) => Ok(()),
        Ok(items) => Err(Failure::Run(format!(
            "{target} holds {items} items, which the load would replace or evict; \
             --overwrite allows that"
        ))),
        Err(error) => Err(Failure::Run(format!(
            "{target} does not say whether it holds items ({error}); --overwrite goes on \
             without knowing"
        ))),
    }
}

/// How many items a server says it holds.
fn items(target: SocketAddr) -> Result<u64, String> {
    let mut stream = TcpStream::connect(target).map_err(|error| error.to_string())?;
    stream
        .write_all(b"stats\r\n")
        .map_err(|error| error.to_string())?;
    for line in BufReader::new(stream.take(STATS_MAX)).lines() {
        let line = line.map_err(|error| error.to_string())?;
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("STAT"), Some("curr_items"), Some(items)) => {
                return items.parse().map_err(|_| format!("curr_items {items}"));
            }
            (Some("STAT"), ..) => {}
            _ => return Err(format!("it answers {line:?} to stats")),
        }
    }
    Err("it closed the connection".to_owned())
}
