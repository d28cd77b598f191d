//! The commands' figures: each question has the chart that answers it.

use nuthatch_bench::report::Spread;
use nuthatch_flow::{Layout, theory};
use nuthatch_plot::{
    Axis, Curve, DotChart, DotGroup, DotRow, Estimate, Layer, LineChart, Mark, Panel, PanelChart,
    PanelX, PlotError, Tone,
};

use crate::design::Place;
use crate::{attack, bench, cycles, replay};

/// Points of a curve that is computed.
const STEPS: u32 = 60;
/// Lines of the expected hit rates, between the least and the greatest of these factors.
pub(crate) fn expected(factors: &[f64]) -> Result<String, PlotError> {
    let steps = steps(factors);
    let curve = |name: String, rate: &dyn Fn(f64) -> f64| {
        let points = steps.iter().map(|&factor| (factor, rate(factor)));
        Curve::measured(name, points.collect())
    };
    let mut curves = vec![curve("ideal".to_owned(), &theory::ideal)];
    curves.extend(Layout::ALL.iter().map(|&layout| {
        let rate = move |factor| theory::hit_rate(layout, factor);
        curve(layout.to_string(), &rate)
    }));
    LineChart {
        title: "Expected hit rate of each layout".to_owned(),
        note: "equally likely keys, after a long warm-up; ideal: every entry is used".to_owned(),
        x: Axis::linear("keys / entry"),
        y: Axis::linear("hit rate"),
        curves,
    }
    .svg()
}

/// The measured hit rates: over the factors, if there are several, otherwise a dot for each design.
pub(crate) fn hit_rates(
    rows: &[bench::Measurement],
    options: &bench::Options,
) -> Result<String, PlotError> {
    let designs = AllDesigns::of(rows, options);
    let title = format!("Hit rate, {} keys", options.skew.name());
    if options.working_set.oversubscription.len() < 2 {
        return dots_of_designs(rows, &designs, title);
    }
    match options.skew.is_uniform() {
        true => panels_over_factors(&designs, title),
        false => lines_over_factors(&designs, title),
    }
}

/// A design of a bench, and its rows: one for each factor.
struct DesignRows<'a> {
    name: String,
    rows: Vec<&'a bench::Measurement>,
}

/// The designs of a bench, in their order.
struct AllDesigns<'a>(Vec<DesignRows<'a>>);

impl<'a> AllDesigns<'a> {
    fn of(rows: &'a [bench::Measurement], options: &bench::Options) -> Self {
        let mut designs: Vec<DesignRows<'a>> = Vec::new();
        for row in rows {
            let mut name = format!("{}, {}", row.layout, row.eviction);
            if options.working_set.entries.len() > 1 {
                name += &format!(", {} entries", row.entries);
            }
            if options.vector.len() > 1 {
                name += &format!(", {}", row.vector);
            }
            match designs.iter_mut().find(|design| design.name == name) {
                Some(design) => design.rows.push(row),
                None => designs.push(DesignRows {
                    name,
                    rows: vec![row],
                }),
            }
        }
        Self(designs)
    }
}

fn dots_of_designs(
    rows: &[bench::Measurement],
    designs: &AllDesigns<'_>,
    title: String,
) -> Result<String, PlotError> {
    let mut groups: Vec<DotGroup> = Vec::new();
    for design in &designs.0 {
        let first = design.rows[0];
        let prefix = format!("{}, ", first.layout);
        let name = design.name.strip_prefix(&prefix).unwrap_or(&design.name);
        let estimate = Estimate {
            expected: first.theory,
            ..estimate(&first.hit_rate_spread)
        };
        let row = DotRow {
            name: name.to_owned(),
            estimates: vec![estimate],
        };
        add(&mut groups, &first.layout, row);
    }
    let theory = match rows.iter().any(|row| row.theory.is_some()) {
        true => "; tick: theory",
        false => "",
    };
    // Several sizes are in the names.
    let sizes = match rows.first() {
        Some(first) if rows.iter().all(|row| row.entries == first.entries) => format!(
            "{} keys / entry, {} entries; ",
            first.oversubscription, first.entries
        ),
        _ => String::new(),
    };
    DotChart {
        title,
        note: format!("{sizes}dot: median of the rounds, line: least to greatest{theory}"),
        axis: Axis::linear("hit rate"),
        digits: 4,
        panels: vec![String::new()],
        groups,
    }
    .svg()
}

