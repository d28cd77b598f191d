//! Checks flags, and makes valid settings of them. Defaults stand in the types that own them: the server's, the
//! engine's.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use nuthatch_engine::CommonSettings;
use nuthatch_engine::settings::ITEM_SIZE_MAX;
use nuthatch_log::{LogFormat, LogTo};
use nuthatch_server::Verify;
use nuthatch_server::config::{Config, Persistence, TlsSettings};
use nuthatch_server::settings::forms::Number;
use nuthatch_server::settings::{check_bounds, flag, value_of};

use crate::engine::{ChosenEngine, EngineFlags};
use crate::extended::Extended;
use crate::flags::Flags;
use crate::listeners::{self, Listeners};
use crate::sys;

pub use nuthatch_server::settings::absolute;

/// The smallest `-m`, in bytes.
const MEMORY_MIN: usize = 1 << 20;
/// The batch of the CPHash paper, for clients and engines that gain by large ones.
const BATCH_OF_PAPER: NonZeroUsize = NonZeroUsize::new(1000).unwrap();
/// The range of `-I`, in bytes.
const ITEM_SIZES: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 30;
/// The environment variable by which memcached's tests, and those of its clients, learn the port.
pub const PORT_FILE: &str = "MEMCACHED_PORT_FILENAME";

/// All that `serve` needs.
#[derive(Debug)]
pub struct Settings {
    /// The engine.
    pub engine: ChosenEngine,
    /// The server on top of it.
    pub server: Config,
    /// The process around them.
    pub process: ProcessSettings,
    /// Warnings for the user: options without effect.
    pub warnings: Vec<String>,
    /// Warnings about addresses, for a start alone: names are not resolved again while a server runs.
    pub address_warnings: Vec<String>,
}

/// The settings of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSettings {
    /// Run in the background.
    pub daemon: bool,
    /// Run as this user.
    pub user: Option<String>,
    /// Write the process id here.
    pub pid_file: Option<PathBuf>,
    /// Lock all memory.
    pub lock_memory: bool,
    /// Leave a core file after a crash.
    pub core_dumps: bool,
    /// Give up the files and calls that a running server does not need.
    pub confined: bool,
    /// Where the log goes.
    pub log: LogTo,
    /// How its lines are written.
    pub log_format: LogFormat,
}

impl Settings {
    /// Checks the flags of a start: those of every server, and the program's own. `port_file` is the value of
    /// [`PORT_FILE`].
    pub fn check<E: EngineFlags>(
        flags: &Flags,
        own: &E,
        port_file: Option<PathBuf>,
    ) -> Result<Self, String> {
        Self::of(flags, own, own.cpserver(), port_file)
    }

    /// Checks flags while a server runs: see [`listeners::without_names`].
    pub fn check_again<E: EngineFlags>(flags: &Flags, own: &E) -> Result<Self, String> {
        let cpserver = own.cpserver().map(listeners::cpserver_without_names);
        Self::of(&listeners::without_names(flags), own, cpserver, None)
    }

    fn of<E: EngineFlags>(
        flags: &Flags,
        own: &E,
        cpserver: Option<Vec<String>>,
        port_file: Option<PathBuf>,
    ) -> Result<Self, String> {
        let extended = Extended::parse(&flags.extended)?;
        check_bounds(flags, &extended)?;
        let unknown = extended.unknown.iter();
        let warnings = unknown
            .map(|option| format!("-o {option}: no such option here; it has no effect"))
            .chain(extended.contrary.iter().map(|option| {
                format!("-o {option}: it behaves otherwise in any case; this has no effect")
            }))
            .chain(without_tls(flags, &extended));
        let engine = engine(flags, own, &extended)?;
        let tls = tls(flags, &extended)?;
        let verify = tls.as_ref().map(|tls| tls.verify);
        let listening = Listeners::of(flags, cpserver.as_deref(), verify)?;
        let warnings = warnings
            .chain(without_effect(flags, &engine))
            .chain(smaller_items(flags, &engine))
            .collect();
        let confined = extended.drop_privileges.unwrap_or_default();
        let drops = if confined { "yes" } else { "no" };
        let drops = ("drop_privileges", drops.to_owned());
        let mut listeners = listening.listeners.iter();
        let large_batches =
            engine.gains_by_large_batches || listeners.any(|listen| listen.protocol.is_cpserver());
        let server = server(flags, &extended, port_file)?;
        if engine.holds_copies {
            check_copies(&server, confined)?;
        }
        let batch_max = match flags.batch {
            None if large_batches => BATCH_OF_PAPER,
            _ => server.batch_max,
        };
        let server = Config {
            listeners: listening.listeners,
            tls,
            engine_settings: engine.lines.iter().cloned().chain([drops]).collect(),
            batch_max,
            has_one_database: engine.holds_copies,
            ..server
        };
        server.check().map_err(|error| error.to_string())?;
        let process = ProcessSettings {
            daemon: flags.daemon.unwrap_or_default(),
            user: flags.user.clone(),
            pid_file: flags.pidfile.as_deref().map(absolute).transpose()?,
            lock_memory: flags.lock_memory.unwrap_or_default(),
            core_dumps: flags.coredumps.unwrap_or_default(),
            confined,
            log: log(flags)?,
            log_format: log_format(flags),
        };
        sys::check(&process)?;
        Ok(Self {
            engine,
            server,
            process,
            warnings,
            address_warnings: listening.warnings,
        })
    }

