//! The options of memcached's `-o`: few change anything here, most ask for what this server does anyway, and a warning
//! names the rest, so that a memcached's command line keeps working.

use std::fmt::Write;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nuthatch_server::{Actions, Ciphers, Verify};
use toml::Value;

use crate::settings::absolute;

/// The options of `-o`, parsed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extended {
    /// Close connections that were silent for this long.
    pub idle_timeout: Option<Duration>,
    /// How long a client may take until it has logged in.
    pub login_timeout: Option<Duration>,
    /// 0 is no limit.
    pub login_guesses: Option<u32>,
    /// Bytes of the longest answer to a datagram.
    pub udp_reply_max: Option<NonZeroUsize>,
    /// Users whose processes may connect by unix sockets, as typed.
    pub unix_peers: Option<Vec<String>>,
    /// Connections of an address; 0 is no limit.
    pub conns_per_address: Option<u32>,
    /// What clients may not do to the server.
    pub disabled_actions: Actions,
    /// Items the index has room for at the start.
    pub initial_items: Option<usize>,
    /// Give up the files and calls that a running server does not need.
    pub drop_privileges: bool,
    /// Options of TLS, as typed.
    pub ssl: SslOptions,
    /// Options that this server does not have, as typed.
    pub unknown: Vec<String>,
    /// Options that ask for the opposite of what this server always does, as typed.
    pub contrary: Vec<String>,
}

/// Options of TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SslOptions {
    pub chain_cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub ca_cert: Option<PathBuf>,
    pub verify: Verify,
    pub ciphers: Option<Ciphers>,
    pub only_1_3: bool,
    pub session_cache: bool,
}

impl SslOptions {
    /// True if it names a certificate or a key.
    pub fn names_files(&self) -> bool {
        let files = [&self.chain_cert, &self.key, &self.ca_cert];
        files.into_iter().any(Option::is_some)
    }
}

/// The options with their meanings, for the help and the manual page.
const OPTIONS: [(&str, &str); 19] = [
    (
        "idle_timeout=SECONDS",
        "close TCP connections that are silent for this long; 0: never",
    ),
    (
        "hashpower=NUM",
        "room for 2^NUM items in the index from the start, 12 to 32",
    ),
    (
        "ssl_chain_cert=FILE",
        "with -Z: the server's certificate chain, in PEM",
    ),
    ("ssl_key=FILE", "the key of that certificate, in PEM"),
    ("ssl_keyformat=PEM", "the only supported format"),
    (
        "ssl_ca_cert=FILE",
        "the CA certificates that sign clients' certificates, in PEM",
    ),
    (
        "ssl_verify_mode=NUM",
        "clients' certificates are 0: not requested, 1: verified if presented, 2 or 3: required",
    ),
    (
        "ssl_ciphers=NAME:NAME",
        "cipher suites by OpenSSL or IANA name; a TLS version without a named suite keeps its own",
    ),
    (
        "ssl_min_version=NUM",
        "2: TLS 1.2, the lowest supported version; 3: TLS 1.3",
    ),
    (
        "ssl_session_cache",
        "clients may resume an earlier TLS session",
    ),
    (
        "drop_privileges",
        "give up files, programs and system calls that a running server does not need",
    ),
    (
        "udp_reply_max=BYTES",
        "size of the longest answer to a datagram, 64 to 2097152 [default: 16384]",
    ),
    (
        "login_timeout=SECONDS",
        "how long a client may take for its TLS handshake and its login [default: 30]",
    ),
    (
        "login_guesses=NUM",
        "different wrong passwords that an address may try per minute; 0: any number [default: 60]",
    ),
    (
        "unix_peers=USER:USER",
        "users, besides the server's own and root, whose processes may connect by unix sockets",
    ),
    (
        "conns_per_address=NUM",
        "connections that an address may have at once; 0: any number [default: 0]",
    ),
    (
        "disable_admin",
        "refuse commands that change the server for all: verbosity, cache_memlimit, CONFIG SET, refresh_certs, stats \
         reset, shutdown, flush_all; =verbosity:flush_all refuses these two. The users of -Y that a line :admin:NAME \
         names may send them",
    ),
    (
        "maxconns_fast, modern, slab_reassign, slab_automove, lru_crawler, lru_maintainer",
        "accepted, without effect: the server always behaves this way",
    ),
    ("no_drop_privileges", "revokes drop_privileges"),
];

