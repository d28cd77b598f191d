//! What the commands of a figure gave, round by round: points, gaps, and the points that are missing for them.

use std::collections::HashMap;

use crate::command;
use crate::found::{Gap, Key, Missing, Point, X};
use crate::plan::Planned;
use crate::read::Reading;

/// What the commands gave until now.
#[derive(Default)]
pub struct Measured {
    rounds: Vec<Rounds>,
    /// Where those of a series and a place are.
    at: HashMap<(String, Key), usize>,
    /// What commands gave nothing, and why.
    pub gaps: Vec<Gap>,
    /// What the commands warned of.
    pub notes: Vec<String>,
}

/// The values of one point, a round each.
struct Rounds {
    series: String,
    x: X,
    modelled: bool,
    values: Vec<f64>,
    ends: Option<(f64, f64)>,
    /// Why the point does not count, if it did not in one of its rounds.
    invalid: Option<String>,
}

impl Measured {
    /// A command gave nothing, or something that does not count.
    pub fn note(&mut self, planned: &Planned<'_>, reason: String, skipped: bool) {
        let gap = Gap {
            command: command::typed(&planned.line),
            reason,
            skipped,
        };
        // The same in each round is one gap.
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }

    /// A command gave these.
    pub fn keep(&mut self, planned: &Planned<'_>, found: Vec<Reading>) {
        for reading in found {
            if let Some(why) = &reading.invalid {
                let reason = format!("{} at {}: {why}", reading.series, reading.x);
                self.note(planned, reason, true);
            }
            self.keep_one(reading);
        }
    }

    fn keep_one(&mut self, reading: Reading) {
        let Reading {
            series,
            x,
            y,
            ends,
            modelled,
            invalid,
        } = reading;
        let next = self.rounds.len();
        let at = *self.at.entry((series.clone(), x.key())).or_insert(next);
        match self.rounds.get_mut(at) {
            Some(one) => {
                one.values.push(y);
                one.ends = ends.or(one.ends);
                one.invalid = invalid.or(one.invalid.take());
            }
            None => self.rounds.push(Rounds {
                series,
                x,
                modelled,
                values: vec![y],
                ends,
                invalid,
            }),
        }
    }

    /// The points that count, and adds those that do not to what is missing.
    pub fn points(self, missing: &mut Vec<Missing>) -> Vec<Point> {
        let mut points = Vec::new();
        for rounds in self.rounds {
            match rounds.invalid {
                Some(why) => missing.push(Missing {
                    series: rounds.series,
                    x: rounds.x,
                    why,
                }),
                None => points.push(point(rounds)),
            }
        }
        points
    }
}

fn point(rounds: Rounds) -> Point {
    let mut values = rounds.values;
    values.sort_by(f64::total_cmp);
    let (first, last) = (values[0], values[values.len() - 1]);
    let (upper, lower) = (values[values.len() / 2], values[(values.len() - 1) / 2]);
    // A single round has the spread that its command measured.
    let (low, high) = match rounds.ends {
        Some(ends) if values.len() == 1 => ends,
        _ => (first, last),
    };
    Point {
        series: rounds.series,
        x: rounds.x,
        // Their sum may be no number.
        y: f64::midpoint(upper, lower),
        low,
        high,
        modelled: rounds.modelled,
    }
}
