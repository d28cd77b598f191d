//! Generated traffic: flows between made-up hosts, of a chosen popularity, that begin and end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nuthatch_workload::{Distribution, Popularity, Seed};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::key::{FlowKey, Fragment, Header, TAGGED};

/// The services that generated flows go to, with their percentages: typical of a small site.
const SERVICES: [(u8, u16, u32); 9] = [
    (6, 443, 40),
    (6, 80, 12),
    (17, 53, 12),
    (17, 443, 14),
    (6, 22, 4),
    (17, 123, 4),
    (6, 445, 2),
    (6, 8080, 6),
    (17, 6881, 6),
];

/// The flows that are alive at any time, and the traffic over them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// How many.
    pub flows: u64,
    /// How popular each is.
    pub distribution: Distribution,
    /// The probability that at a packet some flow ends, and a new one takes its place and its popularity.
    pub churn: f64,
}

/// Packets of flows, one after the other, for ever.
#[derive(Clone, Debug)]
pub struct Traffic {
    popularity: Popularity,
    churn: f64,
    /// How many flows ended that had this place; empty without churn.
    generations: Vec<u32>,
    seed: u64,
    random: SmallRng,
}

impl Traffic {
    /// Traffic that a seed determines. Panics without a flow, and if churn is no probability.
    pub fn new(shape: &Shape, seed: u64) -> Self {
        assert!((0.0..=1.0).contains(&shape.churn), "churn is a probability");
        let places = if shape.churn > 0.0 { shape.flows } else { 0 };
        Self {
            popularity: Popularity::new(shape.distribution, shape.flows),
            churn: shape.churn,
            generations: vec![0; places as usize],
            seed,
            random: Seed(seed).thread(0),
        }
    }

    /// The key of the next packet.
    pub fn next_key(&mut self) -> FlowKey {
        let place = self.popularity.draw(&mut self.random);
        if self.generations.is_empty() {
            return key(self.seed, place, 0);
        }
        if self.random.random_bool(self.churn) {
            let ended = self.random.random_range(0..self.generations.len());
            self.generations[ended] = self.generations[ended].wrapping_add(1);
        }
        key(self.seed, place, self.generations[place as usize])
    }
}

/// A key that no packet had before: the next of a scan.
#[derive(Clone, Debug)]
pub struct Scan {
    random: SmallRng,
}

impl Scan {
    /// A scan that a seed determines.
    pub fn new(seed: u64) -> Self {
        Self {
            random: Seed(seed).thread(1),
        }
    }

    /// The key of the next packet: from anywhere outside, to any client and port. Two packets have
    /// the same with a chance of 2^-82.
    pub fn next_key(&mut self) -> FlowKey {
        let source: u32 = self.random.random();
        let destination: u32 = self.random.random();
        let ports: u32 = self.random.random();
        FlowKey::new(&Header {
            source: Ipv4Addr::from(0xc400_0000 | source & 0x03ff_ffff).into(),
            destination: Ipv4Addr::from(0x0a00_0000 | destination & 0x00ff_ffff).into(),
            protocol: 6,
            ports: ((ports >> 16) as u16, ports as u16),
            fragment: Fragment::Whole,
            tags: [0; 3],
        })
    }
}

/// The flow of a place and a generation: always the same.
fn key(seed: u64, place: u64, generation: u32) -> FlowKey {
    let mut random = Seed(seed ^ place.rotate_left(24)).thread(generation as usize + 2);
    let (protocol, port) = service(random.random_range(0..100));
    let client: u64 = random.random();
    let server: u32 = random.random_range(0..4096);
    let client_port = random.random_range(1024..=u16::MAX);
    let v6 = random.random_range(0..8) == 0;
    let tagged = random.random_range(0..10) == 0;
    let (client, server) = if v6 {
        let of = |bits: u64| IpAddr::from(Ipv6Addr::from(0xfd_u128 << 120 | u128::from(bits)));
        (of(client), of(u64::from(server)))
    } else {
        let client = Ipv4Addr::from(0x0a00_0000 | client as u32 & 0x00ff_ffff);
        (client.into(), Ipv4Addr::from(0xc000_0000 | server).into())
    };
    let is_reply = random.random::<bool>();
    let (source, destination, ports) = if is_reply {
        (server, client, (port, client_port))
    } else {
        (client, server, (client_port, port))
    };
    FlowKey::new(&Header {
        source,
        destination,
        protocol,
        ports,
        fragment: Fragment::Whole,
        tags: [if tagged { TAGGED | 100 } else { 0 }, 0, 0],
    })
}

/// The service of a number below 100.
fn service(mut number: u32) -> (u8, u16) {
    for (protocol, port, share) in SERVICES {
        if number < share {
            return (protocol, port);
        }
        number -= share;
    }
    (6, 443)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn traffic(flows: u64, churn: f64, seed: u64) -> Traffic {
        let shape = Shape {
            flows,
            distribution: Distribution::Uniform,
            churn,
        };
        Traffic::new(&shape, seed)
    }

    fn distinct(keys: impl Iterator<Item = FlowKey>) -> usize {
        let keys: HashSet<String> = keys.map(|key| format!("{key:?}")).collect();
        keys.len()
    }

    #[test]
    fn shares_are_of_a_hundred() {
        assert_eq!(SERVICES.iter().map(|(_, _, share)| share).sum::<u32>(), 100);
        assert_eq!(service(0), (6, 443));
        assert_eq!(service(99), (17, 6881));
    }

    #[test]
    fn there_are_as_many_flows_as_asked_and_a_seed_repeats() {
        let keys = |seed| {
            let mut traffic = traffic(1000, 0.0, seed);
            (0..20_000).map(|_| traffic.next_key()).collect::<Vec<_>>()
        };
        assert_eq!(distinct(keys(1).into_iter()), 1000);
        assert_eq!(keys(1), keys(1));
        assert_ne!(keys(1), keys(2));
    }

    #[test]
    fn churn_brings_new_flows() {
        let mut traffic = traffic(100, 0.1, 1);
        let seen = distinct((0..20_000).map(|_| traffic.next_key()));
        // 2,000 flows end in 20,000 packets; nearly all of those that follow are seen.
        assert!((1500..=2100).contains(&seen), "{seen}");
    }

    #[test]
    fn a_scan_does_not_repeat() {
        let mut scan = Scan::new(1);
        assert_eq!(distinct((0..10_000).map(|_| scan.next_key())), 10_000);
    }
}
