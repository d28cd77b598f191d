//! Axes: the range of values, the place of each value, and ticks whose numbers do not overlap.

use crate::canvas::TICK;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps for equal differences.
    Linear,
    /// Equal steps for equal ratios, ticks at 1, 2, 5 and 10; values of 0 or less cannot be shown.
    Logarithmic,
    /// The same, ticks at powers of two.
    Binary,
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

    /// A logarithmic axis with decimal ticks.
    pub fn logarithmic(label: impl Into<String>) -> Self {
        let (label, scale) = (label.into(), Scale::Logarithmic);
        Self { label, scale }
    }

    /// A logarithmic axis with powers of two.
    pub fn binary(label: impl Into<String>) -> Self {
        let (label, scale) = (label.into(), Scale::Binary);
        Self { label, scale }
    }
}

impl Scale {
    /// True if an axis of this scale can show the value.
    pub(crate) fn shows(self, value: f64) -> bool {
        value.is_finite() && (self == Self::Linear || value > 0.0)
    }

    /// The values that lie at the ends of an axis which shows exactly these.
    pub(crate) fn tight(self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        match self {
            _ if low > high => (1.0, 2.0),
            _ if low < high => (low, high),
            // One value: a range around it.
            Self::Linear if low == 0.0 => (0.0, 1.0),
            Self::Linear => (low - low.abs() * 0.05, low + low.abs() * 0.05),
            Self::Logarithmic | Self::Binary => (low / 2.0, low * 2.0),
        }
    }

    /// The ends of an axis that shows these values and a little more. It begins at 0 if that is near.
    pub(crate) fn zoomed(self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let (low, high) = self.tight(values);
        match self {
            Self::Linear => {
                let around = (high - low) * 0.05;
                let near_zero = (0.0..(high - low) * 0.25).contains(&low);
                (if near_zero { 0.0 } else { low - around }, high + around)
            }
            Self::Logarithmic | Self::Binary => {
                let around = (high / low).powf(0.05);
                (low / around, high * around)
            }
        }
    }

    /// The ends of an axis of bars: 0 and a little more than the greatest value.
    pub(crate) fn from_zero(values: impl Iterator<Item = f64>) -> (f64, f64) {
        let high = values.fold(0.0, f64::max);
        (0.0, if high > 0.0 { high * 1.03 } else { 1.0 })
    }
}

/// A number at an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Where, in pixels.
    pub at: f64,
    pub label: String,
}

/// The stretch of an axis that a figure shows, laid onto pixels.
#[derive(Clone, Copy, Debug)]
pub struct Ruler {
    scale: Scale,
    ends: (f64, f64),
    /// The pixels of its ends; for a vertical axis the first is the greater.
    pixels: (f64, f64),
}

/// Pixels between two numbers of a horizontal axis, and between lines of a vertical one.
const BESIDE: f64 = 12.0;
const ABOVE: f64 = 32.0;
/// Ticks at most: more would add nothing.
const TICKS_MAX: usize = 10;

impl Ruler {
    pub fn new(scale: Scale, ends: (f64, f64), pixels: (f64, f64)) -> Self {
        Self {
            scale,
            ends,
            pixels,
        }
    }

    /// Where a value lies, in pixels. A value far outside lies a little outside.
    pub fn at(&self, value: f64) -> f64 {
        let (low, high) = self.ends;
        let share = match self.scale {
            Scale::Linear => (value - low) / (high - low),
            Scale::Logarithmic | Scale::Binary => (value / low).ln() / (high / low).ln(),
        };
        self.pixels.0 + share.clamp(-0.02, 1.02) * (self.pixels.1 - self.pixels.0)
    }

    /// Ticks of a horizontal axis, as many as stand side by side.
    pub fn ticks_across(&self) -> Vec<Tick> {
        self.ticks(side_by_side)
    }

