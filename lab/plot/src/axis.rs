//! Axes: one coordinate type for all scales, so that a chart has one type too.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

/// How values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps for equal differences.
    Linear,
    /// Equal steps for equal ratios; values of 0 or less cannot be shown.
    Logarithmic,
}

/// An axis of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    /// Its scale.
    pub scale: Scale,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        let (label, scale) = (label.into(), Scale::Linear);
        Self { label, scale }
    }

    /// A logarithmic axis.
    pub fn logarithmic(label: impl Into<String>) -> Self {
        let (label, scale) = (label.into(), Scale::Logarithmic);
        Self { label, scale }
    }
}

/// The stretch of an axis that a chart shows.
#[derive(Clone, Debug)]
pub enum Span {
    /// Linear, from a value to a greater one.
    Linear(f64, f64),
    /// Logarithmic, from a positive value to a greater one.
    Logarithmic(f64, f64),
    /// Named places: number `i` has its middle at `i` and is 1 wide.
    Names(Vec<String>),
}

impl Span {
    /// The least span of this scale that shows all values, from 0 if it is linear.
    pub fn around(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        match scale {
            Scale::Linear if least > most => Self::Linear(0.0, 1.0),
            Scale::Linear if least == most && least == 0.0 => Self::Linear(0.0, 1.0),
            Scale::Linear => Self::Linear(least.min(0.0), most.max(0.0) * 1.05),
            Scale::Logarithmic if least > most => Self::Logarithmic(1.0, 10.0),
            Scale::Logarithmic if least == most => Self::Logarithmic(least / 2.0, most * 2.0),
            Scale::Logarithmic => Self::Logarithmic(least, most),
        }
    }

    /// Where its lines and labels are.
    fn ticks(&self, most: usize) -> Vec<f64> {
        match self {
            Self::Linear(low, high) => {
                let range: RangedCoordf64 = (*low..*high).into();
                range.key_points(most)
            }
            Self::Logarithmic(low, high) => logarithmic_ticks(*low, *high, most.max(2)),
            Self::Names(names) => (0..names.len()).map(|place| place as f64).collect(),
        }
    }
}

/// Powers of ten, with 2 and 5 between them where there is room; powers of two in a span that holds
/// few powers of ten.
fn logarithmic_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let inside = |value: &f64| (low * 0.999..=high * 1.001).contains(value);
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let powers = |steps: &[f64]| -> Vec<f64> {
        let all = decades
            .clone()
            .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
        all.filter(inside).collect()
    };
    for steps in [&[1.0, 2.0, 5.0][..], &[1.0]] {
        let ticks = powers(steps);
        if (2..=most).contains(&ticks.len()) {
            return ticks;
        }
    }
    let ticks = powers(&[1.0]);
    if ticks.len() < 2 {
        return vec![low, high];
    }
    let stride = ticks.len().div_ceil(most);
    ticks.into_iter().step_by(stride).collect()
}

impl Ranged for Span {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = match self {
            Self::Linear(low, high) => (value - low) / (high - low),
            Self::Logarithmic(low, high) => (value / low).ln() / (high / low).ln(),
            Self::Names(names) => (value + 0.5) / names.len().max(1) as f64,
        };
        // A value far outside the span would overflow the drawing's coordinates.
        let place = share.clamp(-1.0, 2.0) * f64::from(limit.1 - limit.0);
        limit.0 + place.round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        self.ticks(hint.max_num_points())
    }

    fn range(&self) -> Range<f64> {
        match self {
            Self::Linear(low, high) | Self::Logarithmic(low, high) => *low..*high,
            Self::Names(names) => -0.5..names.len() as f64 - 0.5,
        }
    }
}

impl ValueFormatter<f64> for Span {
    fn format(value: &f64) -> String {
        number(*value)
    }

    fn format_ext(&self, value: &f64) -> String {
        match self {
            Self::Names(names) => names
                .get(value.round().max(0.0) as usize)
                .cloned()
                .unwrap_or_default(),
            Self::Linear(..) | Self::Logarithmic(..) => number(*value),
        }
    }
}

/// A number as short as it can be read: 12000 as 12k, 3000000 as 3M.
fn number(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        large if large >= 1e9 => (value / 1e9, "G"),
        large if large >= 1e6 => (value / 1e6, "M"),
        large if large >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = if scaled.abs() >= 100.0 { 0 } else { 4 };
    let text = format!("{scaled:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_a_logarithmic_axis_are_round_numbers() {
        assert_eq!(
            logarithmic_ticks(1.0, 1000.0, 5),
            [1.0, 10.0, 100.0, 1000.0]
        );
        assert_eq!(logarithmic_ticks(1.0, 10.0, 10), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(logarithmic_ticks(3.0, 4.0, 10), [3.0, 4.0]);
        assert_eq!(logarithmic_ticks(1.0, 1e9, 5).len(), 5);
    }

    #[test]
    fn values_lie_where_their_scale_says() {
        assert_eq!(Span::Linear(0.0, 10.0).map(&5.0, (0, 100)), 50);
        assert_eq!(Span::Logarithmic(1.0, 100.0).map(&10.0, (0, 100)), 50);
        let names = Span::Names(vec!["a".into(), "b".into()]);
        assert_eq!(names.map(&0.0, (0, 100)), 25);
        assert_eq!(names.format_ext(&1.0), "b");
        assert_eq!(Span::Linear(0.0, 1.0).map(&1e300, (0, 100)), 200);
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (16.0, "16"),
            (16384.0, "16.384k"),
            (3e6, "3M"),
            (2.5e9, "2.5G"),
            (-1500.0, "-1500"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
