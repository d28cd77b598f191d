//! Line charts, which show how a value changes with another.

use plotters::style::RGBColor;

use crate::axis::{Axis, Ruler, Scale};
use crate::canvas::{Anchor, Canvas, LABEL, MARGIN, NOTE, WIDTH, picture};
use crate::error::{PlotError, finite};
use crate::frame::{
    Area, Header, Label, NUMBERS, foot, full, grid_up, numbers_across, numbers_up, numbers_width,
};
use crate::names::colours;
use crate::spacing::apart;
use crate::theme::PAPER;

/// One line through points.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name, which stands at its right end.
    pub name: String,
    /// Its points, from left to right. Those at 0 or less are left out of a logarithmic axis.
    pub points: Vec<(f64, f64)>,
    /// Its points come from a model: a broken line with hollow marks.
    pub modelled: bool,
}

/// Lines, each named at its end. Points are marked where they are few.
#[derive(Clone, Debug)]
pub struct LineChart {
    /// What it shows.
    pub title: String,
    /// Further notes for the reader; may be empty.
    pub note: String,
    /// The horizontal axis: from the first point to the last. A logarithmic one has its numbers at the points, if these
    /// are few.
    pub x: Axis,
    /// The vertical axis: zoomed to the values.
    pub y: Axis,
    /// The lines.
    pub curves: Vec<Curve>,
}

/// Pixels of the plot's height at least.
const HEIGHT: f64 = 320.0;
/// Pixels between a line's end and its name.
const LEADER: f64 = 26.0;
/// The share of the width that a name may take, before it goes on in the next line.
const NAME_MAX: f64 = 0.3;
/// Pixels of a dash, and between two.
const DASH: f64 = 7.0;
const DASH_GAP: f64 = 4.0;
/// A curve of more points is drawn without marks.
const MARKED_MAX: usize = 16;

impl LineChart {
    /// The text of an SVG file, [`WIDTH`] pixels wide.
    ///
    /// # Errors
    /// As [`LineChart::svg_of`].
    pub fn svg(&self) -> Result<String, PlotError> {
        self.svg_of(WIDTH)
    }

    /// The same of another width, in pixels: of a phone.
    ///
    /// # Errors
    /// [`PlotError::Empty`] if no curve has a point that the axes can show, [`PlotError::NotFinite`] if a coordinate
    /// is infinite or no number.
    pub fn svg_of(&self, width: f64) -> Result<String, PlotError> {
        let curves = self.visible()?;
        let points = || curves.iter().flat_map(|curve| curve.points.iter().copied());
        if points().next().is_none() {
            return Err(PlotError::Empty);
        }
        let names: Vec<Label> = curves
            .iter()
            .map(|curve| Label::new(&curve.name, LABEL, width * NAME_MAX))
            .collect();
        let header = Header::new(&self.title, &self.note, width);
        let y_label = Label::new(&self.y.label, NOTE, full(width));
        let x_label = Label::of_axis(&self.x.label, width);

        let gap = names.iter().map(Label::height).fold(0.0, f64::max);
        let top = header.end() + y_label.height() + 12.0;
        let height = HEIGHT.max(gap * names.len() as f64);
        let ends = self.y.scale.zoomed(points().map(|point| point.1));
        let y = Ruler::new(self.y.scale, ends, (top + height, top));
        let ticks_up = y.ticks_up();
        let names_width = names.iter().map(Label::width).fold(0.0, f64::max);
        let area = Area {
            left: MARGIN + numbers_width(&ticks_up),
            top,
            right: width - MARGIN - names_width - LEADER,
            bottom: top + height,
        };
        let ends = self.x.scale.tight(points().map(|point| point.0));
        let x = Ruler::new(self.x.scale, ends, (area.left, area.right));
        let ticks_across = match self.x.scale {
            Scale::Logarithmic => x.ticks_at(points().map(|point| point.0)),
            Scale::Linear | Scale::Binary => x.ticks_across(),
        };
        let colours = colours(curves.iter().map(|curve| &*curve.name));

        picture(
            width,
            area.bottom + NUMBERS + x_label.height() + MARGIN,
            |canvas| {
                header.draw(canvas)?;
                y_label.below(canvas, (MARGIN, header.end()), Anchor::Start)?;
                grid_up(canvas, area, &ticks_up)?;
                numbers_up(canvas, area, &ticks_up)?;
                foot(canvas, area)?;
                numbers_across(canvas, area, &ticks_across)?;
                x_label.centred(canvas, (area.middle(), area.bottom + NUMBERS))?;
                let half = gap / 2.0;
                let wanted: Vec<f64> = curves.iter().map(|curve| y.at(curve.end().1)).collect();
                let places = apart(&wanted, gap, top + half - 8.0, area.bottom - half + 8.0);
                for (number, curve) in curves.iter().enumerate() {
                    let colour = colours[number];
                    curve.draw(canvas, colour, &x, &y)?;
                    let end = (x.at(curve.end().0), y.at(curve.end().1));
                    let name = (area.right + LEADER, places[number]);
                    leader(canvas, end, area.right, name, colour)?;
                    names[number].beside(canvas, name, Anchor::Start)?;
                }
                Ok(())
            },
        )
    }