    /// Ticks of a horizontal axis at these values, to two digits, if they are few and stand side by side; otherwise at
    /// round ones.
    pub fn ticks_at(&self, values: impl Iterator<Item = f64>) -> Vec<Tick> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let tick = |&value: &f64| Tick {
            at: self.at(value),
            label: two_digits(value),
        };
        let ticks: Vec<Tick> = values.iter().map(tick).collect();
        match (2..=TICKS_MAX).contains(&ticks.len()) && side_by_side(&ticks) {
            true => ticks,
            false => self.ticks_across(),
        }
    }

    /// Ticks of a vertical axis, as many as stand above one another.
    pub fn ticks_up(&self) -> Vec<Tick> {
        self.ticks(|ticks| {
            ticks
                .windows(2)
                .all(|pair| (pair[1].at - pair[0].at).abs() >= ABOVE)
        })
    }

    /// The densest ticks that fit.
    fn ticks(&self, fits: impl Fn(&[Tick]) -> bool) -> Vec<Tick> {
        let own: Box<dyn Iterator<Item = Vec<(f64, String)>>> = match self.scale {
            Scale::Linear => Box::new(std::iter::empty()),
            Scale::Logarithmic => Box::new(decimal(self.ends)),
            Scale::Binary => Box::new(binary(self.ends)),
        };
        let fitting = own.chain(linear(self.ends)).find_map(|values| {
            let tick = |(value, label)| Tick {
                at: self.at(value),
                label,
            };
            let ticks: Vec<Tick> = values.into_iter().map(tick).collect();
            ((2..=TICKS_MAX).contains(&ticks.len()) && fits(&ticks)).then_some(ticks)
        });
        fitting.unwrap_or_default()
    }
}

/// True if no two numbers of a horizontal axis come close.
fn side_by_side(ticks: &[Tick]) -> bool {
    ticks.windows(2).all(|pair| {
        let widths = TICK.width(&pair[0].label) + TICK.width(&pair[1].label);
        (pair[1].at - pair[0].at).abs() >= widths / 2.0 + BESIDE
    })
}

/// A measured value: 0.75, 3, 9.7, 30.
fn two_digits(value: f64) -> String {
    let step = 10f64.powf(value.abs().log10().floor() - 1.0);
    let text = number((value / step).round() * step, step);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// True if the value lies between the ends, within rounding.
fn inside(value: f64, (low, high): (f64, f64)) -> bool {
    let around = (high - low) * 1e-9;
    (low - around..=high + around).contains(&value)
}

/// Ticks at multiples of 1, 2 or 5 times a power of ten, the densest first.
fn linear(ends: (f64, f64)) -> impl Iterator<Item = Vec<(f64, String)>> {
    let (low, high) = ends;
    let exponent = (high - low).log10().floor() as i32 - 1;
    let steps =
        (exponent..=exponent + 2).flat_map(|exponent| [1.0, 2.0, 5.0].map(|step| (step, exponent)));
    steps.map(move |(step, exponent)| {
        let step = step * 10f64.powi(exponent);
        let first = (low / step).ceil() as i64;
        let multiples = (first - 1..=first + 101).map(|number| number as f64 * step);
        multiples
            .filter(|&value| inside(value, ends))
            .map(|value| (value, number(value, step)))
            .collect()
    })
}

/// Ticks at 1, 2 and 5 times powers of ten; at powers of ten; at fewer of these.
fn decimal(ends: (f64, f64)) -> impl Iterator<Item = Vec<(f64, String)>> {
    let decades = ends.0.log10().floor() as i32..=ends.1.log10().ceil() as i32;
    let dense = decades.clone();
    let dense = dense.flat_map(|decade| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(decade)));
    let dense: Vec<f64> = dense.collect();
    let sparse = (1..8).map(move |stride| {
        decades
            .clone()
            .step_by(stride)
            .map(|decade| 10f64.powi(decade))
    });
    let all = std::iter::once(dense).chain(sparse.map(Iterator::collect));
    all.map(move |values: Vec<f64>| {
        let inside = values.into_iter().filter(|&value| inside(value, ends));
        inside.map(|value| (value, number(value, value))).collect()
    })
}

/// Ticks at powers of two; at fewer of these.
fn binary(ends: (f64, f64)) -> impl Iterator<Item = Vec<(f64, String)>> {
    let powers = ends.0.log2().floor() as i32..=ends.1.log2().ceil() as i32;
    (1..8).map(move |stride| {
        let values = powers.clone().filter(|power| power % stride == 0);
        values
            .map(|power| (2f64.powi(power), format!("2^{power}")))
            .filter(|&(value, _)| inside(value, ends))
            .collect()
    })
}

