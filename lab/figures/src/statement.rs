//! Statements about a figure's shape: in its file as data, in the report as sentences, judged by the points.

use serde::Deserialize;

use crate::figure::Figure;
use crate::found::{Found, Missing, Point, Verdict, X, short};
use crate::template::may_be;

/// A statement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The series that it is about.
    pub series: String,
    /// What it says.
    #[serde(flatten)]
    pub claim: Claim,
    /// Only from this place on.
    pub from: Option<f64>,
    /// Only up to this place.
    pub to: Option<f64>,
    /// Only at the place of this name or number.
    pub at: Option<X>,
    /// Why it does not hold here, as far as that is known.
    pub known: Option<String>,
}

/// What a statement says of its series. Exactly one of these keys is in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// It is above that series at each place.
    Above(String),
    /// It is below that series at each place.
    Below(String),
    /// By that series it is between two numbers at each place.
    Ratio {
        /// The other series.
        to: String,
        /// The two numbers.
        between: (f64, f64),
    },
    /// It less that series is between two numbers at each place.
    Difference {
        /// The other series.
        to: String,
        /// The two numbers.
        between: (f64, f64),
    },
    /// Its point at a place by its point at another is between two numbers.
    RatioOfPlaces(Places),
    /// Its point at a place less its point at another is between two numbers.
    DifferenceOfPlaces(Places),
    /// The geometric mean of it by that series is between two numbers.
    MeanRatio {
        /// The other series.
        to: String,
        /// The two numbers.
        between: (f64, f64),
    },
    /// Its highest point by that series' is between two numbers.
    RatioOfMaxima {
        /// The other series.
        to: String,
        /// The two numbers.
        between: (f64, f64),
    },
    /// It does not rise by more than this share from a place to the next, and ends lower than it begins.
    Falls(f64),
    /// It does not fall by more than this share from a place to the next, and ends higher than it begins.
    Rises(f64),
    /// Its highest point is above its lowest by this share at most.
    Level(f64),
    /// Its last point by its first is between two numbers.
    Changes((f64, f64)),
    /// Its values are between two numbers.
    Between((f64, f64)),
    /// Its highest point is at a place between these two.
    HighestBetween((f64, f64)),
}

/// A claim about two places of one series.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places {
    /// The place, a name or a number.
    pub of: X,
    /// The other one.
    pub to: X,
    /// The two numbers.
    pub between: (f64, f64),
}

/// A claim's outcome, and the numbers that decide it.
type Outcome = Result<(bool, String), Unjudged>;

/// Why a claim is not judged.
#[derive(Debug)]
enum Unjudged {
    /// Points are missing.
    Missing(String),
    /// The spreads of two points overlap.
    Noise(String),
}

impl From<String> for Unjudged {
    fn from(reason: String) -> Self {
        Self::Missing(reason)
    }
}

/// Judges all statements of a figure.
pub fn judge(figure: &Figure, found: &Found) -> Vec<Verdict> {
    let judged = figure.statement.iter().map(|statement| {
        let (holds, noise, because) = match statement.outcome(found) {
            Ok((holds, because)) => (Some(holds), false, because),
            Err(Unjudged::Missing(reason)) => (None, false, reason),
            Err(Unjudged::Noise(reason)) => (None, true, reason),
        };
        Verdict {
            statement: statement.words(),
            holds,
            noise,
            because,
            known: statement.known.clone().filter(|_| holds == Some(false)),
        }
    });
    judged.collect()
}

impl Statement {
    /// Refuses bounds that nothing can keep to.
    pub fn check(&self) -> Result<(), String> {
        let (low, high) = match &self.claim {
            Claim::RatioOfPlaces(Places { between, .. })
            | Claim::DifferenceOfPlaces(Places { between, .. }) => {
                if self.at.is_some() || self.from.is_some() || self.to.is_some() {
                    return Err(format!("{}: it names its places itself", self.words()));
                }
                *between
            }
            Claim::Ratio { between, .. }
            | Claim::Difference { between, .. }
            | Claim::MeanRatio { between, .. }
            | Claim::RatioOfMaxima { between, .. } => *between,
            Claim::Changes(between) | Claim::Between(between) | Claim::HighestBetween(between) => {
                *between
            }
            Claim::Falls(share) | Claim::Rises(share) | Claim::Level(share) => (0.0, *share),
            Claim::Above(_) | Claim::Below(_) => return Ok(()),
        };
        if low <= high {
            return Ok(());
        }
        Err(format!("{}: {low} is more than {high}", self.words()))
    }

