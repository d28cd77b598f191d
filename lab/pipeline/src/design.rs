//! Designs of the microflow cache, as a command line chooses them.

use std::str::FromStr;

use clap::Args;
use nuthatch_flow::{Config, Entry, Eviction, Layout, SharedFlowCache, Vector};
use nuthatch_rte_hash::RteHash;

use crate::hopscotch::Hopscotch;
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

/// Which slots may hold a key: a layout of the library, or the paper's other baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A layout of the library.
    Of(Layout),
    /// Hopscotch hashing, whose inserts move other keys.
    Hopscotch,
}

impl Place {
    /// The library's.
    pub const ALL: [Self; Layout::ALL.len()] = {
        let mut all = [Self::Hopscotch; Layout::ALL.len()];
        let mut number = 0;
        while number < all.len() {
            all[number] = Self::Of(Layout::ALL[number]);
            number += 1;
        }
        all
    };

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Of(layout) => layout.name(),
            Self::Hopscotch => "hopscotch",
        }
    }

    /// The place of this name; nothing for a rival.
    pub fn of_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// The layout whose keys may be in the same slots, which decides how many of them fit.
    pub const fn candidates(self) -> Layout {
        match self {
            Self::Of(layout) => layout,
            Self::Hopscotch => Layout::Window,
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == Self::Hopscotch.name() {
            return Ok(Self::Hopscotch);
        }
        let layout = name.parse::<Layout>().map(Self::Of);
        layout.map_err(|error| format!("{error}, {}", Self::Hopscotch.name()))
    }
}

/// Which designs, and how large.
#[derive(Args, Clone, Debug)]
pub struct DesignOptions {
    /// Layouts, separated by commas: 4-way, 8-way, cuckoo-lite, window, blp-2-4, blp-2-8; or all of these; or
    /// hopscotch, of the laboratory, whose inserts move other keys (with random eviction and entries of 16+16)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub layout: Vec<OneOrAll<Place>>,
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
    /// Hopscotch hashing with random eviction.
    Hopscotch,
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
        let design = |(place, eviction)| match place {
            Place::Of(layout) => Design::Table {
                layout,
                eviction,
                entry: self.entry,
            },
            Place::Hopscotch => Design::Hopscotch,
        };
        if self.layout.is_empty() && self.eviction.is_empty() {
            let place = |(layout, eviction)| (Place::Of(layout), eviction);
            return Ok(DEFAULT.into_iter().map(place).map(design).collect());
        }
        let places = match &self.layout[..] {
            [] => default_parts(|(layout, _)| Place::Of(layout)),
            names => chosen(names, &Place::ALL),
        };
        if places.contains(&Place::Hopscotch) && self.entry != Entry::Tag16 {
            return Err(Failure::Usage(format!(
                "--entry {}: hopscotch has entries of {} only",
                self.entry,
                Entry::Tag16
            )));
        }
        let evictions = match &self.eviction[..] {
            [] => default_parts(|(_, eviction)| eviction),
            names => chosen(names, &Eviction::ALL),
        };
        let suits = |(place, eviction): &(Place, Eviction)| match place {
            Place::Of(layout) => eviction.suits(*layout),
            Place::Hopscotch => *eviction == Eviction::Random,
        };
        let pairs: Vec<_> = places
            .iter()
            .flat_map(|&place| evictions.iter().map(move |&eviction| (place, eviction)))
            .filter(suits)
            .map(design)
            .collect();
        if pairs.is_empty() {
            return Err(Failure::Usage(unsuitable(places[0], evictions[0])));
        }
        Ok(pairs)
    }
}

/// Why there is no such design, in words.
fn unsuitable(place: Place, eviction: Eviction) -> String {
    let Place::Of(layout) = place else {
        return format!("{}: only with the eviction random", place.name());
    };
    let config = Config::new(0).layout(layout).eviction(eviction);
    match config.validate() {
        Err(error) => error.to_string(),
        Ok(()) => "no design is chosen".to_owned(),
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
            Self::Hopscotch => Place::Hopscotch.name().to_owned(),
            Self::Map => "hashbrown".to_owned(),
            Self::RteHash => "rte_hash".to_owned(),
            Self::None => "none".to_owned(),
        }
    }

    /// The eviction policy.
    pub fn eviction(&self) -> String {
        match self {
            Self::Table { eviction, .. } => eviction.to_string(),
            Self::Hopscotch | Self::Map | Self::RteHash => "random".to_owned(),
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

    /// The layout that says which slots may hold a key; nothing for a rival, in which any may.
    pub fn candidates(&self) -> Option<Layout> {
        match self {
            Self::Table { layout, .. } => Some(*layout),
            Self::Hopscotch => Some(Place::Hopscotch.candidates()),
            Self::Map | Self::RteHash | Self::None => None,
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
            Self::Table { .. } => self
                .config(entries, vector, seed)?
                .build()
                .map(|cache| Box::new(cache) as Box<dyn FlowCache>)
                .map_err(|error| Failure::Run(error.to_string())),
            Self::Hopscotch => Hopscotch::new(self.entries(entries) as usize, seed)
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

    /// Errors: threads cannot share it.
    pub fn check_shared(&self) -> Result<(), Failure> {
        let config = self.config(0, Vector::detect(), 0)?;
        let checked = config.validate_shared();
        checked.map_err(|error| Failure::Usage(format!("--threads: {error}")))
    }

    /// An empty one that threads share.
    pub fn build_shared(
        &self,
        entries: u64,
        vector: Vector,
        seed: u64,
    ) -> Result<SharedFlowCache, Failure> {
        let built = self.config(entries, vector, seed)?.build_shared();
        built.map_err(|error| Failure::Run(error.to_string()))
    }

    /// The configuration of a table of the library. Errors: it is none.
    fn config(&self, entries: u64, vector: Vector, seed: u64) -> Result<Config, Failure> {
        let Self::Table {
            layout,
            eviction,
            entry,
        } = *self
        else {
            let name = self.layout();
            return Err(Failure::Usage(format!(
                "--threads: threads cannot share {name}"
            )));
        };
        Ok(Config::new(entries)
            .layout(layout)
            .eviction(eviction)
            .entry(entry)
            .vector(vector)
            .seed(seed))
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
        // Hopscotch has one eviction, and is none of all.
        assert_eq!(designs("hopscotch", "").unwrap(), [Design::Hopscotch]);
        assert!(!designs("all", "all").unwrap().contains(&Design::Hopscotch));
        let Err(Failure::Usage(error)) = designs("hopscotch", "lru") else {
            panic!("hopscotch with lru");
        };
        assert!(error.contains("only with the eviction random"), "{error}");
    }

    #[test]
    fn names_of_places_are_read_back() {
        for place in [&Place::ALL[..], &[Place::Hopscotch]].concat() {
            assert_eq!(place.name().parse(), Ok(place));
        }
        let error = "5-way".parse::<Place>().unwrap_err();
        assert!(error.ends_with("blp-2-8, hopscotch"), "{error}");
    }

    #[test]
    fn threads_share_what_can_be_shared() {
        for design in designs("all", "all").unwrap() {
            let Design::Table { eviction, .. } = design else {
                continue;
            };
            assert_eq!(design.check_shared().is_ok(), eviction.suits_shared());
        }
        let refused = [rivals(), vec![Design::Hopscotch]].concat();
        assert!(refused.iter().all(|design| design.check_shared().is_err()));
    }

    #[test]
    fn every_design_remembers_what_it_was_told() {
        let hopscotch = designs("hopscotch", "all").unwrap();
        let designs = [designs("all", "all").unwrap(), hopscotch, rivals()].concat();
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
