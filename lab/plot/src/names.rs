//! The colours of a figure's series: a name that many figures show has the same colour in all of them.

use plotters::style::RGBColor;

use crate::theme::{INK, SERIES};

/// The tone of a known name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    /// The colour of text: an ideal that others are compared with, and that cannot be built.
    Ideal,
    /// A colour of [`SERIES`].
    Series(usize),
}

/// Names that keep their colour. A name stands for itself and for every name that continues it behind a space, a comma
/// or a colon ("blp-2-4" for "blp-2-4, random"), unless a longer known name matches. Names that one figure shows
/// together have different colours.
const KNOWN: [(&str, Tone); 34] = [
    // Engines and servers.
    ("nuthatch", Tone::Series(0)),
    ("cuckoo", Tone::Series(0)),
    ("engine:cuckoo", Tone::Series(0)),
    ("memcached", Tone::Series(1)),
    ("cphash", Tone::Series(2)),
    ("chained", Tone::Series(3)),
    ("lockhash", Tone::Series(4)),
    ("engine:cuckoo:clock", Tone::Series(5)),
    // Policies.
    ("optimum", Tone::Ideal),
    ("s3-fifo", Tone::Series(2)),
    ("gdsf", Tone::Series(2)),
    ("w-tinylfu-climb", Tone::Series(3)),
    ("arc", Tone::Series(4)),
    ("2q", Tone::Series(6)),
    ("lirs", Tone::Series(6)),
    // Flow caches.
    ("ideal", Tone::Ideal),
    ("4-way", Tone::Series(0)),
    ("cuckoo-lite", Tone::Series(1)),
    ("blp-2-4", Tone::Series(2)),
    ("8-way", Tone::Series(3)),
    ("window", Tone::Series(4)),
    ("blp-2-8", Tone::Series(5)),
    ("hashbrown", Tone::Series(6)),
    // Sizes of hash tables.
    ("2^8 buckets", Tone::Series(0)),
    ("2^10 buckets", Tone::Series(0)),
    ("2^11 buckets", Tone::Series(0)),
    ("2^12 buckets", Tone::Series(1)),
    ("2^13 buckets", Tone::Series(1)),
    ("2^14 buckets", Tone::Series(2)),
    ("2^15 buckets", Tone::Series(3)),
    // Operations of the distributed store.
    ("get, active", Tone::Series(2)),
    ("set, active", Tone::Series(2)),
    ("fabric", Tone::Series(3)),
    ("get, directory miss", Tone::Series(4)),
];

/// The colours of one figure's series, in the order of their names. Known names get their own colours, and then the
/// others get the remaining colours, in order. Two series share a colour only if there are more series than colours.
pub fn colours<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<RGBColor> {
    let tones: Vec<Option<Tone>> = names.into_iter().map(known).collect();
    let mut taken = [false; SERIES.len()];
    let mut chosen: Vec<Option<RGBColor>> = Vec::with_capacity(tones.len());
    for tone in &tones {
        chosen.push(match *tone {
            Some(Tone::Ideal) => Some(INK),
            Some(Tone::Series(number)) if !std::mem::replace(&mut taken[number], true) => {
                Some(SERIES[number])
            }
            // Two known names share this colour: the second is treated as unknown.
            Some(Tone::Series(_)) | None => None,
        });
    }
    let left = (0..SERIES.len()).filter(|&number| !taken[number]);
    let mut next = left.chain((0..SERIES.len()).cycle());
    let mut fill = || next.next().map_or(INK, |number| SERIES[number]);
    let filled = chosen.into_iter();
    filled
        .map(|colour| colour.unwrap_or_else(&mut fill))
        .collect()
}

/// The tone of the longest known name that the name is, or begins with.
fn known(name: &str) -> Option<Tone> {
    let is = |known: &str| {
        let rest = name.strip_prefix(known);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',', ':']))
    };
    let found = KNOWN.iter().filter(|(known, _)| is(known));
    found
        .max_by_key(|(known, _)| known.len())
        .map(|(_, tone)| *tone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_name_has_its_colour_wherever_it_stands() {
        let alone = colours(["memcached"]);
        assert_eq!(colours(["arc", "memcached over TCP: get"])[1], alone[0]);
        assert_eq!(colours(["x", "y", "memcached"])[2], alone[0]);
        assert_eq!(colours(["optimum"]), [INK]);
        // A longer name that is known itself has its own colour.
        let both = colours(["engine:cuckoo", "engine:cuckoo:clock"]);
        assert_eq!(both, [SERIES[0], SERIES[5]]);
        assert_eq!(known("cuckoo-lite-2"), None);
        assert_eq!(known("lirs:0.01:1"), known("lirs"));
    }

    #[test]
    fn others_take_what_is_left() {
        let four = colours(["a", "blp-2-4, random", "b", "4-way"]);
        assert_eq!(four, [SERIES[1], SERIES[2], SERIES[3], SERIES[0]]);
    }

    /// As long as there are enough colours, no two series of a figure share one, whatever their names.
    #[test]
    fn series_of_a_figure_differ() {
        let known: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
        for start in 0..known.len() {
            let names = known.iter().cycle().skip(start).step_by(2).copied();
            let names: Vec<&str> = names
                .filter(|name| super::known(name) != Some(Tone::Ideal))
                .take(SERIES.len())
                .collect();
            let found = colours(names.iter().copied());
            for (number, one) in found.iter().enumerate() {
                assert!(!found[..number].contains(one), "{names:?}: {found:?}");
            }
        }
        assert_eq!(colours(vec!["x"; 30]).len(), 30);
    }
}