    /// The other series that it is about.
    pub fn other(&self) -> Option<&str> {
        match &self.claim {
            Claim::Above(other) | Claim::Below(other) => Some(other),
            Claim::Ratio { to, .. }
            | Claim::Difference { to, .. }
            | Claim::MeanRatio { to, .. }
            | Claim::RatioOfMaxima { to, .. } => Some(to),
            _ => None,
        }
    }

    /// The statement as a sentence.
    pub fn words(&self) -> String {
        let series = &self.series;
        let range = |(low, high): (f64, f64)| format!("between {low} and {high}");
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let says = match &self.claim {
            Claim::Above(other) => format!("{series} is above {other}"),
            Claim::Below(other) => format!("{series} is below {other}"),
            Claim::Ratio { to, between } => format!("{series} / {to} is {}", range(*between)),
            Claim::Difference { to, between } => {
                format!("{series} less {to} is {}", range(*between))
            }
            Claim::RatioOfPlaces(Places { of, to, between }) => {
                format!("{series} at {of} / at {to} is {}", range(*between))
            }
            Claim::DifferenceOfPlaces(Places { of, to, between }) => {
                format!("{series} at {of} less at {to} is {}", range(*between))
            }
            Claim::MeanRatio { to, between } => {
                format!("the mean of {series} / {to} is {}", range(*between))
            }
            Claim::RatioOfMaxima { to, between } => {
                format!("the highest of {series} / of {to} is {}", range(*between))
            }
            Claim::Falls(slack) => format!("{series} falls, with {} of noise", percent(*slack)),
            Claim::Rises(slack) => format!("{series} rises, with {} of noise", percent(*slack)),
            Claim::Level(share) => format!("{series} changes by {} at most", percent(*share)),
            Claim::Changes(between) => {
                format!("the last of {series} / the first is {}", range(*between))
            }
            Claim::Between(between) => format!("{series} is {}", range(*between)),
            Claim::HighestBetween(between) => {
                format!("{series} is highest {}", range(*between))
            }
        };
        let bound = |word: &str, place: Option<f64>| {
            place.map_or(String::new(), |place| format!(" {word} {}", short(place)))
        };
        let at = self
            .at
            .as_ref()
            .map_or(String::new(), |at| format!(" at {at}"));
        format!(
            "{says}{}{}{at}",
            bound("from", self.from),
            bound("up to", self.to)
        )
    }

    fn outcome(&self, found: &Found) -> Outcome {
        self.complete(found)?;
        match &self.claim {
            Claim::Above(other) => self.order(found, other, 1.0),
            Claim::Below(other) => self.order(found, other, -1.0),
            Claim::Ratio { to, between } => {
                let ratios = self.both(found, to, |one, other| one / other)?;
                Ok(all_within(ratios, *between))
            }
            Claim::Difference { to, between } => {
                let differences = self.both(found, to, |one, other| one - other)?;
                Ok(all_within(differences, *between))
            }
            Claim::RatioOfPlaces(places) => self.between_places(found, places, |one, to| one / to),
            Claim::DifferenceOfPlaces(places) => {
                self.between_places(found, places, |one, to| one - to)
            }
            Claim::MeanRatio { to, between } => {
                let ratios = self.both(found, to, |one, other| one / other)?;
                let logs: f64 = ratios.iter().map(|(_, ratio)| ratio.ln()).sum();
                let mean = (logs / ratios.len() as f64).exp();
                Ok((
                    within(mean, *between),
                    format!("the mean is {}", short(mean)),
                ))
            }
            Claim::RatioOfMaxima { to, between } => {
                let ratio = highest(&self.points(found, &self.series)?).y
                    / highest(&self.points(found, to)?).y;
                Ok((within(ratio, *between), format!("it is {}", short(ratio))))
            }
            Claim::Falls(slack) => self.steps(found, -1.0, *slack),
            Claim::Rises(slack) => self.steps(found, 1.0, *slack),
            Claim::Level(share) => {
                let points = self.several(found)?;
                let lowest = points
                    .iter()
                    .map(|point| point.y)
                    .fold(f64::INFINITY, f64::min);
                let change = highest(&points).y / lowest - 1.0;
                Ok((
                    change <= *share,
                    format!("it changes by {:.1} %", change * 100.0),
                ))
            }
            Claim::Changes(between) => {
                let points = self.several(found)?;
                let ratio = points[points.len() - 1].y / points[0].y;
                Ok((within(ratio, *between), format!("it is {}", short(ratio))))
            }
            Claim::Between(between) => {
                let points = self.points(found, &self.series)?;
                let values = points.iter().map(|point| (&point.x, point.y));
                Ok(all_within(values.collect(), *between))
            }
            Claim::HighestBetween((from, to)) => {
                let points = self.several(found)?;
                let place = &highest(&points).x;
                let holds = place.number().is_some_and(|x| (*from..=*to).contains(&x));
                Ok((holds, format!("it is highest at {place}")))
            }
        }
    }

