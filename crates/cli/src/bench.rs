//! `nuthatch bench`: the benches, on the engine that is asked for.

use clap::{Args, Subcommand};
use nuthatch_bench::report::print;
use nuthatch_bench::{engine, fill, growth, server, versus};

use crate::engine::{EngineName, EngineSettings};

/// The benches.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// An engine in process, beside the memory's limit and other crates
    Engine(OnEngine<engine::Options>),
    /// How many items a memory limit holds
    Fill(OnEngine<fill::Options>),
    /// Load on a server that speaks memcached's protocol
    Server(server::Options),
    /// Two servers in turn under the same load
    Versus(versus::Options),
}

/// Options of a bench, and the engine that it runs on.
#[derive(Debug, Args)]
pub struct OnEngine<O: Args> {
    /// The engine
    #[arg(long, value_enum, default_value_t)]
    engine: EngineName,
    #[command(flatten)]
    options: O,
}

impl Bench {
    /// Runs it and prints what it found.
    pub fn run(&self) -> Result<(), String> {
        match self {
            Bench::Engine(OnEngine { engine, options }) => {
                let build = |room| EngineSettings::for_bench(*engine, room).build();
                match options.grow {
                    Some(grow) => print(&growth::run(build, grow, options)?, options.json),
                    None => print(&engine::run(build, options)?, options.json),
                }
            }
            Bench::Fill(OnEngine { engine, options }) => {
                let build = |room| EngineSettings::for_bench(*engine, room).build();
                print(&fill::run(build, options)?, options.json)
            }
            Bench::Server(options) => print(&server::run(options)?, options.json),
            Bench::Versus(options) => {
                let program = std::env::current_exe().map_err(|error| error.to_string())?;
                print(&versus::run(&program, options)?, options.json)
            }
        }
    }
}
