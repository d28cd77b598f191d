//! The settings of a server as the user typed them: memcached's flags, or the same in a TOML file.
//!
//! This module checks only the form of values, and sets no defaults: [`settings`](crate::settings) does both, once, for
//! both sources together. Flags that a program has for its engine are declared where the program is: see
//! [`EngineFlags`](crate::engine::EngineFlags).

use std::fmt::Display;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Args};
use nuthatch_program::size::{self, SizeError};
use serde::{Deserialize, Deserializer, Serialize, de};

use nuthatch_log::LogFormat;

use crate::extended;

/// Megabytes without a letter behind the number, as memcached's -m.
const MEGABYTES: usize = 1 << 20;

/// The flags of a server. Long names are memcached's, and the file's keys.
#[derive(Args, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flags {
    /// TCP port; 0 or -1: any free port [default: 11211]
    #[arg(short, long, value_name = "NUM", allow_negative_numbers = true)]
    pub port: Option<i32>,

    /// UDP port, at the addresses of -l [default: 0, which is off]
    #[arg(short = 'U', long, value_name = "NUM", allow_negative_numbers = true)]
    pub udp_port: Option<i32>,

    /// Addresses to listen on, with or without a port; may be repeated [default: all]
    #[arg(short, long, value_name = "ADDR", value_delimiter = ',')]
    #[serde(
        deserialize_with = "one_or_many",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub listen: Vec<String>,

    /// Also listen for Redis' clients on this TCP port; 0 or -1: any free port [default: none]
    #[arg(long, value_name = "NUM", allow_negative_numbers = true)]
    pub redis_port: Option<i32>,

    /// Unix socket to listen on, instead of TCP
    #[arg(short = 's', long, value_name = "FILE", value_parser = path())]
    pub unix_socket: Option<PathBuf>,

    /// Permissions of the unix socket, in octal [default: 700]
    #[arg(short = 'a', long, value_name = "MASK", value_parser = octal)]
    #[serde(deserialize_with = "octal_text")]
    pub unix_mask: Option<u32>,

    /// Memory for items and index, in megabytes or with a suffix k, m or g [default: 64]
    #[arg(short = 'm', long, value_name = "NUM", value_parser = megabytes)]
    #[serde(deserialize_with = "megabytes_or_text")]
    pub memory_limit: Option<usize>,

    /// The highest limit that cache_memlimit may set, in the units of -m [default: four times the limit]
    #[arg(long, value_name = "NUM", value_parser = megabytes)]
    #[serde(deserialize_with = "megabytes_or_text")]
    pub memory_limit_max: Option<usize>,

    /// Maximum number of simultaneous connections [default: 1024]
    #[arg(short, long, value_name = "NUM")]
    pub conn_limit: Option<usize>,

    /// Threads that serve connections [default: 4]
    #[arg(short, long, value_name = "NUM")]
    pub threads: Option<usize>,

    /// Maximum number of connections that wait to be accepted [default: 1024]
    #[arg(short = 'b', long, value_name = "NUM")]
    pub listen_backlog: Option<u32>,

    /// Maximum number of commands that a connection runs before other connections get their turn [default: 1024]
    #[arg(short = 'R', long, value_name = "NUM")]
    pub max_reqs_per_event: Option<u32>,

    /// Size of the largest item, in bytes or with a suffix k, m or g; 1k to 1g [default: 1m]
    #[arg(short = 'I', long, value_name = "NUM", value_parser = size::parse)]
    #[serde(deserialize_with = "bytes_or_text")]
    pub max_item_size: Option<usize>,

    /// Size of the smallest chunk, in bytes
    #[arg(short = 'n', long, value_name = "BYTES")]
    pub slab_min_size: Option<usize>,

    /// Ratio of neighbouring chunk sizes [default: 1.25]
    #[arg(short = 'f', long, value_name = "NUM")]
    pub slab_growth_factor: Option<f64>,

    /// Return an error when memory is full, instead of evicting items
    #[arg(short = 'M', long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub disable_evictions: Option<bool>,

    /// Refuse flush_all
    #[arg(short = 'F', long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub disable_flush_all: Option<bool>,

    /// Refuse stats cachedump and lru_crawler metadump
    #[arg(short = 'X', long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub disable_dumping: Option<bool>,

    /// Refuse watch
    #[arg(short = 'W', long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub disable_watch: Option<bool>,

    /// Count commands by key prefix from the start, as stats detail on does; CHAR ends a prefix and must be a colon
    #[arg(short = 'D', long, value_name = "CHAR")]
    pub prefix_delimiter: Option<String>,

    /// Report in stats that cas is disabled; items have a cas in any case
    #[arg(short = 'C', long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub disable_cas: Option<bool>,

    /// Allow the shutdown command
    #[arg(short = 'A', long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub enable_shutdown: Option<bool>,

    /// Accepted for compatibility with memcached, without effect: large memory pages are used wherever the system has
    /// them
    #[arg(short = 'L', long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub enable_largepages: Option<bool>,

    /// Lock all memory, so that nothing is paged out
    #[arg(short = 'k', long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub lock_memory: Option<bool>,

    /// Let a crash leave a core file of any size
    #[arg(short = 'r', long, alias = "enable-coredumps", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub coredumps: Option<bool>,

    /// Protocol: ascii, binary, auto (ascii or binary, by the first byte of a connection) or any (also Redis' protocol)
    /// [default: auto]
    #[arg(short = 'B', long, value_name = "NAME")]
    pub protocol: Option<String>,

    /// Require clients to log in with a name and a password from this file, which has one line NAME:PASSWORD per user
    #[arg(short = 'Y', long, value_name = "FILE", value_parser = path())]
    pub auth_file: Option<PathBuf>,

    /// Enable SASL with the names and passwords of -Y; needs -Y, which enables SASL by itself
    #[arg(short = 'S', long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub enable_sasl: Option<bool>,

    /// Enable TLS, with the certificate and key of -o ssl_chain_cert=FILE,ssl_key=FILE
    #[arg(short = 'Z', long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub enable_ssl: Option<bool>,

    /// Serve metrics for Prometheus over HTTP at this address, with or without a port [default port: 9150]
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<String>,

    /// Restore the items of the previous server from this file at the start, and write all items to it at the end
    #[arg(short = 'e', long, value_name = "FILE", value_parser = path())]
    pub memory_file: Option<PathBuf>,

    /// Load the items of this file at the start, and keep the file; it may be missing only if it is also the file of
    /// --save
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub load: Option<PathBuf>,

    /// Copy all items to this file every --save-every seconds, at SIGUSR2, and at the end
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub save: Option<PathBuf>,

    /// Seconds between two copies of --save [default: 300]
    #[arg(long, value_name = "SECONDS")]
    pub save_every: Option<u32>,

    /// Take over the sockets and the items of the server that listens at this unix socket, if there is one, and then
    /// listen there for the next server
    #[arg(long, value_name = "PATH", value_parser = path())]
    pub handover: Option<PathBuf>,

    /// Run in the background
    #[arg(short, long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    pub daemon: Option<bool>,

    /// When started as root, run as this user
    #[arg(short, long, value_name = "USER")]
    pub user: Option<String>,

    /// Write the process id to this file
    #[arg(short = 'P', long, value_name = "FILE", value_parser = path())]
    pub pidfile: Option<PathBuf>,

    /// Log more: -v events, -vv also commands and replies, -vvv also batches and statistics; =NUM sets the level
    #[arg(short, long, value_name = "NUM", value_parser = Verbosity::parse, num_args = 0..=1, require_equals = true, default_missing_value = "", action = ArgAction::Append)]
    #[serde(deserialize_with = "level", skip_serializing)]
    pub verbose: Vec<Verbosity>,

    /// Destination of the log: stderr, stdout (also -), syslog, journald, or a file, which SIGHUP opens again [default:
    /// stderr]
    #[arg(long, value_name = "DEST")]
    pub log: Option<String>,

    /// Format of the log's lines [default: text]
    #[arg(long, value_enum, value_name = "FORM")]
    pub log_format: Option<LogFormat>,

    /// Maximum number of requests, from all connections of a thread, in one batch to the engine [default: 256]
    #[arg(long, value_name = "NUM")]
    pub batch: Option<usize>,

    /// More options, separated by commas: idle_timeout=SECONDS, hashpower=NUM, ssl_chain_cert=FILE, ... (--help lists
    /// all)
    #[arg(short = 'o', long, value_name = "OPTIONS", value_delimiter = ',', long_help = extended::help())]
    #[serde(deserialize_with = "one_or_many", skip_serializing)]
    pub extended: Vec<String>,
}