    /// The points of a series at the places that the statement is about, in their order.
    fn points<'f>(&self, found: &'f Found, series: &str) -> Result<Vec<&'f Point>, String> {
        let places = found.places();
        let wanted = places.into_iter().filter(|x| self.is_about(x));
        let points: Vec<&Point> = wanted.filter_map(|x| found.at(series, x)).collect();
        match points.is_empty() {
            false => Ok(points),
            true if found.series().contains(&series) => Err(format!("{series} has no point there")),
            true => Err(format!("there is no series {series}")),
        }
    }

    /// The same of its own series, for a claim about how it goes.
    fn several<'f>(&self, found: &'f Found) -> Result<Vec<&'f Point>, String> {
        let points = self.points(found, &self.series)?;
        match points.len() {
            1 => Err(format!("{} has one place, {}", self.series, points[0].x)),
            _ => Ok(points),
        }
    }

    /// Refuses to judge where a point that the figure asks for is not there: what is left may look as if it held. Places
    /// that the figure does not ask for are no fault: some series have fewer.
    fn complete(&self, found: &Found) -> Result<(), String> {
        // These name their points, and look for them.
        if let Claim::RatioOfPlaces(_) | Claim::DifferenceOfPlaces(_) = &self.claim {
            return Ok(());
        }
        for series in [Some(self.series.as_str()), self.other()] {
            let Some(series) = series else { continue };
            let mut missing = found.missing.iter();
            if let Some(Missing { x, why, .. }) = missing.find(|one| self.lacks(found, series, one))
            {
                let place = match is_untold(x) {
                    true => "a place".to_owned(),
                    false => x.to_string(),
                };
                return Err(format!("{series} has no point at {place}: {why}"));
            }
        }
        Ok(())
    }

    /// Whether what is missing is, or may be, a point of the series that the statement is about.
    fn lacks(&self, found: &Found, series: &str, missing: &Missing) -> bool {
        let x = match (&self.at, is_untold(&missing.x)) {
            (Some(at), true) => at,
            (None, true) => return may_be(&missing.series, series),
            (_, false) => &missing.x,
        };
        // Another command may have given it.
        may_be(&missing.series, series) && self.is_about(x) && found.at(series, x).is_none()
    }

    fn is_about(&self, x: &X) -> bool {
        if let Some(at) = &self.at {
            return at == x;
        }
        let from = self.from.unwrap_or(f64::NEG_INFINITY);
        let to = self.to.unwrap_or(f64::INFINITY);
        x.number().is_none_or(|x| (from..=to).contains(&x))
    }

    /// What `make` makes of the two values of the series at two places.
    fn between_places(
        &self,
        found: &Found,
        Places { of, to, between }: &Places,
        make: impl Fn(f64, f64) -> f64,
    ) -> Outcome {
        let at = |x: &X| {
            let point = found.at(&self.series, x);
            point.ok_or_else(|| format!("{} has no point at {x}", self.series))
        };
        // A series that is not there is said as such.
        self.points(found, &self.series)?;
        let value = make(at(of)?.y, at(to)?.y);
        Ok((within(value, *between), format!("it is {}", short(value))))
    }

    /// The points of this series and the other, at the places that both have.
    fn pairs<'f>(
        &self,
        found: &'f Found,
        other: &str,
    ) -> Result<Vec<(&'f Point, &'f Point)>, String> {
        let others = self.points(found, other)?;
        let ours = self.points(found, &self.series)?;
        let both = ours.into_iter().filter_map(|one| {
            let other = others.iter().find(|other| other.x == one.x)?;
            Some((one, *other))
        });
        let both: Vec<_> = both.collect();
        match both.is_empty() {
            true => Err(format!(
                "{} and {other} have no place in common",
                self.series
            )),
            false => Ok(both),
        }
    }

    /// What `make` makes of the values of each pair.
    fn both<'f>(
        &self,
        found: &'f Found,
        other: &str,
        make: impl Fn(f64, f64) -> f64,
    ) -> Result<Vec<(&'f X, f64)>, String> {
        let pairs = self.pairs(found, other)?.into_iter();
        let made = pairs.map(|(one, other)| (&one.x, make(one.y, other.y)));
        Ok(made.collect())
    }

    /// Whether the series is above the other (1) or below it (-1) at each place. Where their spreads overlap, neither is.
    fn order(&self, found: &Found, other: &str, direction: f64) -> Outcome {
        let pairs = self.pairs(found, other)?;
        let against = |(one, other): &&(&Point, &Point)| direction * (one.y - other.y) < 0.0;
        let ratio = |(one, other): &(&Point, &Point)| one.y / other.y;
        let mut clear = pairs.iter().filter(|pair| !overlap(pair));
        if let Some(pair) = clear.find(against) {
            return Ok((false, format!("{} at {}", short(ratio(pair)), pair.0.x)));
        }
        if let Some(pair) = pairs.iter().find(|pair| overlap(pair)) {
            let spread = |point: &Point| format!("{} to {}", short(point.low), short(point.high));
            return Err(Unjudged::Noise(format!(
                "{} at {}: {}, and {}",
                short(ratio(pair)),
                pair.0.x,
                spread(pair.0),
                spread(pair.1)
            )));
        }
        let ratios = pairs.iter().map(|pair| (&pair.0.x, ratio(pair)));
        let (_, range) = all_within(ratios.collect(), (f64::NEG_INFINITY, f64::INFINITY));
        Ok((true, range))
    }

    /// Whether the series goes in one direction: 1 up, -1 down.
    fn steps(&self, found: &Found, direction: f64, slack: f64) -> Outcome {
        let points = self.several(found)?;
        let (first, last) = (points[0], points[points.len() - 1]);
        let against = points
            .windows(2)
            .find(|pair| direction * (pair[1].y - pair[0].y) < -slack * pair[0].y.abs());
        if let Some(pair) = against {
            let values = (short(pair[0].y), short(pair[1].y));
            let words = format!(
                "{} at {}, and {} at {}",
                values.0, pair[0].x, values.1, pair[1].x
            );
            return Ok((false, words));
        }
        let words = format!(
            "{} at {}, {} at {}",
            short(first.y),
            first.x,
            short(last.y),
            last.x
        );
        Ok((direction * (last.y - first.y) > 0.0, words))
    }
}

