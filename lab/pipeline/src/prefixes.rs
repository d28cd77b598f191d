//! The prefixes that a tuple's entries have in one field, and the fewest bits of a packet that prove that no entry has
//! its prefix.

use crate::key::{End, Field, FlowKey, Mask};

/// A field that rules match by prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// An address.
    Address(End),
    /// A port.
    Port(Field),
}

impl Part {
    pub(crate) const ALL: [Self; 4] = [
        Self::Address(End::Source),
        Self::Address(End::Destination),
        Self::Port(Field::SourcePort),
        Self::Port(Field::DestinationPort),
    ];
}

/// The prefixes of one field that entries have, all of one length.
#[derive(Clone, Debug)]
pub(crate) struct Prefixes {
    part: Part,
    /// Bits of the field: 32 or 128 of an address, 16 of a port.
    width: u8,
    /// Bits of the prefixes, at least 1.
    length: u8,
    /// Each with its first bit on top; sorted when all are there.
    values: Vec<u128>,
}

impl Prefixes {
    /// None if the mask has no bit of the field. Masks have prefixes of these fields only.
    pub(crate) fn new(part: Part, mask: &Mask) -> Option<Self> {
        let (bits, width) = match part {
            Part::Address(end) => match mask.address(end) {
                // A prefix of an IPv6 address begins above this.
                bits if bits >> 32 == 0 => (bits, 32),
                bits => (bits, 128),
            },
            Part::Port(field) => (u128::from(mask.get(field)), 16),
        };
        (bits != 0).then(|| Self {
            part,
            width,
            length: bits.count_ones() as u8,
            values: Vec::new(),
        })
    }

    /// Adds an entry's prefix.
    pub(crate) fn add(&mut self, key: &FlowKey) {
        self.values.push(self.value(key));
    }

    /// To be called when all are added.
    pub(crate) fn sort(&mut self) {
        self.values.sort_unstable();
        self.values.dedup();
    }

    /// If no entry has this packet's prefix: the length of its shortest front that no entry has, and the bits of that
    /// front.
    pub(crate) fn absence(&self, key: &FlowKey) -> Option<(u8, Mask)> {
        let value = self.value(key);
        let place = self.values.binary_search(&value).err()?;
        // In sorted order the longest common prefix is that with a neighbour.
        let neighbours = self.values[..place]
            .last()
            .into_iter()
            .chain(self.values.get(place));
        let common = neighbours
            .map(|other| (value ^ other).leading_zeros())
            .max()?;
        let length = common as u8 + 1;
        Some((length, self.front(length)))
    }

    /// The prefix of a packet, its first bit on top.
    fn value(&self, key: &FlowKey) -> u128 {
        let bits = match self.part {
            Part::Address(end) => key.address_bits(end),
            Part::Port(field) => u128::from(key.get(field)),
        };
        let on_top = bits << (128 - u32::from(self.width));
        on_top & (u128::MAX << (128 - u32::from(self.length)))
    }

    fn front(&self, length: u8) -> Mask {
        match self.part {
            Part::Address(end) => Mask::NONE.with_prefix(end, length, self.width),
            Part::Port(field) => Mask::NONE.with(field, !(0xffff_u64 >> length)),
        }
    }
}
