//! The two charts, and the frame that they share.

use std::fmt;

use plotters::chart::{ChartBuilder, ChartContext, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, ShapeStyle, TextStyle};
use plotters_svg::SVGBackend;

use crate::axis::{Axis, Scale, Span};
use crate::theme::{GRID, INK, PAPER, follow_scheme, series};

/// Width and height in pixels.
const SIZE: (u32, u32) = (860, 480);
/// The font of all text: whatever the reader's system calls so.
const FONT: &str = "sans-serif";
/// Names of places stand upright if they would be longer than this many characters side by side.
const NAMES_MAX: usize = 90;

/// What every chart says.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// The horizontal axis. [`bars`] uses its label only.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
}

/// One series of bars: a height for each place of the horizontal axis.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Its name in the legend.
    pub name: String,
    /// Its heights; a bar of 0 is not drawn, nor one below the foot of a logarithmic axis.
    pub heights: Vec<f64>,
}

/// One series of points, joined by a line.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right. Points that the axes cannot show are left out.
    pub points: Vec<(f64, f64)>,
}

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlotError {
    /// There is nothing to draw: no series, or series without a single value to show.
    Empty,
    /// The drawing failed, in words.
    Drawing(String),
}

impl fmt::Display for PlotError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => out.write_str("a figure of no values"),
            Self::Drawing(words) => write!(out, "drawing: {words}"),
        }
    }
}

impl std::error::Error for PlotError {}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Context<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Span, Span>>;

/// Bars side by side for each of the named places, a colour for each series.
///
/// Returns the text of an SVG file. Errors: no value to show.
pub fn bars(chart: &Chart, places: &[String], all: &[Bars]) -> Result<String, PlotError> {
    let heights = || all.iter().flat_map(|series| series.heights.iter().copied());
    let shown = heights().filter(|&height| shows(chart.y.scale, height));
    if places.is_empty() || heights().next().is_none() {
        return Err(PlotError::Empty);
    }
    let y = match Span::around(chart.y.scale, shown) {
        // A bar as low as the axis's foot could not be seen.
        Span::Logarithmic(low, high) => Span::Logarithmic(low / 2.0, high * 1.2),
        span => span,
    };
    let foot = match y {
        Span::Logarithmic(low, _) => low,
        Span::Linear(..) | Span::Names(_) => 0.0,
    };
    let x = Span::Names(places.to_vec());
    let width = 0.84 / all.len() as f64;
    draw(chart, x, y, |context| {
        for (number, series) in all.iter().enumerate() {
            let left = -0.42 + width * number as f64;
            let drawn = series.heights.iter().enumerate();
            let drawn = drawn.filter(|&(_, &height)| height != 0.0 && height >= foot.min(0.0));
            let bars = drawn.map(|(place, &height)| {
                let left = place as f64 + left;
                let corners = [(left, foot), (left + width, height.max(foot))];
                Rectangle::new(corners, colour(number).filled())
            });
            context
                .draw_series(bars)
                .map_err(drawing)?
                .label(&series.name)
                .legend(move |at| key(at, number));
        }
        Ok(())
    })
}

/// Lines through points, each point marked.
///
/// Returns the text of an SVG file. Errors: no value to show.
pub fn lines(chart: &Chart, all: &[Curve]) -> Result<String, PlotError> {
    let (x_scale, y_scale) = (chart.x.scale, chart.y.scale);
    let visible = |&(x, y): &(f64, f64)| shows(x_scale, x) && shows(y_scale, y);
    let points = || {
        let points = all.iter().flat_map(|curve| curve.points.iter().copied());
        points.filter(visible)
    };
    if points().next().is_none() {
        return Err(PlotError::Empty);
    }
    let x = Span::around(x_scale, points().map(|point| point.0));
    let y = Span::around(y_scale, points().map(|point| point.1));
    draw(chart, x, y, |context| {
        for (number, curve) in all.iter().enumerate() {
            let points: Vec<_> = curve.points.iter().copied().filter(visible).collect();
            let stroke = ShapeStyle::from(colour(number)).stroke_width(2);
            let line = PathElement::new(points.clone(), stroke);
            context
                .draw_series(std::iter::once(line))
                .map_err(drawing)?
                .label(&curve.name)
                .legend(move |at| key(at, number));
            let marks = points
                .into_iter()
                .map(|point| Circle::new(point, 3, colour(number).filled()));
            context.draw_series(marks).map_err(drawing)?;
        }
        Ok(())
    })
}

/// True if an axis of this scale can show the value.
fn shows(scale: Scale, value: f64) -> bool {
    value.is_finite() && (scale == Scale::Linear || value > 0.0)
}

fn colour(number: usize) -> RGBColor {
    series(number)
}

/// The mark of a series in the legend.
fn key((x, y): (i32, i32), number: usize) -> Rectangle<(i32, i32)> {
    Rectangle::new([(x, y - 5), (x + 14, y + 5)], colour(number).filled())
}

