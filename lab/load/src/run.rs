//! Servers in turn under one load.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nuthatch_bench::cores::Cores;
use nuthatch_bench::server::refuse_occupied;
use nuthatch_bench::started::{Started, stop_on_signals};
use nuthatch_program::Failure;

use crate::client::{LOOK, look};
use crate::options::Options;
use crate::report::{Report, Side};
use crate::round::{Load, Round};
use crate::wire::Protocol;

/// How long the check whether a server holds items may take: more than it waits for an answer itself.
const PATIENCE: Duration = Duration::from_secs(15);

/// A server under load.
enum Entrant {
    /// It runs already.
    Running(SocketAddr, Option<u32>),
    /// This run has started it.
    Started(Started),
}

/// Runs the load. `program` is the binary whose `serve` is ours. If a server stops, or the run is interrupted, the report has
/// what was measured until then, and says so.
pub fn run(program: &Path, options: &Options) -> Result<Report, Failure> {
    let load = options.load()?;
    let cores = Cores::choose(&options.server_cores, &options.load_cores)?;
    let stop = stop_on_signals()?;
    let entrants = entrants(program, options, &cores, &stop)?;
    let load_cores = options.target.is_none() || !options.load_cores.is_empty();
    let (rounds, ended) = rounds(
        &load,
        &entrants,
        options,
        load_cores.then_some(&cores.load),
        &stop,
    );
    let nothing = nothing(&load, ended.as_deref());
    let sides: Vec<_> = entrants
        .iter()
        .zip(&rounds)
        .map(|(entrant, rounds)| entrant.side(&load, rounds, nothing))
        .collect();
    if sides.iter().all(|side| side.missing.is_some()) {
        return Err(Failure::Run(ended.unwrap_or_else(|| nothing.to_owned())));
    }
    Ok(Report::new(options, &load, sides, &rounds, ended))
}

/// Why a server has no times, if it has none. Whatever was due in an open load has a time, answered or not; in a closed load
/// nothing is due while all connections wait for answers.
fn nothing(load: &Load, ended: Option<&str>) -> &'static str {
    match (ended, load.arrivals) {
        (Some(_), _) => "the run ended before",
        (None, Some(_)) => "nothing was due: --rate or --seconds is too low",
        (None, None) => "all connections waited for answers throughout --seconds",
    }
}

/// All rounds of each server, and why they ended early. Each round begins with fresh items, so that none has waited for longer
/// than another server's; every second time the servers take turns from the last to the first.
fn rounds(
    load: &Load,
    entrants: &[Entrant],
    options: &Options,
    cores: Option<&Vec<usize>>,
    stop: &AtomicBool,
) -> (Vec<Vec<Round>>, Option<String>) {
    let mut rounds: Vec<Vec<Round>> = entrants.iter().map(|_| Vec::new()).collect();
    for number in 0..options.rounds {
        let mut turns: Vec<_> = entrants.iter().zip(&mut rounds).collect();
        if number % 2 == 1 {
            turns.reverse();
        }
        for (entrant, of_entrant) in turns {
            // With what earlier rounds have inserted.
            let items = of_entrant
                .last()
                .map_or(load.items.count, |round| round.items);
            let cores = cores.map(Vec::as_slice);
            let loaded = match options.no_preload {
                true => Ok(()),
                false => load.preload(entrant.address(), items, stop),
            };
            let round = match loaded {
                Ok(()) => load.round(entrant.address(), entrant.pid(), cores, number, items, stop),
                Err(why) => Round::ended(why, items),
            };
            let ended = round.ended.clone();
            of_entrant.push(round);
            if let Some(why) = ended {
                let words = format!("{} in round {}: {why}", entrant.name(), number + 1);
                return (rounds, Some(words));
            }
        }
    }
    (rounds, None)
}

/// Refuses a server that holds items. It is asked on a thread of its own, because its answer may have no end.
fn refuse(address: SocketAddr, protocol: Protocol, stop: &AtomicBool) -> Result<(), Failure> {
    let (teller, told) = mpsc::channel();
    thread::spawn(move || teller.send(refuse_occupied(address, protocol.into(), false)));
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        look(stop)?;
        match told.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Err(Failure::Run(format!(
        "{address} does not say whether it holds items; --overwrite goes on without knowing"
    )))
}

/// The running server, or ours and the rivals, started.
fn entrants(
    program: &Path,
    options: &Options,
    cores: &Cores,
    stop: &AtomicBool,
) -> Result<Vec<Entrant>, Failure> {
    if let Some(target) = &options.target {
        let address = find(target)?;
        if !options.overwrite {
            refuse(address, options.protocol, stop)?;
        }
        return Ok(vec![Entrant::Running(address, options.pid)]);
    }
    let ours = format!("{} serve {}", program.display(), options.ours());
    let commands = std::iter::once(&ours).chain(&options.rivals);
    let started = commands.map(|command| Started::start(command, &cores.servers, stop));
    Ok(started
        .map(|server| server.map(Entrant::Started))
        .collect::<Result<_, String>>()?)
}

#[expect(clippy::disallowed_methods, reason = "a bench may wait for a name")]
fn find(target: &str) -> Result<SocketAddr, Failure> {
    let addresses = target.to_socket_addrs().ok();
    addresses
        .and_then(|mut addresses| addresses.next())
        .ok_or_else(|| Failure::Usage(format!("--target {target}: not a HOST:PORT")))
}

impl Entrant {
    fn address(&self) -> SocketAddr {
        match self {
            Self::Running(address, _) => *address,
            Self::Started(server) => server.address(),
        }
    }

    fn pid(&self) -> Option<u32> {
        match self {
            Self::Running(_, pid) => *pid,
            Self::Started(server) => Some(server.pid()),
        }
    }

    /// Its program, or where it runs.
    fn name(&self) -> String {
        match self {
            Self::Running(address, _) => address.to_string(),
            Self::Started(server) => {
                let program = server.command().split_whitespace().next();
                let name = program.map(Path::new).and_then(Path::file_name);
                name.unwrap_or_default().to_string_lossy().into_owned()
            }
        }
    }

    fn side(&self, load: &Load, rounds: &[Round], nothing: &str) -> Side {
        let (command, version) = match self {
            Self::Running(..) => (None, None),
            Self::Started(server) => {
                // A server that has stopped reports none.
                let version = match load.protocol {
                    Protocol::Memcached => server.version(false).ok(),
                    Protocol::Redis => server.redis_version(false).ok(),
                };
                (Some(server.command().to_owned()), version)
            }
        };
        Side::new(self.name(), command, version, rounds, nothing)
    }
}
