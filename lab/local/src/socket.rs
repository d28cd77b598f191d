//! Sockets by the addresses of nuthatch-client, and the items that a server is filled with.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use crate::items;

/// Items that are sent before the server is waited for.
const PIECE: u32 = 1000;

/// A socket of either kind.
pub trait Socket: Read + Write + Send {}

impl<S: Read + Write + Send> Socket for S {}

/// Connects to `unix:///PATH` or `tcp://HOST:PORT`.
pub fn connect(address: &str) -> Result<Box<dyn Socket>, String> {
    let named = |error: std::io::Error| format!("{address}: {error}");
    if let Some(path) = address.strip_prefix("unix://") {
        return Ok(Box::new(UnixStream::connect(path).map_err(named)?));
    }
    let Some(place) = address.strip_prefix("tcp://") else {
        return Err(format!("{address}: neither unix:// nor tcp://"));
    };
    let stream = TcpStream::connect(place).map_err(named)?;
    stream.set_nodelay(true).map_err(named)?;
    Ok(Box::new(stream))
}

/// Appends a set of memcached's meta protocol.
pub fn set(request: &mut Vec<u8>, key: &[u8], value: &[u8], flags: &str) {
    request.extend_from_slice(b"ms ");
    request.extend_from_slice(key);
    request.extend_from_slice(format!(" {}{flags}\r\n", value.len()).as_bytes());
    request.extend_from_slice(value);
    request.extend_from_slice(b"\r\n");
}

/// Stores all items in a server.
pub fn fill(address: &str, keys: u32, value_size: usize) -> Result<(), String> {
    let named = |error: std::io::Error| format!("{address}: {error}");
    let mut socket = connect(address)?;
    for first in (0..keys).step_by(PIECE as usize) {
        let mut requests = Vec::new();
        for number in first..first.saturating_add(PIECE).min(keys) {
            let key = items::key(number);
            // Quiet: only what is refused is answered.
            set(&mut requests, &key, &items::value(&key, value_size), " q");
        }
        requests.extend_from_slice(b"mn\r\n");
        socket.write_all(&requests).map_err(named)?;
        let mut answer = [0; 4];
        socket.read_exact(&mut answer).map_err(named)?;
        if &answer != b"MN\r\n" {
            return Err(format!("{address}: an item was not stored"));
        }
    }
    Ok(())
}
