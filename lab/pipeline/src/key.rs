//! The key of a packet: the fields that rules may match, in six words, and masks over them.
//!
//! ```text
//!         63            48 47            32 31        16 15       8 7        2 1       0
//! word 0  |                     source address, high half (0 for IPv4)                  |
//! word 1  |                     source address, low half                                |
//! word 2  |                     destination address, high half (0 for IPv4)             |
//! word 3  |                     destination address, low half                           |
//! word 4  |       0       |  source port   |  dest. port | protocol | version | fragment |
//! word 5  |       0       |  third tag     |  second tag |       outermost VLAN tag      |
//! ```
//!
//! A VLAN tag is its 12 bits with bit 12 set, so that VLAN 0 differs from no tag. ICMP's type and
//! code are in the ports' places. Later fragments of a packet have no ports: they are 0.

use std::fmt::{self, Debug};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nuthatch_base::hash::KeyHasher;

/// Words of a key.
pub const WORDS: usize = 6;

/// Set in a tag, whatever its number.
pub const TAGGED: u16 = 1 << 12;

const SOURCE_PORT_SHIFT: u32 = 32;
const DESTINATION_PORT_SHIFT: u32 = 16;
const PROTOCOL_SHIFT: u32 = 8;
const VERSION_SHIFT: u32 = 2;

/// A field of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// TCP's, UDP's or SCTP's source port, or ICMP's type: 16 bits.
    SourcePort,
    /// The destination port, or ICMP's code: 16 bits.
    DestinationPort,
    /// The IP protocol: 8 bits.
    Protocol,
    /// 4 or 6.
    Version,
    /// See [`Fragment`]: 2 bits.
    Fragment,
    /// The outermost VLAN tag with [`TAGGED`], or 0: 16 bits.
    OuterTag,
}

impl Field {
    /// The word it is in, how far from its low end, and its bits.
    const fn position(self) -> (usize, u32, u64) {
        match self {
            Self::SourcePort => (4, SOURCE_PORT_SHIFT, 0xffff),
            Self::DestinationPort => (4, DESTINATION_PORT_SHIFT, 0xffff),
            Self::Protocol => (4, PROTOCOL_SHIFT, 0xff),
            Self::Version => (4, VERSION_SHIFT, 0x3f),
            Self::Fragment => (4, 0, 0b11),
            Self::OuterTag => (5, 0, 0xffff),
        }
    }
}

/// The source or the destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where it comes from.
    Source,
    /// Where it goes.
    Destination,
}

impl End {
    const fn first_word(self) -> usize {
        match self {
            Self::Source => 0,
            Self::Destination => 2,
        }
    }
}

/// Which part of a packet this is. Bit 0: a fragment. Bit 1: not the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Fragment {
    /// All of it.
    #[default]
    Whole = 0b00,
    /// The first fragment, with the ports.
    First = 0b01,
    /// A later one, without.
    Later = 0b11,
}

/// A packet's fields before they are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes; of the same family.
    pub destination: IpAddr,
    /// The IP protocol's number.
    pub protocol: u8,
    /// Source and destination port, or ICMP's type and code, or zeros.
    pub ports: (u16, u16),
    /// Which part it is.
    pub fragment: Fragment,
    /// VLAN tags from the outside in, each with [`TAGGED`]; 0 where there is none.
    pub tags: [u16; 3],
}

/// A packet's key: all fields, packed.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    words: [u64; WORDS],
}

impl FlowKey {
    /// Packs a header.
    pub fn new(header: &Header) -> Self {
        let mut key = Self::default();
        key.set_address(End::Source, header.source);
        key.set_address(End::Destination, header.destination);
        let version = if header.source.is_ipv4() { 4 } else { 6 };
        key.set(Field::SourcePort, u64::from(header.ports.0));
        key.set(Field::DestinationPort, u64::from(header.ports.1));
        key.set(Field::Protocol, u64::from(header.protocol));
        key.set(Field::Version, version);
        key.set(Field::Fragment, header.fragment as u64);
        let [outer, second, third] = header.tags.map(u64::from);
        key.words[5] = outer | second << 16 | third << 32;
        key
    }

    /// The value of a field.
    pub fn get(&self, field: Field) -> u64 {
        let (word, shift, bits) = field.position();
        self.words[word] >> shift & bits
    }

