//! The five-tuple, the key of a flow: addresses, ports and protocol.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nuthatch_base::hash::KeyHasher;

/// The five-tuple of a transport connection, IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FiveTuple {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The source port; 0 in protocols without ports.
    pub source_port: u16,
    /// The destination port; 0 in protocols without ports.
    pub destination_port: u16,
    /// The IP protocol number: 6 is TCP, 17 UDP.
    pub protocol: u8,
}

/// Bytes of a packed five-tuple: whole words.
pub const PACKED: usize = 40;

impl FiveTuple {
    /// As bytes: equal for equal flows only.
    ///
    /// ```text
    /// 0                16               32     34     36     37      38   40
    /// +----------------+----------------+------+------+------+-------+----+
    /// | source         | destination    | port | port | prot | kinds | 0  |
    /// +----------------+----------------+------+------+------+-------+----+
    /// ```
    ///
    /// An IPv4 address has four bytes and is followed by zeros; `kinds` has bit 0 set if the source is
    /// IPv4, and bit 1 if the destination is, so that none equals an IPv6 address.
    pub fn pack(&self) -> [u8; PACKED] {
        let mut packed = [0; PACKED];
        let mut kinds = 0;
        for (index, address) in [self.source, self.destination].into_iter().enumerate() {
            let start = 16 * index;
            match address {
                IpAddr::V4(address) => {
                    packed[start..start + 4].copy_from_slice(&address.octets());
                    kinds |= 1 << index;
                }
                IpAddr::V6(address) => {
                    packed[start..start + 16].copy_from_slice(&address.octets());
                }
            }
        }
        packed[32..34].copy_from_slice(&self.source_port.to_be_bytes());
        packed[34..36].copy_from_slice(&self.destination_port.to_be_bytes());
        packed[36] = self.protocol;
        packed[37] = kinds;
        packed
    }

    /// The flow of which these bytes are the packed form; any bytes give a flow.
    pub fn unpack(packed: &[u8; PACKED]) -> Self {
        let address = |index: usize| {
            let start = 16 * index;
            let mut octets = [0; 16];
            octets.copy_from_slice(&packed[start..start + 16]);
            let [a, b, c, d, ..] = octets;
            if packed[37] >> index & 1 == 1 {
                IpAddr::V4(Ipv4Addr::new(a, b, c, d))
            } else {
                IpAddr::V6(Ipv6Addr::from(octets))
            }
        };
        Self {
            source: address(0),
            destination: address(1),
            source_port: u16::from_be_bytes([packed[32], packed[33]]),
            destination_port: u16::from_be_bytes([packed[34], packed[35]]),
            protocol: packed[36],
        }
    }

    /// The hash for a table. With a hasher from [`KeyHasher::random`] a sender of packets cannot choose
    /// flows that collide in one bucket.
    #[inline]
    pub fn hash(&self, hasher: &KeyHasher) -> u64 {
        hasher.hash(&self.pack())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(source: &str, destination: &str) -> FiveTuple {
        FiveTuple {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            source_port: 443,
            destination_port: 50_000,
            protocol: 6,
        }
    }

    #[test]
    fn packing_can_be_undone() {
        for (source, destination) in [
            ("10.0.0.1", "192.168.255.254"),
            ("2001:db8::1", "fe80::ffff:1"),
            ("::", "0.0.0.0"),
        ] {
            let flow = flow(source, destination);
            assert_eq!(FiveTuple::unpack(&flow.pack()), flow);
        }
    }

    #[test]
    fn addresses_of_different_kinds_differ() {
        let four = flow("10.0.0.1", "10.0.0.2");
        let six = flow("a00:1::", "a00:2::");
        assert_eq!(four.pack()[..36], six.pack()[..36]);
        assert_ne!(four.pack(), six.pack());
        let hasher = KeyHasher::seeded(1);
        assert_ne!(four.hash(&hasher), six.hash(&hasher));
    }
}
