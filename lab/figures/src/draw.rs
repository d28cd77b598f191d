//! Draws what was found.

use nuthatch_plot::{
    Axis, Curve, DotChart, DotGroup, DotRow, Estimate, LineChart, PlotError, WIDTH,
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
    }
}

/// The name of a series as the drawing shows it.
pub fn shown(point: &Point) -> String {
    match point.modelled {
        true => format!("{}{MODELLED}", point.series),
        false => point.series.clone(),
    }
}

fn lines(figure: &Figure, found: &Found, Head { title, note }: Head) -> LineChart {
    let mut curves: Vec<Curve> = Vec::new();
    for x in found.places() {
        let Some(place) = x.number() else { continue };
        for series in found.series() {
            let Some(point) = found.at(series, x) else {
                continue;
            };
            let name = shown(point);
            match curves.iter_mut().find(|curve| curve.name == name) {
                Some(curve) => curve.points.push((place, point.y)),
                None => curves.push(Curve {
                    name,
                    points: vec![(place, point.y)],
                    modelled: point.modelled,
                }),
            }
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
    let groups = found.places().into_iter().map(|x| {
        let points = found
            .series()
            .into_iter()
            .filter_map(|series| found.at(series, x));
        let rows = points.map(|point| DotRow {
            name: shown(point),
            estimates: vec![Estimate::spread(point.y, point.low, point.high)],
        });
        DotGroup {
            name: format!("{} {x}", figure.x.label).trim().to_owned(),
            rows: rows.collect(),
        }
    });
    DotChart {
        title,
        note,
        axis: axis(&figure.y),
        digits: 2,
        panels: vec![String::new()],
        groups: groups.collect(),
    }
}

fn axis(axis: &figure::Axis) -> Axis {
    match axis.scale {
        Scale::Linear | Scale::Names => Axis::linear(&axis.label),
        Scale::Logarithmic => Axis::logarithmic(&axis.label),
        Scale::Binary => Axis::binary(&axis.label),
    }
}
