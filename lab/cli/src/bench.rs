//! `nuthatch-lab bench`: the benches, on the chosen engine.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use nuthatch_bench::engine::{Room, insert};
use nuthatch_bench::report::print;
use nuthatch_bench::working_set::Contender;
use nuthatch_bench::{engine, fill, full, growth, server, versus, working_set};
use nuthatch_engine::{CommonSettings, Engine};
use nuthatch_engines::{Build, EngineName, EngineSettings, Job, Tuning};
use nuthatch_microbench::directory;
use nuthatch_microbench::memc3::Memc3;
use nuthatch_program::{Failure, output};

use crate::rows;

/// The benches.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Measure engines in this process, beside the throughput limit of the memory, other crates, or each other
    Engine(OnEngines<engine::Options>),
    /// Measure sets of new keys into an empty engine, by one thread and by several
    Insert(OnEngine<insert::Options>),
    /// Count the items that a memory limit holds
    Fill(OnEngine<fill::Options>),
    /// Measure how long sets take in a full memory, with each eviction that the engines have
    Full(OnEngines<full::Options>),
    /// Measure a server under load, by memcached's, Redis' or CPServer's protocol
    Server(server::Options),
    /// Measure servers in turn under the same load
    Versus(versus::Options),
    /// Load servers as published workloads do, with as many requests a second as asked for
    Load(Box<nuthatch_load::Options>),
    /// Measure how processes of one machine reach a cache: shared memory, sockets, the library, other clients
    Local(nuthatch_local::Options),
    /// A client's process of `bench local`
    #[command(hide = true)]
    LocalClient(nuthatch_local::Job),
    /// Compare the pointer directory of the distributed store with one on the flow cache's layout
    Directory(directory::Options),
    /// Measure the hash tables of the MemC3 paper by themselves
    #[command(subcommand)]
    Memc3(Memc3),
    /// Model the distributed store on up to a thousand machines: not a measurement
    Scale(nuthatch_scale::Options),
    /// Model CPHash and LockHash on a machine of many cores, from recordings of their own code: not a measurement
    Coherence(nuthatch_coherence::Options),
    /// Run a row of `make bench` by itself, or list them
    Row(rows::Options),
    /// Print Markdown tables of the results that other benches printed with --json
    Tables(nuthatch_tables::Options),
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

impl<O: Args> OnEngine<O> {
    /// How the engine is made with some room, and the bench's options.
    fn in_room<E: Engine>(self, build: Build<E>) -> (impl Fn(Room) -> io::Result<Arc<E>>, O) {
        let Self {
            engine,
            tuning,
            options,
        } = self;
        let build = move |room| build(&for_bench(engine, &tuning, room));
        (build, options)
    }
}

/// Options of a bench that compares engines, and those that it runs on.
#[derive(Debug, Args)]
pub struct OnEngines<O: Args> {
    /// The engines, separated by commas; `bench engine` takes several with --working-set only
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
    options: O,
}

impl Bench {
    /// Runs the bench and prints its results.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Bench::Engine(bench) => bench.run(),
            Bench::Insert(bench) => bench.choose(),
            Bench::Fill(bench) => bench.choose(),
            Bench::Full(bench) => bench.run(),
            Bench::Server(options) => print("server", &server::run(&options)?, options.json),
            Bench::Versus(options) => {
                let program = server_program(options.lab)?;
                let report = versus::run(&program, &options)?;
                for warning in report
                    .rivals
                    .iter()
                    .filter_map(|rival| rival.warning.as_ref())
                {
                    output::note(&format!("warning: {warning}"));
                }
                print("versus", &report, options.json)
            }
            Bench::Load(options) => {
                let program = server_program(options.lab)?;
                let report = nuthatch_load::run(&program, &options)?;
                print("load", &report, options.json)?;
                report.whole()
            }
            Bench::Local(options) => {
                let report = nuthatch_local::run(&server_program(false)?, &options)?;
                print("local", &report, options.json)
            }
            Bench::LocalClient(job) => nuthatch_local::client(&job),
            Bench::Directory(options) => {
                print("directory", &directory::run(&options)?, options.json)
            }
            Bench::Memc3(bench) => bench.run(),
            Bench::Scale(options) => print("scale", &nuthatch_scale::run(&options)?, options.json),
            Bench::Coherence(options) => nuthatch_coherence::run(&options),
            Bench::Row(options) => rows::run(&options),
            Bench::Tables(options) => Ok(nuthatch_tables::run(&options)?),
        }
    }
}

