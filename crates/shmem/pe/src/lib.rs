//! A PE of the distributed store as a program: it serves, or it is a memcached gateway, or both.
//!
//! ```text
//!  oshrun -n 4 nuthatch-pe --servers 2 -p 11211
//!
//!    PE 0 serves   PE 1 serves   PE 2, gateway at 11211   PE 3, gateway at 11212
//!         ^             ^              |                        |
//!         +-------------+---- Gets, Puts, compare-swaps --------+
//! ```
//!
//! * [`Options`]: the command line; [`Plan`]: what this PE does of it
//! * [`run`]: a PE's life, on any fabric
//! * [`Ending`], [`Bound`]: how all PEs end together, and in what time

mod ending;
mod gateway;
mod life;
mod options;
mod pulse;

pub use ending::Ending;
pub use life::{Abort, Bound, own_words, run};
pub use options::{Options, Plan};
