//! What a figure's run found.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::figure::Size;

/// The format of the files: a number that grows when an older program's files can no longer be read.
pub const FORMAT: u32 = 1;

/// What a figure's run found, as it is kept in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found {
    /// [`FORMAT`].
    pub format: u32,
    /// The figure's name, as in `cphash/5`.
    pub figure: String,
    /// Where it is in the paper.
    pub source: String,
    /// How much of it was run.
    pub size: Size,
    /// The command that repeats it.
    pub command: String,
    /// Program, machine and system.
    pub machine: BTreeMap<String, String>,
    /// What the programs of others that it ran tell of their versions.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// When it began: seconds since 1970.
    pub began: u64,
    /// How long it took, seconds.
    pub took: f64,
    /// A signal ended it before its last command.
    pub interrupted: bool,
    /// The points.
    pub points: Vec<Point>,
    /// What is missing, and why.
    pub gaps: Vec<Gap>,
    /// The points that the gaps left out.
    #[serde(default)]
    pub missing: Vec<Missing>,
    /// What the commands warn of.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What became of the statements; none in a smoke run.
    pub verdicts: Vec<Verdict>,
}

#[cfg(test)]
impl Found {
    /// A quick run that found these points.
    pub(crate) fn of_points(points: impl IntoIterator<Item = Point>) -> Self {
        Self {
            format: FORMAT,
            figure: "a/1".to_owned(),
            source: String::new(),
            size: Size::Quick,
            command: String::new(),
            machine: BTreeMap::new(),
            versions: BTreeMap::new(),
            began: 0,
            took: 0.0,
            interrupted: false,
            points: points.into_iter().collect(),
            gaps: Vec::new(),
            missing: Vec::new(),
            notes: Vec::new(),
            verdicts: Vec::new(),
        }
    }
}

/// A place on the horizontal axis: a number or a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum X {
    /// A number.
    Number(f64),
    /// A name.
    Name(String),
}

impl X {
    /// A number, or a size as `64K`, or else a name.
    pub fn of(text: &str) -> Self {
        if let Ok(number) = text.parse::<f64>()
            && number.is_finite()
        {
            return Self::Number(number);
        }
        match nuthatch_program::size::parse(text) {
            Ok(bytes) => Self::Number(bytes as f64),
            Err(_) => Self::Name(text.to_owned()),
        }
    }

    /// What it has in common with the same place, and with no other.
    pub fn key(&self) -> Key {
        match self {
            // Both zeros are one place.
            Self::Number(number) => Key::Number((number + 0.0).to_bits()),
            Self::Name(name) => Key::Name(name.clone()),
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(_) => None,
        }
    }
}

/// A place, as maps have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A number's bits.
    Number(u64),
    /// A name.
    Name(String),
}

impl fmt::Display for X {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => match binary(*number) {
                Some(size) => out.write_str(&size),
                None => out.write_str(&short(*number)),
            },
            Self::Name(name) => out.write_str(name),
        }
    }
}

/// A whole number with a binary unit, if it has one: a place is often a size, a value seldom.
fn binary(number: f64) -> Option<String> {
    let whole = number as u64;
    let units = [(30, "G"), (20, "M"), (10, "K")].into_iter();
    let mut fitting = units.filter(|(shift, _)| whole.trailing_zeros() >= *shift);
    let (shift, unit) = fitting
        .next()
        .filter(|_| whole as f64 == number && whole > 0)?;
    Some(format!("{}{unit}", whole >> shift))
}

/// A number in three or four digits; whole ones in all of theirs.
pub fn short(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return format!("{number:.0}");
    }
    let places = match number.abs() {
        number if number >= 100.0 => 0,
        number if number >= 10.0 => 1,
        number if number >= 0.1 => 2,
        number if number >= 0.001 => 4,
        _ => 8,
    };
    format!("{number:.places$}")
}

/// A point: the median of its rounds, and their ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// The series.
    pub series: String,
    /// The place on the horizontal axis.
    pub x: X,
    /// The median.
    pub y: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// It comes from a model and not from a measurement.
    pub modelled: bool,
}

/// A command that gave no points, or one that does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Its line.
    pub command: String,
    /// Why.
    pub reason: String,
    /// It was not run, since the machine does not have what it needs, or its point does not count. Otherwise it failed.
    pub skipped: bool,
}

/// A point that the figure's file asks for, and that is not there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// The series. Here and below `{@path}` stands for what the output did not tell.
    pub series: String,
    /// The place on the horizontal axis.
    pub x: X,
    /// Why, in a few words.
    pub why: String,
}

