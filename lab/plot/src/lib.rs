//! Figures as SVG: [`bars`] for histograms and comparisons, [`lines`] for curves.
//!
//! ```
//! use nuthatch_plot::{Axis, Chart, Curve, lines};
//!
//! let chart = Chart {
//!     title: "Lookups".into(),
//!     x: Axis::logarithmic("buckets"),
//!     y: Axis::linear("million a second"),
//! };
//! let points = vec![(1024.0, 4.0), (4096.0, 9.5), (16384.0, 12.0)];
//! let svg = lines(&chart, &[Curve { name: "mult-11".into(), points }])?;
//! assert!(svg.starts_with("<svg"));
//! # Ok::<(), nuthatch_plot::PlotError>(())
//! ```
//!
//! A figure follows the reader's colour scheme: the style sheet inside the SVG exchanges paper and
//! ink where the scheme is dark, and series have colours that show on both.

#![forbid(unsafe_code)]

mod axis;
mod chart;
mod save;
mod theme;

pub use axis::{Axis, Scale};
pub use chart::{Bars, Chart, Curve, PlotError, bars, lines};
pub use save::{save, save_bytes};
