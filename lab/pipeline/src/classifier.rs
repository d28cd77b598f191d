//! The classifier: finds the rule that decides a packet, and the mask of all packets that get the same decision.
//!
//! Rules become entries, a mask and the key under it; a range of ports becomes the prefixes
//! that make it up. Entries of one mask share a hash table, a tuple. A lookup searches the tuples in
//! the order of the best rule in each, until no remaining tuple has a better rule than the one found.
//!
//! The bits that an answer depends on are its mask, in the terms of Open vSwitch: the bits that are not wildcarded. The
//! fewer bits, the more packets a megaflow covers. So a tuple without a match proves this by as few bits as it can: by
//! the kind of packet, or by a prefix of one field, which is one bit longer than the longest prefix that the field
//! shares with an entry. "No entry for port 53 or 80" takes one bit of port 50000.
//!
//! Invariant: every packet that agrees with this one in the bits of the answer's mask gets the same
//! answer. It holds because the mask has, for each tuple that was searched, bits that alone prove
//! the tuple's result; and which tuples are searched follows from the results.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use nuthatch_base::hash::KeyHasher;

use crate::key::{End, Field, FlowKey, Fragment, Mask, TAGGED};
use crate::key_table::KeyTable;
use crate::prefixes::{Part, Prefixes};
use crate::rules::{Action, FragmentMatch, Match, Rules, Tag};

/// Entries that a rule file may become: ranges of ports on both ends multiply.
pub const ENTRIES_MAX: usize = 1 << 22;

/// The action for a packet, and the rule that gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What is done.
    pub action: Action,
    /// The rule's place in [`Rules::iter`]; none if no rule matched.
    pub rule: Option<u32>,
}

/// An answer: for this packet, and for all that agree with it under the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified {
    /// What is done.
    pub verdict: Verdict,
    /// The bits that the answer depends on.
    pub mask: Mask,
}

/// Rules in the form in which they are searched.
#[derive(Clone, Debug)]
pub struct Classifier {
    /// By the best rule of each.
    tuples: Vec<Tuple>,
    actions: Vec<Action>,
}

/// The entries of one mask.
#[derive(Clone, Debug)]
struct Tuple {
    mask: Mask,
    /// The least rule in it: the first to decide.
    best: u32,
    /// The values of its entries under the bits of [`Mask::KIND`].
    kinds: KeyTable<()>,
    /// The values of its entries in each field of which the mask has a prefix.
    fields: Vec<Prefixes>,
    rules: KeyTable<u32>,
}

/// The rules need more entries than [`ENTRIES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyEntries;

impl std::fmt::Display for TooManyEntries {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "its ranges of ports come to more than {ENTRIES_MAX} entries"
        )
    }
}

impl std::error::Error for TooManyEntries {}

impl Classifier {
    /// Builds a classifier of these rules.
    pub fn new(rules: &Rules) -> Result<Self, TooManyEntries> {
        let hasher = KeyHasher::random();
        let mut places: HashMap<Mask, usize> = HashMap::new();
        let mut tuples: Vec<Tuple> = Vec::new();
        let mut count = 0;
        for (number, rule) in rules.iter().enumerate() {
            let number = number as u32;
            for (mask, key) in entries(&rule.matches) {
                count += 1;
                if count > ENTRIES_MAX {
                    return Err(TooManyEntries);
                }
                let place = *places.entry(mask).or_insert(tuples.len());
                if place == tuples.len() {
                    // Rules come in their order, so that the first of a tuple is its best.
                    tuples.push(Tuple::new(mask, number, &hasher));
                }
                tuples[place].add(key, number);
            }
        }
        let fields = tuples.iter_mut().flat_map(|tuple| &mut tuple.fields);
        fields.for_each(Prefixes::sort);
        Ok(Self {
            tuples,
            actions: rules.iter().map(|rule| rule.action).collect(),
        })
    }

    /// How many rules there are.
    pub fn rules(&self) -> usize {
        self.actions.len()
    }

    /// How many tuples there are: the most that a lookup searches.
    pub fn tuples(&self) -> usize {
        self.tuples.len()
    }

