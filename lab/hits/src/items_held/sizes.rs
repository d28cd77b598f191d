//! Sizes of values, as typed.

use std::fmt::{self, Display};
use std::str::FromStr;

use rand::Rng;

/// The largest value of a distribution without bound.
const LARGEST: u32 = 256 << 10;
/// Pareto's shape and least size: those of a key-value store's values, about (mean 360 bytes, a few of many KB).
const PARETO_SHAPE: f64 = 1.2;
const PARETO_LEAST: f64 = 60.0;

/// How large values are.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueSizes {
    /// As it was typed.
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Fixed(u32),
    Pareto { shape: f64, least: f64 },
    Uniform { from: u32, to: u32 },
    Drift { from: u32, to: u32 },
}

impl ValueSizes {
    /// The size of a value that is written when this share of the run is over.
    pub fn draw(&self, random: &mut impl Rng, over: f64) -> u32 {
        match self.kind {
            Kind::Fixed(size) => size,
            Kind::Pareto { shape, least } => {
                // Not 0, which would be infinity.
                let chance = 1.0 - random.random::<f64>();
                (least * chance.powf(-1.0 / shape)).min(f64::from(LARGEST)) as u32
            }
            Kind::Uniform { from, to } => random.random_range(from..=to),
            Kind::Drift { from, to } => {
                let (from, to) = (f64::from(from), f64::from(to));
                (from * (to / from).powf(over.min(1.0))).round() as u32
            }
        }
    }
}

impl Display for ValueSizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl FromStr for ValueSizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let range = || {
            let (from, to) = rest.split_once('-')?;
            let (from, to) = (from.parse().ok()?, to.parse().ok()?);
            (from >= 1 && to >= 1).then_some((from, to))
        };
        let kind = match name {
            "pareto" if rest.is_empty() => Some(Kind::Pareto {
                shape: PARETO_SHAPE,
                least: PARETO_LEAST,
            }),
            "pareto" => rest.split_once(':').and_then(|(shape, least)| {
                let (shape, least) = (shape.parse().ok()?, least.parse().ok()?);
                (shape > 0.0 && least >= 1.0).then_some(Kind::Pareto { shape, least })
            }),
            "uniform" => range()
                .filter(|(from, to)| from <= to)
                .map(|(from, to)| Kind::Uniform { from, to }),
            "drift" => range().map(|(from, to)| Kind::Drift { from, to }),
            _ => text.parse().ok().map(Kind::Fixed),
        };
        let kind = kind.ok_or_else(|| {
            format!(
                "`{text}`: a number of bytes, pareto, pareto:SHAPE:LEAST, uniform:FROM-TO, or drift:FROM-TO expected"
            )
        })?;
        let text = text.to_owned();
        Ok(Self { text, kind })
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    #[test]
    fn sizes_as_typed() {
        for wrong in [
            "",
            "x",
            "uniform:3-2",
            "uniform:0-2",
            "pareto:1",
            "drift:1",
            "-1",
        ] {
            assert!(wrong.parse::<ValueSizes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_drawn_as_they_are_called() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut draw = |text: &str, over| {
            let sizes: ValueSizes = text.parse().unwrap();
            (0..10_000)
                .map(|_| sizes.draw(&mut random, over))
                .collect::<Vec<u32>>()
        };
        let mean = |sizes: &[u32]| sizes.iter().map(|&size| f64::from(size)).sum::<f64>() / 1e4;
        assert_eq!(draw("300", 0.5)[7], 300);
        let uniform = draw("uniform:1-30000", 0.5);
        assert!(uniform.iter().all(|size| (1..=30_000).contains(size)));
        assert!((14_500.0..15_500.0).contains(&mean(&uniform)));
        let pareto = draw("pareto", 0.5);
        assert!(pareto.iter().all(|size| (60..=LARGEST).contains(size)));
        assert!((200.0..500.0).contains(&mean(&pareto)));
        for (over, size) in [(0.0, 100), (0.5, 1000), (1.0, 10_000), (1.1, 10_000)] {
            assert_eq!(draw("drift:100-10000", over)[0], size);
        }
        assert_eq!(draw("drift:10000-100", 1.0)[0], 100);
    }
}
