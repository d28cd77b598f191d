//! Small multiples: the same chart of several cases, with shared axes.

use crate::axis::{Axis, Ruler, Scale, Tick};
use crate::canvas::{Anchor, Canvas, HEADING, MARGIN, NOTE, Point, TICK, WIDTH, picture};
use crate::error::{PlotError, finite};
use crate::frame::{
    Area, Header, Label, NUMBERS, foot, full, grid_up, numbers_across, numbers_up, numbers_width,
};
use crate::theme::{CONTEXT, INK, SERIES};

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line through the points.
    Line,
    /// A dot at each point.
    Dots,
    /// A bar from zero at each point; wants an axis of names.
    Bars,
    /// The outline of such bars.
    Outline,
}

/// The colour of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Grey: for comparison only.
    Context,
    /// The colour of text: a reference.
    Reference,
    /// The colour of what is shown.
    Subject,
}

/// Values of one kind in a panel.
#[derive(Clone, Debug)]
pub struct Layer {
    /// How they are drawn.
    pub mark: Mark,
    /// In which colour.
    pub tone: Tone,
    /// The points, from left to right. On an axis of names, name number `i` is at `i`.
    pub points: Vec<(f64, f64)>,
}

/// One case.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its name, above it.
    pub name: String,
    /// What it shows; later layers lie on earlier ones.
    pub layers: Vec<Layer>,
}

/// The horizontal axis of panels.
#[derive(Clone, Debug)]
pub enum PanelX {
    /// Numbers.
    Numbers(Axis),
    /// Named places, each as wide as the others; some names are left out where they would overlap.
    Names {
        /// What they are.
        label: String,
        /// The names.
        names: Vec<String>,
    },
}

/// Panels beside and below one another, with shared axes.
#[derive(Clone, Debug)]
pub struct PanelChart {
    /// What it shows.
    pub title: String,
    /// Further notes for the reader; may be empty.
    pub note: String,
    /// The horizontal axis.
    pub x: PanelX,
    /// The vertical axis: zoomed to the values, but from 0 under bars.
    pub y: Axis,
    /// The panels, from left to right, then down.
    pub panels: Vec<Panel>,
}

/// Pixels of a panel's plot, from above, if there are few panels or many.
const HEIGHT: f64 = 200.0;
const HEIGHT_OF_MANY: f64 = 130.0;
/// A figure of fewer pixels has its panels below one another.
const NARROW: f64 = 450.0;
/// Pixels between panels at least, beside and above one another.
const GAP: f64 = 18.0;
const ROW_GAP: f64 = 14.0;

/// The place of a panel's plot, and its texts.
struct Cell {
    area: Area,
    x: Ruler,
    /// The first of its row: the numbers of the vertical axis are left of it.
    is_first: bool,
    /// The last of its column: the numbers of the horizontal axis are below it.
    is_last: bool,
    name: Label,
}

impl PanelChart {
    /// The text of an SVG file, [`WIDTH`] pixels wide.
    ///
    /// # Errors
    /// As [`PanelChart::svg_of`].
    pub fn svg(&self) -> Result<String, PlotError> {
        self.svg_of(WIDTH)
    }

    /// The same of another width, in pixels: of a phone, whose panels stand below one another.
    ///
    /// # Errors
    /// [`PlotError::Empty`] without a single point; [`PlotError::NotFinite`], [`PlotError::NotPositive`] and
    /// [`PlotError::Negative`] for points that the axes or bars cannot show.
    pub fn svg_of(&self, width: f64) -> Result<String, PlotError> {
        self.check()?;
        let header = Header::new(&self.title, &self.note, width);
        let y_label = Label::new(&self.y.label, NOTE, full(width));
        let x_label = match &self.x {
            PanelX::Numbers(axis) => &axis.label,
            PanelX::Names { label, .. } => label,
        };
        let x_label = Label::of_axis(x_label, width);
        let top = header.end() + y_label.height() + 4.0;
        let (cells, ends) = self.cells(top, width);
        let bottom = cells
            .iter()
            .map(|cell| cell.area.bottom)
            .fold(0.0, f64::max);
        let middle = (cells[0].area.left + width - MARGIN) / 2.0;
        picture(
            width,
            bottom + NUMBERS + x_label.height() + MARGIN,
            |canvas| {
                header.draw(canvas)?;
                y_label.below(canvas, (MARGIN, header.end()), Anchor::Start)?;
                for (panel, cell) in self.panels.iter().zip(&cells) {
                    self.draw(canvas, panel, cell, ends)?;
                }
                x_label.centred(canvas, (middle, bottom + NUMBERS))
            },
        )
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let layers = self.panels.iter().flat_map(|panel| &panel.layers);
        layers.flat_map(|layer| layer.points.iter().copied())
    }

