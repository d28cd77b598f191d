//! Bars: what a whole is made of. They begin at zero, since their lengths are compared.

use crate::axis::{Axis, Ruler, Scale};
use crate::canvas::{Anchor, Canvas, LABEL, MARGIN, TICK, WIDTH, picture};
use crate::error::{PlotError, finite};
use crate::frame::{Area, FULL, Header, Label, NUMBERS, foot, grid_across, numbers_across};
use crate::theme::series;

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Its name, left of the plot.
    pub name: String,
    /// Its parts from left to right, in the order of the chart's, each at least 0.
    pub parts: Vec<f64>,
}

/// Lying bars, each of the same parts. The sums stand beside, in figures.
#[derive(Clone, Debug)]
pub struct BarChart {
    /// What it shows.
    pub title: String,
    /// What a reader has to know besides; may be empty.
    pub note: String,
    /// The axis, from 0; its scale is linear, whatever it says.
    pub axis: Axis,
    /// Digits of the sums after the point.
    pub digits: usize,
    /// The parts' names, which stand between title and plot with their colours.
    pub parts: Vec<String>,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// Pixels of a bar, and between bars at least.
const THICK: f64 = 16.0;
const BETWEEN: f64 = 8.0;
/// Pixels of the names at most, before they go on in the next line.
const NAMES_MAX: f64 = 270.0;
/// The colour mark of a part: its side, and the free pixels beside it and after the name.
const MARK: f64 = 11.0;
const BESIDE_MARK: f64 = 6.0;
const AFTER_NAME: f64 = 18.0;

impl BarChart {
    /// The text of an SVG file.
    ///
    /// # Errors
    /// [`PlotError::Empty`] without bars or parts; [`PlotError::Count`] if a bar has not one value for each part;
    /// [`PlotError::NotFinite`] and [`PlotError::Negative`] for values that a bar cannot have.
    pub fn svg(&self) -> Result<String, PlotError> {
        self.check()?;
        let header = Header::new(&self.title, &self.note);
        let sum = |bar: &Bar| bar.parts.iter().sum::<f64>();
        let value = |bar: &Bar| format!("{:.*}", self.digits, sum(bar));
        let names: Vec<Label> = self
            .bars
            .iter()
            .map(|bar| Label::new(&bar.name, LABEL, NAMES_MAX))
            .collect();
        let (key, key_height) = self.key();
        let top = header.end() + key_height + 6.0;
        let heights = names.iter().map(|name| name.height().max(THICK) + BETWEEN);
        let heights: Vec<f64> = heights.collect();
        let values_width = self.bars.iter().map(|bar| TICK.width(&value(bar)));
        let area = Area {
            left: MARGIN + names.iter().map(Label::width).fold(0.0, f64::max) + 12.0,
            top,
            right: WIDTH - MARGIN - values_width.fold(0.0, f64::max) - 10.0,
            bottom: top + heights.iter().sum::<f64>() + 4.0,
        };
        let ends = Scale::from_zero(self.bars.iter().map(sum));
        let ruler = Ruler::new(Scale::Linear, ends, (area.left, area.right));
        let ticks = ruler.ticks_across();
        let x_label = Label::of_axis(&self.axis.label);
        picture(
            area.bottom + NUMBERS + x_label.height() + MARGIN,
            |canvas| {
                header.draw(canvas)?;
                for (number, entry) in key.iter().enumerate() {
                    entry.draw(canvas, header.end(), number)?;
                }
                grid_across(canvas, area, &ticks)?;
                let mut end = area.top;
                for ((bar, name), height) in self.bars.iter().zip(&names).zip(&heights) {
                    let middle = end + height / 2.0;
                    end += height;
                    name.beside(canvas, (MARGIN, middle), Anchor::Start)?;
                    draw_bar(canvas, bar, &ruler, middle)?;
                    let at = (ruler.at(sum(bar)) + 6.0, middle);
                    canvas.text(at, &value(bar), TICK, Anchor::Start)?;
                }
                foot(canvas, area)?;
                numbers_across(canvas, area, &ticks)?;
                x_label.centred(canvas, (area.middle(), area.bottom + NUMBERS))
            },
        )
    }

    fn check(&self) -> Result<(), PlotError> {
        if self.bars.is_empty() || self.parts.is_empty() {
            return Err(PlotError::Empty);
        }
        for bar in &self.bars {
            if bar.parts.len() != self.parts.len() {
                return Err(PlotError::Count(bar.name.clone()));
            }
            for &part in &bar.parts {
                if finite(part, &bar.name)? < 0.0 {
                    return Err(PlotError::Negative(bar.name.clone()));
                }
            }
        }
        Ok(())
    }

    /// Marks and names of the parts, and where the last ends.
    fn key(&self) -> (Vec<KeyEntry>, f64) {
        let (mut across, mut row, mut end) = (0.0, 0.0, 0.0_f64);
        let mut entries = Vec::new();
        for name in &self.parts {
            let label = Label::new(name, LABEL, FULL - MARK - BESIDE_MARK);
            let width = MARK + BESIDE_MARK + label.width();
            if across > 0.0 && across + width > FULL {
                (across, row) = (0.0, end);
            }
            end = end.max(row + label.height());
            entries.push(KeyEntry { across, row, label });
            across += width + AFTER_NAME;
        }
        (entries, end)
    }
}

/// A part's mark and name: pixels from the left margin and from the key's beginning.
struct KeyEntry {
    across: f64,
    row: f64,
    label: Label,
}

impl KeyEntry {
    fn draw(&self, canvas: &Canvas<'_>, top: f64, number: usize) -> Result<(), PlotError> {
        let (left, top) = (MARGIN + self.across, top + self.row);
        let middle = top + LABEL.line_height() / 2.0;
        let corner = (left, middle - MARK / 2.0);
        canvas.rectangle(corner, (left + MARK, middle + MARK / 2.0), series(number))?;
        let name = (left + MARK + BESIDE_MARK, top);
        self.label.below(canvas, name, Anchor::Start)
    }
}

fn draw_bar(canvas: &Canvas<'_>, bar: &Bar, ruler: &Ruler, middle: f64) -> Result<(), PlotError> {
    let mut from = 0.0;
    for (number, part) in bar.parts.iter().enumerate() {
        let to = from + part;
        let (left, right) = (ruler.at(from), ruler.at(to));
        if right > left {
            let corner = (left, middle - THICK / 2.0);
            canvas.rectangle(corner, (right, middle + THICK / 2.0), series(number))?;
        }
        from = to;
    }
    Ok(())
}