/// A panel for each design: theory as a line, that of other designs in grey, the measurements as dots.
fn panels_over_factors(designs: &AllDesigns<'_>, title: String) -> Result<String, PlotError> {
    let rows = designs.0.iter().flat_map(|design| &design.rows);
    let factors: Vec<f64> = rows.map(|row| row.oversubscription).collect();
    let steps = steps(&factors);
    let theory = |design: &DesignRows<'_>| -> Vec<(f64, f64)> {
        let layout = Place::of_name(&design.rows[0].layout).map(Place::candidates);
        let rate = |factor| match layout {
            Some(layout) => theory::hit_rate(layout, factor),
            None => theory::ideal(factor),
        };
        steps.iter().map(|&factor| (factor, rate(factor))).collect()
    };
    let curves: Vec<Vec<(f64, f64)>> = designs.0.iter().map(theory).collect();
    let panel = |(number, design): (usize, &DesignRows<'_>)| {
        let others = curves
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != number);
        let mut layers: Vec<Layer> = others
            .map(|(_, points)| layer(Mark::Line, Tone::Context, points.clone()))
            .collect();
        layers.push(layer(Mark::Line, Tone::Reference, curves[number].clone()));
        let measured = design
            .rows
            .iter()
            .map(|row| (row.oversubscription, row.hit_rate));
        layers.push(layer(Mark::Dots, Tone::Subject, measured.collect()));
        Panel {
            name: design.name.clone(),
            layers,
        }
    };
    PanelChart {
        title,
        note: "dots: measured; line: theory; grey: theory of the other designs".to_owned(),
        x: PanelX::Numbers(Axis::linear("keys / entry")),
        y: Axis::linear("hit rate"),
        panels: designs.0.iter().enumerate().map(panel).collect(),
    }
    .svg()
}

fn lines_over_factors(designs: &AllDesigns<'_>, title: String) -> Result<String, PlotError> {
    let curve = |design: &DesignRows<'_>| {
        let rows = design.rows.iter();
        let points = rows.map(|row| (row.oversubscription, row.hit_rate));
        Curve::measured(&design.name, points.collect())
    };
    LineChart {
        title,
        note: String::new(),
        x: Axis::linear("keys / entry"),
        y: Axis::linear("hit rate"),
        curves: designs.0.iter().map(curve).collect(),
    }
    .svg()
}

/// Dots of what a packet costs from its key to the action, by microflow cache.
pub(crate) fn packet_costs(rows: &[replay::Measurement]) -> Result<String, PlotError> {
    let (without, with): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.layout == "none");
    let mut groups: Vec<DotGroup> = Vec::new();
    for row in with {
        let dots = DotRow {
            name: row.eviction.clone(),
            estimates: vec![estimate(&row.cycles_spread)],
        };
        add(&mut groups, &row.layout, dots);
    }
    // It is so far from the others that beside it they would look the same.
    let without = without.first().map_or(String::new(), |row| {
        format!("; without a microflow cache: {:.0}", row.cycles_per_packet)
    });
    let unit = cycles::UNIT;
    DotChart {
        title: format!("What a packet costs from its key to the action, in {unit}"),
        note: format!("dot: median of the rounds, line: least to greatest{without}"),
        axis: Axis::linear(format!("{unit} / packet")),
        digits: 0,
        panels: vec![String::new()],
        groups,
    }
    .svg()
}