impl<O: Args> OnEngine<O>
where
    Self: Job<Output = Result<(), Failure>>,
{
    fn choose(self) -> Result<(), Failure> {
        let checked = self.tuning.check(&[self.engine]);
        checked.map_err(Failure::usage)?;
        let tuning = self.tuning.clone();
        self.engine.choose(&tuning, self)
    }
}

impl OnEngines<full::Options> {
    fn run(self) -> Result<(), Failure> {
        let Self {
            engines,
            tuning,
            options,
        } = self;
        tuning.check(&engines).map_err(Failure::usage)?;
        let mut contenders = Vec::new();
        for engine in engines {
            let own = engine.evictions();
            let said = tuning.eviction.as_ref().map(std::slice::from_ref);
            for &eviction in said.unwrap_or(own) {
                let one = Tuning {
                    // Engines with only one eviction have no such setting.
                    eviction: (own.len() > 1).then_some(eviction),
                    ..tuning.clone()
                };
                let room = Room {
                    memory: options.memory,
                    items: None,
                };
                let built = EngineName::build(&for_bench(engine, &one, room))?;
                contenders.push(full::Contender {
                    name: format!("{} {}", built.name(), eviction.name()),
                    engine: built,
                });
            }
        }
        print("full", &full::run(contenders, &options)?, options.json)
    }
}

impl OnEngines<engine::Options> {
    fn run(self) -> Result<(), Failure> {
        let checked = self.tuning.check(&self.engines);
        checked.map_err(Failure::usage)?;
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
                    let batch = options.batch.unwrap_or(working_set::BATCH);
                    let tuning = tuning.for_batch(engine, batch);
                    let job = Contending {
                        engine,
                        tuning: tuning.clone(),
                        clients,
                    };
                    engine.choose(&tuning, job)
                })
                .collect();
            let report = working_set::run(&contenders, &options)?;
            return print("working_set", &report, options.json);
        }
        match engines[..] {
            [engine] => {
                let job = OnEngine {
                    engine,
                    tuning: tuning.clone(),
                    options,
                };
                engine.choose(&tuning, job)
            }
            _ => {
                let words = "--engine: one; several are compared with --working-set";
                Err(Failure::usage(words))
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
            build(&for_bench(engine, &tuning, room))
        })
    }
}

impl Job for OnEngine<engine::Options> {
    type Output = Result<(), Failure>;

    fn run<E: Engine>(self, build: Build<E>) -> Self::Output {
        let (build, options) = self.in_room(build);
        match options.grow {
            Some(grow) => print("growth", &growth::run(build, grow, &options)?, options.json),
            None => print("engine", &engine::run(build, &options)?, options.json),
        }?;
        Ok(())
    }
}

impl Job for OnEngine<insert::Options> {
    type Output = Result<(), Failure>;

    fn run<E: Engine>(self, build: Build<E>) -> Self::Output {
        let (build, options) = self.in_room(build);
        print("insert", &insert::run(build, &options)?, options.json)
    }
}

impl Job for OnEngine<fill::Options> {
    type Output = Result<(), Failure>;

    fn run<E: Engine>(self, build: Build<E>) -> Self::Output {
        let (build, options) = self.in_room(build);
        print("fill", &fill::run(build, &options)?, options.json)
    }
}

/// The settings of an engine under measurement: as in a server, but with this room.
fn for_bench(name: EngineName, tuning: &Tuning, room: Room) -> EngineSettings {
    EngineSettings {
        name,
        common: CommonSettings {
            memory_limit: room.memory,
            initial_items: room.items,
            ..CommonSettings::default()
        },
        tuning: tuning.clone(),
    }
}

/// The server's program: this one, or `nuthatch` beside it, or else the one that the system finds.
fn server_program(is_lab: bool) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    if is_lab {
        return Ok(this);
    }
    let beside = this.with_file_name("nuthatch");
    Ok(if beside.is_file() {
        beside
    } else {
        PathBuf::from("nuthatch")
    })
}
