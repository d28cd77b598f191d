//! From what was said to what is meant: flags are checked here, and become settings that cannot be
//! wrong. Defaults stand in the types that own them: the server's, the engine's.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nuthatch_protocol::cpserver;
use nuthatch_server::config::{self, Config, Keeping, Listen, Place, Protocol, TlsSettings};

use crate::extended::Extended;
use crate::flags::Flags;
use crate::log::{LogFormat, LogTo};
use crate::process;
use nuthatch_engines::{EngineName, EngineSettings};

/// The smallest `-m`, in bytes.
const MEMORY_MIN: usize = 1 << 20;
/// The largest `-t`.
const THREADS_MAX: usize = 1024;
/// The largest `--batch`.
const BATCH_MAX: usize = 8192;
/// The paper's batch, for clients and engines that gain by large ones.
const BATCH_OF_PAPER: NonZeroUsize = NonZeroUsize::new(1000).unwrap();
/// The range of `-I`, in bytes.
const ITEM_SIZES: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 30;
/// The port of memcached's exporter, which this takes the place of.
const METRICS_PORT: u16 = 9150;
/// Seconds between two copies of all items.
const SAVE_EVERY: u32 = 300;
/// memcached's permissions of a unix socket.
const UNIX_MODE: u32 = 0o700;
/// Where memcached's tests, and those of its clients, look for the port.
pub const PORT_FILE: &str = "MEMCACHED_PORT_FILENAME";

/// All that `serve` needs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The engine.
    pub engine: EngineSettings,
    /// The server on top of it.
    pub server: Config,
    /// The process around them.
    pub process: ProcessSettings,
    /// What the user should know: options without effect.
    pub warnings: Vec<String>,
}

/// What is asked of the process.
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
    /// Give up what a server that is up does not need.
    pub confined: bool,
    /// Where the log goes.
    pub log: LogTo,
    /// How its lines are written.
    pub log_format: LogFormat,
}

impl Settings {
    /// Checks flags. `port_file` is the value of [`PORT_FILE`].
    pub fn check(flags: &Flags, port_file: Option<PathBuf>) -> Result<Self, String> {
        let extended = Extended::parse(&flags.extended)?;
        let unknown = extended.unknown.iter();
        let warnings = unknown
            .map(|option| format!("-o {option}: no such option here; it has no effect"))
            .chain(extended.contrary.iter().map(|option| {
                format!("-o {option}: it behaves otherwise in any case; this has no effect")
            }))
            .chain(without_effect(flags))
            .chain(elsewhere(flags));
        let engine = engine(flags, &extended)?;
        let warnings = warnings.chain(smaller_items(flags, &engine)).collect();
        let mut server = server(flags, &extended, port_file)?;
        server.engine_settings = engine.lines();
        let drops = if extended.drop_privileges {
            "yes"
        } else {
            "no"
        };
        let drops = ("drop_privileges", drops.to_owned());
        server.engine_settings.push(drops);
        Ok(Self {
            engine,
            server,
            process: ProcessSettings {
                daemon: flags.daemon.unwrap_or_default(),
                user: flags.user.clone(),
                pid_file: flags.pidfile.as_deref().map(absolute).transpose()?,
                lock_memory: flags.lock_memory.unwrap_or_default(),
                core_dumps: flags.coredumps.unwrap_or_default(),
                confined: extended.drop_privileges,
                log: log(flags)?,
                log_format: flags.log_format.unwrap_or_default(),
            },
            warnings,
        })
    }
}

/// Where the log goes.
fn log(flags: &Flags) -> Result<LogTo, String> {
    let log = match flags.log.as_deref().map(LogTo::parse) {
        Some(LogTo::File(path)) => LogTo::File(absolute(&path)?),
        said => said.unwrap_or_default(),
    };
    if log == LogTo::Journald && flags.log_format == Some(LogFormat::Json) {
        return Err(
            "--log-format json: journald keeps the fields of an event as they are".to_owned(),
        );
    }
    Ok(log)
}

