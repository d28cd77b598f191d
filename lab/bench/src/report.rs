//! Results: a median with its spread, and the two ways to print a result.

use nuthatch_program::{Failure, output};
use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

/// The results of several rounds of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle round.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// The spread of at least one round. With an even count the median is the mean of the two in
    /// the middle.
    pub fn of(rounds: impl IntoIterator<Item = f64>) -> Self {
        let mut rounds: Vec<f64> = rounds.into_iter().collect();
        assert!(!rounds.is_empty(), "a spread of no rounds");
        rounds.sort_by(f64::total_cmp);
        let middle = rounds.len() / 2;
        let median = if rounds.len() % 2 == 1 {
            rounds[middle]
        } else {
            (rounds[middle - 1] + rounds[middle]) / 2.0
        };
        Self {
            median,
            min: rounds[0],
            max: rounds[rounds.len() - 1],
        }
    }

    /// The spread of `ours[i] / theirs[i]`: rounds that ran one after the other are compared, so
    /// that a machine that slows down meets both sides.
    pub fn of_ratios(ours: &[f64], theirs: &[f64]) -> Self {
        assert_eq!(ours.len(), theirs.len(), "rounds come in pairs");
        Self::of(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs))
    }
}

impl Display for Spread {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = out.precision().unwrap_or(2);
        write!(
            out,
            "{:.places$} ({:.places$} to {:.places$})",
            self.median, self.min, self.max
        )
    }
}

/// A result of a bench, as one line of JSON: the bench's name, then what it found.
#[derive(Serialize)]
struct Line<'r, R> {
    bench: &'r str,
    #[serde(flatten)]
    report: &'r R,
}

/// Prints the results of a bench of this name: one line of JSON for programs, or lines for people.
pub fn print<R: Serialize + Display>(bench: &str, report: &R, json: bool) -> Result<(), Failure> {
    let text = if json {
        let line = Line { bench, report };
        serde_json::to_string(&line).map_err(|error| error.to_string())? + "\n"
    } else {
        report.to_string()
    };
    output::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        let odd = Spread::of([3.0, 1.0, 2.0]);
        assert_eq!((odd.min, odd.median, odd.max), (1.0, 2.0, 3.0));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::of([7.0]).median, 7.0);
    }

    #[test]
    fn ratios_pair_the_rounds() {
        let ratio = Spread::of_ratios(&[2.0, 9.0], &[1.0, 3.0]);
        assert_eq!((ratio.min, ratio.max), (2.0, 3.0));
        assert_eq!(ratio.to_string(), "2.50 (2.00 to 3.00)");
    }
}