    /// The warnings of a start.
    pub fn all_warnings(&self) -> impl Iterator<Item = &String> {
        self.warnings.iter().chain(&self.address_warnings)
    }
}

/// What is not for a server whose items are copies of others'.
fn check_copies(server: &Config, confined: bool) -> Result<(), String> {
    if server.persistence != Persistence::default() {
        return Err(
            "--upstream: the items are other servers', which no file keeps: not with -e, --load or --save".to_owned(),
        );
    }
    if confined {
        return Err("--upstream: a server with -o drop_privileges makes no connections".to_owned());
    }
    Ok(())
}

/// A warning about certificates without TLS: a user who names some believes that clients' requests are encrypted.
fn without_tls(flags: &Flags, extended: &Extended) -> Option<String> {
    let has_tls = flags.enable_ssl.unwrap_or_default();
    let files = [
        &extended.ssl_chain_cert,
        &extended.ssl_key,
        &extended.ssl_ca_cert,
    ];
    (!has_tls && files.into_iter().any(Option::is_some))
        .then(|| "-o ssl_*: without -Z nothing is encrypted; it has no effect".to_owned())
}

/// Where the log goes.
fn log(flags: &Flags) -> Result<LogTo, String> {
    let log = match flags.log.as_deref().map(LogTo::parse) {
        Some(LogTo::File(path)) => LogTo::File(absolute(&path)?),
        said => said.unwrap_or_default(),
    };
    // Now, while all descriptors are those that the process was given.
    if let LogTo::Descriptor(_) = log {
        log.check()?;
    }
    if log == LogTo::Journald && log_format(flags) == LogFormat::Json {
        return Err(
            "--log-format json: journald keeps the fields of an event as they are".to_owned(),
        );
    }
    Ok(log)
}

/// How its lines are written.
fn log_format(flags: &Flags) -> LogFormat {
    match flags.log_format {
        Some("json") => LogFormat::Json,
        _ => LogFormat::Text,
    }
}

/// A warning: with a small limit, the largest item is smaller than memcached's unless -I is set.
fn smaller_items(flags: &Flags, engine: &ChosenEngine) -> Option<String> {
    let is_less = engine.item_size_max < ITEM_SIZE_MAX;
    (is_less && flags.max_item_size.is_none()).then(|| {
        format!(
            "-m: with so little memory an item has {} KiB at most",
            engine.item_size_max >> 10
        )
    })
}

/// memcached's flags about size classes, where the engine has none: a memcached's command line keeps working, with a
/// warning.
fn without_effect(flags: &Flags, engine: &ChosenEngine) -> Vec<String> {
    if engine.has_size_classes {
        return Vec::new();
    }
    let said = [
        ("-n", flags.slab_min_size.is_some()),
        ("-f", flags.slab_growth_factor.is_some()),
    ];
    said.into_iter()
        .filter(|(_, is_said)| *is_said)
        .map(|(flag, _)| format!("{flag}: this engine has no size classes; it has no effect"))
        .collect()
}

