//! Connections that were turned away, kept until their clients have had the time to read why.
//!
//! They count as connections no more, so there is a bound on them: who comes in numbers pushes the
//! oldest out.

use std::collections::VecDeque;
use std::io::Read;
use std::time::{Duration, Instant};

use nuthatch_context::stream::Stream;
use nuthatch_context::system::REJECTED_MAX;

/// How long one is kept.
const KEPT: Duration = Duration::from_secs(2);

/// Reads of what a client sent meanwhile, of so many bytes each: with input unread, the kernel would
/// reset the connection.
const READS: usize = 16;
const READ_BYTES: usize = 4096;

/// Connections that were told that they are turned away.
#[derive(Default)]
pub(crate) struct Rejected {
    streams: VecDeque<(Stream, Instant)>,
}

impl Rejected {
    /// Takes one that was told so.
    pub(crate) fn keep(&mut self, mut stream: Stream, now: Instant) {
        // One that died meanwhile is closed like the others.
        let _ = stream.finish();
        if self.streams.len() >= REJECTED_MAX {
            self.close_oldest();
        }
        self.streams.push_back((stream, now));
    }

    /// Until the next is to be closed; `None` if there is none.
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
