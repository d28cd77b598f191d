//! Why there is no figure.

use std::fmt;

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlotError {
    /// There is nothing to draw: no series, or series without a single value that the axes can show.
    Empty,
    /// A value of this series is not a finite number.
    NotFinite(String),
    /// A value of this series is so great, or so near to 0, that sums and ratios of values are no numbers.
    Extreme(String),
    /// A value of this series is 0 or less, and its axis is logarithmic.
    NotPositive(String),
    /// A value of this series is below 0, and bars begin there.
    Negative(String),
    /// This series does not have as many values as the chart has places for them.
    Count(String),
    /// The drawing failed, in words.
    Drawing(String),
}

impl fmt::Display for PlotError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => out.write_str("a figure without values"),
            Self::NotFinite(name) => write!(out, "a value of {name} is not a finite number"),
            Self::Extreme(name) => {
                write!(
                    out,
                    "a value of {name} is too great or too small to be drawn"
                )
            }
            Self::NotPositive(name) => {
                write!(
                    out,
                    "a value of {name} is not above 0, but the axis is logarithmic"
                )
            }
            Self::Negative(name) => write!(out, "a value of {name} is below 0, where bars begin"),
            Self::Count(name) => write!(out, "{name} has too few or too many values"),
            Self::Drawing(words) => write!(out, "drawing: {words}"),
        }
    }
}

impl std::error::Error for PlotError {}

/// Values lie between these, or are 0. Then the ends of an axis and their ratio are finite, and its ticks are apart by a
/// normal number.
const DECADES: (f64, f64) = (1e-120, 1e120);

/// The value, if an axis can show it.
pub(crate) fn finite(value: f64, name: &str) -> Result<f64, PlotError> {
    if !value.is_finite() {
        return Err(PlotError::NotFinite(name.to_owned()));
    }
    match value == 0.0 || (DECADES.0..=DECADES.1).contains(&value.abs()) {
        true => Ok(value),
        false => Err(PlotError::Extreme(name.to_owned())),
    }
}