/// A number as exactly as multiples of `step` need: 20k in steps of 5000, 0.50 in steps of 0.05.
fn number(value: f64, step: f64) -> String {
    let (unit, suffix) = match step {
        _ if value == 0.0 => (1.0, ""),
        step if step >= 1e9 => (1e9, "G"),
        step if step >= 1e6 => (1e6, "M"),
        step if step >= 1e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let (whole, value, step) = (value, value / unit, step / unit);
    let digits = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
    match value.abs() {
        large if large >= 1e7 => format!("{whole:e}"),
        _ if digits > 6 => format!("{value:.1e}"),
        _ => format!("{value:.digits$}{suffix}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn across(scale: Scale, ends: (f64, f64), pixels: f64) -> Vec<String> {
        let ticks = Ruler::new(scale, ends, (0.0, pixels)).ticks_across();
        ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_numbers_and_as_many_as_fit() {
        let hit_rates = (0.803, 0.862);
        assert_eq!(
            across(Scale::Linear, hit_rates, 500.0),
            ["0.81", "0.82", "0.83", "0.84", "0.85", "0.86"]
        );
        assert_eq!(
            across(Scale::Linear, hit_rates, 150.0),
            ["0.82", "0.84", "0.86"]
        );
        assert_eq!(
            across(Scale::Linear, (0.0, 12_000.0), 200.0),
            ["0", "5k", "10k"]
        );
        assert_eq!(
            across(Scale::Logarithmic, (1.0, 31.0), 400.0),
            ["1", "2", "5", "10", "20"]
        );
        assert_eq!(
            across(Scale::Logarithmic, (0.07, 40_000.0), 500.0),
            ["0.1", "1", "10", "100", "1k", "10k"]
        );
        assert_eq!(
            across(Scale::Binary, (256.0, 262_144.0), 300.0),
            ["2^8", "2^10", "2^12", "2^14", "2^16", "2^18"]
        );
    }

    #[test]
    fn a_logarithmic_axis_without_powers_has_other_numbers() {
        assert_eq!(
            across(Scale::Logarithmic, (3.0, 4.0), 300.0),
            ["3.0", "3.2", "3.4", "3.6", "3.8", "4.0"]
        );
        assert!(across(Scale::Binary, (300.0, 400.0), 300.0).len() >= 2);
    }

    #[test]
    fn ticks_exist_for_values_of_any_size() {
        for value in [1e-12, 3.7, 1e6, 123_456_789.0, 1e15] {
            let ends = Scale::Linear.zoomed([value].into_iter());
            assert!(across(Scale::Linear, ends, 400.0).len() >= 2, "{value}");
            let ends = Scale::Logarithmic.zoomed([value].into_iter());
            assert!(
                across(Scale::Logarithmic, ends, 400.0).len() >= 2,
                "{value}"
            );
        }
    }

    #[test]
    fn a_number_too_long_for_a_unit_is_whole() {
        assert_eq!(
            across(Scale::Linear, (0.0, 2e20), 150.0),
            ["0", "1e20", "2e20"]
        );
    }

    #[test]
    fn few_measured_values_have_their_numbers() {
        let at = |values: &[f64]| {
            let ends = Scale::Logarithmic.tight(values.iter().copied());
            let ruler = Ruler::new(Scale::Logarithmic, ends, (0.0, 400.0));
            let ticks = ruler.ticks_at(values.iter().copied());
            ticks.into_iter().map(|tick| tick.label).collect::<Vec<_>>()
        };
        let sizes = [0.749, 2.993, 9.72, 29.9, 0.749];
        assert_eq!(at(&sizes), ["0.75", "3", "9.7", "30"]);
        assert_eq!(at(&[1000.0, 2500.0, 123_456.0]), ["1000", "2500", "120k"]);
        // Values too close together, or too many: ticks at round numbers.
        assert_eq!(at(&[1.0, 1.01, 31.0]), ["1", "2", "5", "10", "20"]);
    }

    #[test]
    fn values_lie_where_their_scale_says() {
        let at = |scale, ends, value| Ruler::new(scale, ends, (0.0, 100.0)).at(value).round();
        assert_eq!(at(Scale::Linear, (0.0, 10.0), 5.0), 50.0);
        assert_eq!(at(Scale::Logarithmic, (1.0, 100.0), 10.0), 50.0);
        assert_eq!(at(Scale::Linear, (0.0, 1.0), 1e300), 102.0);
    }

    #[test]
    fn an_axis_is_zoomed_unless_zero_is_near() {
        let zoomed = |values: &[f64]| Scale::Linear.zoomed(values.iter().copied());
        let (low, high) = zoomed(&[0.8, 0.9]);
        assert!(low > 0.79 && high < 0.91);
        assert_eq!(zoomed(&[1.0, 10.0]).0, 0.0);
        assert_eq!(zoomed(&[0.0]).0, 0.0);
    }
}