impl Flags {
    /// The level of logging.
    pub fn verbosity(&self) -> u8 {
        self.verbose.iter().fold(0, |level, said| match said {
            Verbosity::More => level.saturating_add(1),
            Verbosity::Level(level) => *level,
        })
    }

    /// These flags, and the file's value for each flag that is not set.
    pub fn over(self, file: Flags) -> Flags {
        Flags {
            port: self.port.or(file.port),
            udp_port: self.udp_port.or(file.udp_port),
            listen: either(self.listen, file.listen),
            redis_port: self.redis_port.or(file.redis_port),
            unix_socket: self.unix_socket.or(file.unix_socket),
            unix_mask: self.unix_mask.or(file.unix_mask),
            memory_limit: self.memory_limit.or(file.memory_limit),
            memory_limit_max: self.memory_limit_max.or(file.memory_limit_max),
            conn_limit: self.conn_limit.or(file.conn_limit),
            threads: self.threads.or(file.threads),
            listen_backlog: self.listen_backlog.or(file.listen_backlog),
            max_reqs_per_event: self.max_reqs_per_event.or(file.max_reqs_per_event),
            max_item_size: self.max_item_size.or(file.max_item_size),
            slab_min_size: self.slab_min_size.or(file.slab_min_size),
            slab_growth_factor: self.slab_growth_factor.or(file.slab_growth_factor),
            disable_evictions: self.disable_evictions.or(file.disable_evictions),
            disable_flush_all: self.disable_flush_all.or(file.disable_flush_all),
            disable_dumping: self.disable_dumping.or(file.disable_dumping),
            disable_watch: self.disable_watch.or(file.disable_watch),
            prefix_delimiter: self.prefix_delimiter.or(file.prefix_delimiter),
            disable_cas: self.disable_cas.or(file.disable_cas),
            enable_shutdown: self.enable_shutdown.or(file.enable_shutdown),
            enable_largepages: self.enable_largepages.or(file.enable_largepages),
            lock_memory: self.lock_memory.or(file.lock_memory),
            coredumps: self.coredumps.or(file.coredumps),
            protocol: self.protocol.or(file.protocol),
            auth_file: self.auth_file.or(file.auth_file),
            enable_sasl: self.enable_sasl.or(file.enable_sasl),
            enable_ssl: self.enable_ssl.or(file.enable_ssl),
            metrics: self.metrics.or(file.metrics),
            handover: self.handover.or(file.handover),
            memory_file: self.memory_file.or(file.memory_file),
            load: self.load.or(file.load),
            save: self.save.or(file.save),
            save_every: self.save_every.or(file.save_every),
            daemon: self.daemon.or(file.daemon),
            user: self.user.or(file.user),
            pidfile: self.pidfile.or(file.pidfile),
            batch: self.batch.or(file.batch),
            verbose: either(self.verbose, file.verbose),
            log: self.log.or(file.log),
            log_format: self.log_format.or(file.log_format),
            extended: [file.extended, self.extended].concat(),
        }
    }

