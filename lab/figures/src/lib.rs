//! The papers' figures and tables as data: each is run by the laboratory's own commands, drawn, and judged by its
//! statements.
//!
//! ```text
//!  memc3/6.toml           what the paper did, what is done here, the commands, the expected shape
//!      |  figure          read and checked: an unknown key, or a statement about no series, is an error
//!      |  plan            a command line for each value of its lists, in this size (full, quick, smoke)
//!      |  run             rounds in turn; a command that fails or cannot run leaves a gap with its reason
//!      v
//!  found                  points with their spread, gaps, machine
//!      |  statement       which hold, in words, and why one does not; none is judged where a point is missing
//!      v
//!  draw, files            SVG, JSON and CSV, which replace those of no better run
//!
//!  report                 all figures as one page in HTML, and as a table in Markdown
//! ```
//!
//! Nothing is typed by hand: a figure has what its commands printed. A point that comes from a model says so.

#![forbid(unsafe_code)]

mod command;
mod draw;
mod figure;
mod files;
mod found;
mod measured;
mod needs;
mod options;
mod plan;
mod read;
pub mod report;
mod run;
mod statement;
mod store;
mod template;

pub use figure::{Figure, Size};
pub use found::{Found, Gap, Point, Verdict, X};
pub use options::{Options, run};
pub use store::{all, find};
