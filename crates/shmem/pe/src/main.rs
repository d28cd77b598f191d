//! The program `nuthatch-pe`: `oshrun -n 4 nuthatch-pe --servers 2 -m 512 -p 11211`.

mod command;

use std::process::ExitCode;
use std::sync::Arc;

use clap::CommandFactory;
use command::CommandLine;
use nuthatch_base::memory::reserve;
use nuthatch_fabric::Fabric;
use nuthatch_fabric::openshmem::{self, CannotOpen, OpenShmem};
use nuthatch_log::{Log, LogFormat, LogTo};
use nuthatch_pe::{Abort, Bound, Options, Plan, own_words, run};
use nuthatch_program::{Failure, command_line, on_own_stack};
use nuthatch_server::{By, Controls, OnVerbosity, Shutdown, Signals};

/// The exit code of a PE that ends all others at once.
const ABORTED: u8 = 70;

/// A machine that gives no more memory must not end the server, and with it the items.
#[global_allocator]
static ALLOCATOR: reserve::Allocator = reserve::Allocator;

fn main() -> ExitCode {
    on_own_stack(program)
}

fn program() -> ExitCode {
    // It exits by itself: with 2 for an invalid command line, and with 0 for help and version.
    let line = command_line::parse(CommandLine::command(), std::env::args_os());
    let code = match line.and_then(execute) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            nuthatch_log::fail(&failure.to_string());
            failure.exit_code()
        }
    };
    nuthatch_log::flush();
    code
}

fn execute(line: CommandLine) -> Result<(), Failure> {
    match line.command {
        Some(command) => command.print(),
        None => live(&line.options),
    }
}

fn live(options: &Options) -> Result<(), Failure> {
    // Without a launcher there is one PE.
    let pes = openshmem::launched().unwrap_or(1);
    // Every PE computes the same words, or fails: none starts OpenSHMEM when the others do not.
    let store = options.check(pes)?;
    let words = store.symmetric_words(pes).map_err(Failure::usage)?;
    nuthatch_server::ignore_meaningless();
    // SAFETY: the only thread there is, and the only place that starts OpenSHMEM.
    let opened = unsafe { OpenShmem::open(words + own_words::<OpenShmem>(pes)) };
    let fabric = opened.map_err(|error| match error {
        CannotOpen::Memory(_) | CannotOpen::Library => Failure::run(error.to_string()),
    })?;
    let fabric = Arc::new(fabric);
    let stop = Shutdown::default();
    let plan = begin(options, &fabric, &stop).unwrap_or_else(|failure| {
        // The others will wait for this PE, and would do so for ever.
        nuthatch_log::fail(&failure.to_string());
        nuthatch_log::flush();
        fabric.abort(failure.code())
    });
    let job = Arc::downgrade(&fabric);
    let abort: Abort = Arc::new(move || {
        nuthatch_log::flush();
        match job.upgrade() {
            Some(fabric) => fabric.abort(ABORTED),
            None => std::process::exit(ABORTED.into()),
        }
    });
    let lived = run(&fabric, plan, &stop, &abort);
    // The end of OpenSHMEM waits for all PEs, too.
    let _bound = Bound::start(fabric.pe(), &abort);
    // The last holder of the fabric drops here, and OpenSHMEM ends on all PEs.
    drop(fabric);
    lived
}

/// What this PE is to do, with signals that request its stop.
fn begin(options: &Options, fabric: &OpenShmem, stop: &Shutdown) -> Result<Plan, Failure> {
    let mut plan = options.plan(fabric.pe(), fabric.pes())?;
    if let Some(gateway) = &mut plan.gateway {
        // A stuck standard error costs lines, never a client's time.
        let lost = Arc::clone(&gateway.log_lost);
        let log = Log::begin(&LogTo::Stderr, LogFormat::Text, gateway.verbosity, lost);
        let log = log.map_err(Failure::Run)?;
        log.write_apart()
            .map_err(|error| Failure::run(format!("the log's thread: {error}")))?;
        gateway.on_verbosity = OnVerbosity::new(move |level, by| match by {
            By::Operator => log.set_verbosity(level),
            By::Client => log.set_verbosity_for_client(level),
        });
    }
    let signals = Signals::catch().map_err(|error| Failure::run(format!("signals: {error}")))?;
    let controls = Arc::clone(&plan.controls);
    let hang_up = move || match controls.get() {
        Some(controls) => read_again(controls),
        None => tracing::warn!("SIGHUP: there is no gateway that is up"),
    };
    signals.serve(stop.clone(), hang_up, || {})?;
    Ok(plan)
}

/// Reads a gateway's files again.
fn read_again(controls: &Controls) {
    for (what, read) in [
        ("certificates", controls.refresh_certificates(None)),
        ("passwords", controls.read_passwords()),
    ] {
        match read {
            Some(Err(error)) => tracing::warn!("SIGHUP: the {what} of before stay: {error}"),
            Some(Ok(())) => tracing::warn!("SIGHUP: the {what} were read again"),
            None => {}
        }
    }
}
