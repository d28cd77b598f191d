//! `nuthatch bench`: the benches, on the engine that is asked for.

use clap::{Args, Subcommand};
use nuthatch::Engine;
use nuthatch_bench::report::print;
use nuthatch_bench::{engine, fill, growth, server, versus};

use crate::engine::{Build, EngineName, EngineSettings, Job};

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
    pub fn run(self) -> Result<(), String> {
        match self {
            Bench::Engine(bench) => bench.engine.choose(bench),
            Bench::Fill(bench) => bench.engine.choose(bench),
            Bench::Server(options) => print(&server::run(&options)?, options.json),
            Bench::Versus(options) => {
                let program = std::env::current_exe().map_err(|error| error.to_string())?;
                print(&versus::run(&program, &options)?, options.json)
            }
        }
    }
}

impl Job for OnEngine<engine::Options> {
    type Output = Result<(), String>;

    fn run<E: Engine>(self, build: Build<E>) -> Self::Output {
        let Self { engine, options } = self;
        let build = |room| build(&EngineSettings::for_bench(engine, room));
        match options.grow {
            Some(grow) => print(&growth::run(build, grow, &options)?, options.json),
            None => print(&engine::run(build, &options)?, options.json),
        }
    }
}

impl Job for OnEngine<fill::Options> {
    type Output = Result<(), String>;

    fn run<E: Engine>(self, build: Build<E>) -> Self::Output {
        let Self { engine, options } = self;
        let build = |room| build(&EngineSettings::for_bench(engine, room));
        print(&fill::run(build, &options)?, options.json)
    }
}
