//! Rivals of the flow tables, as a command line chooses them.

use std::str::FromStr;

use clap::Args;

use crate::design::{self, Design, OneOrAll};

/// Which rivals are measured beside the tables.
#[derive(Args, Clone, Debug)]
pub struct RivalOptions {
    /// Also measure rivals with random eviction, separated by commas: hashbrown (its map), rte_hash (in builds that have
    /// it); without names all that this build has
    #[arg(long, value_name = "NAMES", num_args = 0..=1, value_delimiter = ',', default_missing_value = "all")]
    rivals: Vec<OneOrAll<Rival>>,
}

impl RivalOptions {
    /// The chosen ones, each once.
    pub fn designs(&self) -> Vec<Design> {
        let all: Vec<Rival> = design::rivals().into_iter().map(Rival).collect();
        let chosen = design::chosen(&self.rivals, &all);
        chosen.into_iter().map(|Rival(design)| design).collect()
    }
}

/// A rival that this build has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rival(Design);

impl FromStr for Rival {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut rivals = [Design::Map, Design::RteHash].into_iter();
        let rival = rivals.find(|design| design.layout() == name);
        let rival = rival.ok_or("hashbrown, rte_hash or all expected")?;
        match design::rivals().contains(&rival) {
            true => Ok(Self(rival)),
            false => Err(format!(
                "this build has no {name}: `cargo build --release -p nuthatch-lab --features rte-hash` makes one that has, \
                 where libdpdk-dev is installed"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        rivals: RivalOptions,
        #[arg(long)]
        json: bool,
    }

    fn chosen(words: &str) -> Result<(Vec<Design>, bool), String> {
        let words = std::iter::once("bench").chain(words.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok((line.rivals.designs(), line.json))
    }

    #[test]
    fn rivals_are_all_or_those_that_are_named() {
        assert_eq!(chosen("").unwrap(), (Vec::new(), false));
        assert_eq!(chosen("--rivals --json").unwrap(), (design::rivals(), true));
        let one = "--rivals hashbrown --json";
        assert_eq!(chosen(one).unwrap(), (vec![Design::Map], true));
        assert_eq!(
            chosen("--rivals all,hashbrown").unwrap().0,
            design::rivals()
        );
        assert!(
            chosen("--rivals memcached")
                .unwrap_err()
                .contains("rte_hash or all")
        );
        let absent = chosen("--rivals rte_hash");
        match cfg!(feature = "rte-hash") {
            true => assert_eq!(absent.unwrap().0, [Design::RteHash]),
            false => assert!(absent.unwrap_err().contains("--features rte-hash")),
        }
    }
}