/// Paper, title, axes and grid; then what `content` draws; then the legend.
fn draw(
    chart: &Chart,
    x: Span,
    y: Span,
    content: impl FnOnce(&mut Context<'_, '_>) -> Result<(), PlotError>,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    {
        let area: Area<'_> = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&PAPER).map_err(drawing)?;
        let upright = names_are_long(&x);
        let mut context = ChartBuilder::on(&area)
            .caption(&chart.title, text(20))
            .margin(14)
            .x_label_area_size(if upright { 130 } else { 46 })
            .y_label_area_size(68)
            .build_cartesian_2d(x, y)
            .map_err(drawing)?;
        mesh(chart, &mut context, upright)?;
        content(&mut context)?;
        context
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(PAPER.filled())
            .border_style(GRID)
            .label_font(text(14))
            .draw()
            .map_err(drawing)?;
        area.present().map_err(drawing)?;
    }
    Ok(follow_scheme(&svg))
}

fn mesh(chart: &Chart, context: &mut Context<'_, '_>, upright: bool) -> Result<(), PlotError> {
    let mut names = text(13);
    if upright {
        names = names
            .transform(plotters::style::FontTransform::Rotate90)
            .pos(Pos::new(HPos::Left, VPos::Center));
    }
    context
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(64)
        .y_labels(8)
        .x_desc(&chart.x.label)
        .y_desc(&chart.y.label)
        .bold_line_style(GRID)
        .light_line_style(PAPER)
        .axis_style(INK)
        .label_style(text(13))
        .x_label_style(names)
        .axis_desc_style(text(14))
        .draw()
        .map_err(drawing)
}

fn names_are_long(x: &Span) -> bool {
    match x {
        Span::Names(names) => names.iter().map(|name| name.len() + 2).sum::<usize>() > NAMES_MAX,
        Span::Linear(..) | Span::Logarithmic(..) => false,
    }
}

fn text(size: u32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&INK)
}

fn drawing(error: impl fmt::Display) -> PlotError {
    PlotError::Drawing(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(y: Axis) -> Chart {
        Chart {
            title: "Sizes <of> buckets".into(),
            x: Axis::linear("size"),
            y,
        }
    }

    fn places(count: usize) -> Vec<String> {
        (0..count).map(|place| place.to_string()).collect()
    }

    /// Rectangles of a series, its mark in the legend included.
    fn drawn(svg: &str, number: usize) -> usize {
        let RGBColor(red, green, blue) = series(number);
        let fill = format!("fill=\"#{red:02X}{green:02X}{blue:02X}\"");
        let lines = svg.lines().filter(|line| line.contains("<rect"));
        lines.filter(|line| line.contains(&fill)).count()
    }

    #[test]
    fn a_bar_for_each_height_and_a_name_for_each_series() {
        for y in [Axis::linear("buckets"), Axis::logarithmic("buckets")] {
            let all = [
                Bars {
                    name: "old".into(),
                    heights: vec![0.0, 7.0, 30_000.0],
                },
                Bars {
                    name: "new".into(),
                    heights: vec![5.0, 6.0, 7.0],
                },
            ];
            let svg = bars(&chart(y), &places(3), &all).unwrap();
            assert_eq!(drawn(&svg, 0), 2 + 1, "two bars and a mark");
            assert_eq!(drawn(&svg, 1), 3 + 1, "three bars and a mark");
            for text in ["old", "new", "buckets", "&lt;of&gt;"] {
                assert!(svg.contains(text), "{text} in {svg}");
            }
            assert!(svg.trim_end().ends_with("</svg>"));
        }
    }

    #[test]
    fn a_line_leaves_out_what_a_logarithmic_axis_cannot_show() {
        let points = vec![(1.0, 0.0), (10.0, 5.0), (100.0, 50.0), (1000.0, f64::NAN)];
        let chart = Chart {
            x: Axis::logarithmic("buckets"),
            ..chart(Axis::logarithmic("ns"))
        };
        let curve = Curve {
            name: "xxh3".into(),
            points,
        };
        let svg = lines(&chart, &[curve]).unwrap();
        assert_eq!(svg.matches("<circle").count(), 2);
    }

    #[test]
    fn long_names_stand_upright() {
        let names: Vec<String> = (0..12).map(|number| format!("function-{number}")).collect();
        let all = [Bars {
            name: "ns".into(),
            heights: vec![1.0; 12],
        }];
        let svg = bars(&chart(Axis::linear("ns")), &names, &all).unwrap();
        assert_eq!(svg.matches("rotate(90").count(), 12);
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        let chart = chart(Axis::linear("y"));
        let none = bars(&chart, &[], &[]).unwrap_err();
        assert_eq!(none, PlotError::Empty);
        let no_points = Curve {
            name: "none".into(),
            points: vec![],
        };
        assert_eq!(lines(&chart, &[no_points]).unwrap_err(), PlotError::Empty);
    }

    #[test]
    fn all_zero_is_a_figure() {
        let all = [Bars {
            name: "none".into(),
            heights: vec![0.0, 0.0],
        }];
        let svg = bars(&chart(Axis::linear("y")), &places(2), &all).unwrap();
        assert_eq!(drawn(&svg, 0), 1, "the mark alone");
    }
}
