//! The figure of bucket sizes: the shares of keys in buckets of each size, under several functions and under a perfect
//! hash.

use nuthatch_base::spread::{Histogram, Perfect};
use nuthatch_plot::{Axis, Layer, Mark, Panel, PanelChart, PanelX, Tone};
use nuthatch_program::Failure;

/// Bins of sizes that a figure shows one by one; the next holds all larger sizes.
const BINS: u64 = 15;

/// A panel for each function, which is given by its name and histogram. All histograms are of tables with as many
/// keys and buckets.
///
/// # Errors
/// No function, or no keys.
pub fn figure(title: &str, functions: &[(&str, &Histogram)]) -> Result<String, Failure> {
    let Some((_, first)) = functions.first() else {
        return Err(Failure::run("no function to draw"));
    };
    let perfect = Perfect::of(first.items(), first.buckets());
    let bins = Bins::up_to(perfect.largest());
    let outline = bins.shares(first.items(), |size| perfect.buckets_of(size));
    let panel = |(name, seen): &(&str, &Histogram)| {
        let shares = bins.shares(seen.items(), |size| seen.buckets_of(size) as f64);
        Panel {
            name: (*name).to_owned(),
            layers: vec![
                layer(Mark::Bars, Tone::Subject, &shares),
                layer(Mark::Outline, Tone::Reference, &outline),
            ],
        }
    };
    let chart = PanelChart {
        title: title.to_owned(),
        note: format!(
            "{} keys in {} buckets; bars: the function; line: a perfect hash",
            first.items(),
            first.buckets()
        ),
        x: PanelX::Names {
            label: "keys in a bucket".to_owned(),
            names: bins.names(),
        },
        y: Axis::linear("% of the keys that lie in buckets of this size"),
        panels: functions.iter().map(panel).collect(),
    };
    chart.svg().map_err(|error| Failure::run(error.to_string()))
}

fn layer(mark: Mark, tone: Tone, shares: &[f64]) -> Layer {
    let points = shares.iter().enumerate();
    Layer {
        mark,
        tone,
        points: points.map(|(bin, &share)| (bin as f64, share)).collect(),
    }
}

/// Ranges of bucket sizes, each of the same width.
#[derive(Clone, Copy, Debug)]
struct Bins {
    width: u64,
}

impl Bins {
    /// Bins wide enough that this size has a bin of its own.
    fn up_to(size: u64) -> Self {
        Self {
            width: size.div_ceil(BINS).max(1),
        }
    }

    /// The greatest size of a bin.
    fn end(&self, bin: u64) -> u64 {
        (bin + 1) * self.width
    }

    fn names(&self) -> Vec<String> {
        let name = |bin| match self.width {
            1 => self.end(bin).to_string(),
            width => format!("{}–{}", self.end(bin) - width + 1, self.end(bin)),
        };
        let rest = format!(">{}", BINS * self.width);
        (0..BINS).map(name).chain([rest]).collect()
    }

    /// Percent of the keys in each bin, if `buckets_of` gives the buckets of each size.
    fn shares(&self, keys: u64, buckets_of: impl Fn(u64) -> f64) -> Vec<f64> {
        let share = |bin| {
            let sizes = self.end(bin) - self.width + 1..=self.end(bin);
            let in_bin: f64 = sizes.map(|size| size as f64 * buckets_of(size)).sum();
            100.0 * in_bin / keys.max(1) as f64
        };
        let mut shares: Vec<f64> = (0..BINS).map(share).collect();
        let rest = 100.0 - shares.iter().sum::<f64>();
        // A rest that is only rounding is not a share.
        shares.push(if rest < 1e-6 { 0.0 } else { rest });
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_one_bin() {
        let seen = Histogram::of_counts([0, 1, 1, 3, 40]);
        for (size, width) in [(3, 1), (16, 2), (45, 3)] {
            let bins = Bins::up_to(size);
            assert_eq!(bins.width, width);
            let shares = bins.shares(seen.items(), |size| seen.buckets_of(size) as f64);
            assert_eq!(shares.len(), bins.names().len());
            assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-9);
        }
        let shares = Bins::up_to(3).shares(seen.items(), |size| seen.buckets_of(size) as f64);
        assert!((shares[0] - 100.0 * 2.0 / 45.0).abs() < 1e-9);
        assert!((shares[15] - 100.0 * 40.0 / 45.0).abs() < 1e-9);
    }

    #[test]
    fn bins_are_named_by_their_sizes() {
        assert_eq!(Bins::up_to(10).names()[14..], ["15", ">15"]);
        assert_eq!(Bins::up_to(58).names()[..2], ["1–4", "5–8"]);
        assert_eq!(Bins::up_to(58).names()[15], ">60");
    }

    #[test]
    fn no_function_is_an_error() {
        assert!(figure("Sizes", &[]).is_err());
    }
}