    /// The same without values that are empty. An empty value is how a flag unsets a setting of the file: `--metrics=`.
    pub fn without_empty(mut self) -> Self {
        for text in [
            &mut self.protocol,
            &mut self.metrics,
            &mut self.user,
            &mut self.log,
        ] {
            *text = text.take().filter(|text| !text.is_empty());
        }
        for path in [
            &mut self.unix_socket,
            &mut self.auth_file,
            &mut self.handover,
            &mut self.memory_file,
            &mut self.load,
            &mut self.save,
            &mut self.pidfile,
        ] {
            *path = path.take().filter(|path| !path.as_os_str().is_empty());
        }
        self.listen.retain(|text| !text.is_empty());
        self
    }
}

/// A path of any bytes, or nothing: see [`Flags::without_empty`].
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// One `-v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// One level more than before.
    More,
    /// This level.
    Level(u8),
}

impl Verbosity {
    /// Nothing behind -v, or a level.
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self::More),
            level => level
                .parse()
                .map(Self::Level)
                .map_err(|_| format!("`{level}` is not a level: 0 to 3")),
        }
    }
}

/// The first list, or the second if it is empty.
pub fn either<T>(first: Vec<T>, second: Vec<T>) -> Vec<T> {
    if first.is_empty() { second } else { first }
}

fn megabytes(text: &str) -> Result<usize, SizeError> {
    size::parse_in(text, MEGABYTES)
}

fn octal(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| format!("`{text}` is not an octal mode like 700"))
}

