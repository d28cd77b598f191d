//! Notices: what a server tells all PEs, without waiting for any of them. They are control words, and pages that are
//! about to change their class.
//!
//! Notices are numbered. For each PE, in this order:
//! 1. The server writes the notices into its own memory, and puts them to the PE.
//! 2. Behind a fence, it puts the number of the latest of them.
//! 3. It gets that number back into its own memory. When the number has landed, the PE has received all of these
//!    notices.
//! 4. Only then it sends the PE the notices that have come up meanwhile.
//!
//! So the server overwrites nothing that is still on its way (a non-blocking Put may read its words late), and a PE
//! that stands still has one set of notices on its way to it, however long it stands still.

use std::sync::atomic::Ordering;

use nuthatch_fabric::{Fabric, Gone};

use crate::control::{Control, NUMBER, WORDS};
use crate::layout::{Layout, TALLY};
use crate::poll::{begin_poll, polled};

/// For a PE that is gone: there is nothing to tell it.
const NEVER: u64 = u64::MAX;

/// How many of the notices a PE has.
#[derive(Clone, Copy, Default)]
struct Peer {
    /// The number up to which notices were put.
    sent: u64,
    /// The number up to which notices have arrived.
    received: u64,
}

/// The notices, and which PEs have received them.
pub struct Notices {
    latest: u64,
    /// What they say.
    control: Control,
    /// The page whose count changed last, and the number of that notice.
    page: Option<(usize, u64)>,
    peers: Vec<Peer>,
    /// The number up to which all PEs have received them.
    delivered: u64,
}

impl Notices {
    /// There are none yet.
    pub fn new(pes: usize) -> Self {
        Self {
            latest: 0,
            control: Control::default(),
            page: None,
            peers: vec![Peer::default(); pes],
            delivered: 0,
        }
    }

    /// The number of the latest.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// True if a PE has received all up to a number.
    pub fn has_received(&self, pe: usize, number: u64) -> bool {
        self.peers[pe].received >= number
    }

    /// True if all PEs have received all up to a number.
    pub fn is_delivered(&self, number: u64) -> bool {
        self.delivered >= number
    }

    /// Sets the control words that clients are to know.
    pub fn publish(&mut self, control: Control) {
        if control != self.control {
            self.control = control;
            self.latest += 1;
        }
    }

    /// A page's count of changes is a new one. It lies where this PE has it as a client.
    pub fn publish_page(&mut self, page: usize) {
        self.latest += 1;
        self.page = Some((page, self.latest));
    }

    /// Puts notices to PEs that have none on their way, and checks which PEs have received them.
    pub fn send<F: Fabric>(&mut self, fabric: &F, layout: &Layout, server: usize) {
        if self.delivered >= self.latest {
            return;
        }
        let broadcaster = Broadcaster {
            fabric,
            layout,
            server,
        };
        let mut newly_sent = Vec::new();
        for pe in 0..self.peers.len() {
            self.peers[pe] = broadcaster.poll(pe, self.peers[pe]);
            let Peer { sent, received } = self.peers[pe];
            if sent == received && received < self.latest {
                let page = self.page.filter(|&(_, number)| number > received);
                let page = page.map(|(page, _)| page);
                let put = broadcaster.put(pe, self.latest, &self.control, page);
                self.peers[pe] = sent_to(put, self.latest, received);
                newly_sent.push(pe);
            }
        }
        if !newly_sent.is_empty() {
            fabric.fence();
        }
        for pe in newly_sent {
            let numbered = broadcaster.put_number(pe);
            let Peer { sent, received } = self.peers[pe];
            self.peers[pe] = sent_to(numbered, sent, received);
        }
        let received = self.peers.iter().map(|peer| peer.received);
        self.delivered = received.min().unwrap_or(NEVER).min(self.latest);
    }
}

fn sent_to(put: Result<(), Gone>, sent: u64, received: u64) -> Peer {
    match put {
        Ok(()) => Peer { sent, received },
        Err(Gone { .. }) => Peer {
            sent: NEVER,
            received: NEVER,
        },
    }
}

/// The server that sends the notices.
struct Broadcaster<'a, F> {
    fabric: &'a F,
    layout: &'a Layout,
    server: usize,
}

impl<F: Fabric> Broadcaster<'_, F> {
    /// Step 1.
    fn put(
        &self,
        pe: usize,
        number: u64,
        control: &Control,
        page: Option<usize>,
    ) -> Result<(), Gone> {
        let (from, to) = (self.layout.notices(pe), self.layout.control(self.server));
        let words = self.fabric.local(from, NUMBER + 1);
        for (into, word) in words.iter().zip(control.words()) {
            // Relaxed, here and below: the fabric reads them when it is called.
            into.store(word, Ordering::Relaxed);
        }
        words[NUMBER].store(number, Ordering::Relaxed);
        self.fabric.put_nbi(pe, to, from, WORDS)?;
        // No PE acts on statistics: they may be overwritten while they are on their way.
        let counted = (self.layout.tally(self.server), self.layout.own_tally());
        self.fabric.put_nbi(pe, counted.0, counted.1, TALLY)?;
        if let Some(page) = page {
            let at = self.layout.generations(self.server).plus(page);
            self.fabric.put_nbi(pe, at, at, 1)?;
        }
        Ok(())
    }

    /// Steps 2 and 3.
    fn put_number(&self, pe: usize) -> Result<(), Gone> {
        let at = self.layout.control(self.server).plus(NUMBER);
        let from = self.layout.notices(pe).plus(NUMBER);
        self.fabric.signal(pe, at, from)?;
        begin_poll(self.fabric, pe, at, self.layout.received(pe))
    }

    /// What a PE is known to have received now.
    fn poll(&self, pe: usize, peer: Peer) -> Peer {
        if peer.sent == peer.received {
            return peer;
        }
        if self.fabric.is_gone(pe) {
            return sent_to(Err(Gone { pe }), peer.sent, peer.received);
        }
        match polled(self.fabric, self.layout.received(pe)) {
            Some(number) if number >= peer.sent => Peer {
                received: peer.sent,
                ..peer
            },
            // The Get was faster than the Put.
            Some(_) => {
                let at = self.layout.control(self.server).plus(NUMBER);
                let begun = begin_poll(self.fabric, pe, at, self.layout.received(pe));
                sent_to(begun, peer.sent, peer.received)
            }
            None => peer,
        }
    }
}
