//! Dot charts, which show which design is better, and whether the difference is more than noise.

use plotters::style::RGBColor;

use crate::axis::{Axis, Ruler, Tick};
use crate::canvas::{Anchor, Canvas, HEADING, LABEL, MARGIN, TICK, WIDTH, picture};
use crate::error::{PlotError, finite};
use crate::frame::{Area, Header, Label, NUMBERS, foot, full, grid_across, numbers_across};
use crate::names::colours;
use crate::theme::{GRID, INK};

/// A measurement: a middle value, and the spread of the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Where the dot is.
    pub middle: f64,
    /// Where the line through it begins.
    pub low: f64,
    /// Where the line ends.
    pub high: f64,
    /// The value that theory expects: a tick.
    pub expected: Option<f64>,
}

impl Estimate {
    /// A value without a spread.
    pub fn exact(value: f64) -> Self {
        Self::spread(value, value, value)
    }

    /// A value and its spread.
    pub fn spread(middle: f64, low: f64, high: f64) -> Self {
        let expected = None;
        Self {
            middle,
            low,
            high,
            expected,
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        [self.middle, self.low, self.high]
            .into_iter()
            .chain(self.expected)
    }
}

/// One row: a design.
#[derive(Clone, Debug)]
pub struct DotRow {
    /// Its name, left of the plot.
    pub name: String,
    /// Its measurements, one for each panel.
    pub estimates: Vec<Estimate>,
}

/// Rows of one family, which have one colour.
#[derive(Clone, Debug)]
pub struct DotGroup {
    /// The family's name, above its rows; none if empty.
    pub name: String,
    /// Its rows.
    pub rows: Vec<DotRow>,
}

impl DotGroup {
    /// The name that decides its colour.
    fn known_as(&self) -> &str {
        match self.rows.first() {
            Some(first) if self.name.is_empty() => &first.name,
            _ => &self.name,
        }
    }
}

/// A dot with its spread for each row, on an axis that is zoomed to the values. The values stand beside, in figures.
#[derive(Clone, Debug)]
pub struct DotChart {
    /// What it shows.
    pub title: String,
    /// Further notes for the reader; may be empty.
    pub note: String,
    /// The axis, which all panels share.
    pub axis: Axis,
    /// Digits of the values after the point.
    pub digits: usize,
    /// The panels' names, from left to right: one, which may be empty, or several.
    pub panels: Vec<String>,
    /// The rows, by family.
    pub groups: Vec<DotGroup>,
}

/// Pixels of a row of one line, and between the last row and the axis.
const ROW: f64 = 21.0;
const AFTER_ROWS: f64 = 4.0;
/// The share of the width that the names may take, before they go on in the next line.
const NAMES_MAX: f64 = 270.0 / WIDTH;
/// Pixels by which rows are indented under their family's name.
const INDENT: f64 = 10.0;
/// Pixels between panels.
const GAP: f64 = 22.0;

/// A row or a heading, and its place.
struct Line<'a> {
    label: Label,
    /// The middle, from above.
    at: f64,
    /// The family's colour, and the row; none for a heading.
    row: Option<(RGBColor, &'a DotRow)>,
}

/// One panel's area, and where its values stand.
struct Column {
    area: Area,
    values: f64,
    ruler: Ruler,
    ticks: Vec<Tick>,
}

impl DotChart {
    /// The text of an SVG file, [`WIDTH`] pixels wide.
    ///
    /// # Errors
    /// As [`DotChart::svg_of`].
    pub fn svg(&self) -> Result<String, PlotError> {
        self.svg_of(WIDTH)
    }

    /// The same of another width, in pixels: of a phone.
    ///
    /// # Errors
    /// [`PlotError::Empty`] without rows or panels; [`PlotError::Count`] if a row has not one estimate for each panel;
    /// [`PlotError::NotFinite`] and [`PlotError::NotPositive`] for values that the axis cannot show.
    pub fn svg_of(&self, width: f64) -> Result<String, PlotError> {
        self.check()?;
        let header = Header::new(&self.title, &self.note, width);
        let room = self.panel_room(width);
        let panels: Vec<Label> = self
            .panels
            .iter()
            .map(|name| Label::new(name, HEADING, room))
            .collect();
        let panels_height = panels.iter().map(Label::height).fold(0.0, f64::max);
        let top = header.end() + panels_height + 4.0;
        let (lines, bottom) = self.lines(width, top);
        let columns = self.columns(width, top, bottom);
        let x_label = Label::of_axis(&self.axis.label, width);
        picture(
            width,
            bottom + NUMBERS + x_label.height() + MARGIN,
            |canvas| {
                header.draw(canvas)?;
                for (column, name) in columns.iter().zip(&panels) {
                    name.below(canvas, (column.area.left, header.end()), Anchor::Start)?;
                    grid_across(canvas, column.area, &column.ticks)?;
                    foot(canvas, column.area)?;
                    numbers_across(canvas, column.area, &column.ticks)?;
                }
                for line in &lines {
                    self.draw_line(canvas, line, &columns)?;
                }
                let middle = (columns[0].area.left + columns[columns.len() - 1].area.right) / 2.0;
                x_label.centred(canvas, (middle, bottom + NUMBERS))
            },
        )
    }