    fn has_bars(&self) -> bool {
        let mut layers = self.panels.iter().flat_map(|panel| &panel.layers);
        layers.any(|layer| matches!(layer.mark, Mark::Bars | Mark::Outline))
    }

    fn check(&self) -> Result<(), PlotError> {
        if self.points().next().is_none() {
            return Err(PlotError::Empty);
        }
        let has_bars = self.has_bars();
        for panel in &self.panels {
            let name = || panel.name.clone();
            for &(x, y) in panel.layers.iter().flat_map(|layer| &layer.points) {
                let (x, y) = (finite(x, &panel.name)?, finite(y, &panel.name)?);
                match &self.x {
                    PanelX::Numbers(axis) if !axis.scale.shows(x) => {
                        return Err(PlotError::NotPositive(name()));
                    }
                    PanelX::Names { names, .. } if x < 0.0 || x >= names.len() as f64 => {
                        return Err(PlotError::Count(name()));
                    }
                    PanelX::Numbers(_) | PanelX::Names { .. } => {}
                }
                if has_bars && y < 0.0 {
                    return Err(PlotError::Negative(name()));
                }
                if !self.y_scale().shows(y) {
                    return Err(PlotError::NotPositive(name()));
                }
            }
        }
        Ok(())
    }

    /// Bars begin at zero, so their axis is linear.
    fn y_scale(&self) -> Scale {
        match self.has_bars() {
            true => Scale::Linear,
            false => self.y.scale,
        }
    }

    fn x_ends(&self) -> (Scale, (f64, f64)) {
        match &self.x {
            PanelX::Numbers(axis) => (
                axis.scale,
                axis.scale.tight(self.points().map(|point| point.0)),
            ),
            PanelX::Names { names, .. } => (Scale::Linear, (-0.5, names.len() as f64 - 0.5)),
        }
    }

    /// The panels' places from `top` on in a figure of this width, and the ends of the vertical axis.
    fn cells(&self, top: f64, width: f64) -> (Vec<Cell>, (f64, f64)) {
        let ys = || self.points().map(|point| point.1);
        let y_ends = match self.has_bars() {
            true => Scale::from_zero(ys()),
            false => self.y.scale.zoomed(ys()),
        };
        let (columns, height) = match self.panels.len() {
            _ if width < NARROW => (1, HEIGHT_OF_MANY),
            few if few <= 3 => (few, HEIGHT),
            4 => (2, HEIGHT_OF_MANY),
            _ => (3, HEIGHT_OF_MANY),
        };
        let ruler = Ruler::new(self.y_scale(), y_ends, (height, 0.0));
        let left = MARGIN + numbers_width(&ruler.ticks_up());
        let (x_scale, x_ends) = self.x_ends();
        let gap = self.gap(&Ruler::new(x_scale, x_ends, (0.0, 150.0)));
        let room = width - MARGIN - left - gap * (columns - 1) as f64;
        let width = room / columns as f64;
        let names: Vec<Label> = self
            .panels
            .iter()
            .map(|panel| Label::new(&panel.name, HEADING, width))
            .collect();
        let above = names.iter().map(Label::height).fold(0.0, f64::max) + 4.0;
        // A column that ends above the last row has its numbers there.
        let below = match self.panels.len().is_multiple_of(columns) {
            true => ROW_GAP,
            false => ROW_GAP.max(NUMBERS),
        };
        let cell = |(number, name)| {
            let (column, row) = (number % columns, number / columns);
            let left = left + column as f64 * (width + gap);
            let top = top + row as f64 * (above + height + below) + above;
            Cell {
                area: Area {
                    left,
                    top,
                    right: left + width,
                    bottom: top + height,
                },
                x: Ruler::new(x_scale, x_ends, (left, left + width)),
                is_first: column == 0,
                is_last: number + columns >= self.panels.len(),
                name,
            }
        };
        let cells = names.into_iter().enumerate().map(cell).collect();
        (cells, y_ends)
    }