    /// Puts a value into a field that was 0.
    pub(crate) fn set(&mut self, field: Field, value: u64) {
        let (word, shift, bits) = field.position();
        debug_assert!(value <= bits, "{field:?} has no {value}");
        self.words[word] |= (value & bits) << shift;
    }

    pub(crate) fn set_address(&mut self, end: End, address: IpAddr) {
        let bits = match address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        };
        self.words[end.first_word()] = (bits >> 64) as u64;
        self.words[end.first_word() + 1] = bits as u64;
    }

    /// The bits of an address: those of IPv4 in the low 32.
    pub(crate) fn address_bits(&self, end: End) -> u128 {
        wide(&self.words, end)
    }

    /// An address.
    pub fn address(&self, end: End) -> IpAddr {
        let bits = self.address_bits(end);
        match self.get(Field::Version) {
            4 => Ipv4Addr::from(bits as u32).into(),
            _ => Ipv6Addr::from(bits).into(),
        }
    }

    /// Its bits under a mask, the others 0.
    #[inline(always)]
    pub fn masked(&self, mask: &Mask) -> Self {
        Self {
            words: std::array::from_fn(|word| self.words[word] & mask.words[word]),
        }
    }

    /// Its hash: all 64 bits are usable.
    #[inline(always)]
    pub fn hash(&self, hasher: &KeyHasher) -> u64 {
        let mut bytes = [0; WORDS * 8];
        for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.words) {
            *chunk = word.to_le_bytes();
        }
        hasher.hash(&bytes)
    }

    /// The same flow between other hosts: copy 0 is itself, and other copies differ from it and (but for a chance of
    /// 2^-48 a pair) from those of all other flows. Networks stay the same, so that rules that match networks still
    /// match: the low 24 bits of an IPv4 address change, the low 64 of an IPv6 one.
    #[inline(always)]
    pub fn copy(mut self, copy: u64) -> Self {
        // An odd factor: different copies get different bits, and copy 0 gets none.
        let bits = copy.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (source, destination) = match self.get(Field::Version) {
            4 => (bits >> 40, bits >> 16 & 0xff_ffff),
            _ => (bits, bits.rotate_left(32)),
        };
        self.words[1] ^= source;
        self.words[3] ^= destination;
        self
    }
}

impl Debug for FlowKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.address(End::Source);
        let destination = self.address(End::Destination);
        let ports = (
            self.get(Field::SourcePort),
            self.get(Field::DestinationPort),
        );
        let protocol = self.get(Field::Protocol);
        let fragment = self.get(Field::Fragment);
        write!(
            out,
            "{source} {} > {destination} {}, protocol {protocol}, fragment {fragment}, tags {:x}",
            ports.0, ports.1, self.words[5]
        )
    }
}

/// Which bits of a key count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mask {
    words: [u64; WORDS],
}

impl Mask {
    /// No bit.
    pub const NONE: Self = Self { words: [0; WORDS] };
    /// Every bit.
    pub const ALL: Self = Self {
        words: [u64::MAX; WORDS],
    };
    /// Protocol, version, fragment and tags: what kind of packet it is, from any sender to any receiver.
    pub const KIND: Self = Self {
        words: [0, 0, 0, 0, 0xffff, u64::MAX],
    };
    /// Bits of a field: those set in `bits`, which count from the field's low end.
    #[must_use]
    pub const fn with(mut self, field: Field, bits: u64) -> Self {
        let (word, shift, all) = field.position();
        self.words[word] |= (bits & all) << shift;
        self
    }

    /// All bits of a field.
    #[must_use]
    pub const fn with_all(self, field: Field) -> Self {
        self.with(field, u64::MAX)
    }

    /// The first `length` bits of an address of `width` bits (32 or 128).
    #[must_use]
    pub fn with_prefix(mut self, end: End, length: u8, width: u8) -> Self {
        let ones = |count: u8| match count {
            0 => 0,
            count => u128::MAX >> (128 - u32::from(count)),
        };
        let bits = ones(width) & !ones(width - length.min(width));
        self.words[end.first_word()] |= (bits >> 64) as u64;
        self.words[end.first_word() + 1] |= bits as u64;
        self
    }

