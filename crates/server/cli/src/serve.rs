//! Serving, from the command line to the last connection's end.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use clap::Args;
use nuthatch_base::memory::program::ProgramFiles;
use nuthatch_base::sync::mutex::Mutex;
use nuthatch_engine::Engine;
use nuthatch_engine::stats::EngineStats;
use nuthatch_log::{Log, LogFormat, LogTo};
use nuthatch_server::greeting::{addresses, open_to_all};
use nuthatch_server::systemd::{self, NotifyState};
use nuthatch_server::{By, Controls, NewestTls, OnVerbosity, Server, Shutdown, Signals};

use crate::check;
use crate::daemon::{self, Launch};
use crate::engine::EngineFlags;
use crate::file;
use crate::flags::{Flags, Typed};
use crate::greeting;
use crate::missing::Missing;
use crate::pid_file::PidFile;
use crate::process;
use crate::reload::{self, Reload};
use crate::settings::{PORT_FILE, Settings, absolute};
use crate::sys::calls::{self, LaterCalls};
use crate::sys::files::Confinement;
use nuthatch_program::{Failure, output};

/// How to serve.
#[derive(Args, Clone, Debug, Default)]
pub struct Serve<E: EngineFlags> {
    /// Read settings from this TOML file, whose keys are the long names of the flags; flags override it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check the settings and the files that they name, report errors, and exit
    #[arg(long)]
    pub check: bool,
    /// Begin the output of -V and -h with memcached's name and the version that clients see, as if the program were
    /// called memcached
    #[arg(long)]
    pub as_memcached: bool,
    /// Print the license and exit
    #[arg(short = 'i', long)]
    pub license: bool,
    /// The flags as typed on the command line.
    #[command(flatten)]
    pub flags: Typed,
    /// memcached's flags that are refused.
    #[command(flatten)]
    missing: Missing,
    /// The program's own flags.
    #[command(flatten)]
    pub engine: E,
}

impl<E: EngineFlags> Serve<E> {
    /// The same from any directory: a daemon changes its own, and reads the file again later.
    fn absolute(self) -> Result<Self, String> {
        let config = self.config.as_deref().map(absolute).transpose()?;
        Ok(Self { config, ..self })
    }

    /// The flags of every server and the program's own, with the file's behind them.
    pub(crate) fn flags(self) -> Result<(Flags, E), String> {
        self.missing.check()?;
        let (flags, engine) = match &self.config {
            Some(path) => {
                let (flags, engine) = file::read(path)?;
                (self.flags.0.over(flags), self.engine.over(engine))
            }
            None => (self.flags.0, self.engine),
        };
        Ok((flags.without_empty(), engine))
    }
}

/// Serves until it is stopped.
pub fn run<E: EngineFlags>(serve: Serve<E>) -> Result<(), Failure> {
    // Before anything starts a thread or opens a library (the look-up of a host or a user does).
    let files = ProgramFiles::find();
    if serve.license {
        return license();
    }
    let serve = serve.absolute().map_err(Failure::Usage)?;
    let (flags, own) = serve.clone().flags().map_err(Failure::Usage)?;
    let port_file = std::env::var_os(PORT_FILE).map(Into::into);
    let mut settings = Settings::check(&flags, &own, port_file).map_err(Failure::Usage)?;
    if serve.check {
        // Warnings about files that are otherwise fine go to standard error, wherever the server's own log goes.
        Log::begin(&LogTo::Stderr, LogFormat::Text, 0, Arc::default()).map_err(Failure::Run)?;
        check::all(&mut settings)?;
        settings
            .all_warnings()
            .for_each(|warning| output::note(warning));
        return output::print("the settings are fine\n");
    }
    nuthatch_server::ignore_meaningless();
    // First, because it must run while the process has one thread.
    let launch = settings.process.daemon.then(daemon::launch).transpose();
    let launch = launch.map_err(Failure::Run)?;
    // As root, if it is root: the key is often for root alone. The log, which tells an error, belongs to the user of
    // -u.
    let before = check::before_user(&mut settings);
    let connections = settings.server.connections_max.get();
    let warnings = process::prepare(&settings.process, connections);
    let user = process::change_user(&settings.process)?.map(str::to_owned);
    check::log(&settings.process.log, user.as_deref())?;
    let confinement = Confinement::new(&settings, serve.config.as_deref());
    let verbosity = settings.server.verbosity;
    let log = Log::begin(
        &settings.process.log,
        settings.process.log_format,
        verbosity,
        Arc::clone(&settings.server.log_lost),
    )
    .map_err(|error| check::invalid(error, user.as_deref()))?;
    for warning in settings.all_warnings().chain(&warnings) {
        log.warn(warning);
    }
    let checked = before.and_then(|()| check::as_user(&mut settings, user.as_deref()));
    let turned = log.clone();
    settings.server.on_verbosity = OnVerbosity::new(move |level, by| match by {
        By::Operator => turned.set_verbosity(level),
        By::Client => turned.set_verbosity_for_client(level),
    });
    let source = serve.clone();
    settings.server.newest_tls = NewestTls::new(move || reload::newest_tls(&source));
    systemd::open();
    // Threads that are started from here on are confined too.
    if settings.process.confined
        && let Some(warning) = confinement.files().map_err(Failure::Run)?
    {
        log.warn(&warning);
    }
    log.write_apart()
        .map_err(|error| Failure::Run(format!("the log's thread: {error}")))?;
    let reload = Reload::new(serve, &flags, &own, log.clone()).map_err(Failure::Usage)?;
    let outcome = checked.and_then(|()| live(settings, launch, reload, &log, &files));
    if let Err(Failure::Usage(error) | Failure::Run(error)) = &outcome {
        log.error(error);
    }
    outcome
}

