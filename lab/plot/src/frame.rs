//! The parts that all charts have: title and note above, and axes.

use crate::axis::Tick;
use crate::canvas::{Anchor, Canvas, LABEL, MARGIN, NOTE, Point, Style, TICK, TITLE};
use crate::error::PlotError;
use crate::theme::{GRID, MUTED};

/// Pixels that a text may take from edge to edge of a figure of this width.
pub fn full(width: f64) -> f64 {
    width - 2.0 * MARGIN
}

/// Title and note, in lines.
pub struct Header {
    title: Vec<String>,
    note: Vec<String>,
}

impl Header {
    pub fn new(title: &str, note: &str, width: f64) -> Self {
        Self {
            title: TITLE.wrap(title, full(width)),
            note: NOTE.wrap(note, full(width)),
        }
    }

    /// Where it ends, in pixels from above.
    pub fn end(&self) -> f64 {
        let title = self.title.len() as f64 * TITLE.line_height();
        let note = self.note.len() as f64 * NOTE.line_height();
        MARGIN + title + note + 8.0
    }

    pub fn draw(&self, canvas: &Canvas<'_>) -> Result<(), PlotError> {
        let at = (MARGIN, MARGIN + TITLE.line_height() / 2.0);
        canvas.lines(at, &self.title, TITLE, Anchor::Start)?;
        let title = self.title.len() as f64 * TITLE.line_height();
        let at = (MARGIN, MARGIN + title + NOTE.line_height() / 2.0);
        canvas.lines(at, &self.note, NOTE, Anchor::Start)
    }
}

/// A rectangle of a figure: from upper left to lower right.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Area {
    /// Its middle, across.
    pub fn middle(&self) -> f64 {
        (self.left + self.right) / 2.0
    }
}

/// Pixels below an area for the numbers of its horizontal axis.
pub const NUMBERS: f64 = 24.0;

/// Grid lines that stand on the ticks of a horizontal axis.
pub fn grid_across(canvas: &Canvas<'_>, area: Area, ticks: &[Tick]) -> Result<(), PlotError> {
    for tick in ticks {
        canvas.path(&[(tick.at, area.top), (tick.at, area.bottom)], GRID, 1.0)?;
    }
    Ok(())
}

/// Grid lines at the ticks of a vertical axis.
pub fn grid_up(canvas: &Canvas<'_>, area: Area, ticks: &[Tick]) -> Result<(), PlotError> {
    for tick in ticks {
        canvas.path(&[(area.left, tick.at), (area.right, tick.at)], GRID, 1.0)?;
    }
    Ok(())
}

/// The line of a horizontal axis.
pub fn foot(canvas: &Canvas<'_>, area: Area) -> Result<(), PlotError> {
    let ends = [(area.left, area.bottom), (area.right, area.bottom)];
    canvas.path(&ends, MUTED, 1.0)
}

/// The numbers of a horizontal axis, none of them outside the figure.
pub fn numbers_across(canvas: &Canvas<'_>, area: Area, ticks: &[Tick]) -> Result<(), PlotError> {
    for tick in ticks {
        canvas.path(
            &[(tick.at, area.bottom), (tick.at, area.bottom + 4.0)],
            MUTED,
            1.0,
        )?;
        let half = TICK.width(&tick.label) / 2.0;
        let at = tick.at.clamp(MARGIN + half, canvas.width - MARGIN - half);
        let at = (at, area.bottom + NUMBERS / 2.0 + 1.0);
        canvas.text(at, &tick.label, TICK, Anchor::Middle)?;
    }
    Ok(())
}

/// The numbers of a vertical axis, left of it.
pub fn numbers_up(canvas: &Canvas<'_>, area: Area, ticks: &[Tick]) -> Result<(), PlotError> {
    for tick in ticks {
        canvas.text((area.left - 7.0, tick.at), &tick.label, TICK, Anchor::End)?;
    }
    Ok(())
}

/// Pixels that the numbers of a vertical axis take, left of it.
pub fn numbers_width(ticks: &[Tick]) -> f64 {
    let widths = ticks.iter().map(|tick| TICK.width(&tick.label));
    widths.fold(0.0, f64::max) + 7.0
}

/// A label in as many lines as it needs.
pub struct Label {
    pub lines: Vec<String>,
    style: Style,
}

impl Label {
    /// What an axis shows, in a figure of this width.
    pub fn of_axis(words: &str, width: f64) -> Self {
        Self::new(words, LABEL, full(width))
    }

    pub fn new(words: &str, style: Style, room: f64) -> Self {
        let lines = style.wrap(words, room);
        Self { lines, style }
    }

    pub fn height(&self) -> f64 {
        self.lines.len() as f64 * self.style.line_height()
    }

    pub fn width(&self) -> f64 {
        let widths = self.lines.iter().map(|line| self.style.width(line));
        widths.fold(0.0, f64::max)
    }

    /// Below the point.
    pub fn below(&self, canvas: &Canvas<'_>, at: Point, anchor: Anchor) -> Result<(), PlotError> {
        let at = (at.0, at.1 + self.style.line_height() / 2.0);
        canvas.lines(at, &self.lines, self.style, anchor)
    }

    /// Beside the point, which is at half of its height.
    pub fn beside(&self, canvas: &Canvas<'_>, at: Point, anchor: Anchor) -> Result<(), PlotError> {
        self.below(canvas, (at.0, at.1 - self.height() / 2.0), anchor)
    }

    /// Below the point and around it, but inside the figure.
    pub fn centred(&self, canvas: &Canvas<'_>, at: Point) -> Result<(), PlotError> {
        let half = self.width() / 2.0;
        let across = at.0.min(canvas.width - MARGIN - half).max(MARGIN + half);
        self.below(canvas, (across, at.1), Anchor::Middle)
    }
}
