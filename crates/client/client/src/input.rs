//! Bytes as they arrive, until they are whole replies.

use std::io;

use crate::queue::Queue;
use crate::transport::Transport;
use crate::wire::{Reply, parse};

/// Bytes read at a time.
const ROOM: usize = 64 << 10;
/// A buffer that held a large value is not kept for ever.
const KEPT: usize = 1 << 20;

/// What arrived and is no whole reply yet.
#[derive(Debug)]
pub(crate) struct Input {
    room: Box<[u8]>,
    /// The beginning of a reply: a line, and what there is of its value.
    rest: Vec<u8>,
    replies: Vec<Reply>,
    value_max: usize,
}

impl Input {
    pub fn new(value_max: usize) -> Self {
        Self {
            room: vec![0; ROOM].into(),
            rest: Vec::new(),
            replies: Vec::new(),
            value_max,
        }
    }

    /// Reads what is there and hands out the whole replies of it. An error: the connection is of no more use.
    pub fn receive(&mut self, transport: &Transport, queue: &Queue) -> Result<(), String> {
        loop {
            let length = match transport.receive(&mut self.room).map_err(said)? {
                None => return Ok(()),
                Some(0) => return Err("the server closed the connection".to_owned()),
                Some(length) => length,
            };
            let parsed = self.parse(length);
            queue.deliver(&mut self.replies)?;
            parsed?;
            if !transport.may_have_more(length, self.room.len()) {
                return Ok(());
            }
        }
    }

    /// Parses so many new bytes. What was whole before a fault is handed out all the same.
    fn parse(&mut self, length: usize) -> Result<(), String> {
        let fresh = &self.room[..length];
        if self.rest.is_empty() {
            let used = replies(fresh, self.value_max, &mut self.replies)?;
            self.rest.extend_from_slice(&fresh[used..]);
        } else {
            self.rest.extend_from_slice(fresh);
            let used = replies(&self.rest, self.value_max, &mut self.replies)?;
            self.rest.drain(..used);
            if self.rest.is_empty() && self.rest.capacity() > KEPT {
                self.rest = Vec::new();
            }
        }
        Ok(())
    }
}

/// Adds the whole replies of these bytes, and returns how many bytes they are.
fn replies(bytes: &[u8], value_max: usize, into: &mut Vec<Reply>) -> Result<usize, String> {
    let mut used = 0;
    while let Some((reply, length)) = parse(&bytes[used..], value_max)? {
        into.push(reply);
        used += length;
    }
    Ok(used)
}

/// A system's error in its words.
pub(crate) fn said(error: io::Error) -> String {
    error.to_string()
}
