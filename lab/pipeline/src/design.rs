//! Designs of the microflow cache, as a command line chooses them.

use std::str::FromStr;

use clap::Args;
use nuthatch_flow::{Config, Entry, Eviction, Layout, Vector};
use nuthatch_rte_hash::RteHash;

use crate::microflow::{FlowCache, MapCache, NoCache};
use nuthatch_program::Failure;
use nuthatch_program::output::note;

/// The default designs: the baseline, the paper's design with either of its evictions, and the two layouts next to it
/// in cost.
const DEFAULT: [(Layout, Eviction); 5] = [
    (Layout::FourWay, Eviction::Random),
    (Layout::EightWay, Eviction::Random),
    (Layout::CuckooLite, Eviction::Random),
    (Layout::Blp2x4, Eviction::Random),
    (Layout::Blp2x4, Eviction::PBLRU),
];

/// One of the names that a type knows, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneOrAll<T> {
    /// This one.
    One(T),
    /// `all`.
    All,
}

impl<T: FromStr> FromStr for OneOrAll<T> {
    type Err = T::Err;

    fn from_str(name: &str) -> Result<Self, T::Err> {
        match name {
            "all" => Ok(Self::All),
            name => name.parse().map(Self::One),
        }
    }
}

/// Which designs, and how large.
#[derive(Args, Clone, Debug)]
pub struct DesignOptions {
    /// Layouts, separated by commas: 4-way, 8-way, cuckoo-lite, window, blp-2-4, blp-2-8; or all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub layout: Vec<OneOrAll<Layout>>,
    /// Evictions, separated by commas: random, random-second, lru, bubble, pblru, pblru:second-to-last (as in its
    /// authors' code), pblru:last:PROBABILITY (that a hit moves a key), dc-bubble; or all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub eviction: Vec<OneOrAll<Eviction>>,
    /// Bits of tag and of value: 16+16, 32+32 or 64+64
    #[arg(long, value_name = "NAME", default_value_t)]
    pub entry: Entry,
}

/// A cache in front of the megaflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// A table of the library.
    Table {
        /// Which slots may hold a key.
        layout: Layout,
        /// The eviction policy.
        eviction: Eviction,
        /// What a slot holds.
        entry: Entry,
    },
    /// hashbrown's map with random eviction.
    Map,
    /// DPDK's rte_hash with random eviction, in builds that have it.
    RteHash,
    /// None.
    None,
}

impl DesignOptions {
    /// The default designs, or every chosen layout with every chosen eviction that suits it.
    pub fn designs(&self) -> Result<Vec<Design>, Failure> {
        let table = |(layout, eviction)| Design::Table {
            layout,
            eviction,
            entry: self.entry,
        };
        if self.layout.is_empty() && self.eviction.is_empty() {
            return Ok(DEFAULT.into_iter().map(table).collect());
        }
        let layouts = match &self.layout[..] {
            [] => default_parts(|(layout, _)| layout),
            names => chosen(names, &Layout::ALL),
        };
        let evictions = match &self.eviction[..] {
            [] => default_parts(|(_, eviction)| eviction),
            names => chosen(names, &Eviction::ALL),
        };
        let pairs: Vec<_> = layouts
            .iter()
            .flat_map(|&layout| evictions.iter().map(move |&eviction| (layout, eviction)))
            .filter(|(layout, eviction)| eviction.suits(*layout))
            .map(table)
            .collect();
        if pairs.is_empty() {
            let error = Config::new(0).layout(layouts[0]).eviction(evictions[0]);
            return Err(Failure::Usage(match error.validate() {
                Err(error) => error.to_string(),
                Ok(()) => "no design is chosen".to_owned(),
            }));
        }
        Ok(pairs)
    }
}

/// A part of each default design, each once.
fn default_parts<T: PartialEq>(part: impl Fn((Layout, Eviction)) -> T) -> Vec<T> {
    let mut parts: Vec<T> = DEFAULT.into_iter().map(part).collect();
    parts.dedup();
    parts
}

/// The named ones, each once.
pub(crate) fn chosen<T: Copy + PartialEq>(names: &[OneOrAll<T>], all: &[T]) -> Vec<T> {
    let mut chosen = Vec::new();
    for one in names {
        let some = match one {
            OneOrAll::One(one) => std::slice::from_ref(one),
            OneOrAll::All => all,
        };
        for one in some {
            if !chosen.contains(one) {
                chosen.push(*one);
            }
        }
    }
    chosen
}

impl Design {
    /// Its layout, or the rival's name.
    pub fn layout(&self) -> String {
        match self {
            Self::Table { layout, .. } => layout.to_string(),
            Self::Map => "hashbrown".to_owned(),
            Self::RteHash => "rte_hash".to_owned(),
            Self::None => "none".to_owned(),
        }
    }

