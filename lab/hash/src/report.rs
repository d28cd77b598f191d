//! The result of an analysis: as text, as JSON, as a figure.

use std::fmt::Write;

use nuthatch_base::spread::Histogram;
use serde::Serialize;

use crate::analyze::{Analysis, Assessment};
use crate::bucket_sizes;
use crate::rank::Ranking;
use nuthatch_program::Failure;

/// Sizes whose buckets are listed even if there are none.
const LISTED_MAX: u64 = 15;
/// Functions that a figure shows beside the perfect one: the best and the worst.
const PLOTTED_BEST: usize = 2;
const PLOTTED_WORST: usize = 2;

/// For people: a histogram for each function, the ranking, and what to take.
pub fn text(analysis: &Analysis, ranking: &Ranking) -> String {
    let mut text = String::new();
    let assessments = || ranking.order.iter().map(|&at| &analysis.assessments[at]);
    for assessment in assessments() {
        // Writing to a String does not fail, here and below.
        let _ = writeln!(
            text,
            "== {}: {}\n{}",
            assessment.name, assessment.about, assessment.histogram
        );
    }
    about_keys(&mut text, analysis);
    ranking_table(&mut text, assessments());
    let _ = writeln!(
        text,
        "{:.0} % of the searches hit.",
        100.0 * analysis.hit_ratio
    );
    slots_table(&mut text, assessments());
    sizes_table(&mut text, analysis);
    let _ = writeln!(text, "\n{}", ranking.advice);
    text
}

fn about_keys(text: &mut String, analysis: &Analysis) {
    let Some(first) = analysis.assessments.first() else {
        return;
    };
    let (items, buckets) = (first.histogram.items(), first.histogram.buckets());
    let kind = analysis.kind.name();
    let _ = write!(text, "{items} {kind} keys in {buckets} buckets");
    match analysis.repeated {
        Some(0) => {}
        Some(repeated) => {
            let _ = write!(text, "; {repeated} were duplicates and count once");
        }
        None => text.push_str("; equal keys count as often as they come"),
    }
    text.push('\n');
    if !analysis.left_out.is_empty() {
        let names = analysis.left_out.join(", ");
        let _ = writeln!(text, "left out, since they need a power of two: {names}");
    }
}

fn ranking_table<'a>(text: &mut String, assessments: impl Iterator<Item = &'a Assessment> + Clone) {
    let _ = writeln!(
        text,
        "\n{:>4} {:<22} {:>6} {:>8} {:>9} {:>9} {:>9} {:>7} {:>7} {:>9}  seed",
        "rank",
        "function",
        "used",
        "largest",
        "hit",
        "miss",
        "chi z",
        "flips",
        "ns/key",
        "ns/search"
    );
    for (rank, assessment) in assessments.clone().enumerate() {
        let seen = &assessment.histogram;
        let _ = writeln!(
            text,
            "{:>4} {:<22} {:>5.1}% {:>8} {:>9.3} {:>9.3} {:>9.1} {:>7} {:>7.2} {:>9.1}  {}",
            rank + 1,
            assessment.name,
            100.0 * seen.used_buckets() as f64 / seen.buckets() as f64,
            seen.largest(),
            seen.searched_hit(),
            seen.searched_miss(),
            assessment.chi_squared.z,
            flips(assessment),
            assessment.cost.ns_per_key,
            assessment.cost.ns_per_search,
            if assessment.seeded { "yes" } else { "-" }
        );
    }
    if let Some(assessment) = assessments.clone().next() {
        let perfect = assessment.perfect();
        let _ = writeln!(
            text,
            "{:>4} {:<22} {:>5.1}% {:>8} {:>9.3} {:>9.3} {:>9.1} {:>7}",
            "",
            "(a perfect hash)",
            100.0 * perfect.used_share(),
            perfect.largest(),
            perfect.searched_hit(),
            perfect.searched_miss(),
            0.0,
            "100%"
        );
    }
    text.push_str(
        "hit, miss: objects searched in a chain. chi z: standard deviations from chance; far above 0\n\
         keys cluster, far below they are spread too evenly. flips: pairs of a bit of the key and a bit of\n\
         the bucket where flipping the one flips the other with a chance of about a half. ns/search: a table of\n\
         chains with half of the keys, hashing included.\n",
    );
}

fn flips(assessment: &Assessment) -> String {
    match assessment.avalanche {
        Some(avalanche) => format!("{:.0}%", 100.0 * avalanche.good),
        None => "-".into(),
    }
}