/// Dots of the hit rates before and during a scan.
pub(crate) fn scan(
    rows: &[attack::Measurement],
    options: &attack::Options,
) -> Result<String, PlotError> {
    let mut groups: Vec<DotGroup> = Vec::new();
    for row in rows {
        let rates = [row.before.hit_rate, row.during.hit_rate];
        let dots = DotRow {
            name: format!("{}, {}", row.layout, row.eviction),
            estimates: rates.map(Estimate::exact).to_vec(),
        };
        add(&mut groups, &row.layout, dots);
    }
    // The rows name the layout: most layouts have one row.
    groups.iter_mut().for_each(|group| group.name.clear());
    let flows = rows.first().map_or(String::new(), |row| {
        format!("{} flows in {} entries, ", row.flows, row.entries)
    });
    DotChart {
        title: "Hit rate of normal flows, before and during a scan".to_owned(),
        note: format!(
            "{flows}{}; scan: {} % of all packets, each a new flow",
            options.skew.name(),
            options.share * 100.0
        ),
        axis: Axis::linear("hit rate of normal flows"),
        digits: 3,
        panels: vec!["before".to_owned(), "during".to_owned()],
        groups,
    }
    .svg()
}

/// Adds a row to the group of its layout.
fn add(groups: &mut Vec<DotGroup>, layout: &str, row: DotRow) {
    match groups.iter_mut().find(|group| group.name == layout) {
        Some(group) => group.rows.push(row),
        None => groups.push(DotGroup {
            name: layout.to_owned(),
            rows: vec![row],
        }),
    }
}

fn estimate(spread: &Spread) -> Estimate {
    Estimate::spread(spread.median, spread.min, spread.max)
}

fn layer(mark: Mark, tone: Tone, points: Vec<(f64, f64)>) -> Layer {
    Layer { mark, tone, points }
}

/// Evenly spaced factors from the least to the greatest.
fn steps(factors: &[f64]) -> Vec<f64> {
    let low = factors.iter().copied().fold(f64::INFINITY, f64::min);
    let high = factors.iter().copied().fold(0.0, f64::max);
    let step = (high - low) / f64::from(STEPS);
    (0..=STEPS)
        .map(|number| low + f64::from(number) * step)
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        options: bench::Options,
    }

    /// The figure of a small bench.
    fn drawn(arguments: &str) -> String {
        let line = format!("bench --entries 64 --lookups 1k --warm-up 1 --rounds 3 {arguments}");
        let options = Arguments::parse_from(line.split(' ')).options;
        let rows = bench::measure(&options).ok().unwrap();
        hit_rates(&rows, &options).unwrap()
    }

    fn count(svg: &str, text: &str) -> usize {
        svg.matches(text).count()
    }

    #[test]
    fn one_factor_is_a_dot_for_each_design() {
        let svg = drawn("--layout 4-way,blp-2-4 --eviction random,pblru");
        assert_eq!(count(&svg, "<circle"), 4);
        assert!(svg.contains("theory"));
        let svg = drawn("--layout blp-2-4 --eviction random,pblru --dist zipf --vector scalar");
        assert_eq!(count(&svg, "<circle"), 2);
        assert!(!svg.contains("theory"));
    }

    #[test]
    fn several_factors_are_a_panel_for_each_design_or_a_line() {
        let designs = "--layout 4-way,blp-2-4 --eviction random --oversubscription 0.5,1,2";
        let uniform = drawn(designs);
        assert_eq!(count(&uniform, "<circle"), 2 * 3);
        assert!(uniform.contains("line: theory"));
        let skewed = drawn(&format!("{designs} --dist zipf"));
        assert_eq!(count(&skewed, "<circle"), 2 * 3);
        assert!(!skewed.contains("theory"));
        for name in ["4-way, random", "blp-2-4, random"] {
            assert_eq!((count(&uniform, name), count(&skewed, name)), (1, 1));
        }
    }

    #[test]
    fn sizes_of_tables_are_named() {
        let svg =
            drawn("--entries 128 --layout blp-2-4 --eviction random --oversubscription 0.5,1");
        assert_eq!(count(&svg, "blp-2-4, random, 64 entries"), 1);
        assert_eq!(count(&svg, "blp-2-4, random, 128 entries"), 1);
    }
}