    /// The eviction policy.
    pub fn eviction(&self) -> String {
        match self {
            Self::Table { eviction, .. } => eviction.to_string(),
            Self::Map => "random".to_owned(),
            Self::RteHash => "random".to_owned(),
            Self::None => "-".to_owned(),
        }
    }

    /// Layout and eviction, as a chart calls it.
    pub fn name(&self) -> String {
        match self {
            Self::None => "no cache".to_owned(),
            _ => format!("{} {}", self.layout(), self.eviction()),
        }
    }

    /// Entries that it has if `requested` are requested: it rounds up.
    pub fn entries(&self, requested: u64) -> u64 {
        match self {
            Self::Table { layout, .. } => Config::new(requested).layout(*layout).rounded_entries(),
            _ => Config::new(requested).rounded_entries(),
        }
    }

    /// An empty one.
    pub fn build(
        &self,
        entries: u64,
        vector: Vector,
        seed: u64,
    ) -> Result<Box<dyn FlowCache>, Failure> {
        match *self {
            Self::Table {
                layout,
                eviction,
                entry,
            } => Config::new(entries)
                .layout(layout)
                .eviction(eviction)
                .entry(entry)
                .vector(vector)
                .seed(seed)
                .build()
                .map(|cache| Box::new(cache) as Box<dyn FlowCache>)
                .map_err(|error| Failure::Run(error.to_string())),
            Self::Map => MapCache::new(self.entries(entries) as usize, seed)
                .map(|cache| Box::new(cache) as Box<dyn FlowCache>)
                .map_err(|error| Failure::Run(error.to_string())),
            Self::RteHash => {
                let entries = u32::try_from(self.entries(entries)).unwrap_or(u32::MAX);
                let room = RteHash::room_for(entries);
                RteHash::new(entries, room, nuthatch_rte_hash::Eviction::Random)
                    .map(|cache| Box::new(cache) as Box<dyn FlowCache>)
                    .map_err(|error| Failure::Run(error.to_string()))
            }
            Self::None => Ok(Box::new(NoCache)),
        }
    }
}

/// The rivals that this build has.
pub fn rivals() -> Vec<Design> {
    let mut rivals = vec![Design::Map];
    if cfg!(feature = "rte-hash") {
        rivals.push(Design::RteHash);
    }
    rivals
}

/// Prints on standard error how entries were rounded up, if they were.
pub fn note_rounding(requested: u64) {
    let entries = Config::new(requested).rounded_entries();
    if entries != requested {
        note(&format!("{requested} entries: rounded up to {entries}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn designs(layouts: &str, evictions: &str) -> Result<Vec<Design>, Failure> {
        fn parse<T: FromStr<Err: std::fmt::Debug>>(names: &str) -> Vec<OneOrAll<T>> {
            let names = names.split(',').filter(|name| !name.is_empty());
            names.map(|name| name.parse().unwrap()).collect()
        }
        let options = DesignOptions {
            layout: parse(layouts),
            eviction: parse(evictions),
            entry: Entry::Tag16,
        };
        options.designs()
    }

    #[test]
    fn designs_are_what_makes_sense_of_the_names() {
        assert_eq!(designs("", "").unwrap().len(), 5);
        assert_eq!(designs("blp-2-4,4-way", "random").unwrap().len(), 2);
        assert_eq!(designs("blp-2-4,blp-2-4", "lru").unwrap().len(), 1);
        // A window's buckets have one slot: no order to keep in them.
        assert_eq!(designs("window", "random,lru,bubble").unwrap().len(), 2);
        assert_eq!(designs("", "pblru").unwrap().len(), 4);
        assert!(designs("all", "all").unwrap().len() > 25);
        let Err(Failure::Usage(error)) = designs("window", "pblru") else {
            panic!("a window with pblru");
        };
        assert!(error.contains("needs buckets of several slots"), "{error}");
    }

    #[test]
    fn every_design_remembers_what_it_was_told() {
        let designs = [designs("all", "all").unwrap(), rivals()].concat();
        for design in designs {
            let mut cache = design.build(64, Vector::detect(), 1).unwrap();
            cache.insert(0x1234_5678_9abc_def0, 77);
            let (mut values, mut hits) = ([0; 2], [0]);
            cache.lookup_many(&[1 << 50, 0x1234_5678_9abc_def0], &mut values, &mut hits);
            assert_eq!((hits[0], values[1]), (0b10, 77), "{}", design.name());
        }
    }

    #[test]
    fn sizes_are_rounded_up() {
        assert_eq!(Design::Map.entries(1000), 1024);
        assert!(Design::Map.entries(0) > 0);
    }
}