/// The server's life. `launch` is set if it runs in the background; `files` are those of the program.
fn live<E: EngineFlags>(
    settings: Settings,
    launch: Option<Launch>,
    reload: Reload<E>,
    log: &Log,
    files: &ProgramFiles,
) -> Result<(), Failure> {
    let engine = settings.engine.make()?;
    let (name, index) = (engine.name(), index(&engine.stats()));
    let (threads, limit) = (settings.server.threads, settings.engine.memory_limit >> 20);
    let largest = greeting::largest(&engine);
    let process = settings.process;
    let keeps_stderr = process.log == LogTo::Stderr && settings.server.verbosity > 0;
    let controls = Arc::new(OnceLock::new());
    let reload = Arc::new(Mutex::new(reload));
    let shutdown = Shutdown::default();
    let early_save = Arc::new(Mutex::new(false));
    // From here on no end leaves the file behind that comes next.
    let signals = heed_signals(shutdown.clone(), &controls, &reload, &early_save);
    signals.map_err(|error| Failure::Run(format!("signals: {error}")))?;
    // Steps that may fail come before the start: the start may take all items of another process, which ends then.
    let pid_file = process.pid_file.as_deref().map(PidFile::reserve);
    let mut pid_file = pid_file.transpose().map_err(Failure::Run)?;
    let has_passwords = settings.server.auth_file.is_some();
    let later_calls = LaterCalls::new(&settings.server, &process.log);
    let server = match Server::start_unless(settings.server, engine, shutdown) {
        Ok(server) => server,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            tracing::warn!("stopped before it was up: {error}");
            return Ok(());
        }
        Err(error) => return Err(Failure::Run(error.to_string())),
    };
    // Set before these are locked: a SIGHUP or SIGUSR2 that has not seen the controls has left its note there by then.
    let set = controls.get_or_init(|| server.controls());
    reload.lock().catch_up(set);
    if *early_save.lock() {
        save(set);
    }
    let written = pid_file.as_mut().map_or(Ok(()), PidFile::write);
    let begun = written.and_then(|()| {
        if process.confined {
            calls::give_up(&later_calls)?;
        }
        let addresses = addresses(&server);
        let limits = greeting::limits(&server, largest);
        let says =
            format!("engine {name}, {limit} MiB, {threads} threads, {index}{limits}at {addresses}");
        for open in open_to_all(&server, has_passwords) {
            tracing::warn!("{open}");
        }
        if process.daemon || process.log != LogTo::Stderr {
            tracing::info!("{says}");
        }
        // For systemd's Type=notify; without systemd there is no receiver.
        systemd::notify(&NotifyState::Ready);
        if let Some(launch) = launch {
            // `done` may close standard error.
            log.flush();
            let done = launch.done(keeps_stderr);
            done.map_err(|error| format!("-d: {error}"))?;
        } else if log.is_json_on_stderr() {
            log.info_always(&says);
        } else {
            log.say(greeting::words(&says, &server, has_passwords));
        }
        Ok(())
    });
    // If the start failed, the server is stopped: that removes the sockets it has bound.
    match begun {
        Ok(()) => files.unmap_read_pages(),
        Err(_) => server.shutdown(),
    }
    let ended = server.join().map_err(|error| error.to_string());
    begun.and(ended).map_err(Failure::Run)
}

/// Handles signals from here on: one that ends the server ends its start as well. Other signals take effect once
/// `controls` is set.
fn heed_signals<E: EngineFlags>(
    shutdown: Shutdown,
    controls: &Arc<OnceLock<Controls>>,
    reload: &Arc<Mutex<Reload<E>>>,
    early_save: &Arc<Mutex<bool>>,
) -> io::Result<()> {
    let (reloads, saves) = (Arc::clone(controls), Arc::clone(controls));
    let (reload, early_save) = (Arc::clone(reload), Arc::clone(early_save));
    let hang_up = move || {
        let mut reload = reload.lock();
        match reloads.get() {
            Some(controls) => reload.run(controls),
            None => reload.reopen_log(),
        }
    };
    let save = move || {
        let mut early_save = early_save.lock();
        match saves.get() {
            Some(controls) => save(controls),
            None => *early_save = true,
        }
    };
    Signals::catch()?.serve(shutdown, hang_up, save)
}

/// Makes a copy of all items, as SIGUSR2 asks.
fn save(controls: &Controls) {
    if controls.save() {
        tracing::info!("SIGUSR2: a copy of all items");
    } else {
        tracing::warn!("SIGUSR2: there is no file for a copy (--save)");
    }
}

/// The index's size and the rule that chose it; nothing for an engine without such a rule.
fn index(stats: &EngineStats) -> String {
    match stats.index_rule {
        Some(rule) => format!("index of {} slots ({rule}), ", stats.index_slots),
        None => String::new(),
    }
}

/// Prints the license.
fn license() -> Result<(), Failure> {
    output::print_bytes(include_bytes!("../../../../LICENSE"))
}