    /// The verdict on a packet, and the bits that it depends on.
    pub fn classify(&self, key: &FlowKey) -> Classified {
        let mut mask = Mask::NONE;
        let mut found: Option<u32> = None;
        for tuple in &self.tuples {
            if found.is_some_and(|rule| rule < tuple.best) {
                break;
            }
            if let Some(rule) = tuple.find(key, &mut mask) {
                found = Some(found.map_or(rule, |other| other.min(rule)));
            }
        }
        let action = found.map_or(Action::Drop, |rule| self.actions[rule as usize]);
        Classified {
            verdict: Verdict {
                action,
                rule: found,
            },
            mask,
        }
    }
}

impl Tuple {
    fn new(mask: Mask, best: u32, hasher: &KeyHasher) -> Self {
        Self {
            mask,
            best,
            kinds: KeyTable::new(hasher),
            fields: Part::ALL
                .into_iter()
                .filter_map(|part| Prefixes::new(part, &mask))
                .collect(),
            rules: KeyTable::new(hasher),
        }
    }

    fn add(&mut self, key: FlowKey, rule: u32) {
        self.kinds.get_or_insert(key.masked(&Mask::KIND), ());
        for field in &mut self.fields {
            field.add(&key);
        }
        // An earlier rule with the same entry decides before this one.
        self.rules.get_or_insert(key, rule);
    }

    /// The best rule for a packet; adds bits that prove it, or that there is none.
    fn find(&self, key: &FlowKey, proof: &mut Mask) -> Option<u32> {
        let kind = self.mask.and(&Mask::KIND);
        *proof = proof.or(&kind);
        self.kinds.get(&key.masked(&kind))?;
        // The shortest prefix that no entry has.
        let absent = self.fields.iter().filter_map(|field| field.absence(key));
        if let Some((_, bits)) = absent.min_by_key(|&(length, _)| length) {
            *proof = proof.or(&bits);
            return None;
        }
        *proof = proof.or(&self.mask);
        self.rules.get(&key.masked(&self.mask)).copied()
    }
}

/// The entries of a rule.
fn entries(matches: &Match) -> Vec<(Mask, FlowKey)> {
    let (mut mask, mut key) = (Mask::NONE, FlowKey::default());
    let version = matches.version.or(matches
        .source
        .or(matches.destination)
        .map(|prefix| if prefix.addr().is_ipv4() { 4 } else { 6 }));
    for (field, value) in [
        (Field::Version, version),
        (Field::Protocol, matches.protocol),
    ] {
        if let Some(value) = value {
            mask = mask.with_all(field);
            key.set(field, u64::from(value));
        }
    }
    let prefixes = [
        (End::Source, matches.source),
        (End::Destination, matches.destination),
    ];
    for (end, prefix) in prefixes {
        if let Some(prefix) = prefix {
            mask = mask.with_prefix(end, prefix.prefix_len(), prefix.max_prefix_len());
            key.set_address(end, prefix.network());
        }
    }
    match matches.tag {
        None => {}
        Some(Tag::None) => mask = mask.with_all(Field::OuterTag),
        Some(Tag::Any) => {
            mask = mask.with(Field::OuterTag, u64::from(TAGGED));
            key.set(Field::OuterTag, u64::from(TAGGED));
        }
        Some(Tag::Number(number)) => {
            mask = mask.with_all(Field::OuterTag);
            key.set(Field::OuterTag, u64::from(TAGGED | number));
        }
    }
    match matches.fragment {
        None => {}
        Some(FragmentMatch::Is(part)) => {
            mask = mask.with_all(Field::Fragment);
            key.set(Field::Fragment, part as u64);
        }
        Some(FragmentMatch::Any) => {
            mask = mask.with(Field::Fragment, Fragment::First as u64);
            key.set(Field::Fragment, Fragment::First as u64);
        }
    }
    if matches.source_port.is_some() || matches.destination_port.is_some() {
        // Only packets with ports match: the bit of later fragments is 0.
        let later = Fragment::Later as u64 & !(Fragment::First as u64);
        mask = mask.with(Field::Fragment, later);
    }
    let mut entries = Vec::new();
    for (source_bits, source) in prefixes_of(&matches.source_port) {
        for &(destination_bits, destination) in &prefixes_of(&matches.destination_port) {
            let mask = mask
                .with(Field::SourcePort, u64::from(source_bits))
                .with(Field::DestinationPort, u64::from(destination_bits));
            let mut key = key;
            key.set(Field::SourcePort, u64::from(source));
            key.set(Field::DestinationPort, u64::from(destination));
            entries.push((mask, key));
        }
    }
    entries
}

