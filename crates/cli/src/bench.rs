//! `nuthatch bench`: the benches, on the engine that is asked for.

use clap::{Args, Subcommand};
use nuthatch::Engine;
use nuthatch_bench::report::print;
use nuthatch_bench::working_set::Contender;
use nuthatch_bench::{
    Failure as BenchFailure, engine, figures, fill, growth, server, versus, working_set,
};

use crate::Failure;
use crate::engine::{Build, EngineName, EngineSettings, Job};
use crate::tuning::Tuning;

/// The benches.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Engines in process, beside the memory's limit, other crates, or each other
    Engine(OnEngines),
    /// How many items a memory limit holds
    Fill(OnEngine<fill::Options>),
    /// Load on a server that speaks memcached's protocol or CPServer's
    Server(server::Options),
    /// Servers in turn under the same load
    Versus(versus::Options),
    /// Tables in Markdown of what other benches printed with --json
    Figures(figures::Options),
}

/// Options of a bench, and the engine that it runs on.
#[derive(Debug, Args)]
pub struct OnEngine<O: Args> {
    /// The engine
    #[arg(long, value_enum, default_value_t)]
    engine: EngineName,
    #[command(flatten)]
    tuning: Tuning,
    #[command(flatten)]
    options: O,
}

/// The engine bench, and the engines that it runs on.
#[derive(Debug, Args)]
pub struct OnEngines {
    /// The engine; with --working-set also several, with commas between
    #[arg(
        long = "engine",
        value_enum,
        value_delimiter = ',',
        default_value = "cuckoo"
    )]
    engines: Vec<EngineName>,
    #[command(flatten)]
    tuning: Tuning,
    #[command(flatten)]
    options: engine::Options,
}

impl Bench {
    /// Runs it and prints what it found.
    pub fn run(self) -> Result<(), Failure> {
        self.outcome().map_err(|failure| match failure {
            BenchFailure::Usage(words) => Failure::Usage(words),
            BenchFailure::Run(words) => Failure::Runtime(words),
        })
    }

    fn outcome(self) -> Result<(), BenchFailure> {
        match self {
            Bench::Engine(bench) => bench.run(),
            Bench::Fill(bench) => {
                let checked = bench.tuning.check(&[bench.engine]);
                checked.map_err(BenchFailure::Usage)?;
                bench.engine.choose(bench)
            }
            Bench::Server(options) => Ok(print("server", &server::run(&options)?, options.json)?),
            Bench::Versus(options) => {
                let program = std::env::current_exe().map_err(|error| error.to_string())?;
                let report = versus::run(&program, &options)?;
                for warning in report
                    .rivals
                    .iter()
                    .filter_map(|rival| rival.warning.as_ref())
                {
                    eprintln!("nuthatch: warning: {warning}");
                }
                Ok(print("versus", &report, options.json)?)
            }
            Bench::Figures(options) => Ok(figures::run(&options)?),
        }
    }
}

impl OnEngines {
    fn run(self) -> Result<(), BenchFailure> {
        let checked = self.tuning.check(&self.engines);
        checked.map_err(BenchFailure::Usage)?;
        let Self {
            engines,
            tuning,
            options,
        } = self;
        if !options.paper.working_set.is_empty() {
            let contenders: Vec<Contender> = engines
                .iter()
                .map(|&engine| {
                    let (clients, tuning) = tuning.divided(engine, options.threads);
                    engine.choose(Contending {
                        engine,
                        tuning,
                        clients,
                    })
                })
                .collect();
            let report = working_set::run(&contenders, &options)?;
            return Ok(print("working_set", &report, options.json)?);
        }
        match engines[..] {
            [engine] => engine.choose(OnEngine {
                engine,
                tuning,
                options,
            }),
            _ => {
                let words = "--engine: one; several are compared with --working-set";
                Err(BenchFailure::usage(words))
            }
        }
    }
}

/// An engine's part in a comparison.
struct Contending {
    engine: EngineName,
    tuning: Tuning,
    clients: usize,
}

impl Job for Contending {
    type Output = Contender;

    fn run<E: Engine>(self, build: Build<E>) -> Contender {
        let Self {
            engine,
            tuning,
            clients,
        } = self;
        Contender::new(clients, move |room| {
            let tuning = tuning.for_small_items(engine, room.memory);
            build(&EngineSettings::for_bench(engine, &tuning, room))
        })
    }
}

impl Job for OnEngine<engine::Options> {
    type Output = Result<(), BenchFailure>;

    fn run<E: Engine>(self, build: Build<E>) -> Self::Output {
        let Self {
            engine,
            tuning,
            options,
        } = self;
        let build = |room| build(&EngineSettings::for_bench(engine, &tuning, room));
        match options.grow {
            Some(grow) => print("growth", &growth::run(build, grow, &options)?, options.json),
            None => print("engine", &engine::run(build, &options)?, options.json),
        }?;
        Ok(())
    }
}

impl Job for OnEngine<fill::Options> {
    type Output = Result<(), BenchFailure>;

    fn run<E: Engine>(self, build: Build<E>) -> Self::Output {
        let Self {
            engine,
            tuning,
            options,
        } = self;
        let build = |room| build(&EngineSettings::for_bench(engine, &tuning, room));
        Ok(print("fill", &fill::run(build, &options)?, options.json)?)
    }
}