fn engine<E: EngineFlags>(
    flags: &Flags,
    own: &E,
    extended: &Extended,
) -> Result<ChosenEngine, String> {
    let default = CommonSettings::default();
    let common = CommonSettings {
        memory_limit: flags.memory_limit.unwrap_or(default.memory_limit),
        memory_limit_max: flags.memory_limit_max,
        item_size_max: flags.max_item_size,
        evicts: !flags.disable_evictions.unwrap_or_default(),
        chunk_min: flags.slab_min_size,
        growth_factor: flags.slab_growth_factor.unwrap_or(default.growth_factor),
        initial_items: extended.hashpower.map(|power| 1 << power),
        shared: flags.shared.is_some(),
    };
    if common.memory_limit < MEMORY_MIN {
        return Err("-m: at least 1 megabyte".to_owned());
    }
    if common
        .memory_limit_max
        .is_some_and(|most| most < common.memory_limit)
    {
        return Err("--memory-limit-max: at least the memory limit (-m)".to_owned());
    }
    if common.shared
        && common
            .memory_limit_max
            .is_some_and(|most| most > common.memory_limit)
    {
        return Err(
            "--memory-limit-max: memory that other processes read (--shared) cannot become more than -m".to_owned(),
        );
    }
    if common.growth_factor <= 1.0 || !common.growth_factor.is_finite() {
        return Err("-f: a number greater than 1".to_owned());
    }
    let engine = own.engine(common)?;
    match ITEM_SIZES.contains(&engine.item_size_max) {
        true => Ok(engine),
        false => Err("-I: from 1k to 1g".to_owned()),
    }
}

/// All settings of the server except its listeners and their needs, and the engine's.
fn server(
    flags: &Flags,
    extended: &Extended,
    port_file: Option<PathBuf>,
) -> Result<Config, String> {
    if flags.enable_sasl.unwrap_or_default() && flags.auth_file.is_none() {
        return Err("-S: needs a file of names and passwords (-Y)".to_owned());
    }
    let mut server = Config {
        metrics: listeners::metrics(flags)?,
        persistence: persistence(flags)?,
        port_file: port_file.as_deref().map(absolute).transpose()?,
        ..Config::default()
    };
    server.take(flags, extended)?;
    Ok(server)
}

/// Items that outlive the process.
fn persistence(flags: &Flags) -> Result<Persistence, String> {
    let file = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
    let every = value_of::<Number<u32>, Duration>(&flags.save_every, &flag::save_every)?;
    if flags.save_every.is_some() && flags.save.is_none() {
        return Err("--save-every: needs a file (--save)".to_owned());
    }
    let (restart, load) = (file(&flags.memory_file)?, file(&flags.load)?);
    let save = file(&flags.save)?;
    // A restart's file is kept only if nothing has changed since; a copy is kept after a crash too.
    for (flag, other) in [("--save", &save), ("--load", &load)] {
        if other.is_some() && *other == restart {
            return Err(format!("{flag}: not the file of a restart (-e)"));
        }
    }
    Ok(Persistence {
        restart,
        load,
        save: save.map(|path| (path, every)),
    })
}