/// The prefixes that make up a range of ports, each a mask and the port under it: at most 30. No
/// range is every port, with an empty mask.
fn prefixes_of(range: &Option<RangeInclusive<u16>>) -> Vec<(u16, u16)> {
    let Some(range) = range else {
        return vec![(0, 0)];
    };
    let (mut first, end) = (u32::from(*range.start()), u32::from(*range.end()) + 1);
    let mut prefixes = Vec::new();
    while first < end {
        // The largest block that begins here and does not reach beyond the end.
        let aligned = if first == 0 {
            16
        } else {
            first.trailing_zeros()
        };
        let fitting = (end - first).ilog2();
        let block = 1 << aligned.min(fitting);
        prefixes.push((!(block - 1) as u16, first as u16));
        first += block;
    }
    prefixes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_made_of_prefixes() {
        for range in [
            0..=0,
            0..=65535,
            1..=65534,
            80..=80,
            1000..=2047,
            65535..=65535,
            135..=139,
        ] {
            let prefixes = prefixes_of(&Some(range.clone()));
            assert!(prefixes.len() <= 30, "{range:?}: {}", prefixes.len());
            for port in 0..=u16::MAX {
                let covers = prefixes.iter().filter(|(mask, of)| port & mask == *of);
                assert_eq!(
                    covers.count(),
                    usize::from(range.contains(&port)),
                    "{range:?} {port}"
                );
            }
        }
    }

    fn classifier(rules: &str) -> Classifier {
        Classifier::new(&rules.parse().unwrap()).unwrap()
    }

    #[test]
    fn no_rules_drop_everything_by_no_bit() {
        let nothing = classifier("").classify(&FlowKey::default());
        assert_eq!(nothing.verdict, Verdict::default());
        assert_eq!(nothing.mask, Mask::NONE);
    }

    #[test]
    fn a_rule_for_all_hangs_on_no_bit_unless_others_come_first() {
        let all = classifier("0 -> forward 1\n0 proto=tcp -> drop");
        assert_eq!(all.classify(&FlowKey::default()).mask, Mask::NONE);
        assert_eq!(all.tuples(), 2);
        let other = classifier("0 -> forward 1\n1 proto=tcp -> drop");
        let protocol = Mask::NONE.with_all(Field::Protocol);
        assert_eq!(other.classify(&FlowKey::default()).mask, protocol);
    }

    #[test]
    fn a_port_is_told_from_others_by_its_front() {
        let rules =
            classifier("9 proto=tcp dport=80 -> drop\n9 proto=tcp dport=53 -> drop\n0 -> drop");
        let mask = |port| {
            let mut key = FlowKey::default();
            key.set(Field::Protocol, 6);
            key.set(Field::DestinationPort, port);
            rules.classify(&key).mask
        };
        let front = |bits| {
            let later = Fragment::Later as u64 & !(Fragment::First as u64);
            Mask::NONE
                .with_all(Field::Protocol)
                .with(Field::Fragment, later)
                .with(Field::DestinationPort, bits)
        };
        assert_eq!(mask(50_000), front(0x8000));
        assert_eq!(mask(1024), front(0xfc00));
        // 81 and 80 differ in the last bit.
        assert_eq!(mask(81), front(0xffff));
        assert_eq!(mask(80), front(0xffff));
    }

    #[test]
    fn a_tuple_without_the_kind_leaves_addresses_and_ports_alone() {
        let rules = classifier("9 src=10.0.0.0/8 proto=tcp dport=80 -> drop\n0 -> forward 1");
        let mut udp = FlowKey::default();
        udp.set(Field::Version, 4);
        udp.set(Field::Protocol, 17);
        let mask = rules.classify(&udp).mask;
        assert_eq!(mask.address(End::Source), 0);
        assert_eq!(
            mask.and(&Mask::NONE.with_all(Field::DestinationPort)),
            Mask::NONE
        );
    }

    #[test]
    fn too_many_entries_are_refused() {
        let rule = "1 proto=tcp sport=1-65534 dport=1-65534 -> drop\n";
        let rules: Rules = rule.repeat(ENTRIES_MAX / 900 + 1).parse().unwrap();
        assert_eq!(Classifier::new(&rules).unwrap_err(), TooManyEntries);
    }
}