/// Tables whose buckets have slots, for the functions with enough bits.
fn slots_table<'a>(text: &mut String, assessments: impl Iterator<Item = &'a Assessment>) {
    let rows: Vec<String> = assessments
        .filter_map(|assessment| {
            let ([ours, memc3], sets) = (
                assessment.cuckoo.as_ref()?,
                assessment.set_associative.as_ref()?,
            );
            Some(format!(
                "{:<22} {:>9.1}% {:>10.4} {:>9.1}% {:>10.4} {:>11.1}% {:>10.4}",
                assessment.name,
                100.0 * ours.load(),
                ours.false_tags,
                100.0 * memc3.load(),
                memc3.false_tags,
                100.0 * sets.kept_share(),
                sets.false_tags
            ))
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:<22} {:>21} {:>21} {:>23}\n{:<22} {:>10} {:>10} {:>10} {:>10} {:>12} {:>10}",
        "in tables with slots:",
        "cuckoo 8 x 16-bit tag",
        "cuckoo 4 x 8-bit tag",
        "8-way set-associative",
        "",
        "load",
        "false tags",
        "load",
        "false tags",
        "kept",
        "false tags"
    );
    for row in rows {
        let _ = writeln!(text, "{row}");
    }
    text.push_str("load: at which the first insert fails. false tags: a search that hits.\n");
}

fn sizes_table(text: &mut String, analysis: &Analysis) {
    if analysis.sizes.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\nthe first of them in tables of other sizes (a pointer of 8 bytes a bucket):"
    );
    let _ = writeln!(
        text,
        "{:>12} {:>12} {:>9} {:>9}",
        "buckets", "KiB", "hit", "miss"
    );
    for (buckets, hit, miss) in &analysis.sizes {
        let kib = *buckets as f64 / 128.0;
        let _ = writeln!(text, "{buckets:>12} {kib:>12.1} {hit:>9.3} {miss:>9.3}");
    }
}

/// One line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    function: &'a str,
    rank: usize,
    recommended: bool,
    seeded: bool,
    kind: &'a str,
    buckets: u64,
    items: u64,
    used_buckets: u64,
    largest: u64,
    share_up_to_mean: f64,
    searched_hit: f64,
    searched_miss: f64,
    chi_squared: f64,
    chi_squared_z: f64,
    chi_squared_p: f64,
    avalanche_mean: Option<f64>,
    avalanche_worst: Option<f64>,
    avalanche_good: Option<f64>,
    ns_per_key: f64,
    ns_per_search: f64,
    hit_ratio: f64,
    perfect: Perfect,
    cuckoo: Option<Slots>,
    cuckoo_memc3: Option<Slots>,
    set_associative: Option<Slots>,
    histogram: Vec<Bar>,
    histogram_to_15: Vec<Bar>,
    advice: &'a str,
}

/// A perfect hash on as many keys and buckets.
#[derive(Serialize)]
pub(crate) struct Perfect {
    used_share: f64,
    largest: u64,
    share_up_to_mean: f64,
    searched_hit: f64,
    searched_miss: f64,
}

impl Perfect {
    pub(crate) fn of(perfect: &nuthatch_base::spread::Perfect) -> Self {
        Self {
            used_share: perfect.used_share(),
            largest: perfect.largest(),
            share_up_to_mean: perfect.share_up_to_mean(),
            searched_hit: perfect.searched_hit(),
            searched_miss: perfect.searched_miss(),
        }
    }
}

/// A table with slots. `load` of a set-associative one is that of its ways.
#[derive(Serialize)]
struct Slots {
    slots: u64,
    items: u64,
    load: f64,
    false_tags: f64,
}

/// A row of the histogram.
#[derive(Serialize)]
pub(crate) struct Bar {
    size: u64,
    buckets: u64,
    items: u64,
    sum_pct: f64,
    perfect_buckets: f64,
}

/// For programs: one line a function, the best first.
pub fn json(analysis: &Analysis, ranking: &Ranking) -> Result<String, Failure> {
    let mut text = String::new();
    for (rank, &at) in ranking.order.iter().enumerate() {
        let line = line(analysis, ranking, rank, &analysis.assessments[at]);
        let line = serde_json::to_string(&line).map_err(|error| Failure::run(error.to_string()))?;
        text += &line;
        text.push('\n');
    }
    Ok(text)
}

