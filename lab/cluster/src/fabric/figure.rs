//! Figures of the store: latencies by size, and the directory's hits by its size.

use nuthatch_plot::{Axis, Curve, LineChart, PlotError};

use crate::fabric::store::{Case, StoreLatency};
use crate::fabric::throughput::Throughput;

/// Latencies by the value's size, a curve for each case: of gets, or of sets.
pub fn latencies(found: &[StoreLatency], sets: bool, note: &str) -> Result<String, PlotError> {
    let cases: &[Case] = match sets {
        false => &[
            Case::RawGet,
            Case::GetHit,
            Case::GetMiss,
            Case::GetActive,
            Case::MemcachedGet,
        ],
        true => &[
            Case::RawSet,
            Case::SetDirect,
            Case::SetActive,
            Case::MemcachedSet,
        ],
    };
    let curve = |case: &Case| {
        let of_case = found.iter().filter(|one| one.case == *case);
        let points = of_case.map(|one| (one.bytes as f64, one.p50_ns as f64));
        (case.to_string(), points.collect::<Vec<_>>())
    };
    let curves = cases.iter().map(curve);
    chart(
        match sets {
            false => "Latency of a get",
            true => "Latency of a set",
        },
        note,
        Axis::binary("bytes of the value"),
        Axis::logarithmic("ns, median"),
        curves.filter(|(_, points)| !points.is_empty()),
    )
}

/// Directory hits by entries, of gets alone.
pub fn directory(found: &[Throughput], note: &str) -> Result<String, PlotError> {
    let mut points: Vec<(f64, f64)> = found
        .iter()
        .filter(|one| one.load.gets == 100 && one.load.batch == 1 && one.load.directory > 0)
        .map(|one| {
            (
                one.load.directory as f64,
                100.0 * one.session.directory_hits,
            )
        })
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    chart(
        "Hits of the pointer directory",
        note,
        Axis::binary("entries"),
        Axis::linear("% of gets"),
        [("hits".to_owned(), points)].into_iter(),
    )
}

fn chart(
    title: &str,
    note: &str,
    x: Axis,
    y: Axis,
    curves: impl Iterator<Item = (String, Vec<(f64, f64)>)>,
) -> Result<String, PlotError> {
    let curves = curves.map(|(name, points)| Curve::measured(name, points));
    LineChart {
        title: title.to_owned(),
        note: note.to_owned(),
        x,
        y,
        curves: curves.collect(),
    }
    .svg()
}