    /// Which bits of a field count.
    pub fn get(&self, field: Field) -> u64 {
        let (word, shift, bits) = field.position();
        self.words[word] >> shift & bits
    }

    /// Which bits of an address count.
    pub(crate) fn address(&self, end: End) -> u128 {
        wide(&self.words, end)
    }

    /// The bits of both.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            words: std::array::from_fn(|word| self.words[word] | other.words[word]),
        }
    }

    /// The bits that both have.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        Self {
            words: std::array::from_fn(|word| self.words[word] & other.words[word]),
        }
    }
}

/// Both words of an address.
fn wide(words: &[u64; WORDS], end: End) -> u128 {
    let at = end.first_word();
    u128::from(words[at]) << 64 | u128::from(words[at + 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            source: "10.1.2.3".parse().unwrap(),
            destination: "192.0.2.1".parse().unwrap(),
            protocol: 17,
            ports: (1234, 53),
            fragment: Fragment::First,
            tags: [TAGGED | 7, TAGGED, 0],
        }
    }

    #[test]
    fn fields_are_where_they_were_put() {
        let key = FlowKey::new(&header());
        assert_eq!(key.address(End::Source), header().source);
        assert_eq!(key.address(End::Destination), header().destination);
        for (field, value) in [
            (Field::SourcePort, 1234),
            (Field::DestinationPort, 53),
            (Field::Protocol, 17),
            (Field::Version, 4),
            (Field::Fragment, 1),
            (Field::OuterTag, 0x1007),
        ] {
            assert_eq!(key.get(field), value, "{field:?}");
            let mask = Mask::NONE.with_all(field);
            assert_eq!(key.masked(&mask).get(field), value);
            let others = FlowKey::new(&Header {
                tags: [0; 3],
                ..header()
            });
            assert_eq!(
                others.masked(&mask) == key.masked(&mask),
                field != Field::OuterTag
            );
        }
    }

    #[test]
    fn every_field_changes_key_and_hash() {
        let hasher = KeyHasher::seeded(1);
        let key = FlowKey::new(&header());
        let v6 = |text: &str| text.parse::<IpAddr>().unwrap();
        let others = [
            Header {
                source: v6("10.1.2.4"),
                ..header()
            },
            Header {
                destination: v6("192.0.2.2"),
                ..header()
            },
            Header {
                protocol: 6,
                ..header()
            },
            Header {
                ports: (1235, 53),
                ..header()
            },
            Header {
                ports: (1234, 54),
                ..header()
            },
            Header {
                fragment: Fragment::Whole,
                ..header()
            },
            Header {
                tags: [TAGGED | 7, 0, 0],
                ..header()
            },
            // The same bits as an IPv6 address.
            Header {
                source: v6("::10.1.2.3"),
                destination: v6("::192.0.2.1"),
                ..header()
            },
        ];
        for other in others {
            let other = FlowKey::new(&other);
            assert_ne!(key, other);
            assert_ne!(key.hash(&hasher), other.hash(&hasher));
        }
    }

    #[test]
    fn prefixes_cover_their_bits() {
        let mask = |length, width| Mask::NONE.with_prefix(End::Source, length, width);
        assert_eq!(mask(0, 32), Mask::NONE);
        assert_eq!(mask(32, 32).words[..2], [0, 0xffff_ffff]);
        assert_eq!(mask(8, 32).words[..2], [0, 0xff00_0000]);
        assert_eq!(mask(128, 128).words[..2], [u64::MAX, u64::MAX]);
        assert_eq!(mask(65, 128).words[..2], [u64::MAX, 1 << 63]);
        assert_eq!(mask(48, 128).words[..2], [u64::MAX << 16, 0]);
    }

    #[test]
    fn copies_stay_in_their_networks_and_differ() {
        let key = FlowKey::new(&header());
        assert_eq!(key.copy(0), key);
        let network = Mask::ALL.and(&Mask::NONE.with_prefix(End::Source, 8, 32));
        let mut copies: Vec<FlowKey> = (0..100_000).map(|copy| key.copy(copy)).collect();
        for copy in &copies {
            assert_eq!(copy.masked(&network), key.masked(&network));
            assert_eq!(copy.get(Field::DestinationPort), 53);
        }
        copies.sort_unstable();
        copies.dedup();
        assert_eq!(copies.len(), 100_000);
    }
}