fn line<'a>(
    analysis: &'a Analysis,
    ranking: &'a Ranking,
    rank: usize,
    assessment: &'a Assessment,
) -> Line<'a> {
    let (seen, perfect) = (&assessment.histogram, assessment.perfect());
    let slots = |filled: &crate::distribution::cuckoo::Filled| Slots {
        slots: filled.slots,
        items: filled.items,
        load: filled.load(),
        false_tags: filled.false_tags,
    };
    Line {
        function: assessment.name,
        rank: rank + 1,
        recommended: rank == 0,
        seeded: assessment.seeded,
        kind: analysis.kind.name(),
        buckets: seen.buckets(),
        items: seen.items(),
        used_buckets: seen.used_buckets(),
        largest: seen.largest(),
        share_up_to_mean: seen.share_up_to_mean(),
        searched_hit: seen.searched_hit(),
        searched_miss: seen.searched_miss(),
        chi_squared: assessment.chi_squared.value,
        chi_squared_z: assessment.chi_squared.z,
        chi_squared_p: assessment.chi_squared.p,
        avalanche_mean: assessment.avalanche.map(|avalanche| avalanche.mean),
        avalanche_worst: assessment.avalanche.map(|avalanche| avalanche.worst),
        avalanche_good: assessment.avalanche.map(|avalanche| avalanche.good),
        ns_per_key: assessment.cost.ns_per_key,
        ns_per_search: assessment.cost.ns_per_search,
        hit_ratio: analysis.hit_ratio,
        perfect: Perfect::of(&perfect),
        cuckoo: assessment.cuckoo.as_ref().map(|[ours, _]| slots(ours)),
        cuckoo_memc3: assessment.cuckoo.as_ref().map(|[_, memc3]| slots(memc3)),
        set_associative: assessment.set_associative.as_ref().map(|filled| Slots {
            slots: filled.sets * filled.ways,
            items: filled.kept,
            load: filled.load(),
            false_tags: filled.false_tags,
        }),
        histogram_to_15: histogram_to_15(seen, &perfect),
        histogram: histogram_rows(seen, perfect),
        advice: &ranking.advice,
    }
}

/// All sizes that occur, and those up to 15 that do not.
pub(crate) fn histogram_rows(
    seen: &Histogram,
    perfect: nuthatch_base::spread::Perfect,
) -> Vec<Bar> {
    let bar = |row: nuthatch_base::spread::Row| Bar {
        size: row.size,
        buckets: row.buckets,
        items: row.items,
        sum_pct: row.sum_pct,
        perfect_buckets: perfect.buckets_of(row.size),
    };
    seen.rows(LISTED_MAX).into_iter().map(bar).collect()
}

/// The rows of the paper's histograms: the sizes up to 15, and one row, of size 16, for all larger ones.
pub(crate) fn histogram_to_15(
    seen: &Histogram,
    perfect: &nuthatch_base::spread::Perfect,
) -> Vec<Bar> {
    let (mut items, mut buckets, mut perfect_buckets) = (0, 0, 0.0);
    let mut rows: Vec<Bar> = (0..=LISTED_MAX)
        .map(|size| {
            let bar = Bar {
                size,
                buckets: seen.buckets_of(size),
                items: size * seen.buckets_of(size),
                sum_pct: 0.0,
                perfect_buckets: perfect.buckets_of(size),
            };
            items += bar.items;
            buckets += bar.buckets;
            perfect_buckets += bar.perfect_buckets;
            Bar {
                sum_pct: 100.0 * items as f64 / seen.items().max(1) as f64,
                ..bar
            }
        })
        .collect();
    rows.push(Bar {
        size: LISTED_MAX + 1,
        buckets: seen.buckets() - buckets,
        items: seen.items() - items,
        sum_pct: 100.0,
        perfect_buckets: (seen.buckets() as f64 - perfect_buckets).max(0.0),
    });
    rows
}

/// The figure of bucket sizes under the best functions and the worst.
pub fn plot(analysis: &Analysis, ranking: &Ranking) -> Result<String, Failure> {
    let order = &ranking.order;
    let worst_from = order.len().saturating_sub(PLOTTED_WORST).max(PLOTTED_BEST);
    let worst = order.get(worst_from..).unwrap_or(&[]);
    let shown = order.iter().take(PLOTTED_BEST).chain(worst);
    let shown: Vec<(&str, &Histogram)> = shown
        .map(|&at| {
            (
                analysis.assessments[at].name,
                &analysis.assessments[at].histogram,
            )
        })
        .collect();
    let title = format!("Bucket sizes of {} keys", analysis.kind.name());
    bucket_sizes::figure(&title, &shown)
}

#[cfg(test)]
mod tests {
    use nuthatch_base::spread::Perfect;

    use super::*;

    #[test]
    fn the_last_row_has_all_larger_sizes() {
        let seen = Histogram::of_counts([0, 1, 15, 16, 40]);
        let rows = histogram_to_15(&seen, &Perfect::of(seen.items(), seen.buckets()));
        assert_eq!(rows.len(), 17);
        let of = |row: &Bar| (row.size, row.buckets, row.items);
        assert_eq!(of(&rows[15]), (15, 1, 15));
        assert_eq!(of(&rows[16]), (16, 2, 56));
        assert!((rows[15].sum_pct - 100.0 * 16.0 / 72.0).abs() < 1e-9);
        assert_eq!(rows[16].sum_pct, 100.0);
    }
}