/// With a small limit, items are smaller than memcached's unless it is said how large they may be.
fn smaller_items(flags: &Flags, engine: &EngineSettings) -> Option<String> {
    let is_less = engine.item_size_max < EngineSettings::default().item_size_max;
    (is_less && flags.max_item_size.is_none()).then(|| {
        format!(
            "-m: with so little memory an item has {} KiB at most",
            engine.item_size_max >> 10
        )
    })
}

/// memcached's flags about size classes, where the engine has none: a memcached's command line keeps
/// working, and it is said.
fn without_effect(flags: &Flags) -> Vec<String> {
    if flags.engine.unwrap_or_default().has_size_classes() {
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

/// Flags about where to listen that something else decides.
fn elsewhere(flags: &Flags) -> Vec<String> {
    let is_inherited = !inherited_as(None).is_empty();
    let says_where =
        !flags.listen.is_empty() || flags.port.is_some() || flags.unix_socket.is_some();
    let tls = flags.enable_ssl.unwrap_or_default();
    let mut warnings = Vec::new();
    if is_inherited && says_where {
        warnings.push("-l, -p, -s: systemd's sockets are used instead".to_owned());
    }
    if !is_inherited && tls && flags.unix_socket.is_some() {
        warnings.push("-Z: a unix socket has no TLS".to_owned());
    }
    warnings
}

fn engine(flags: &Flags, extended: &Extended) -> Result<EngineSettings, String> {
    let default = EngineSettings::default();
    let name = flags.engine.unwrap_or(default.name);
    let memory_limit = flags.memory_limit.unwrap_or(default.memory_limit);
    let item_size_max = flags.max_item_size;
    let settings = EngineSettings {
        name,
        memory_limit,
        memory_limit_max: flags.memory_limit_max,
        item_size_max: item_size_max.unwrap_or_else(|| name.item_size_max(memory_limit)),
        evicts: !flags.disable_evictions.unwrap_or_default(),
        chunk_min: flags.slab_min_size,
        growth_factor: flags.slab_growth_factor.unwrap_or(default.growth_factor),
        initial_items: extended.initial_items,
        tuning: flags.tuning(),
    };
    let checked = settings.tuning.check(&[settings.name]);
    checked.map_err(|error| error.to_string())?;
    if settings.memory_limit < MEMORY_MIN {
        return Err("-m: at least 1 megabyte".to_owned());
    }
    if settings
        .memory_limit_max
        .is_some_and(|most| most < settings.memory_limit)
    {
        return Err("--memory-limit-max: at least the memory limit (-m)".to_owned());
    }
    if !ITEM_SIZES.contains(&settings.item_size_max) {
        return Err("-I: from 1k to 1g".to_owned());
    }
    if settings.growth_factor <= 1.0 || !settings.growth_factor.is_finite() {
        return Err("-f: a number greater than 1".to_owned());
    }
    Ok(settings)
}

fn server(
    flags: &Flags,
    extended: &Extended,
    port_file: Option<PathBuf>,
) -> Result<Config, String> {
    let default = Config::default();
    let at_least_1 = |flag: &str| format!("{flag}: at least 1");
    let threads = match flags.threads {
        Some(threads) => NonZeroUsize::new(threads)
            .filter(|threads| threads.get() <= THREADS_MAX)
            .ok_or_else(|| format!("-t: 1 to {THREADS_MAX}"))?,
        None => default.threads,
    };
    let connections_max = match flags.conn_limit {
        Some(limit) => NonZeroUsize::new(limit).ok_or_else(|| at_least_1("-c"))?,
        None => default.connections_max,
    };
    let commands_per_slice = match flags.max_reqs_per_event {
        Some(limit) => NonZeroU32::new(limit).ok_or_else(|| at_least_1("-R"))?,
        None => default.commands_per_slice,
    };
    let batch_max = match flags.batch {
        Some(batch) => NonZeroUsize::new(batch)
            .filter(|batch| batch.get() <= BATCH_MAX)
            .ok_or_else(|| format!("--batch: 1 to {BATCH_MAX}"))?,
        None if gains_by_large_batches(flags) => BATCH_OF_PAPER,
        None => default.batch_max,
    };
    Ok(Config {
        listeners: listeners(flags)?,
        threads,
        connections_max,
        backlog: flags.listen_backlog.unwrap_or(default.backlog),
        commands_per_slice,
        batch_max,
        auth_file: passwords(flags)?,
        tls: tls(flags, extended)?,
        metrics: metrics(flags)?,
        keeping: keeping(flags)?,
        idle_timeout: extended.idle_timeout,
        handover: flags.handover.as_deref().map(absolute).transpose()?,
        unix_peers: unix_peers(extended)?,
        login_guesses: match extended.login_guesses {
            Some(guesses) => NonZeroU32::new(guesses),
            None => default.login_guesses,
        },
        login_timeout: extended.login_timeout.unwrap_or(default.login_timeout),
        udp_reply_max: extended.udp_reply_max.unwrap_or(default.udp_reply_max),
        port_file: port_file.as_deref().map(absolute).transpose()?,
        allow_shutdown: flags.enable_shutdown.unwrap_or_default(),
        allow_flush: !flags.disable_flush_all.unwrap_or_default(),
        allow_dump: !flags.disable_dumping.unwrap_or_default(),
        allow_watch: !flags.disable_watch.unwrap_or_default(),
        cas: !flags.disable_cas.unwrap_or_default(),
        engine_settings: Vec::new(),
        version: default.version,
        verbosity: flags.verbosity().into(),
        on_verbosity: default.on_verbosity,
    })
}

/// True where a batch is worth its wait: messages are packed into lines, or a paper's client sends
/// many requests at a time.
fn gains_by_large_batches(flags: &Flags) -> bool {
    let by_messages = flags.engine.is_some_and(EngineName::has_server_threads);
    let by_clients = !flags.cpserver.is_empty() || !inherited_as(Some(CPSERVER)).is_empty();
    by_messages || by_clients
}

/// Every place, and the protocol that is spoken there.
fn listeners(flags: &Flags) -> Result<Vec<Listen>, String> {
    let protocol = match flags.protocol.as_deref() {
        None | Some("auto") => Protocol::Memcached,
        Some("ascii") => Protocol::Text,
        Some("binary") => Protocol::Binary,
        Some("any") => Protocol::Any,
        Some(_) => return Err("-B: ascii, binary, auto or any".to_owned()),
    };
    // A datagram that begins as Redis' do is none of theirs.
    let of_datagrams = match protocol {
        Protocol::Any => Protocol::Memcached,
        protocol => protocol,
    };
    let secured = |(place, tls): (Place, bool), protocol| Listen {
        tls: tls && flags.enable_ssl.unwrap_or_default(),
        ..place.of(protocol)
    };
    let memcached = memcached_places(flags)?.into_iter();
    let redis = redis_places(flags)?.into_iter();
    let udp = udp_places(flags)?.into_iter();
    let cpserver = match inherited_as(Some(CPSERVER)) {
        none if none.is_empty() => addresses("--cpserver", &flags.cpserver, cpserver::PORT)?,
        inherited => inherited,
    };
    let cpserver = cpserver.into_iter();
    Ok(memcached
        .map(|place| secured(place, protocol))
        .chain(udp.map(|place| place.of(of_datagrams)))
        .chain(cpserver.map(|place| place.of(Protocol::CpServer)))
        .chain(redis.map(|place| secured(place, Protocol::Redis)))
        .collect())
}

/// Where datagrams are taken, if they are: at the addresses of `-l`, whatever ports those have.
fn udp_places(flags: &Flags) -> Result<Vec<Place>, String> {
    let inherited = inherited_as(Some("udp"));
    if !inherited.is_empty() {
        let of_datagrams = |place| match place {
            Place::Inherited(fd) => Place::InheritedUdp(fd),
            other => other,
        };
        return Ok(inherited.into_iter().map(of_datagrams).collect());
    }
    let port = match flags.udp_port {
        None | Some(0) => return Ok(Vec::new()),
        Some(port) => port_of("-U", port)?,
    };
    let mut places = Vec::new();
    for (place, _) in tcp_places(flags, port)? {
        if let Place::Tcp(mut address) = place {
            address.set_port(port);
            places.push(Place::Udp(address));
        }
    }
    places.dedup();
    Ok(places)
}

/// Where Redis' clients are served, if they are: at the addresses of memcached's, whatever ports those have.
fn redis_places(flags: &Flags) -> Result<Vec<(Place, bool)>, String> {
    let inherited = inherited_as(Some("redis"));
    if !inherited.is_empty() {
        return Ok(inherited.into_iter().map(|place| (place, true)).collect());
    }
    let Some(port) = flags.redis_port else {
        return Ok(Vec::new());
    };
    let port = port_of("--redis-port", port)?;
    let mut places = tcp_places(flags, port)?;
    for (place, _) in &mut places {
        if let Place::Tcp(address) = place {
            address.set_port(port);
        }
    }
    places.dedup();
    Ok(places)
}

/// A port as it is typed: -1 and 0 are any free one.
fn port_of(flag: &str, port: i32) -> Result<u16, String> {
    match port {
        -1 => Ok(0),
        port => u16::try_from(port).map_err(|_| format!("{flag}: -1 to 65535")),
    }
}

/// Where memcached's clients are served, and whether under TLS, should there be any.
fn memcached_places(flags: &Flags) -> Result<Vec<(Place, bool)>, String> {
    let inherited = inherited_as(None);
    if !inherited.is_empty() {
        return Ok(inherited.into_iter().map(|place| (place, true)).collect());
    }
    if let Some(path) = &flags.unix_socket {
        let place = Place::Unix {
            path: absolute(path)?,
            mode: flags.unix_mask.unwrap_or(UNIX_MODE),
        };
        return Ok(vec![(place, false)]);
    }
    let port = match flags.port {
        None => config::PORT,
        Some(port) => port_of("-p", port)?,
    };
    tcp_places(flags, port)
}

/// The addresses of `-l`, and whether under TLS, should there be any.
fn tcp_places(flags: &Flags, port: u16) -> Result<Vec<(Place, bool)>, String> {
    if flags.listen.is_empty() {
        let places = Place::everywhere(port);
        return Ok(places.into_iter().map(|place| (place, true)).collect());
    }
    let mut places = Vec::new();
    for typed in &flags.listen {
        let (tls, address) = match typed.strip_prefix("notls:") {
            Some(address) => (false, address.to_owned()),
            None => (true, typed.clone()),
        };
        let found = addresses("-l", &[address], port)?;
        places.extend(found.into_iter().map(|place| (place, tls)));
    }
    Ok(places)
}

/// A socket that systemd has bound, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Inherited {
    fd: i32,
    /// FileDescriptorName of its unit.
    name: String,
}

/// What sockets are for that have such a name; any other is memcached's.
const PURPOSES: [&str; 4] = ["redis", CPSERVER, "udp", "metrics"];

const CPSERVER: &str = "cpserver";

/// Sockets that systemd has bound (sd_listen_fds_with_names(3)): from descriptor 3 on, if they are meant for this process.
fn inherited() -> Vec<Inherited> {
    let said = |name| std::env::var(name).ok();
    let number = |name| said(name)?.parse::<u32>().ok();
    match (number("LISTEN_PID"), number("LISTEN_FDS")) {
        (Some(pid), Some(count)) if pid == std::process::id() => {
            with_names(count, &said("LISTEN_FDNAMES").unwrap_or_default())
        }
        _ => Vec::new(),
    }
}

fn with_names(count: u32, names: &str) -> Vec<Inherited> {
    let names = names.split(':').chain(std::iter::repeat(""));
    let named = (3..3 + count.min(64) as i32).zip(names);
    let named = named.map(|(fd, name)| (fd, name.to_owned()));
    named.map(|(fd, name)| Inherited { fd, name }).collect()
}

/// Those for the clients of a purpose; without one, of memcached's protocols.
fn inherited_as(purpose: Option<&str>) -> Vec<Place> {
    let is_it = |inherited: &Inherited| match purpose {
        Some(purpose) => inherited.name == purpose,
        None => !PURPOSES.contains(&inherited.name.as_str()),
    };
    let ours = inherited().into_iter().filter(is_it);
    ours.map(|inherited| Place::Inherited(inherited.fd))
        .collect()
}

/// The file of passwords.
fn passwords(flags: &Flags) -> Result<Option<PathBuf>, String> {
    if flags.enable_sasl.unwrap_or_default() && flags.auth_file.is_none() {
        return Err("-S: needs a file of names and passwords (-Y)".to_owned());
    }
    flags.auth_file.as_deref().map(absolute).transpose()
}

/// Items that outlive the process.
fn keeping(flags: &Flags) -> Result<Keeping, String> {
    let file = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
    let every = flags.save_every.unwrap_or(SAVE_EVERY);
    if every == 0 {
        return Err("--save-every: at least 1 second".to_owned());
    }
    if flags.save_every.is_some() && flags.save.is_none() {
        return Err("--save-every: needs a file (--save)".to_owned());
    }
    let every = Duration::from_secs(every.into());
    let (restart, load) = (file(&flags.memory_file)?, file(&flags.load)?);
    let save = file(&flags.save)?;
    // A file of a restart is there only if nothing has changed since; a copy is there after a crash too.
    for (flag, other) in [("--save", &save), ("--load", &load)] {
        if other.is_some() && *other == restart {
            return Err(format!("{flag}: not the file of a restart (-e)"));
        }
    }
    Ok(Keeping {
        restart,
        load,
        save: save.map(|path| (path, every)),
    })
}

/// Whose processes may connect by unix sockets.
fn unix_peers(extended: &Extended) -> Result<Option<Vec<u32>>, String> {
    let Some(users) = &extended.unix_peers else {
        return Ok(None);
    };
    let users = users.iter().map(|user| match user.parse() {
        Ok(uid) => Ok(uid),
        Err(_) => process::user(user)
            .map(|user| user.uid.as_raw())
            .map_err(|error| format!("-o unix_peers: {error}")),
    });
    users.collect::<Result<_, _>>().map(Some)
}

/// Where metrics are told.
fn metrics(flags: &Flags) -> Result<Option<Place>, String> {
    if let Some(place) = inherited()
        .into_iter()
        .find(|inherited| inherited.name == "metrics")
    {
        return Ok(Some(Place::Inherited(place.fd)));
    }
    let Some(place) = &flags.metrics else {
        return Ok(None);
    };
    let found = addresses("--metrics", std::slice::from_ref(place), METRICS_PORT)?;
    match found.first() {
        Some(place) => Ok(Some(place.clone())),
        None => Err(format!("--metrics {place}: no address")),
    }
}

/// Certificates for TLS.
fn tls(flags: &Flags, extended: &Extended) -> Result<Option<TlsSettings>, String> {
    if !flags.enable_ssl.unwrap_or_default() {
        return Ok(None);
    }
    let ssl = extended.ssl.clone();
    match (ssl.chain_cert, ssl.key) {
        (Some(chain_cert), Some(key)) => Ok(Some(TlsSettings {
            chain_cert,
            key,
            ca_cert: ssl.ca_cert,
            verify: ssl.verify,
            only_1_3: ssl.only_1_3,
            session_cache: ssl.session_cache,
        })),
        _ => Err("-Z: needs -o ssl_chain_cert=FILE,ssl_key=FILE".to_owned()),
    }
}

/// The addresses of places that were typed behind a flag.
fn addresses(flag: &str, places: &[String], port: u16) -> Result<Vec<Place>, String> {
    let mut resolved = Vec::new();
    for place in places {
        let found = Place::resolve(place, port);
        resolved.extend(found.ok_or_else(|| format!("{flag} {place}: no address"))?);
    }
    Ok(resolved)
}

/// A daemon changes its directory: paths are meant from where it was started.
pub fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(flags: Flags) -> Result<Settings, String> {
        Settings::check(&flags, None)
    }

    fn tcp(settings: &Settings) -> Vec<String> {
        let listeners = settings.server.listeners.iter();
        listeners
            .map(|listen| match &listen.place {
                Place::Tcp(address) => address.to_string(),
                Place::Udp(address) => format!("udp {address}"),
                Place::Unix { path, mode } => format!("{} {mode:o}", path.display()),
                Place::Inherited(fd) => format!("fd {fd}"),
                Place::InheritedUdp(fd) => format!("udp fd {fd}"),
            })
            .collect()
    }

    #[test]
    fn saying_nothing_is_a_memcached() {
        let settings = check(Flags::default()).unwrap();
        assert_eq!(settings.engine, EngineSettings::default());
        assert_eq!(settings.engine.memory_limit, 64 << 20);
        assert_eq!(tcp(&settings)[0], "0.0.0.0:11211");
        assert_eq!(settings.server.threads.get(), 4);
        assert_eq!(settings.server.connections_max.get(), 1024);
        assert!(settings.server.allow_flush && !settings.server.allow_shutdown);
        assert_eq!(settings.process, ProcessSettings::default());
        assert!(settings.warnings.is_empty());
    }

    #[test]
    fn redis_clients_find_their_port_at_the_same_addresses() {
        let flags = |ssl| Flags {
            listen: vec!["127.0.0.1:5".into(), "notls:127.0.0.2".into()],
            redis_port: Some(6379),
            enable_ssl: Some(ssl),
            ..Flags::default()
        };
        for ssl in [false, true] {
            let listeners = listeners(&flags(ssl)).unwrap();
            let redis = listeners.iter().filter(|listen| listen.protocol.is_redis());
            let redis: Vec<(String, bool)> = redis
                .map(|listen| match &listen.place {
                    Place::Tcp(address) => (address.to_string(), listen.tls),
                    other => panic!("{other:?}"),
                })
                .collect();
            let expected = [
                ("127.0.0.1:6379".to_owned(), ssl),
                ("127.0.0.2:6379".to_owned(), false),
            ];
            assert_eq!(redis, expected);
        }
        assert!(
            !listeners(&Flags::default())
                .unwrap()
                .iter()
                .any(|listen| listen.protocol.is_redis())
        );
    }

    #[test]
    fn places_to_listen() {
        let listening = |port, listen: &[&str]| {
            let listen = listen.iter().map(|&place| place.to_owned()).collect();
            check(Flags {
                port,
                listen,
                ..Flags::default()
            })
            .map(|settings| tcp(&settings))
        };
        let places = ["127.0.0.1", "127.0.0.1:5", "::1", "[::1]:6"];
        assert_eq!(
            listening(Some(9), &places).unwrap(),
            ["127.0.0.1:9", "127.0.0.1:5", "[::1]:9", "[::1]:6"]
        );
        for free in [0, -1] {
            assert_eq!(
                listening(Some(free), &["127.0.0.1"]).unwrap(),
                ["127.0.0.1:0"]
            );
        }
        for (port, place) in [
            (1, "127.0.0.1:x"),
            (1, "1.2.3:9:9"),
            (65_536, "::1"),
            (-2, "::1"),
        ] {
            assert!(listening(Some(port), &[place]).is_err(), "{port} {place}");
        }
    }

    #[test]
    fn sockets_of_systemds_have_names() {
        let named = |count, names: &str| {
            let named = with_names(count, names).into_iter();
            named.map(|one| (one.fd, one.name)).collect::<Vec<_>>()
        };
        let of = |fd, name: &str| (fd, name.to_owned());
        let two = [of(3, "memcached"), of(4, "redis")];
        assert_eq!(named(2, "memcached:redis"), two);
        assert_eq!(named(2, ""), [of(3, ""), of(4, "")]);
        assert_eq!(named(1, "udp:more"), [of(3, "udp")]);
    }

    #[test]
    fn a_unix_socket_stands_alone() {
        let flags = Flags {
            unix_socket: Some("/tmp/s".into()),
            listen: vec!["127.0.0.1".to_owned()],
            ..Flags::default()
        };
        assert_eq!(tcp(&check(flags.clone()).unwrap()), ["/tmp/s 700"]);
        let flags = Flags {
            unix_mask: Some(0o666),
            ..flags
        };
        assert_eq!(tcp(&check(flags).unwrap()), ["/tmp/s 666"]);
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
        let settings = Settings::check(&flags, Some("ports".into())).unwrap();
        assert_eq!(settings.warnings.len(), 1);
        assert!(settings.warnings[0].contains("ext_path=/x:1G"));
        assert_eq!(settings.server.idle_timeout.unwrap().as_secs(), 9);
        assert!(settings.server.port_file.unwrap().is_absolute());
    }
}
