//! Draws what was found.

use std::collections::{HashMap, HashSet};

use nuthatch_plot::{
    Axis, Curve, DotChart, DotGroup, DotRow, Estimate, Layer, LineChart, Mark, Panel, PanelChart,
    PanelX, PlotError, Tone, WIDTH,
};

use crate::figure::{self, Chart, Figure, Scale};
use crate::found::{Found, Point};

/// What stands behind the name of a series that comes from a model.
const MODELLED: &str = " (model)";

/// The figure as SVG with its title; nothing for a table, and where nothing was found.
///
/// # Errors
/// Those of the drawing: a value that the axis cannot show.
pub fn svg(figure: &Figure, found: &Found) -> Result<Option<String>, PlotError> {
    draw(
        figure,
        found,
        Head {
            title: figure.title.clone(),
            note: figure.source.clone(),
        },
        WIDTH,
    )
}

/// The same without a title, for a page that has it, this many pixels wide.
///
/// # Errors
/// As [`svg`].
pub fn untitled(figure: &Figure, found: &Found, width: f64) -> Result<Option<String>, PlotError> {
    draw(figure, found, Head::default(), width)
}

/// What stands above a drawing.
#[derive(Default)]
struct Head {
    title: String,
    note: String,
}

fn draw(
    figure: &Figure,
    found: &Found,
    head: Head,
    width: f64,
) -> Result<Option<String>, PlotError> {
    if found.points.is_empty() {
        return Ok(None);
    }
    match figure.chart {
        Chart::Table => Ok(None),
        Chart::Lines => lines(figure, found, head).svg_of(width).map(Some),
        Chart::Dots => dots(figure, found, head).svg_of(width).map(Some),
        Chart::Bars => bars(figure, found, head).svg_of(width).map(Some),
    }
}

/// The name of a series as the drawing shows it.
pub fn shown(point: &Point) -> String {
    match point.modelled {
        true => format!("{}{MODELLED}", point.series),
        false => point.series.clone(),
    }
}

/// All of these names, in the order in which they were met.
pub fn names(found: &Found) -> Vec<String> {
    let mut met = HashSet::new();
    let names = found.points.iter().map(shown);
    names.filter(|name| met.insert(name.clone())).collect()
}

fn lines(figure: &Figure, found: &Found, Head { title, note }: Head) -> LineChart {
    let mut curves: Vec<Curve> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for (_, point) in found.placed() {
        let Some(x) = point.x.number() else { continue };
        let name = shown(point);
        let number = *numbers.entry(name.clone()).or_insert(curves.len());
        match curves.get_mut(number) {
            Some(curve) => curve.points.push((x, point.y)),
            None => curves.push(Curve {
                name,
                points: vec![(x, point.y)],
                modelled: point.modelled,
            }),
        }
    }
    LineChart {
        title,
        note,
        x: axis(&figure.x),
        y: axis(&figure.y),
        curves,
    }
}

fn dots(figure: &Figure, found: &Found, Head { title, note }: Head) -> DotChart {
    let groups = found.places().into_iter().map(|x| DotGroup {
        name: format!("{} {x}", figure.x.label).trim().to_owned(),
        rows: Vec::new(),
    });
    let mut groups: Vec<DotGroup> = groups.collect();
    for (place, point) in found.placed() {
        groups[place].rows.push(DotRow {
            name: shown(point),
            estimates: vec![Estimate::spread(point.y, point.low, point.high)],
        });
    }
    DotChart {
        title,
        note,
        axis: axis(&figure.y),
        digits: 2,
        panels: vec![String::new()],
        groups,
    }
}

/// A panel of bars for each series, and over each the outline of those that come from a model.
fn bars(figure: &Figure, found: &Found, Head { title, note }: Head) -> PanelChart {
    let mut own: HashMap<&str, Vec<(usize, &Point)>> = HashMap::new();
    for (place, point) in found.placed() {
        let of_series = own.entry(&point.series).or_default();
        of_series.push((place, point));
    }
    let layer = |series: &str, mark, tone| Layer {
        mark,
        tone,
        points: own[series]
            .iter()
            .map(|(place, point)| (*place as f64, point.y))
            .collect(),
    };
    let is_modelled = |series: &&str| own[series].iter().any(|(_, point)| point.modelled);
    let (modelled, measured): (Vec<&str>, Vec<&str>) =
        found.series().into_iter().partition(is_modelled);
    let outlines = || {
        let outline = |series: &&str| layer(series, Mark::Outline, Tone::Reference);
        modelled.iter().map(outline)
    };
    let panels = measured.iter().map(|series| Panel {
        name: (*series).to_owned(),
        layers: std::iter::once(layer(series, Mark::Bars, Tone::Subject))
            .chain(outlines())
            .collect(),
    });
    let of_line = modelled.join(", ");
    let note = match (&note[..], &of_line[..]) {
        (_, "") => note,
        ("", line) => format!("line: {line}{MODELLED}"),
        (note, line) => format!("{note}; line: {line}{MODELLED}"),
    };
    PanelChart {
        title,
        note,
        x: PanelX::Names {
            label: figure.x.label.clone(),
            names: found.places().iter().map(|x| x.to_string()).collect(),
        },
        y: axis(&figure.y),
        panels: panels.collect(),
    }
}

fn axis(axis: &figure::Axis) -> Axis {
    match axis.scale {
        Scale::Linear | Scale::Names => Axis::linear(&axis.label),
        Scale::Logarithmic => Axis::logarithmic(&axis.label),
        Scale::Binary => Axis::binary(&axis.label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::found::X;

    fn figure(chart: &str) -> Figure {
        let text = format!(
            "source = \"A\"\ntitle = \"Sizes\"\npaper = \"b\"\nchart = \"{chart}\"\n[x]\nlabel = \"items\"\n\
             [y]\nlabel = \"buckets\"\n[[run]]\nwords = \"\"\n[[run.read]]\nseries = \"s\"\nx = \"1\"\ny = \"1\"\n"
        );
        Figure::parse(&text).unwrap()
    }

    fn found(points: &[(&str, f64, f64, bool)]) -> Found {
        let points = points.iter().map(|&(series, x, y, modelled)| Point {
            series: series.to_owned(),
            x: X::Number(x),
            y,
            low: y,
            high: y,
            modelled,
        });
        Found::of_points(points)
    }

    #[test]
    fn bars_have_a_panel_a_series_and_the_models_outline_in_each() {
        let points = [
            ("xor", 0.0, 5.0, false),
            ("xor", 7.0, 2.0, false),
            ("mult", 0.0, 3.0, false),
            ("mult", 1.0, 4.0, false),
            ("perfect", 0.0, 3.5, true),
        ];
        let (figure, found) = (figure("bars"), found(&points));
        for width in [WIDTH, 345.0] {
            let drawn = untitled(&figure, &found, width).unwrap().unwrap();
            // The paper is a rectangle, too.
            assert_eq!(drawn.matches("<rect").count(), 1 + 4);
            for name in ["xor", "mult", "line: perfect (model)"] {
                assert!(drawn.contains(name), "{name}");
            }
        }
        assert!(svg(&figure, &found).unwrap().unwrap().contains("Sizes"));
    }
}