    /// The curves with their visible points; curves without any are left out.
    fn visible(&self) -> Result<Vec<Curve>, PlotError> {
        let mut visible = Vec::new();
        for curve in &self.curves {
            let mut points = Vec::new();
            for &(x, y) in &curve.points {
                let point = (finite(x, &curve.name)?, finite(y, &curve.name)?);
                if self.x.scale.shows(point.0) && self.y.scale.shows(point.1) {
                    points.push(point);
                }
            }
            if !points.is_empty() {
                let name = curve.name.clone();
                let modelled = curve.modelled;
                visible.push(Curve {
                    name,
                    points,
                    modelled,
                });
            }
        }
        Ok(visible)
    }
}

impl Curve {
    /// A curve whose points were measured or computed.
    pub fn measured(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let name = name.into();
        Self {
            name,
            points,
            modelled: false,
        }
    }

    /// A curve whose points come from a model.
    pub fn modelled(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let modelled = true;
        Self {
            modelled,
            ..Self::measured(name, points)
        }
    }

    /// The last point of a curve that has one.
    fn end(&self) -> (f64, f64) {
        self.points[self.points.len() - 1]
    }

    fn draw(
        &self,
        canvas: &Canvas<'_>,
        colour: RGBColor,
        x: &Ruler,
        y: &Ruler,
    ) -> Result<(), PlotError> {
        let at = |&(across, up): &(f64, f64)| (x.at(across), y.at(up));
        let points: Vec<(f64, f64)> = self.points.iter().map(at).collect();
        if self.modelled {
            for dash in dashes(&points) {
                canvas.path(&dash, colour, 2.0)?;
            }
        } else {
            canvas.path(&points, colour, 2.0)?;
        }
        if points.len() <= MARKED_MAX {
            for &point in &points {
                canvas.circle(point, 3.0, colour)?;
                if self.modelled {
                    canvas.circle(point, 1.6, PAPER)?;
                }
            }
        }
        Ok(())
    }
}

/// The pieces of a path that a broken line draws.
fn dashes(path: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let mut dashes = Vec::new();
    let mut dash: Vec<(f64, f64)> = path.first().copied().into_iter().collect();
    // Pixels up to the end of this dash, or of this gap.
    let (mut left, mut is_drawn) = (DASH, true);
    for pair in path.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let mut gone = 0.0;
        while length - gone > left {
            gone += left;
            let share = gone / length;
            let point = (
                from.0 + (to.0 - from.0) * share,
                from.1 + (to.1 - from.1) * share,
            );
            dash.push(point);
            if is_drawn {
                dashes.push(std::mem::take(&mut dash));
            }
            dash = vec![point];
            is_drawn = !is_drawn;
            left = if is_drawn { DASH } else { DASH_GAP };
        }
        left -= length - gone;
        dash.push(to);
    }
    if is_drawn {
        dashes.push(dash);
    }
    dashes
}

/// A thin line from a curve's end to its name.
fn leader(
    canvas: &Canvas<'_>,
    end: (f64, f64),
    edge: f64,
    name: (f64, f64),
    colour: RGBColor,
) -> Result<(), PlotError> {
    let points = [
        end,
        (edge + 6.0, end.1),
        (name.0 - 10.0, name.1),
        (name.0 - 4.0, name.1),
    ];
    canvas.path(&points, colour, 1.0)
}