/// What became of a statement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// The statement.
    pub statement: String,
    /// Whether it holds; nothing if its points are missing.
    pub holds: Option<bool>,
    /// It is not judged, since the spreads of two points overlap.
    #[serde(default)]
    pub noise: bool,
    /// The numbers that decide it.
    pub because: String,
    /// Why it does not hold here, as far as that is known; from the figure's file.
    pub known: Option<String>,
}

impl Found {
    /// The series, in the order in which they were met.
    pub fn series(&self) -> Vec<&str> {
        let mut met = HashSet::new();
        let names = self.points.iter().map(|point| point.series.as_str());
        names.filter(|name| met.insert(*name)).collect()
    }

    /// The places on the horizontal axis: numbers in their order, names in the order in which they were met.
    pub fn places(&self) -> Vec<&X> {
        let mut met = HashSet::new();
        let places = self.points.iter().map(|point| &point.x);
        let mut places: Vec<&X> = places.filter(|x| met.insert(x.key())).collect();
        // Stable: names keep their order.
        places.sort_by(|a, b| match (a.number(), b.number()) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => std::cmp::Ordering::Equal,
        });
        places
    }

    /// The point of a series at a place.
    pub fn at(&self, series: &str, x: &X) -> Option<&Point> {
        let mut points = self.points.iter();
        points.find(|point| point.series == series && point.x == *x)
    }

    /// The points with the number of their place among [`Found::places`]: place by place, in each by their series.
    pub fn placed(&self) -> Vec<(usize, &Point)> {
        let places = self.places().into_iter().map(X::key).zip(0..);
        let places: HashMap<Key, usize> = places.collect();
        let series: HashMap<&str, usize> = self.series().into_iter().zip(0..).collect();
        let mut met = HashSet::new();
        let mut placed = Vec::new();
        for point in &self.points {
            let key = (places[&point.x.key()], series[point.series.as_str()]);
            // The first of a series at a place, as `at` has it.
            if met.insert(key) {
                placed.push((key, point));
            }
        }
        placed.sort_by_key(|(key, _)| *key);
        let points = placed.into_iter();
        points.map(|((place, _), point)| (place, point)).collect()
    }

    /// The points by the names that `name` gives them, and by their places.
    pub fn by_name(&self, name: impl Fn(&Point) -> String) -> HashMap<(String, Key), &Point> {
        let mut all = HashMap::new();
        for point in &self.points {
            all.entry((name(point), point.x.key())).or_insert(point);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_binary_units_and_values_have_none() {
        for (number, place, value) in [
            (65536.0, "64K", "65536"),
            (876_544.0, "856K", "876544"),
            (0.0, "0", "0"),
            (-3.0, "-3", "-3"),
            (1000.0, "1000", "1000"),
            (0.123_456, "0.12", "0.12"),
            (1234.5, "1234", "1234"),
        ] {
            assert_eq!(X::Number(number).to_string(), place);
            assert_eq!(short(number), value);
        }
    }

    #[test]
    fn points_are_found_at_their_places() {
        let point = |series: &str, x: X, y: f64| Point {
            series: series.to_owned(),
            x,
            y,
            low: y,
            high: y,
            modelled: false,
        };
        let number = X::Number;
        let found = Found::of_points([
            point("b", number(2.0), 1.0),
            point("a", number(2.0), 2.0),
            point("a", number(0.0), 3.0),
            // The same place, and met before.
            point("a", number(-0.0), 4.0),
            point("a", number(1.0), 5.0),
        ]);
        assert_eq!(found.series(), ["b", "a"]);
        assert_eq!(found.places().len(), 3);
        let placed = found.placed().into_iter();
        let placed: Vec<_> = placed.map(|(place, point)| (place, point.y)).collect();
        assert_eq!(placed, [(0, 3.0), (1, 5.0), (2, 1.0), (2, 2.0)]);
        let named = found.by_name(|point| point.series.clone());
        let at = |x: f64| named[&("a".to_owned(), number(x).key())].y;
        assert_eq!((at(-0.0), at(2.0)), (3.0, 2.0));
    }

    /// Class of fault: time that grows with the square of what a command prints. Squared, this takes minutes.
    #[test]
    fn many_points_take_no_longer_each() {
        let points = (0..100_000).map(|number| Point {
            series: "a".to_owned(),
            x: X::Name(number.to_string()),
            y: 1.0,
            low: 1.0,
            high: 1.0,
            modelled: false,
        });
        let found = Found::of_points(points);
        assert_eq!(found.places().len(), 100_000);
        assert_eq!(found.placed().len(), 100_000);
    }
}