/// Certificates for TLS.
fn tls(flags: &Flags, extended: &Extended) -> Result<Option<TlsSettings>, String> {
    if !flags.enable_ssl.unwrap_or_default() {
        return Ok(None);
    }
    let file = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
    match (file(&extended.ssl_chain_cert)?, file(&extended.ssl_key)?) {
        (Some(chain_cert), Some(key)) => Ok(Some(TlsSettings {
            chain_cert,
            key,
            ca_cert: file(&extended.ssl_ca_cert)?,
            verify: match extended.ssl_verify_mode {
                None | Some(0) => Verify::Nothing,
                Some(1) => Verify::IfPresent,
                // 3 means once a connection, and a connection is verified only once.
                Some(_) => Verify::Always,
            },
            ciphers: extended.ssl_ciphers.clone(),
            only_1_3: extended.ssl_min_version == Some(3),
            session_cache: extended.ssl_session_cache.unwrap_or_default(),
        })),
        _ => Err("-Z: needs -o ssl_chain_cert=FILE,ssl_key=FILE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use nuthatch_server::config::ListenAddress;

    use super::*;
    use crate::cuckoo::DefaultEngine;

    fn check(flags: Flags) -> Result<Settings, String> {
        Settings::check(&flags, &DefaultEngine::default(), None)
    }

    /// Settings that contradict each other, and the errors that they cause.
    #[test]
    fn settings_that_contradict_each_other() {
        let none = Flags::default;
        let passwords = || Some("users".into());
        let ssl = |more: &str| Flags {
            enable_ssl: Some(true),
            extended: vec!["ssl_chain_cert=c".into(), "ssl_key=k".into(), more.into()],
            ..none()
        };
        for (words, flags) in [
            (
                "--memory-limit-max",
                Flags {
                    shared: Some("/tmp/s".into()),
                    memory_limit: Some(64 << 20),
                    memory_limit_max: Some(65 << 20),
                    ..none()
                },
            ),
            (
                "-U",
                Flags {
                    auth_file: passwords(),
                    udp_port: Some(11211),
                    ..none()
                },
            ),
            (
                "-U",
                Flags {
                    udp_port: Some(11211),
                    ..ssl("")
                },
            ),
            ("ssl_ca_cert", ssl("ssl_verify_mode=2")),
        ] {
            let error = check(flags).unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
    }

    #[test]
    fn certificates_without_tls_are_a_warning() {
        let flags = |enable_ssl| Flags {
            enable_ssl,
            extended: vec!["ssl_chain_cert=c".into(), "ssl_key=k".into()],
            ..Flags::default()
        };
        assert!(check(flags(Some(true))).unwrap().warnings.is_empty());
        assert!(check(flags(None)).unwrap().warnings[0].contains("without -Z"));
    }

    /// Where a server listens already, names are no names any more: the same address may stand for two.
    #[test]
    fn warnings_about_addresses_are_for_a_start() {
        let flags = Flags {
            enable_ssl: Some(true),
            extended: vec!["ssl_chain_cert=c".into(), "ssl_key=k".into()],
            listen: vec!["notls:one.invalid:1".into(), "btls:two.invalid:2".into()],
            redis_port: Some(3),
            ..Flags::default()
        };
        let settings = Settings::check_again(&flags, &DefaultEngine::default()).unwrap();
        assert!(settings.warnings.is_empty());
        assert_eq!(settings.address_warnings.len(), 1);
        assert_eq!(settings.all_warnings().count(), 1);
    }

    #[test]
    fn saying_nothing_is_a_memcached() {
        let settings = check(Flags::default()).unwrap();
        assert_eq!(settings.engine.memory_limit, 64 << 20);
        assert_eq!(settings.engine.item_size_max, 1 << 20);
        let first = &settings.server.listeners[0].address;
        assert_eq!(*first, ListenAddress::Tcp(([0, 0, 0, 0], 11211).into()));
        assert_eq!(settings.server.threads.get(), 4);
        assert_eq!(settings.server.connections_max.get(), 1024);
        assert!(settings.server.allow_flush && !settings.server.allow_shutdown);
        assert_eq!(settings.process, ProcessSettings::default());
        assert!(settings.warnings.is_empty());
    }

    #[test]
    fn values_that_cannot_be() {
        let none = Flags::default;
        let wrong = [
            (
                "-t",
                Flags {
                    threads: Some(0),
                    ..none()
                },
            ),
            (
                "-t",
                Flags {
                    threads: Some(2000),
                    ..none()
                },
            ),
            (
                "-c",
                Flags {
                    conn_limit: Some(0),
                    ..none()
                },
            ),
            (
                "-R",
                Flags {
                    max_reqs_per_event: Some(0),
                    ..none()
                },
            ),
            (
                "-m",
                Flags {
                    memory_limit: Some(0),
                    ..none()
                },
            ),
            (
                "-I",
                Flags {
                    max_item_size: Some(1000),
                    ..none()
                },
            ),
            (
                "-I",
                Flags {
                    max_item_size: Some(2 << 30),
                    ..none()
                },
            ),
            (
                "-n",
                Flags {
                    slab_min_size: Some(0),
                    ..none()
                },
            ),
            (
                "-f",
                Flags {
                    slab_growth_factor: Some(1.0),
                    ..none()
                },
            ),
            (
                "-f",
                Flags {
                    slab_growth_factor: Some(f64::NAN),
                    ..none()
                },
            ),
            (
                "-U",
                Flags {
                    udp_port: Some(65536),
                    ..none()
                },
            ),
            (
                "--save",
                Flags {
                    memory_file: Some("items".into()),
                    save: Some("./items".into()),
                    ..none()
                },
            ),
            (
                "--load",
                Flags {
                    memory_file: Some("items".into()),
                    load: Some("items".into()),
                    ..none()
                },
            ),
            (
                "-o idle_timeout",
                Flags {
                    extended: vec!["idle_timeout=x".into()],
                    ..none()
                },
            ),
        ];
        for (flag, flags) in wrong {
            let error = check(flags).unwrap_err();
            assert!(error.starts_with(flag), "{flag}: {error}");
        }
    }

    #[test]
    fn unknown_options_are_warnings() {
        let flags = Flags {
            extended: vec!["ext_path=/x:1G".into(), "idle_timeout=9".into()],
            udp_port: Some(0),
            ..Flags::default()
        };
        let own = DefaultEngine::default();
        let settings = Settings::check(&flags, &own, Some("ports".into())).unwrap();
        assert_eq!(settings.warnings.len(), 1);
        assert!(settings.warnings[0].contains("ext_path=/x:1G"));
        assert_eq!(settings.server.idle_timeout.unwrap().as_secs(), 9);
        assert!(settings.server.port_file.unwrap().is_absolute());
    }
}