    /// Pixels between panels: the last number of one must not meet the first of the next.
    fn gap(&self, x: &Ruler) -> f64 {
        let ticks = self.ticks_across(x);
        let widths = ticks.iter().map(|tick| TICK.width(&tick.label));
        GAP.max(widths.fold(0.0, f64::max) + 10.0)
    }

    fn draw(
        &self,
        canvas: &Canvas<'_>,
        panel: &Panel,
        cell: &Cell,
        ends: (f64, f64),
    ) -> Result<(), PlotError> {
        let area = cell.area;
        let y = Ruler::new(self.y_scale(), ends, (area.bottom, area.top));
        let ticks = y.ticks_up();
        let name = (area.left, area.top - 4.0 - cell.name.height());
        cell.name.below(canvas, name, Anchor::Start)?;
        grid_up(canvas, area, &ticks)?;
        if cell.is_first {
            numbers_up(canvas, area, &ticks)?;
        }
        for layer in &panel.layers {
            draw_layer(canvas, layer, &cell.x, &y)?;
        }
        foot(canvas, area)?;
        match cell.is_last {
            true => numbers_across(canvas, area, &self.ticks_across(&cell.x)),
            false => Ok(()),
        }
    }

    fn ticks_across(&self, x: &Ruler) -> Vec<Tick> {
        match &self.x {
            PanelX::Numbers(_) => x.ticks_across(),
            PanelX::Names { names, .. } => name_ticks(names, x),
        }
    }
}

/// The names of an axis: all, or every second, third, and so on, and always the last.
fn name_ticks(names: &[String], x: &Ruler) -> Vec<Tick> {
    let tick = |place: usize| Tick {
        at: x.at(place as f64),
        label: names[place].clone(),
    };
    let apart = |one: &Tick, other: &Tick| {
        let widths = TICK.width(&one.label) + TICK.width(&other.label);
        other.at - one.at >= widths / 2.0 + 4.0
    };
    let last = tick(names.len() - 1);
    for stride in 1..names.len() {
        let mut ticks: Vec<Tick> = (0..names.len() - 1).step_by(stride).map(tick).collect();
        ticks.retain(|tick| apart(tick, &last));
        if ticks.windows(2).all(|pair| apart(&pair[0], &pair[1])) {
            ticks.push(last);
            return ticks;
        }
    }
    vec![last]
}

fn draw_layer(canvas: &Canvas<'_>, layer: &Layer, x: &Ruler, y: &Ruler) -> Result<(), PlotError> {
    let colour = match layer.tone {
        Tone::Context => CONTEXT,
        Tone::Reference => INK,
        Tone::Subject => SERIES[0],
    };
    let at = |&(across, up): &(f64, f64)| (x.at(across), y.at(up));
    match layer.mark {
        Mark::Line => {
            let points: Vec<Point> = layer.points.iter().map(at).collect();
            canvas.path(&points, colour, 1.0)
        }
        Mark::Dots => layer
            .points
            .iter()
            .try_for_each(|point| canvas.circle(at(point), 3.0, colour)),
        Mark::Bars => layer
            .points
            .iter()
            .filter(|point| point.1 > 0.0)
            .try_for_each(|point| {
                let (left, right) = (x.at(point.0 - 0.4), x.at(point.0 + 0.4));
                // A bar is at least one pixel high, so that even the smallest value is seen.
                let top = y.at(point.1).min(y.at(0.0) - 1.0);
                canvas.rectangle((left, top), (right, y.at(0.0)), colour)
            }),
        Mark::Outline => {
            let steps = layer.points.iter().flat_map(|point| {
                let (_, up) = at(point);
                [(x.at(point.0 - 0.5), up), (x.at(point.0 + 0.5), up)]
            });
            let points: Vec<Point> = steps.collect();
            canvas.path(&points, colour, 2.0)
        }
    }
}