/// The help of `-o`.
pub fn help() -> String {
    let mut text = "More options, separated by commas:\n".to_owned();
    for (option, meaning) in OPTIONS {
        // Writing to a String does not fail.
        let _ = write!(text, "\n{option}: {meaning}");
    }
    text + "\n\nAny other option is named in a warning and has no effect."
}

/// The index is sized for at most 2 to this power of items at once, as memcached's table.
const HASHPOWER_MAX: u32 = 32;

/// Lengths that the longest answer to a datagram may have: some numbers, and an item of a megabyte.
const UDP_REPLIES: RangeInclusive<usize> = 64..=2 << 20;

/// Options that change nothing: this server always behaves as they ask, or has nothing to set.
const NATURAL: [&str; 6] = [
    "maxconns_fast",
    "modern",
    "slab_reassign",
    "slab_automove",
    "lru_crawler",
    "lru_maintainer",
];

impl Extended {
    /// Parses options as typed. An existing option with an invalid value is an error.
    pub fn parse(options: &[String]) -> Result<Self, String> {
        let mut extended = Self::default();
        for option in options.iter().map(|option| option.trim()) {
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, None),
            };
            match name {
                "" => {}
                "idle_timeout" => {
                    let seconds: u32 = number(name, value)?;
                    extended.idle_timeout =
                        (seconds > 0).then(|| Duration::from_secs(seconds.into()));
                }
                "login_timeout" => {
                    let seconds: u32 = number(name, value)?;
                    if seconds == 0 {
                        return Err("-o login_timeout: at least 1 second".to_owned());
                    }
                    extended.login_timeout = Some(Duration::from_secs(seconds.into()));
                }
                "login_guesses" => extended.login_guesses = Some(number(name, value)?),
                "unix_peers" => {
                    let users = value.filter(|users| !users.is_empty());
                    let error =
                        "-o unix_peers: users with colons between, as in unix_peers=www-data:1000";
                    let users = users.ok_or(error)?.split(':');
                    extended.unix_peers = Some(users.map(str::to_owned).collect());
                }
                "conns_per_address" => extended.conns_per_address = Some(number(name, value)?),
                "disable_admin" => {
                    let listed = value.map_or(Ok(Actions::ALL), str::parse);
                    extended.disabled_actions =
                        listed.map_err(|error| format!("-o disable_admin: {error}"))?;
                }
                "udp_reply_max" => {
                    let bytes = number(name, value)? as usize;
                    let bytes = NonZeroUsize::new(bytes).filter(|_| UDP_REPLIES.contains(&bytes));
                    let error = format!(
                        "-o udp_reply_max: from {} to {} bytes",
                        UDP_REPLIES.start(),
                        UDP_REPLIES.end()
                    );
                    extended.udp_reply_max = Some(bytes.ok_or(error)?);
                }
                "hashpower" => {
                    let power: u32 = number(name, value)?;
                    if !(12..=HASHPOWER_MAX).contains(&power) {
                        return Err(format!("-o hashpower: from 12 to {HASHPOWER_MAX}"));
                    }
                    extended.initial_items = Some(1 << power);
                }
                "ssl_chain_cert" => extended.ssl.chain_cert = Some(file(name, value)?),
                "ssl_key" => extended.ssl.key = Some(file(name, value)?),
                "ssl_ca_cert" => extended.ssl.ca_cert = Some(file(name, value)?),
                "ssl_verify_mode" => {
                    extended.ssl.verify = match number(name, value)? {
                        0 => Verify::Nothing,
                        1 => Verify::IfPresent,
                        // 3 means once a connection, and a connection is verified only once.
                        2 | 3 => Verify::Always,
                        _ => return Err("-o ssl_verify_mode: from 0 to 3".to_owned()),
                    };
                }
                "ssl_min_version" => {
                    let version = number(name, value)?;
                    if version > 3 {
                        return Err("-o ssl_min_version: 2 for 1.2, or 3 for 1.3".to_owned());
                    }
                    // Versions below 1.2 are not supported.
                    extended.ssl.only_1_3 = version == 3;
                    if version < 2 {
                        extended.contrary.push(option.to_owned());
                    }
                }
                "drop_privileges" => extended.drop_privileges = true,
                "no_drop_privileges" => extended.drop_privileges = false,
                "ssl_ciphers" => {
                    let ciphers = Ciphers::parse(value.unwrap_or_default());
                    let ciphers = ciphers.map_err(|error| format!("-o {name}: {error}"))?;
                    extended.ssl.ciphers = Some(ciphers);
                }
                // memcached's number for PEM, and its help's word.
                "ssl_keyformat" => {
                    if !matches!(value, Some("1" | "PEM")) {
                        return Err("-o ssl_keyformat: 1, which is PEM, alone".to_owned());
                    }
                }
                "ssl_session_cache" => extended.ssl.session_cache = true,
                _ if NATURAL.contains(&name) => {
                    if name == "slab_automove" && value.is_some() && number(name, value)? > 2 {
                        return Err("-o slab_automove: from 0 to 2".to_owned());
                    }
                    if value == Some("0") || value == Some("no") {
                        extended.contrary.push(option.to_owned());
                    }
                }
                _ if name
                    .strip_prefix("no_")
                    .is_some_and(|name| NATURAL.contains(&name)) =>
                {
                    extended.contrary.push(option.to_owned());
                }
                _ => extended.unknown.push(option.to_owned()),
            }
        }
        Ok(extended)
    }

    /// Each option that was set, and its value: to find what has changed in a file.
    pub fn said(&self) -> Vec<(&'static str, Value)> {
        // All fields by name: a field that is added does not compile until it is handled here.
        let Self {
            idle_timeout,
            login_timeout,
            login_guesses,
            udp_reply_max,
            unix_peers,
            conns_per_address,
            disabled_actions,
            initial_items,
            drop_privileges,
            ssl,
            unknown: _,
            contrary: _,
        } = self;
        let SslOptions {
            chain_cert,
            key,
            ca_cert,
            verify,
            ciphers,
            only_1_3,
            session_cache,
        } = ssl;
        let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let seconds = |span: &Option<Duration>| span.map(|span| number(span.as_secs()));
        let path = |path: &Option<PathBuf>| {
            let path = path.as_deref()?;
            Some(Value::String(path.display().to_string()))
        };
        let switch = |is_on: bool| is_on.then_some(Value::Boolean(true));
        let verify = (*verify != Verify::Nothing).then(|| number(*verify as u64));
        let options = [
            ("idle_timeout", seconds(idle_timeout)),
            ("login_timeout", seconds(login_timeout)),
            ("login_guesses", login_guesses.map(|max| number(max.into()))),
            (
                "udp_reply_max",
                udp_reply_max.map(|bytes| number(bytes.get() as u64)),
            ),
            (
                "unix_peers",
                unix_peers
                    .as_ref()
                    .map(|users| Value::String(users.join(":"))),
            ),
            (
                "conns_per_address",
                conns_per_address.map(|most| number(most.into())),
            ),
            (
                "disable_admin",
                (*disabled_actions != Actions::default())
                    .then(|| Value::String(disabled_actions.to_string())),
            ),
            ("hashpower", initial_items.map(|items| number(items as u64))),
            ("drop_privileges", switch(*drop_privileges)),
            ("ssl_chain_cert", path(chain_cert)),
            ("ssl_key", path(key)),
            ("ssl_ca_cert", path(ca_cert)),
            ("ssl_verify_mode", verify),
            (
                "ssl_ciphers",
                ciphers
                    .as_ref()
                    .map(|ciphers| Value::String(ciphers.to_string())),
            ),
            ("ssl_min_version", only_1_3.then(|| number(3))),
            ("ssl_session_cache", switch(*session_cache)),
        ];
        let said = options.into_iter();
        said.filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}