/// Whether this is a place that only an output would have told.
fn is_untold(x: &X) -> bool {
    matches!(x, X::Name(name) if name.contains("{@"))
}

/// Whether the spreads of two points overlap. What has no spread is exact.
fn overlap((one, other): &(&Point, &Point)) -> bool {
    let is_exact = one.low == one.high && other.low == other.high;
    !is_exact && one.low <= other.high && other.low <= one.high
}

fn within(value: f64, (low, high): (f64, f64)) -> bool {
    (low..=high).contains(&value)
}

fn highest<'f>(points: &[&'f Point]) -> &'f Point {
    let greatest = points.iter().max_by(|a, b| a.y.total_cmp(&b.y));
    greatest.expect("`points` returns at least one")
}

/// Whether all values lie between the two numbers; with the range, or the first place at which one does not.
fn all_within(values: Vec<(&X, f64)>, between: (f64, f64)) -> (bool, String) {
    if let Some((x, value)) = values.iter().find(|(_, value)| !within(*value, between)) {
        return (false, format!("{} at {x}", short(*value)));
    }
    let all = || values.iter().map(|(_, value)| *value);
    let (low, high) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(f64::NEG_INFINITY, f64::max),
    );
    let words = match low == high {
        true => short(low),
        false => format!("{} to {}", short(low), short(high)),
    };
    (true, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(points: &[(&str, f64, f64)]) -> Found {
        let points = points.iter().map(|&(series, x, y)| Point {
            series: series.to_owned(),
            x: X::Number(x),
            y,
            low: y,
            high: y,
            modelled: false,
        });
        Found::of_points(points)
    }

    fn outcome(text: &str, points: &[(&str, f64, f64)]) -> (Option<bool>, String, String) {
        outcome_of(text, &found(points))
    }

    fn outcome_of(text: &str, found: &Found) -> (Option<bool>, String, String) {
        let statement: Statement = toml::from_str(text).unwrap();
        statement.check().unwrap();
        let (holds, because) = match statement.outcome(found) {
            Ok((holds, because)) => (Some(holds), because),
            Err(Unjudged::Missing(reason)) => (None, reason),
            Err(Unjudged::Noise(reason)) => (None, format!("noise: {reason}")),
        };
        (holds, statement.words(), because)
    }

    const TWO: &[(&str, f64, f64)] = &[
        ("a", 1.0, 2.0),
        ("a", 8.0, 6.0),
        ("b", 1.0, 3.0),
        ("b", 8.0, 3.0),
    ];

    #[test]
    fn comparisons_look_at_each_place_that_they_are_about() {
        let (holds, words, because) = outcome("series = \"a\"\nabove = \"b\"", TWO);
        assert_eq!(holds, Some(false));
        assert_eq!(
            (words.as_str(), because.as_str()),
            ("a is above b", "0.67 at 1")
        );
        let (holds, words, because) = outcome("series = \"a\"\nabove = \"b\"\nfrom = 4", TWO);
        assert_eq!((holds, because.as_str()), (Some(true), "2"));
        assert_eq!(words, "a is above b from 4");
        let ratio = "series = \"a\"\nratio = { to = \"b\", between = [0.5, 1] }\nat = 1";
        assert_eq!(outcome(ratio, TWO).0, Some(true));
        let mean = "series = \"a\"\nmean-ratio = { to = \"b\", between = [1.1, 1.2] }";
        assert_eq!(outcome(mean, TWO).0, Some(true));
        let maxima = "series = \"a\"\nratio-of-maxima = { to = \"b\", between = [2, 2] }";
        assert_eq!(outcome(maxima, TWO).0, Some(true));
    }

    #[test]
    fn differences_have_absolute_bounds() {
        let less = "series = \"a\"\ndifference = { to = \"b\", between = [-1, 3] }";
        let (holds, words, because) = outcome(less, TWO);
        assert_eq!((holds, because.as_str()), (Some(true), "-1 to 3"));
        assert_eq!(words, "a less b is between -1 and 3");
        let at = "series = \"a\"\ndifference = { to = \"b\", between = [0, 3] }\nat = 1";
        assert_eq!(outcome(at, TWO).0, Some(false));
    }

    #[test]
    fn a_series_is_compared_with_itself_at_another_place() {
        let ratio = "series = \"a\"\nratio-of-places = { of = 8, to = 1, between = [2, 4] }";
        let (holds, words, because) = outcome(ratio, TWO);
        assert_eq!((holds, because.as_str()), (Some(true), "it is 3"));
        assert_eq!(words, "a at 8 / at 1 is between 2 and 4");
        let less = "series = \"a\"\ndifference-of-places = { of = 8, to = 1, between = [5, 9] }";
        let (holds, words, because) = outcome(less, TWO);
        assert_eq!((holds, because.as_str()), (Some(false), "it is 4"));
        assert_eq!(words, "a at 8 less at 1 is between 5 and 9");
        let absent = "series = \"a\"\nratio-of-places = { of = 8, to = 2, between = [2, 4] }";
        let (holds, _, because) = outcome(absent, TWO);
        assert_eq!((holds, because.as_str()), (None, "a has no point at 2"));
        let both = format!("{ratio}\nfrom = 2");
        assert!(toml::from_str::<Statement>(&both).unwrap().check().is_err());
    }

    #[test]
    fn shapes_of_one_series() {
        for (text, holds) in [
            ("series = \"a\"\nrises = 0.1", true),
            ("series = \"a\"\nfalls = 0.1", false),
            ("series = \"b\"\nrises = 0.1", false),
            ("series = \"b\"\nlevel = 0.0", true),
            ("series = \"a\"\nlevel = 1.5", false),
            ("series = \"a\"\nchanges = [3, 3]", true),
            ("series = \"a\"\nbetween = [2, 5]", false),
            ("series = \"a\"\nhighest-between = [4, 9]", true),
        ] {
            assert_eq!(outcome(text, TWO).0, Some(holds), "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_said_and_not_judged() {
        let (holds, _, because) = outcome("series = \"c\"\nabove = \"b\"", TWO);
        assert_eq!((holds, because.as_str()), (None, "there is no series c"));
        let (holds, _, because) = outcome("series = \"a\"\nbetween = [1, 2]\nfrom = 99", TWO);
        assert_eq!((holds, because.as_str()), (None, "a has no point there"));
    }

    /// Class of fault: what is left of a series is judged as if it were the series.
    #[test]
    fn one_place_is_no_shape() {
        for claim in [
            "changes = [0, 1]",
            "level = 0.1",
            "falls = 0",
            "rises = 0",
            "highest-between = [0, 9]",
        ] {
            let (holds, _, because) = outcome(&format!("series = \"a\"\n{claim}\nto = 1"), TWO);
            assert_eq!(
                (holds, because.as_str()),
                (None, "a has one place, 1"),
                "{claim}"
            );
        }
    }

    #[test]
    fn a_point_that_is_asked_for_and_missing_is_not_judged_without() {
        let judged = |text: &str, series: &str, x: X| {
            let mut found = found(TWO);
            found.missing.push(Missing {
                series: series.to_owned(),
                x,
                why: "its command failed".to_owned(),
            });
            outcome_of(text, &found)
        };
        let at = X::Number;
        let between = "series = \"a\"\nbetween = [0, 9]";
        let above = "series = \"a\"\nabove = \"b\"\nfrom = 4";
        let (holds, _, because) = judged(between, "a", at(2.0));
        assert_eq!(holds, None);
        assert_eq!(because, "a has no point at 2: its command failed");
        let untold = X::of("{@threads}");
        let (holds, _, because) = judged(between, "{@engine}", untold.clone());
        assert_eq!(holds, None);
        assert_eq!(because, "a has no point at a place: its command failed");
        // Also of the series that it is compared with.
        assert_eq!(judged(above, "b", at(9.0)).0, None);
        // Another series, another place, and a point that another command gave.
        assert_eq!(judged(above, "c", at(9.0)).0, Some(true));
        assert_eq!(judged(above, "b", at(2.0)).0, Some(true));
        assert_eq!(judged(above, "{@engine}", at(8.0)).0, Some(true));
        // The one place that it is about is there.
        let at_8 = "series = \"a\"\nabove = \"b\"\nat = 8";
        assert_eq!(judged(at_8, "{@engine}", untold).0, Some(true));
        let places = "series = \"a\"\nratio-of-places = { of = 8, to = 1, between = [2, 4] }";
        assert_eq!(judged(places, "a", at(2.0)).0, Some(true));
    }

    /// Some series have fewer places than others, and no command is asked for more.
    #[test]
    fn places_that_nothing_asks_for_are_not_missing() {
        let fewer = &TWO[..3];
        assert_eq!(
            outcome("series = \"a\"\nbelow = \"b\"", fewer).0,
            Some(true)
        );
    }

    #[test]
    fn spreads_that_overlap_have_no_order() {
        let judged = |text: &str, a: (f64, f64, f64), b: (f64, f64, f64)| {
            let point = |series: &str, x: f64, (low, y, high): (f64, f64, f64)| Point {
                series: series.to_owned(),
                x: X::Number(x),
                y,
                low,
                high,
                modelled: false,
            };
            let found = Found::of_points([
                point("a", 1.0, a),
                point("b", 1.0, b),
                point("a", 2.0, (8.0, 8.0, 8.0)),
                point("b", 2.0, (7.0, 7.0, 7.0)),
            ]);
            let (holds, _, because) = outcome_of(text, &found);
            (holds, because)
        };
        let (above, below) = (
            "series = \"a\"\nabove = \"b\"",
            "series = \"a\"\nbelow = \"b\"",
        );
        let overlapping = judged(above, (0.9, 1.01, 1.2), (0.8, 1.0, 1.1));
        let words = "noise: 1.01 at 1: 0.90 to 1.20, and 0.80 to 1.10".to_owned();
        assert_eq!(overlapping, (None, words));
        // The medians are against it, and the spreads do not say so.
        assert_eq!(judged(above, (0.8, 1.0, 1.1), (0.9, 1.01, 1.2)).0, None);
        // Another place decides.
        assert_eq!(
            judged(below, (0.9, 1.01, 1.2), (0.8, 1.0, 1.1)).0,
            Some(false)
        );
        assert_eq!(
            judged(above, (1.2, 1.3, 1.4), (0.8, 1.0, 1.1)).0,
            Some(true)
        );
        // Counts have no noise.
        assert_eq!(
            judged(above, (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)).0,
            Some(true)
        );
    }

    #[test]
    fn bounds_that_nothing_keeps_to_are_refused() {
        let statement: Statement = toml::from_str("series = \"a\"\nbetween = [2, 1]").unwrap();
        assert!(statement.check().is_err());
        assert!(toml::from_str::<Statement>("series = \"a\"\nabove = \"b\"\nunknown = 1").is_err());
        assert!(toml::from_str::<Statement>("series = \"a\"").is_err());
    }
}
