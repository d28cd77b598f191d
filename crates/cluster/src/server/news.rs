//! News: what a server tells all PEs, without waiting for any of them. The news are control words, and pages that are
//! about to change their class.
//!
//! News are numbered. For each PE, in this order:
//! 1. The server writes the news into its own memory, and puts them to the PE.
//! 2. Behind a fence, it puts the mark: the number of the latest of the news.
//! 3. It gets the mark back into its own memory. When the mark has landed, the PE has all of these news.
//! 4. Only then it tells the PE the news that have come up meanwhile.
//!
//! So the server overwrites nothing that is still on its way (a non-blocking Put may read its words late), and a PE
//! that stands still has one set of news on its way to it, however long it stands still.

use std::sync::atomic::Ordering;

use nuthatch_fabric::{Fabric, Gone};

use crate::control::{Control, MARK, WORDS};
use crate::layout::{Layout, TALLY};
use crate::look::{look, seen};

/// For a PE that is gone: there is nothing to tell it.
const NEVER: u64 = u64::MAX;

/// How many of the news a PE has.
#[derive(Clone, Copy, Default)]
struct Peer {
    /// The number up to which news were put.
    sent: u64,
    /// The number up to which news have arrived.
    heard: u64,
}

/// The news, and which PEs have heard them.
pub struct News {
    latest: u64,
    /// What they say.
    control: Control,
    /// The page whose count changed last, and the number of that news.
    page: Option<(usize, u64)>,
    peers: Vec<Peer>,
    /// The number up to which all PEs have heard them.
    spread: u64,
}

impl News {
    /// There are none yet.
    pub fn new(pes: usize) -> Self {
        Self {
            latest: 0,
            control: Control::default(),
            page: None,
            peers: vec![Peer::default(); pes],
            spread: 0,
        }
    }

    /// The number of the latest.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// True if a PE has heard all up to a number.
    pub fn has_heard(&self, pe: usize, number: u64) -> bool {
        self.peers[pe].heard >= number
    }

    /// True if all PEs have heard all up to a number.
    pub fn is_spread(&self, number: u64) -> bool {
        self.spread >= number
    }

    /// Sets the control words that clients are to know.
    pub fn say(&mut self, control: Control) {
        if control != self.control {
            self.control = control;
            self.latest += 1;
        }
    }

    /// A page's count of changes is a new one. It lies where this PE has it as a client.
    pub fn say_page(&mut self, page: usize) {
        self.latest += 1;
        self.page = Some((page, self.latest));
    }

    /// Puts the news to PEs that have none on their way, and checks which PEs have heard them.
    pub fn spread<F: Fabric>(&mut self, fabric: &F, layout: &Layout, server: usize) {
        if self.spread >= self.latest {
            return;
        }
        let teller = Teller {
            fabric,
            layout,
            server,
        };
        let mut told = Vec::new();
        for pe in 0..self.peers.len() {
            self.peers[pe] = teller.hear(pe, self.peers[pe]);
            let Peer { sent, heard } = self.peers[pe];
            if sent == heard && heard < self.latest {
                let page = self.page.filter(|&(_, number)| number > heard);
                let page = page.map(|(page, _)| page);
                let put = teller.put(pe, self.latest, &self.control, page);
                self.peers[pe] = sent_to(put, self.latest, heard);
                told.push(pe);
            }
        }
        if !told.is_empty() {
            fabric.fence();
        }
        for pe in told {
            let marked = teller.mark(pe);
            let Peer { sent, heard } = self.peers[pe];
            self.peers[pe] = sent_to(marked, sent, heard);
        }
        let heard = self.peers.iter().map(|peer| peer.heard);
        self.spread = heard.min().unwrap_or(NEVER).min(self.latest);
    }
}

fn sent_to(put: Result<(), Gone>, sent: u64, heard: u64) -> Peer {
    match put {
        Ok(()) => Peer { sent, heard },
        Err(Gone { .. }) => Peer {
            sent: NEVER,
            heard: NEVER,
        },
    }
}

/// The server that tells the news.
struct Teller<'a, F> {
    fabric: &'a F,
    layout: &'a Layout,
    server: usize,
}

impl<F: Fabric> Teller<'_, F> {
    /// Step 1.
    fn put(
        &self,
        pe: usize,
        number: u64,
        control: &Control,
        page: Option<usize>,
    ) -> Result<(), Gone> {
        let (from, to) = (self.layout.news(pe), self.layout.control(self.server));
        let words = self.fabric.local(from, MARK + 1);
        for (into, word) in words.iter().zip(control.words()) {
            // Relaxed, here and below: the fabric reads them when it is called.
            into.store(word, Ordering::Relaxed);
        }
        words[MARK].store(number, Ordering::Relaxed);
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
    fn mark(&self, pe: usize) -> Result<(), Gone> {
        let at = self.layout.control(self.server).plus(MARK);
        let from = self.layout.news(pe).plus(MARK);
        self.fabric.signal(pe, at, from)?;
        look(self.fabric, pe, at, self.layout.mark(pe))
    }

    /// What a PE is known to have heard now.
    fn hear(&self, pe: usize, peer: Peer) -> Peer {
        if peer.sent == peer.heard {
            return peer;
        }
        if self.fabric.is_gone(pe) {
            return sent_to(Err(Gone { pe }), peer.sent, peer.heard);
        }
        match seen(self.fabric, self.layout.mark(pe)) {
            Some(mark) if mark >= peer.sent => Peer {
                heard: peer.sent,
                ..peer
            },
            // The Get was faster than the Put.
            Some(_) => {
                let at = self.layout.control(self.server).plus(MARK);
                let looked = look(self.fabric, pe, at, self.layout.mark(pe));
                sent_to(looked, peer.sent, peer.heard)
            }
            None => peer,
        }
    }
}
