//! Connections that were turned away, kept until their clients have had the time to read why.
//!
//! The limit on connections does not count them, so they have a bound of their own: when it is reached, a new one
//! replaces the oldest.

use std::collections::VecDeque;
use std::io::Read;
use std::time::{Duration, Instant};

use nuthatch_state::stream::Stream;
use nuthatch_state::system::REJECTED_MAX;

/// How long a rejected connection is kept.
const KEPT: Duration = Duration::from_secs(2);

/// How many reads drop what a client sent meanwhile, and the bytes of each: with unread input, the kernel would reset
/// the connection.
const READS: usize = 16;
const READ_BYTES: usize = 4096;

/// Connections that were told that they are turned away.
#[derive(Default)]
pub(crate) struct Rejected {
    streams: VecDeque<(Stream, Instant)>,
}

impl Rejected {
    /// Takes a connection whose client was told that it is turned away.
    pub(crate) fn keep(&mut self, mut stream: Stream, now: Instant) {
        // A connection that broke meanwhile is closed like the others.
        let _ = stream.finish();
        if self.streams.len() >= REJECTED_MAX {
            self.close_oldest();
        }
        self.streams.push_back((stream, now));
    }

    /// The time until the next one is to be closed. `None` if there is none.
    pub(crate) fn patience(&self, now: Instant) -> Option<Duration> {
        let (_, since) = self.streams.front()?;
        Some((*since + KEPT).saturating_duration_since(now))
    }

    /// Closes those that were kept long enough.
    pub(crate) fn close_old(&mut self, now: Instant) {
        while self.patience(now) == Some(Duration::ZERO) {
            self.close_oldest();
        }
    }

    /// Closes all: their descriptors are wanted.
    pub(crate) fn close_all(&mut self) {
        self.streams.clear();
    }

    fn close_oldest(&mut self) {
        let Some((mut stream, _)) = self.streams.pop_front() else {
            return;
        };
        let mut dropped = [0; READ_BYTES];
        for _ in 0..READS {
            if !matches!(stream.read(&mut dropped), Ok(1..)) {
                return;
            }
        }
    }
}
