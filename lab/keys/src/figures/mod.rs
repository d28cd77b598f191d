//! The paper's figures.

use clap::Args;

use crate::Failure;

/// What to draw.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Smaller and quicker
    #[arg(long)]
    pub quick: bool,
}

/// Draws.
pub fn run(_: &Options) -> Result<(), Failure> {
    Ok(())
}
