//! Statements about a figure's shape: in its file as data, in the report as sentences, judged by the points.

use serde::Deserialize;

use crate::figure::Figure;
use crate::found::{Found, Point, Verdict, X, short};

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
type Outcome = Result<(bool, String), String>;

/// Judges all statements of a figure.
pub fn judge(figure: &Figure, found: &Found) -> Vec<Verdict> {
    let judged = figure.statement.iter().map(|statement| {
        let (holds, because) = match statement.outcome(found) {
            Ok((holds, because)) => (Some(holds), because),
            Err(reason) => (None, reason),
        };
        Verdict {
            statement: statement.words(),
            holds,
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
        match &self.claim {
            Claim::Above(other) => self.compare(found, other, (1.0, f64::INFINITY)),
            Claim::Below(other) => self.compare(found, other, (0.0, 1.0)),
            Claim::Ratio { to, between } => self.compare(found, to, *between),
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
                let points = self.points(found, &self.series)?;
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
                let points = self.points(found, &self.series)?;
                let ratio = points[points.len() - 1].y / points[0].y;
                Ok((within(ratio, *between), format!("it is {}", short(ratio))))
            }
            Claim::Between(between) => {
                let points = self.points(found, &self.series)?;
                let values = points.iter().map(|point| (&point.x, point.y));
                Ok(all_within(values.collect(), *between))
            }
            Claim::HighestBetween((from, to)) => {
                let points = self.points(found, &self.series)?;
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

    /// What `make` makes of the values of this series and the other, at the places that both have.
    fn both<'f>(
        &self,
        found: &'f Found,
        other: &str,
        make: impl Fn(f64, f64) -> f64,
    ) -> Result<Vec<(&'f X, f64)>, String> {
        let others = self.points(found, other)?;
        let ours = self.points(found, &self.series)?;
        let both = ours.into_iter().filter_map(|one| {
            let other = others.iter().find(|other| other.x == one.x)?;
            Some((&one.x, make(one.y, other.y)))
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

    fn compare(&self, found: &Found, other: &str, between: (f64, f64)) -> Outcome {
        let ratios = self.both(found, other, |one, other| one / other)?;
        Ok(all_within(ratios, between))
    }

    /// Whether the series goes in one direction: 1 up, -1 down.
    fn steps(&self, found: &Found, direction: f64, slack: f64) -> Outcome {
        let points = self.points(found, &self.series)?;
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
        let statement: Statement = toml::from_str(text).unwrap();
        statement.check().unwrap();
        let (holds, because) = match statement.outcome(&found(points)) {
            Ok((holds, because)) => (Some(holds), because),
            Err(reason) => (None, reason),
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

    #[test]
    fn bounds_that_nothing_keeps_to_are_refused() {
        let statement: Statement = toml::from_str("series = \"a\"\nbetween = [2, 1]").unwrap();
        assert!(statement.check().is_err());
        assert!(toml::from_str::<Statement>("series = \"a\"\nabove = \"b\"\nunknown = 1").is_err());
        assert!(toml::from_str::<Statement>("series = \"a\"").is_err());
    }
}
