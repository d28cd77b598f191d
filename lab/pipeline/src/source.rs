//! The sources of packets: captures, whose flows may be multiplied, or generated traffic.

use crate::capture::Capture;
use crate::generate::Traffic;
use crate::key::FlowKey;
use crate::packet::{self, Skip};

/// Packets in bursts.
pub enum Source<'a> {
    /// From captures: parsed when they are drawn.
    Capture(Replay<'a>),
    /// Generated: nothing to parse.
    Generated(Box<Traffic>),
}

impl Source<'_> {
    /// Chooses the packets of the next burst: the part of a network card.
    pub fn draw(&mut self, keys: &mut [FlowKey]) {
        match self {
            Self::Capture(replay) => replay.draw(keys.len()),
            Self::Generated(traffic) => keys.fill_with(|| traffic.next_key()),
        }
    }

    /// Parses the packets that were drawn into keys: this part is measured.
    #[inline]
    pub fn parse(&self, keys: &mut [FlowKey]) {
        match self {
            Self::Capture(replay) => replay.parse(keys),
            Self::Generated(_) => {}
        }
    }

    /// True if parsing does something.
    pub fn parses(&self) -> bool {
        matches!(self, Self::Capture(_))
    }
}

/// The frames of captures that have keys.
pub struct Frames {
    capture: Capture,
    usable: Vec<u32>,
    flows: usize,
    skipped: [u64; Skip::ALL.len()],
}

impl Frames {
    /// Finds the frames that have keys, and counts those that have none.
    pub fn new(capture: Capture) -> Self {
        let (mut usable, mut keys) = (Vec::new(), Vec::new());
        let mut skipped = [0; Skip::ALL.len()];
        for number in 0..capture.len() {
            let (link, frame) = capture.frame(number);
            match packet::parse(link, frame) {
                Ok(key) => {
                    usable.push(number as u32);
                    keys.push(key);
                }
                Err(skip) => skipped[skip as usize] += 1,
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Self {
            capture,
            usable,
            flows: keys.len(),
            skipped,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.usable.len()
    }

    /// True if none has a key.
    pub fn is_empty(&self) -> bool {
        self.usable.is_empty()
    }

    /// How many keys there are.
    pub fn flows(&self) -> usize {
        self.flows
    }

    /// The captures that they are of.
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    /// Why other frames have no key, and how many.
    pub fn skipped(&self) -> impl Iterator<Item = (Skip, u64)> {
        let counts = Skip::ALL.map(|skip| (skip, self.skipped[skip as usize]));
        counts.into_iter().filter(|&(_, count)| count > 0)
    }
}

/// Frames again and again, in several copies: each copy has the capture's packets in their order
/// between other hosts ([`FlowKey::copy`]), and begins at another packet of it. Packets of the copies alternate.
pub struct Replay<'a> {
    frames: &'a Frames,
    copies: u64,
    round: u64,
    next_copy: u64,
    /// Frame and copy of each packet of the burst.
    drawn: Vec<(u32, u64)>,
}

impl<'a> Replay<'a> {
    /// From the beginning. Panics without frames or copies.
    pub fn new(frames: &'a Frames, copies: u64) -> Self {
        assert!(!frames.is_empty() && copies > 0, "nothing to replay");
        Self {
            frames,
            copies,
            round: 0,
            next_copy: 0,
            drawn: Vec::new(),
        }
    }

    fn draw(&mut self, count: usize) {
        let frames = self.frames.len() as u64;
        self.drawn.clear();
        for _ in 0..count {
            let ahead = u128::from(self.next_copy) * u128::from(frames) / u128::from(self.copies);
            let frame = (self.round + ahead as u64) % frames;
            self.drawn
                .push((self.frames.usable[frame as usize], self.next_copy));
            self.next_copy += 1;
            if self.next_copy == self.copies {
                self.next_copy = 0;
                self.round = (self.round + 1) % frames;
            }
        }
    }

    fn parse(&self, keys: &mut [FlowKey]) {
        for (key, &(frame, copy)) in keys.iter_mut().zip(&self.drawn) {
            let (link, frame) = self.frames.capture.frame(frame as usize);
            // Only frames that have a key were drawn.
            *key = packet::parse(link, frame).unwrap_or_default().copy(copy);
        }
    }
}
