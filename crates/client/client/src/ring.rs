//! Which server has a key.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::address::{Endpoint, Server};
use crate::options::Distribution;

/// The places of a server on the ring, if weights count: as many on average.
const PLACES: usize = 160;
/// As many, if they do not.
const PLACES_UNWEIGHTED: usize = 100;
/// One hash makes as many places.
const PLACES_OF_HASH: usize = 4;
/// memcached's port, which libmemcached leaves out of a server's name.
const PORT: u16 = 11211;

/// Which server has a key. Servers go by their numbers.
#[derive(Debug)]
pub(crate) enum Ring {
    /// One server has all keys.
    One,
    /// A hash of keys, and places in ascending order, each with its server: a key is at the first place at or above its hash.
    Places(fn(&[u8]) -> u32, Vec<(u32, usize)>),
    /// Each server's seed and weight.
    Scores(Vec<(u64, f64)>),
}

impl Ring {
    pub fn new(servers: &[Server], distribution: Distribution) -> Self {
        match distribution {
            _ if servers.len() == 1 => Self::One,
            Distribution::Ketama => Self::Places(md5_of, sorted(weighted(servers))),
            Distribution::KetamaUnweighted => {
                Self::Places(one_at_a_time, sorted(unweighted(servers)))
            }
            Distribution::Rendezvous => {
                let scored = |server: &Server| {
                    let seed = xxh3_64(server.endpoint.to_string().as_bytes());
                    (seed, f64::from(server.weight))
                };
                Self::Scores(servers.iter().map(scored).collect())
            }
        }
    }

    /// The first server of a key that is not passed over. None: all are.
    pub fn server(&self, key: &[u8], passes_over: impl Fn(usize) -> bool) -> Option<usize> {
        match self {
            Self::One => (!passes_over(0)).then_some(0),
            Self::Places(hash, places) => {
                let hash = hash(key);
                let first = places.partition_point(|&(place, _)| place < hash);
                let from_there = places[first..].iter().chain(&places[..first]);
                from_there
                    .map(|&(_, server)| server)
                    .find(|&server| !passes_over(server))
            }
            Self::Scores(servers) => {
                let mut best = None;
                for (number, &(seed, weight)) in servers.iter().enumerate() {
                    let score = score(xxh3_64_with_seed(key, seed), weight);
                    if best.is_none_or(|(other, _)| score > other) && !passes_over(number) {
                        best = Some((score, number));
                    }
                }
                best.map(|(_, number)| number)
            }
        }
    }
}

/// Of servers with twice the weight, twice as many keys have their highest score there.
fn score(hash: u64, weight: f64) -> f64 {
    // Between 0 and 1, and neither of them.
    let part = ((hash >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -weight / part.ln()
}

fn weighted(servers: &[Server]) -> Vec<(u32, usize)> {
    let total: u64 = servers.iter().map(|server| u64::from(server.weight)).sum();
    let mut places = Vec::new();
    for (number, server) in servers.iter().enumerate() {
        // In the arithmetic of libmemcached, which rounds: another one has other places.
        let share = server.weight as f32 / total as f32;
        let hashes = (f64::from(share * (PLACES / PLACES_OF_HASH) as f32 * servers.len() as f32)
            + 1e-10)
            .floor();
        for index in 0..hashes as usize {
            let hash = md5::compute(format!("{}-{index}", name(&server.endpoint))).0;
            places.extend((0..PLACES_OF_HASH).map(|alignment| (part(&hash, alignment), number)));
        }
    }
    places
}

fn unweighted(servers: &[Server]) -> Vec<(u32, usize)> {
    let mut places = Vec::new();
    for (number, server) in servers.iter().enumerate() {
        let name = name(&server.endpoint);
        let place = |index| one_at_a_time(format!("{name}-{index}").as_bytes());
        places.extend((0..PLACES_UNWEIGHTED).map(|index| (place(index), number)));
    }
    places
}

fn sorted(mut places: Vec<(u32, usize)>) -> Vec<(u32, usize)> {
    places.sort_unstable();
    places
}

/// A server's name on the ring.
fn name(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp { host, port: PORT } => host.clone(),
        Endpoint::Tcp { host, port } => format!("{host}:{port}"),
        Endpoint::Unix(path) | Endpoint::Shared(path) => path.display().to_string(),
    }
}

fn md5_of(key: &[u8]) -> u32 {
    part(&md5::compute(key).0, 0)
}

/// Bob Jenkins' hash of this name, which is libmemcached's default.
fn one_at_a_time(bytes: &[u8]) -> u32 {
    let mut hash = 0_u32;
    for &byte in bytes {
        hash = hash.wrapping_add(byte.into());
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// Four bytes of a hash, the last one first.
fn part(hash: &[u8; 16], alignment: usize) -> u32 {
    let at = alignment * 4;
    u32::from_le_bytes([hash[at], hash[at + 1], hash[at + 2], hash[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(weights: &[u32]) -> Vec<Server> {
        let server = |(number, &weight): (usize, &u32)| Server {
            or: None,
            endpoint: Endpoint::Tcp {
                host: format!("10.0.0.{number}"),
                port: PORT,
            },
            weight,
        };
        weights.iter().enumerate().map(server).collect()
    }

    /// How many of 20,000 keys each server has.
    fn shares(ring: &Ring, servers: usize, passes_over: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut shares = vec![0; servers];
        for key in 0..20_000 {
            shares[ring
                .server(format!("key-{key}").as_bytes(), &passes_over)
                .unwrap()] += 1;
        }
        shares
    }

    #[test]
    fn weights_are_shares() {
        for distribution in [Distribution::Ketama, Distribution::Rendezvous] {
            let shares = shares(&Ring::new(&servers(&[1, 1, 2]), distribution), 3, |_| false);
            let near = |share: usize, part: usize| (part * 7 / 10..part * 13 / 10).contains(&share);
            assert!(
                near(shares[0], 5000) && near(shares[1], 5000) && near(shares[2], 10_000),
                "{distribution:?}: {shares:?}"
            );
        }
    }

    #[test]
    fn who_is_passed_over_leaves_the_other_servers_keys_where_they_are() {
        for distribution in [
            Distribution::Ketama,
            Distribution::KetamaUnweighted,
            Distribution::Rendezvous,
        ] {
            let ring = Ring::new(&servers(&[1; 5]), distribution);
            assert_eq!(shares(&ring, 5, |server| server == 2)[2], 0);
            for key in 0..1000 {
                let key = format!("key-{key}");
                let before = ring.server(key.as_bytes(), |_| false).unwrap();
                let after = ring.server(key.as_bytes(), |server| server == 2).unwrap();
                assert!(before == after || before == 2, "{key}: {before} {after}");
            }
            assert_eq!(ring.server(b"k", |_| true), None);
        }
    }
}