/// A number or a text in the file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number from 0, or a text like \"64m\"")]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl NumberOrText {
    fn parse<T, W: Display, E: de::Error>(
        self,
        parse: fn(&str) -> Result<T, W>,
    ) -> Result<Option<T>, E> {
        let text = match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
        };
        parse(&text).map(Some).map_err(E::custom)
    }
}

fn megabytes_or_text<'de, D: Deserializer<'de>>(input: D) -> Result<Option<usize>, D::Error> {
    NumberOrText::deserialize(input)?.parse(megabytes)
}

fn bytes_or_text<'de, D: Deserializer<'de>>(input: D) -> Result<Option<usize>, D::Error> {
    NumberOrText::deserialize(input)?.parse(size::parse)
}

fn octal_text<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u32>, D::Error> {
    NumberOrText::deserialize(input)?.parse(octal)
}

fn level<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Verbosity>, D::Error> {
    u8::deserialize(input).map(|level| vec![Verbosity::Level(level)])
}

/// `"a,b"` or `["a", "b"]` in the file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a text, or a list of texts")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Reads a list of texts from a file: one text with commas, or several.
pub fn one_or_many<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    Ok(match OneOrMany::deserialize(input)? {
        OneOrMany::One(text) => text.split(',').map(str::to_owned).collect(),
        OneOrMany::Many(texts) => texts,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use clap::FromArgMatches;
    use clap::error::ErrorKind;

    use super::*;
    use crate::cuckoo::DefaultEngine;

    fn typed(line: &str) -> Result<Flags, clap::Error> {
        let command = Flags::augment_args(clap::Command::new("nuthatch"));
        let words = std::iter::once("nuthatch").chain(line.split_whitespace());
        Flags::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    fn file(text: &str) -> Flags {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn short_long_and_file_say_the_same() {
        let short = typed(
            "-p 1 -U 0 -l a,b -l c:2 -s /s -a 0770 -m 1024 -c 5 -t 2 -b 7 -R 9 -I 2m -n 64 -f 1.5 \
             -M -F -X -W -D : -C -A -L -k -r -B auto -d -u nobody -P /p --verbose=2 --log /l --log-format json -o modern,idle_timeout=3 \
             --redis-port 6 --batch 500 --memory-limit-max 2048",
        )
        .unwrap();
        let long = typed(
            "--port=1 --udp-port=0 --listen=a,b,c:2 --unix-socket=/s --unix-mask=770 \
             --memory-limit=1g --conn-limit=5 --threads=2 --listen-backlog=7 \
             --max-reqs-per-event=9 --max-item-size=2048k --slab-min-size=64 \
             --slab-growth-factor=1.5 --disable-evictions --disable-flush-all --disable-dumping --disable-watch \
             --prefix-delimiter=: \
             --disable-cas --enable-shutdown --enable-largepages --lock-memory --coredumps \
             --protocol=auto --daemon \
             --user=nobody --pidfile=/p --verbose=2 --log=/l --log-format=json --extended=modern,idle_timeout=3 \
             --redis-port=6 --batch=500 --memory-limit-max=2g",
        )
        .unwrap();
        let file = file(
            r#"
            port = 1
            udp-port = 0
            listen = ["a", "b", "c:2"]
            unix-socket = "/s"
            unix-mask = "770"
            memory-limit = 1024
            memory-limit-max = "2g"
            conn-limit = 5
            threads = 2
            listen-backlog = 7
            max-reqs-per-event = 9
            max-item-size = "2m"
            slab-min-size = 64
            slab-growth-factor = 1.5
            disable-evictions = true
            disable-flush-all = true
            disable-dumping = true
            disable-watch = true
            prefix-delimiter = ":"
            disable-cas = true
            enable-shutdown = true
            enable-largepages = true
            lock-memory = true
            coredumps = true
            protocol = "auto"
            daemon = true
            user = "nobody"
            pidfile = "/p"
            verbose = 2
            log = "/l"
            log-format = "json"
            extended = "modern,idle_timeout=3"
            redis-port = 6
            batch = 500
            "#,
        );
        assert_eq!(short, long);
        assert_eq!(short, file);
        assert_eq!(short.memory_limit, Some(1 << 30));
        assert_eq!(short.unix_mask, Some(0o770));
        // A source over itself is itself, except that options add up.
        let mut twice = short.clone().over(file);
        twice.extended.truncate(2);
        assert_eq!(twice, short);
    }

    #[test]
    fn flags_override_the_file() {
        let file = file("port = 1\nthreads = 8\nlisten = \"a\"\nextended = \"x\"");
        let flags = typed("-p 2 -l b -o y").unwrap().over(file);
        assert_eq!((flags.port, flags.threads), (Some(2), Some(8)));
        assert_eq!(flags.listen, ["b"]);
        assert_eq!(flags.extended, ["x", "y"]);
        assert_eq!(typed("-p -1").unwrap().port, Some(-1));
    }

    #[test]
    fn switches_are_turned_off_against_the_file() {
        let file =
            || file("daemon = true\ndisable-evictions = true\nlock-memory = true\nverbose = 2");
        let flags = typed("--daemon=false -M=false").unwrap().over(file());
        assert_eq!(
            (flags.daemon, flags.disable_evictions),
            (Some(false), Some(false))
        );
        assert_eq!((flags.lock_memory, flags.verbosity()), (Some(true), 2));
        // Short flags in one word, as usual.
        let flags = typed("-dMkvv").unwrap();
        assert_eq!(
            (flags.daemon, flags.disable_evictions),
            (Some(true), Some(true))
        );
        assert_eq!((flags.lock_memory, flags.verbosity()), (Some(true), 2));
        for (said, level) in [
            ("-v", 1),
            ("-vvv", 3),
            ("--verbose=0", 0),
            ("-v -v=1 -v", 2),
        ] {
            assert_eq!(
                typed(said).unwrap().over(file()).verbosity(),
                level,
                "{said}"
            );
        }
    }

    #[test]
    fn a_path_may_have_any_bytes() {
        let path = std::ffi::OsStr::from_bytes(b"/\xff");
        let command = Flags::augment_args(clap::Command::new("nuthatch"));
        let words = ["nuthatch".as_ref(), "-s".as_ref(), path];
        let typed = command.try_get_matches_from(words).unwrap();
        let flags = Flags::from_arg_matches(&typed).unwrap();
        assert_eq!(flags.unix_socket.unwrap().as_os_str(), path);
    }

    #[test]
    fn values_are_unset_against_the_file() {
        let file = file(
            "listen = \"a\"\nunix-socket = \"/s\"\nauth-file = \"/y\"\nmetrics = \"a\"\n\
             memory-file = \"/e\"\nload = \"/l\"\nsave = \"/s\"\nhandover = \"/h\"\nuser = \"u\"\npidfile = \"/p\"\n\
             log = \"syslog\"\nprotocol = \"ascii\"",
        );
        let unset =
            typed("-l= -s= -Y= --metrics= -e= --load= --save= --handover= --user= -P= --log= -B=");
        let flags = unset.unwrap().over(file.clone()).without_empty();
        assert_eq!(flags, Flags::default());
        assert_eq!(file.clone().without_empty(), file);
    }

    #[test]
    fn what_has_no_form_is_refused() {
        for line in [
            "-m lots",
            "-p x",
            "-a 8",
            "-a 1000",
            "-t -3",
            "-I 1q",
            "--no-such-flag",
            "--daemon=perhaps",
            "--verbose=much",
        ] {
            assert!(typed(line).is_err(), "{line}");
        }
        assert_eq!(typed("-z").unwrap_err().kind(), ErrorKind::UnknownArgument);
    }

    #[test]
    fn the_example_file_says_every_key() {
        let path = Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../dist/nuthatch.toml"
        ));
        assert_eq!(
            crate::file::read(path),
            Ok((Flags::default(), DefaultEngine::default())),
            "all is commented out"
        );
        // With the comment signs removed it is still a valid file, and has every key.
        let text: String = std::fs::read_to_string(path)
            .unwrap()
            .lines()
            .filter_map(|line| line.strip_prefix('#'))
            .filter(|line| !line.starts_with(' ') && line.contains(" = "))
            .fold(String::new(), |text, line| text + line + "\n");
        crate::file::parse::<DefaultEngine>(&text).unwrap_or_else(|error| panic!("{error}"));
        let command = Flags::augment_args(clap::Command::new("nuthatch"));
        let command = DefaultEngine::augment_args(command);
        for argument in command.get_arguments() {
            let name = argument.get_long().unwrap();
            let key = format!("{name} = ");
            assert!(text.lines().any(|line| line.starts_with(&key)), "{name}");
        }
    }
}