    fn rows(&self) -> impl Iterator<Item = &DotRow> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    fn check(&self) -> Result<(), PlotError> {
        if self.panels.is_empty() || self.rows().next().is_none() {
            return Err(PlotError::Empty);
        }
        for row in self.rows() {
            if row.estimates.len() != self.panels.len() {
                return Err(PlotError::Count(row.name.clone()));
            }
            for value in row.estimates.iter().flat_map(Estimate::values) {
                if !self.axis.scale.shows(finite(value, &row.name)?) {
                    return Err(PlotError::NotPositive(row.name.clone()));
                }
            }
        }
        Ok(())
    }

    /// Pixels of the column of names.
    fn names_width(&self, width: f64) -> f64 {
        let widths = self.rows().map(|row| LABEL.width(&row.name) + INDENT);
        widths.fold(0.0, f64::max).min(width * NAMES_MAX)
    }

    /// Pixels of the widest value.
    fn values_width(&self) -> f64 {
        let estimates = self.rows().flat_map(|row| &row.estimates);
        let widths = estimates.map(|estimate| TICK.width(&self.value(estimate)));
        widths.fold(0.0, f64::max)
    }

    fn value(&self, estimate: &Estimate) -> String {
        format!("{:.*}", self.digits, estimate.middle)
    }

    /// Pixels of a panel, its values included.
    fn panel_room(&self, width: f64) -> f64 {
        let count = self.panels.len() as f64;
        let all = full(width) - self.names_width(width) - GAP * count;
        all / count
    }

    /// Headings and rows from `top` on, and where they end.
    fn lines(&self, width: f64, top: f64) -> (Vec<Line<'_>>, f64) {
        let mut lines = Vec::new();
        let mut end = top;
        let mut place = |label: Label, above: f64, row| {
            let height = (label.height() + 4.0).max(ROW) + above;
            let at = end + above + (height - above) / 2.0;
            end += height;
            lines.push(Line { label, at, row });
        };
        let colours = colours(self.groups.iter().map(DotGroup::known_as));
        for (family, group) in self.groups.iter().enumerate() {
            if !group.name.is_empty() {
                let above = if family == 0 { 0.0 } else { 4.0 };
                place(
                    Label::new(&group.name, HEADING, width * NAMES_MAX),
                    above,
                    None,
                );
            }
            for row in &group.rows {
                let label = Label::new(&row.name, LABEL, width * NAMES_MAX - INDENT);
                place(label, 0.0, Some((colours[family], row)));
            }
        }
        (lines, end + AFTER_ROWS)
    }

    fn columns(&self, width: f64, top: f64, bottom: f64) -> Vec<Column> {
        let values = self.rows().flat_map(|row| &row.estimates);
        let ends = self.axis.scale.zoomed(values.flat_map(Estimate::values));
        let (room, values_width) = (self.panel_room(width), self.values_width());
        let first = MARGIN + self.names_width(width) + GAP;
        let column = |number: usize| {
            let left = first + number as f64 * (room + GAP);
            let right = left + room - values_width - 10.0;
            let area = Area {
                left,
                top,
                right,
                bottom,
            };
            let ruler = Ruler::new(self.axis.scale, ends, (left, right));
            Column {
                area,
                values: left + room,
                ticks: ruler.ticks_across(),
                ruler,
            }
        };
        (0..self.panels.len()).map(column).collect()
    }

    fn draw_line(
        &self,
        canvas: &Canvas<'_>,
        line: &Line<'_>,
        columns: &[Column],
    ) -> Result<(), PlotError> {
        let Some((colour, row)) = line.row else {
            return line.label.beside(canvas, (MARGIN, line.at), Anchor::Start);
        };
        let name = (MARGIN + INDENT, line.at);
        line.label.beside(canvas, name, Anchor::Start)?;
        for (column, estimate) in columns.iter().zip(&row.estimates) {
            let area = column.area;
            canvas.path(&[(area.left, line.at), (area.right, line.at)], GRID, 1.0)?;
            let at = |value| (column.ruler.at(value), line.at);
            if let Some(expected) = estimate.expected {
                let (across, _) = at(expected);
                canvas.path(
                    &[(across, line.at - 7.0), (across, line.at + 7.0)],
                    INK,
                    2.0,
                )?;
            }
            canvas.path(&[at(estimate.low), at(estimate.high)], colour, 2.0)?;
            canvas.circle(at(estimate.middle), 4.0, colour)?;
            let value = (column.values, line.at);
            canvas.text(value, &self.value(estimate), TICK, Anchor::End)?;
        }
        Ok(())
    }
}