fn file(name: &str, value: Option<&str>) -> Result<PathBuf, String> {
    let path = value.filter(|path| !path.is_empty());
    let path =
        path.ok_or_else(|| format!("-o {name}: a file, as in {name}=/etc/ssl/{name}.pem"))?;
    absolute(Path::new(path))
}

fn number(name: &str, value: Option<&str>) -> Result<u32, String> {
    value
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| format!("-o {name}: a number, as in {name}=20"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &str) -> Result<Extended, String> {
        let options: Vec<String> = options.split(',').map(str::to_owned).collect();
        Extended::parse(&options)
    }

    #[test]
    fn the_help_has_the_options_that_there_are_and_no_others() {
        for (option, _) in OPTIONS {
            for option in option.split(", ") {
                let option = option.replace("SECONDS", "5").replace("NUM", "20");
                let option = option
                    .replace("BYTES", "1000")
                    .replace("ssl_verify_mode=20", "");
                let option = option
                    .replace("ssl_min_version=20", "")
                    .replace("NAME:NAME", "TLS_AES_128_GCM_SHA256");
                let extended = parse(&option).unwrap();
                assert!(extended.unknown.is_empty(), "{option}");
            }
        }
        // The names in the parser itself, the only place that has them.
        let source = include_str!("extended.rs");
        let (_, parser) = source.split_once("match name {").unwrap();
        let (parser, _) = parser.split_once("_ if NATURAL").unwrap();
        let names = parser
            .lines()
            .filter_map(|line| line.trim().strip_prefix('"'));
        let names: Vec<&str> = names
            .filter_map(|rest| Some(rest.split_once("\" =>")?.0))
            .filter(|name| !name.is_empty() && !name.starts_with("no_"))
            .collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            assert!(help().contains(&format!("\n{name}")), "{name}");
        }
    }

    #[test]
    fn known_natural_and_unknown() {
        let extended =
            parse("idle_timeout=30,hashpower=20,modern,no_modern,ext_path=/x:1G,").unwrap();
        assert_eq!(extended.idle_timeout, Some(Duration::from_secs(30)));
        assert_eq!(extended.initial_items, Some(1 << 20));
        assert_eq!(extended.unknown, ["ext_path=/x:1G"]);
        assert_eq!(extended.contrary, ["no_modern"]);
        let contrary = ["slab_automove=0", "no_lru_crawler"];
        assert_eq!(parse(&contrary.join(",")).unwrap().contrary, contrary);
        assert_eq!(
            parse("idle_timeout=0,slab_automove=1"),
            Ok(Extended::default())
        );
    }

    #[test]
    fn every_option_is_told_as_what_it_comes_to() {
        let ciphers = "ssl_ciphers=ECDHE-RSA-AES128-GCM-SHA256";
        for option in [
            "idle_timeout=1",
            "login_timeout=1",
            "login_guesses=0",
            "udp_reply_max=64",
            "unix_peers=root",
            "hashpower=12",
            "drop_privileges",
            "ssl_chain_cert=a",
            "ssl_key=a",
            "ssl_ca_cert=a",
            "ssl_verify_mode=1",
            ciphers,
            "ssl_min_version=3",
            "ssl_session_cache",
        ] {
            let said = parse(option).unwrap().said();
            let names: Vec<&str> = said.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [option.split('=').next().unwrap()]);
        }
        assert_eq!(parse("modern,no_modern,other=1").unwrap().said(), []);
    }

    #[test]
    fn values_that_cannot_be() {
        for options in [
            "idle_timeout",
            "idle_timeout=",
            "idle_timeout=-1",
            "login_timeout=0",
            "login_guesses",
            "login_guesses=x",
            "unix_peers",
            "unix_peers=",
            "hashpower=x",
            "hashpower=11",
            "hashpower=64",
            "slab_automove=9",
            "slab_automove=x",
            "ssl_ciphers",
            "ssl_ciphers=HIGH",
            "ssl_keyformat=2",
        ] {
            assert!(parse(options).is_err(), "{options}");
        }
    }
}
