//! Figures as SVG. Each question has its chart:
//!
//! | question | chart |
//! |---|---|
//! | which design is better, and is the difference more than noise | [`DotChart`]: a row a design, a zoomed axis |
//! | how does a value change with another | [`LineChart`]: each line is named at its end |
//! | does each of several cases look like its reference | [`PanelChart`]: small multiples, shared axes |
//!
//! ```
//! use nuthatch_plot::{Axis, Curve, LineChart};
//!
//! let points = vec![(1024.0, 4.0), (4096.0, 9.5), (16384.0, 12.0)];
//! let chart = LineChart {
//!     title: "Lookups".into(),
//!     note: "one thread".into(),
//!     x: Axis::binary("buckets"),
//!     y: Axis::linear("million lookups / s"),
//!     curves: vec![Curve::measured("mult-11", points)],
//! };
//! let svg = chart.svg()?;
//! assert!(svg.starts_with("<svg"));
//! # Ok::<(), nuthatch_plot::PlotError>(())
//! ```
//!
//! Guarantees: a figure is as wide as is said, 700 pixels if nothing is, and as high as its content needs; no text is cut,
//! turned, or laid over another; a name that many figures show has one colour in all of them; a figure follows the reader's
//! colour scheme by a style sheet inside the SVG; the colours of series show on light and dark, and can be told apart by
//! readers with any of the three colour deficiencies.

#![forbid(unsafe_code)]

mod axis;
mod canvas;
mod dots;
mod error;
mod frame;
mod lines;
mod names;
mod panels;
mod spacing;
mod text;
mod theme;

pub use axis::{Axis, Scale};
pub use canvas::WIDTH;
pub use dots::{DotChart, DotGroup, DotRow, Estimate};
pub use error::PlotError;
pub use lines::{Curve, LineChart};
pub use panels::{Layer, Mark, Panel, PanelChart, PanelX, Tone};
