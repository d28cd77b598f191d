//! The canvas: draws shapes and text, in pixels from the upper left corner.

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::prelude::SVGBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, FontTransform, IntoFont, RGBColor, ShapeStyle, TextStyle};

use crate::error::PlotError;
use crate::theme::{INK, MUTED, PAPER, follow_scheme};

/// The width of a figure in pixels, if nothing else is said: about what a page of text has.
pub const WIDTH: f64 = 700.0;
/// Pixels that stay free at each edge.
pub const MARGIN: f64 = 14.0;
/// The font of all text: the sans-serif one of the reader's system.
const FONT: &str = "sans-serif";
/// plotters writes a font's size divided by this.
const FONT_SCALE: f64 = 1.24;
/// Units of the drawing in a pixel: plotters' coordinates are integers, and curves of whole pixels look jagged.
const UNITS: f64 = 10.0;

/// A point, in pixels from the upper left corner.
pub type Point = (f64, f64);

/// How text looks.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub size: f64,
    pub colour: RGBColor,
    pub bold: bool,
}

/// Titles of figures.
pub const TITLE: Style = Style {
    size: 16.0,
    colour: INK,
    bold: true,
};
/// Names of groups and panels.
pub const HEADING: Style = Style {
    size: 13.0,
    colour: INK,
    bold: true,
};
/// Names of rows, lines and axes.
pub const LABEL: Style = Style {
    size: 13.0,
    colour: INK,
    bold: false,
};
/// Notes.
pub const NOTE: Style = Style {
    size: 13.0,
    colour: MUTED,
    bold: false,
};
/// Numbers of axes.
pub const TICK: Style = Style {
    size: 12.0,
    colour: MUTED,
    bold: false,
};

impl Style {
    /// Pixels that a line of such text takes. Bold text is a tenth wider.
    pub fn width(&self, text: &str) -> f64 {
        crate::text::width(text, self.size) * if self.bold { 1.1 } else { 1.0 }
    }

    /// Pixels from one line to the next.
    pub fn line_height(&self) -> f64 {
        crate::text::line_height(self.size)
    }

    /// Lines of at most `room` pixels.
    pub fn wrap(&self, text: &str, room: f64) -> Vec<String> {
        let scale = if self.bold { 1.1 } else { 1.0 };
        crate::text::wrap(text, self.size, room / scale)
    }
}

/// Which part of a text lies at its point. Vertically it is always the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// The drawing in progress.
pub struct Canvas<'a> {
    /// Its width, in pixels.
    pub width: f64,
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// A figure of this size that `content` draws: the text of an SVG file.
pub fn picture(
    width: f64,
    height: f64,
    content: impl FnOnce(&Canvas<'_>) -> Result<(), PlotError>,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    {
        let size = (units(width) as u32, units(height.ceil()) as u32);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&PAPER).map_err(drawing)?;
        let canvas = Canvas { width, area };
        content(&canvas)?;
        canvas.area.present().map_err(drawing)?;
    }
    Ok(follow_scheme(&in_pixels(&svg, width, height)))
}

impl Canvas<'_> {
    /// A line of text.
    pub fn text(
        &self,
        at: Point,
        words: &str,
        style: Style,
        anchor: Anchor,
    ) -> Result<(), PlotError> {
        let across = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let font = (FONT, style.size * FONT_SCALE * UNITS).into_font();
        let font = match style.bold {
            true => font.style(FontStyle::Bold),
            false => font,
        };
        let style: TextStyle<'_> = font
            .transform(FontTransform::None)
            .color(&style.colour)
            .pos(Pos::new(across, VPos::Center));
        let text = Text::new(words, unit(at), style);
        self.area.draw(&text).map_err(drawing)
    }

    /// Lines of text, the middle of the first at the point.
    pub fn lines(
        &self,
        at: Point,
        lines: &[String],
        style: Style,
        anchor: Anchor,
    ) -> Result<(), PlotError> {
        for (number, line) in lines.iter().enumerate() {
            let at = (at.0, at.1 + number as f64 * style.line_height());
            self.text(at, line, style, anchor)?;
        }
        Ok(())
    }

    /// A line through points.
    pub fn path(&self, points: &[Point], colour: RGBColor, width: f64) -> Result<(), PlotError> {
        let points: Vec<(i32, i32)> = points.iter().copied().map(unit).collect();
        let stroke = ShapeStyle::from(colour).stroke_width(units(width) as u32);
        self.area
            .draw(&PathElement::new(points, stroke))
            .map_err(drawing)
    }

    /// A filled rectangle, by two opposite corners.
    pub fn rectangle(&self, one: Point, other: Point, colour: RGBColor) -> Result<(), PlotError> {
        let rectangle = Rectangle::new([unit(one), unit(other)], colour.filled());
        self.area.draw(&rectangle).map_err(drawing)
    }

    /// A filled circle.
    pub fn circle(&self, centre: Point, radius: f64, colour: RGBColor) -> Result<(), PlotError> {
        let circle = Circle::new(unit(centre), units(radius), colour.filled());
        self.area.draw(&circle).map_err(drawing)
    }
}

fn unit((x, y): Point) -> (i32, i32) {
    (units(x), units(y))
}

fn units(pixels: f64) -> i32 {
    (pixels * UNITS).round() as i32
}

/// Gives the picture its size in pixels; its `viewBox` remains in units.
fn in_pixels(svg: &str, width: f64, height: f64) -> String {
    let in_units = format!(
        "width=\"{}\" height=\"{}\"",
        units(width),
        units(height.ceil())
    );
    let in_pixels = format!("width=\"{width}\" height=\"{}\"", height.ceil());
    svg.replacen(&in_units, &in_pixels, 1)
}

fn drawing(error: impl std::fmt::Display) -> PlotError {
    PlotError::Drawing(error.to_string())
}
