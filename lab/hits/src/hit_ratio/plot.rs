//! The curve of misses by size, for each contender on one trace.

use nuthatch_plot::{Axis, Curve, LineChart};
use nuthatch_program::Failure;

use super::report::{Results, Row};
use crate::size::By;

/// Curves of one figure: as many as have colours of their own.
const CURVES_MAX: usize = 7;

/// The figure as SVG. Errors: no contender has a value.
pub fn figure(results: &Results, baseline: &str, bytes: bool) -> Result<String, Failure> {
    let (what, unit) = match (bytes, results.by) {
        (false, By::Bytes) => ("requests", "bytes"),
        (false, By::Items) => ("requests", "keys"),
        (true, By::Bytes) => ("bytes", "bytes"),
        (true, By::Items) => ("bytes", "keys"),
    };
    let percent_of_whole = |size: u64| 100.0 * size as f64 / results.whole as f64;
    let curve = |row: &Row| {
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
        Curve::measured(name, points)
    };
    let whole = results.size_in_words(results.whole);
    let rows = shown(results, baseline, bytes);
    let mut note = format!("{} requests for {} keys", results.requests, results.keys);
    let left_out = results.rows.len() - rows.len();
    if left_out > 0 {
        note += &format!("; {left_out} policies with more misses are not shown");
    }
    let chart = LineChart {
        title: format!("Misses of {}", results.trace),
        note,
        x: Axis::logarithmic(format!(
            "size of the cache, % of the trace's {unit} ({whole})"
        )),
        y: Axis::linear(format!("% of the {what} that miss")),
        curves: rows.into_iter().map(curve).collect(),
    };
    chart.svg().map_err(|error| Failure::run(error.to_string()))
}

/// All contenders that are no simulated online policies, the baseline, and of the other policies those with the fewest
/// misses, in the order of the table.
fn shown<'a>(results: &'a Results, baseline: &str, bytes: bool) -> Vec<&'a Row> {
    let misses = |row: &Row| -> f64 {
        let shares = row.cells.iter().filter_map(|cell| cell.share(bytes));
        shares.map(|share| 1.0 - share).sum()
    };
    let mut numbers: Vec<usize> = (0..results.rows.len()).collect();
    numbers.sort_by(|&one, &other| {
        let rank = |row: &Row| row.is_online_policy && row.name != baseline;
        let (one, other) = (&results.rows[one], &results.rows[other]);
        let ranks = rank(one).cmp(&rank(other));
        ranks.then(misses(one).total_cmp(&misses(other)))
    });
    numbers.truncate(CURVES_MAX);
    numbers.sort_unstable();
    numbers
        .into_iter()
        .map(|number| &results.rows[number])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit_ratio::report::Cell;
    use crate::simulate::Hits;

    fn results(names: &[&str]) -> Results {
        let row = |(number, name): (usize, &&str)| Row {
            name: (*name).to_owned(),
            is_online_policy: *name != "optimum",
            cells: vec![Cell::simulated(
                Hits {
                    requests: 100,
                    hits: number as u64,
                    ..Hits::default()
                },
                None,
            )],
        };
        Results {
            trace: "t".to_owned(),
            path: "t".to_owned(),
            by: By::Items,
            requests: 100,
            keys: 10,
            whole: 10,
            sizes: vec![("10%".parse().unwrap(), 1)],
            rows: names.iter().enumerate().map(row).collect(),
            running: Vec::new(),
        }
    }

    #[test]
    fn as_many_are_shown_as_can_be_told_apart() {
        let few = results(&["a", "b", "optimum"]);
        let svg = figure(&few, "a", false).unwrap();
        assert!(svg.contains("\nb\n") && !svg.contains("not shown"));

        let many = results(&["optimum", "base", "c", "d", "e", "f", "g", "h", "i"]);
        let svg = figure(&many, "base", false).unwrap();
        for name in ["optimum", "base", "e", "f", "g", "h", "i"] {
            assert!(svg.contains(&format!("\n{name}\n")), "{name}");
        }
        assert!(svg.contains("2 policies with more misses are not shown"));
        assert!(!svg.contains("\nc\n") && !svg.contains("\nd\n"));
    }
}
