//! The curve of misses by size, for each contender on one trace.

use nuthatch_plot::{Axis, Curve, LineChart};
use nuthatch_program::Failure;

use super::report::Results;
use crate::size::By;

/// The figure as SVG. Errors: no contender has a value.
pub fn figure(results: &Results, bytes: bool) -> Result<String, Failure> {
    let (what, unit) = match (bytes, results.by) {
        (false, By::Bytes) => ("requests", "bytes"),
        (false, By::Items) => ("requests", "keys"),
        (true, By::Bytes) => ("bytes", "bytes"),
        (true, By::Items) => ("bytes", "keys"),
    };
    let percent_of_whole = |size: u64| 100.0 * size as f64 / results.whole as f64;
    let curve = |row: &super::report::Row| {
        let mut points: Vec<(f64, f64)> = results
            .sizes
            .iter()
            .zip(&row.cells)
            .filter_map(|((_, size), cell)| {
                let misses = 100.0 * (1.0 - cell.share(bytes)?);
                Some((percent_of_whole(*size), misses))
            })
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let name = row.name.clone();
        Curve { name, points }
    };
    let whole = results.size_in_words(results.whole);
    let chart = LineChart {
        title: format!("Misses of {}", results.trace),
        note: format!("{} requests for {} keys", results.requests, results.keys),
        x: Axis::logarithmic(format!(
            "size of the cache, % of the trace's {unit} ({whole})"
        )),
        y: Axis::linear(format!("% of the {what} that miss")),
        curves: results.rows.iter().map(curve).collect(),
    };
    chart.svg().map_err(|error| Failure::run(error.to_string()))
}
