//! A heartbeat, by which the PEs of a job notice whether they reach each other: the first PE hears all, and all hear
//! the servers. (If all heard the first PE alone, a cut between a server and a gateway would not be noticed. Gateways
//! signal no other server, because a thread that waits until Gets from several servers have landed waits for all that
//! its PE has sent.)
//!
//! No OpenSHMEM reports that a PE does not answer. Requests to it wait, and if the system has given a connection up,
//! sent data is lost without a word and they wait for ever. So each PE raises a count once a second in the memory of
//! the PEs that hear it. A silent PE is reported, and a job in which a PE stays silent is ended, so that its supervisor
//! can start another one.
//!
//! A beat is a non-blocking Put: it waits for no PE, and while a PE stands still, or a link is cut, few of them add up.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nuthatch_fabric::{Address, Fabric, NoMemory};

/// How often a PE sends a beat.
const BEAT: Duration = Duration::from_secs(1);

/// After how long a silence is reported.
const SILENCE: Duration = Duration::from_secs(10);

/// After how long a silence ends the job. Systems give up a connection that has had no answer for some fifteen minutes.
const END: Duration = Duration::from_secs(300);

/// A change in the state of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has not been heard for a while.
    Silent(usize),
    /// It is heard again, after so long.
    Heard(usize, Duration),
    /// It has been silent for too long: the wait for it ends.
    Lost(usize),
}

/// A PE whose beats are watched.
struct Peer {
    pe: usize,
    beats: u64,
    heard: Instant,
    told: bool,
}

/// This PE's part.
pub struct Pulse<F: Fabric> {
    fabric: Arc<F>,
    words: Address,
    peers: Vec<Peer>,
    servers: usize,
    beats: u64,
    last: Instant,
}

impl<F: Fabric> Pulse<F> {
    /// Words of symmetric memory that it takes in a job of `pes` PEs: each PE's count, and the word from which the own
    /// count is sent.
    pub const fn words(pes: usize) -> usize {
        (pes + 1).next_multiple_of(8)
    }

    /// The heartbeat of a job whose first `servers` PEs serve. Collective.
    pub fn new(fabric: Arc<F>, servers: usize) -> Result<Self, NoMemory> {
        let (pe, pes) = (fabric.pe(), fabric.pes());
        let words = fabric.allocate(Self::words(pes))?;
        let now = Instant::now();
        let peer = |pe| Peer {
            pe,
            beats: 0,
            heard: now,
            told: false,
        };
        Ok(Self {
            peers: heard_by(pe, pes, servers).map(peer).collect(),
            servers,
            words,
            beats: 0,
            last: now,
            fabric,
        })
    }

    /// Sends a beat, and checks those of others. To be called often.
    pub fn beat(&mut self, now: Instant) -> Vec<Event> {
        if now.duration_since(self.last) < BEAT {
            return Vec::new();
        }
        self.last = now;
        self.beats += 1;
        let (pe, pes) = (self.fabric.pe(), self.fabric.pes());
        let own = self.words.plus(pes);
        // Relaxed: a count. A beat on its way may take a later one's number, which is as good.
        self.fabric.local(own, 1)[0].store(self.beats, Ordering::Relaxed);
        let told = if pe < self.servers { pes } else { 1 };
        for hearer in (0..told).filter(|&hearer| hearer != pe) {
            // A PE that is gone needs no beat.
            let _ = self.fabric.signal(hearer, self.words.plus(pe), own);
        }
        let heard = self.fabric.local(self.words, pes);
        let peers = self.peers.iter_mut();
        peers
            .filter_map(|peer| peer.listen(heard[peer.pe].load(Ordering::Relaxed), now))
            .collect()
    }
}

/// The PEs that a PE hears.
fn heard_by(pe: usize, pes: usize, servers: usize) -> impl Iterator<Item = usize> {
    let end = if pe == 0 { pes } else { servers };
    (0..end).filter(move |&other| other != pe)
}

impl Peer {
    fn listen(&mut self, beats: u64, now: Instant) -> Option<Event> {
        let silent = now.duration_since(self.heard);
        if beats != self.beats {
            (self.beats, self.heard) = (beats, now);
            return std::mem::take(&mut self.told).then_some(Event::Heard(self.pe, silent));
        }
        if silent >= END {
            return Some(Event::Lost(self.pe));
        }
        (silent >= SILENCE && !std::mem::replace(&mut self.told, true))
            .then_some(Event::Silent(self.pe))
    }
}

#[cfg(test)]
mod tests {

    use nuthatch_fabric::threads::{Network, ThreadsFabric};
    use nuthatch_fabric::{Gone, forward_fabric};

    use super::*;

    #[test]
    fn who_is_silent_is_told_of_once_and_lost_in_the_end() {
        let ends = Network::free(3, 64).ends();
        let mut pulses: Vec<_> = ends
            .into_iter()
            .map(|end| Pulse::new(end, 1).unwrap())
            .collect();
        let start = Instant::now();
        let mut events = Vec::new();
        for second in 1..=400 {
            let now = start + Duration::from_secs(second);
            for (pe, pulse) in pulses.iter_mut().enumerate() {
                // Each beat is heard a turn later. The second PE stands still for a minute, the third from then on.
                let stands = (pe == 1 && second <= 60) || (pe == 2 && second > 60);
                if !stands {
                    let said = pulse.beat(now).into_iter();
                    events.extend(said.map(|event| (pe, second, event)));
                }
            }
        }
        let firsts: Vec<_> = events.iter().map(|&(pe, _, event)| (pe, event)).collect();
        assert_eq!(firsts[0], (0, Event::Silent(1)));
        // The pulses are a little older than the start.
        assert!(
            matches!(firsts[1], (0, Event::Heard(1, silent)) if silent.as_secs() == 62),
            "{firsts:?}"
        );
        assert_eq!(firsts[2], (0, Event::Silent(2)));
        assert_eq!(firsts[3], (0, Event::Lost(2)));
        assert_eq!(events[3].1, 361);
    }

    #[test]
    fn a_cut_between_a_server_and_a_gateway_is_noticed() {
        let ends = Network::free(4, 64).ends();
        let fabric = |end| {
            let cut = Cut {
                fabric: end,
                from: [1, 3],
            };
            Pulse::new(Arc::new(cut), 2).unwrap()
        };
        let mut pulses: Vec<_> = ends.into_iter().map(fabric).collect();
        let start = Instant::now();
        let mut events = Vec::new();
        for second in 1..=20 {
            for (pe, pulse) in pulses.iter_mut().enumerate() {
                let said = pulse.beat(start + Duration::from_secs(second)).into_iter();
                events.extend(said.map(|event| (pe, event)));
            }
        }
        assert_eq!(events, [(3, Event::Silent(1))]);
    }

    /// A fabric on which two PEs do not reach each other.
    struct Cut {
        fabric: Arc<ThreadsFabric>,
        from: [usize; 2],
    }

    impl Cut {
        fn below(&self) -> &ThreadsFabric {
            &self.fabric
        }
    }

    impl Fabric for Cut {
        forward_fabric!(pe pes verified allocate local direct put get put_nbi get_nbi compare_swap fetch_add swap fetch set);
        forward_fabric!(is_gone fence quiet barrier broadcast pause doze nanos);

        fn signal(&self, pe: usize, to: Address, from: Address) -> Result<(), Gone> {
            match self.from.contains(&pe) && self.from.contains(&self.pe()) {
                true => Ok(()),
                false => self.fabric.signal(pe, to, from),
            }
        }
    }
}
