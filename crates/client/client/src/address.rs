//! Addresses of servers, and options behind them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::Error;
use crate::memory::{IMPOSSIBLE, IS_POSSIBLE};
use crate::options::{Distribution, Login, Options, TlsFiles, WhenFull};

/// The port of a server that names none.
const PORT: u16 = 11211;
/// The most servers of an address.
const SERVERS_MAX: usize = 1024;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp {
        host: String,
        port: u16,
    },
    Unix(PathBuf),
    /// The socket that hands out the server's memory, and rings.
    Shared(PathBuf),
}

/// A server, and how much of the keys it has beside the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub endpoint: Endpoint,
    /// Where it is asked if it gives no ring.
    pub or: Option<Endpoint>,
    pub weight: u32,
}

/// What an address says.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub servers: Vec<Server>,
    pub has_tls: bool,
    pub options: Options,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(out, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(out, "{host}:{port}"),
            Self::Unix(path) | Self::Shared(path) => path.display().fmt(out),
        }
    }
}

impl Endpoint {
    /// The socket that hands out memory, if it is that.
    #[inline]
    pub fn shared(&self) -> Option<&Path> {
        match self {
            Self::Shared(path) => Some(path),
            Self::Tcp { .. } | Self::Unix(_) => None,
        }
    }
}

impl Address {
    /// Parses an address. Its options change these.
    pub fn parse(text: &str, mut options: Options) -> Result<Self, Error> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| {
            invalid(format!(
                "{text:?} begins with none of tcp://, tls://, unix://, shm://"
            ))
        })?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut or = None;
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name {
                "or" => or = Some(value),
                _ => set(&mut options, name, value)?,
            }
        }
        if or.is_some() && scheme != "shm" {
            return Err(invalid(format!("or= is for shm://, not for {scheme}://")));
        }
        let servers = match scheme {
            "tcp" | "tls" => place
                .split(',')
                .map(server)
                .collect::<Result<Vec<_>, _>>()?,
            "unix" => vec![socket(place)?],
            "shm" => vec![shared(place, or)?],
            _ => {
                return Err(invalid(format!(
                    "{scheme}:// is none of tcp://, tls://, unix://, shm://"
                )));
            }
        };
        // What was meant to be secret is not sent in the clear.
        if options.tls != TlsFiles::default() && scheme != "tls" {
            return Err(invalid(format!(
                "ca, cert and key are for tls://, not for {scheme}://"
            )));
        }
        if servers.len() > SERVERS_MAX {
            let number = servers.len();
            return Err(invalid(format!(
                "{number} servers, where {SERVERS_MAX} are the most"
            )));
        }
        // libmemcached makes more places for weights, however it hashes.
        let has_weights = servers.iter().any(|server| server.weight != 1);
        if has_weights && options.distribution == Distribution::KetamaUnweighted {
            return Err(invalid("ketama_unweighted has no weights".to_owned()));
        }
        Ok(Self {
            servers,
            has_tls: scheme == "tls",
            options,
        })
    }
}

/// `HOST`, `HOST:PORT` or `[IPV6]:PORT`, with a weight behind `*`.
fn server(text: &str) -> Result<Server, Error> {
    let bad = || invalid(format!("{text:?} is not HOST:PORT, HOST or [IPV6]:PORT"));
    let (place, weight) = match text.split_once('*') {
        Some((place, weight)) => (
            place,
            weight.parse().ok().filter(|&weight: &u32| weight > 0),
        ),
        None => (text, Some(1)),
    };
    let weight =
        weight.ok_or_else(|| invalid(format!("{text:?}: a weight is a number above 0")))?;
    let (host, port) = if let Some(bracketed) = place.strip_prefix('[') {
        let (host, port) = bracketed.split_once(']').ok_or_else(bad)?;
        let port = if port.is_empty() {
            None
        } else {
            Some(port.strip_prefix(':').ok_or_else(bad)?)
        };
        (host, port)
    } else {
        match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        }
    };
    let port = port.map_or(Ok(PORT), str::parse).map_err(|_| bad())?;
    // What else an address has, mistyped, would be looked up with the name.
    let is_other = |byte: u8| byte <= b' ' || byte == 0x7f || b"/?#@&=".contains(&byte);
    if host.is_empty() || host.bytes().any(is_other) {
        return Err(bad());
    }
    let host = host.to_owned();
    Ok(Server {
        endpoint: Endpoint::Tcp { host, port },
        or: None,
        weight,
    })
}

fn socket(path: &str) -> Result<Server, Error> {
    if !path.starts_with('/') {
        return Err(invalid(format!("unix://{path}: the path begins with /")));
    }
    Ok(Server {
        endpoint: Endpoint::Unix(path.into()),
        or: None,
        weight: 1,
    })
}

/// A server that hands out its memory at this path, and may also be reached at `or`.
fn shared(path: &str, or: Option<&str>) -> Result<Server, Error> {
    if !IS_POSSIBLE {
        return Err(invalid(IMPOSSIBLE.to_owned()));
    }
    if !path.starts_with('/') {
        return Err(invalid(format!("shm://{path}: the path begins with /")));
    }
    if path.contains(',') {
        return Err(invalid(format!("shm://{path}: it is one server")));
    }
    Ok(Server {
        endpoint: Endpoint::Shared(path.into()),
        or: or.map(fallback).transpose()?,
        weight: 1,
    })
}

fn fallback(or: &str) -> Result<Endpoint, Error> {
    let server = match or.split_once("://") {
        Some(("unix", path)) => socket(path)?,
        Some(("tcp", place)) if !place.contains([',', '*']) => server(place)?,
        _ => {
            let reason = format!("or={or}: it is unix:///PATH or tcp://HOST:PORT");
            return Err(invalid(reason));
        }
    };
    Ok(server.endpoint)
}

fn set(options: &mut Options, name: &str, value: &str) -> Result<(), Error> {
    match name {
        "timeout_ms" => options.timeout = milliseconds(name, value)?,
        "connect_timeout_ms" => options.connect_timeout = milliseconds(name, value)?,
        "late_max_ms" => options.late_max = milliseconds(name, value)?,
        "retry_least_ms" => options.retry_least = milliseconds(name, value)?,
        "retry_most_ms" => options.retry_most = milliseconds(name, value)?,
        "retry_wait_ms" => options.retry_wait = Some(milliseconds(name, value)?),
        "requests_max" => options.requests_max = number(name, value)?,
        "bytes_max" => options.bytes_max = number(name, value)?,
        "value_max" => options.value_max = number(name, value)?,
        "eject_after" => options.eject_after = number(name, value)?,
        #[cfg(feature = "near")]
        "near_ms" => options.near = Some(milliseconds(name, value)?),
        #[cfg(feature = "near")]
        "near_bytes" => options.near_bytes = number(name, value)?,
        "when_full" => {
            options.when_full = match value {
                "wait" => WhenFull::Wait,
                "fail" => WhenFull::Fail,
                _ => return Err(invalid(format!("when_full={value}: it is wait or fail"))),
            }
        }
        "distribution" => {
            options.distribution = match value {
                "ketama" => Distribution::Ketama,
                "ketama_unweighted" => Distribution::KetamaUnweighted,
                "rendezvous" => Distribution::Rendezvous,
                _ => {
                    return Err(invalid(format!(
                        "distribution={value}: it is ketama, ketama_unweighted or rendezvous"
                    )));
                }
            }
        }
        "login_file" => options.login = Some(login(value)?),
        "ca" => options.tls.ca = Some(value.into()),
        "cert" => options.tls.cert = Some(value.into()),
        "key" => options.tls.key = Some(value.into()),
        _ => return Err(invalid(format!("there is no option {name:?}"))),
    }
    Ok(())
}

fn milliseconds(name: &str, value: &str) -> Result<Duration, Error> {
    number(name, value).map(Duration::from_millis)
}

fn number<N: FromStr>(name: &str, value: &str) -> Result<N, Error> {
    value
        .parse()
        .map_err(|_| invalid(format!("{name}={value}: it is a number")))
}

/// The first line of a file: `NAME:PASSWORD`.
fn login(path: &str) -> Result<Login, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| invalid(format!("login_file={path}: {error}")))?;
    let line = text.lines().next().unwrap_or("");
    let (name, password) = line.split_once(':').ok_or_else(|| {
        invalid(format!(
            "login_file={path}: its first line is not NAME:PASSWORD"
        ))
    })?;
    Ok(Login {
        name: name.to_owned(),
        password: password.to_owned(),
    })
}

pub(crate) fn invalid(reason: String) -> Error {
    Error::Address(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Address {
        Address::parse(text, Options::default()).unwrap()
    }

    #[test]
    fn servers_have_hosts_ports_and_weights() {
        let shown = |text| {
            let servers = parsed(text).servers;
            let shown = servers
                .iter()
                .map(|server| format!("{} {}", server.endpoint, server.weight));
            shown.collect::<Vec<_>>()
        };
        assert_eq!(shown("tcp://a"), ["a:11211 1"]);
        assert_eq!(
            shown("tcp://a:1,b*3,[::1]:2*4,[::2]"),
            ["a:1 1", "b:11211 3", "[::1]:2 4", "[::2]:11211 1"]
        );
        assert_eq!(shown("unix:///run/a.sock"), ["/run/a.sock 1"]);
        assert!(parsed("tls://a").has_tls && !parsed("tcp://a").has_tls);
    }

    #[test]
    fn options_stand_behind_the_servers() {
        let options = parsed(
            "tls://a?timeout_ms=5&requests_max=6&when_full=fail&distribution=rendezvous&eject_after=3&ca=/a.pem&value_max=9",
        )
        .options;
        assert_eq!(options.timeout, Duration::from_millis(5));
        assert_eq!(
            (options.requests_max, options.eject_after, options.value_max),
            (6, 3, 9)
        );
        assert_eq!(options.when_full, WhenFull::Fail);
        assert_eq!(options.distribution, Distribution::Rendezvous);
        assert_eq!(options.tls.ca, Some("/a.pem".into()));
    }

    #[test]
    fn memory_is_that_of_one_server_which_may_be_asked_elsewhere() {
        let wrong = |text| Address::parse(text, Options::default()).unwrap_err();
        if !IS_POSSIBLE {
            let error = wrong("shm:///a?or=tcp://b");
            return assert_eq!(
                error.to_string(),
                invalid(IMPOSSIBLE.to_owned()).to_string()
            );
        }
        let server = parsed("shm:///run/a?or=unix:///run/b&timeout_ms=5").servers;
        assert_eq!(server[0].endpoint, Endpoint::Shared("/run/a".into()));
        assert_eq!(server[0].or, Some(Endpoint::Unix("/run/b".into())));
        let or = |text| parsed(text).servers[0].or.as_ref().map(Endpoint::to_string);
        assert_eq!(or("shm:///a?or=tcp://b").unwrap(), "b:11211");
        assert_eq!(or("shm:///a?timeout_ms=5"), None);
        for (text, part) in [
            ("shm://a?or=tcp://b", "begins with /"),
            ("shm:///a,/b?or=tcp://b", "one server"),
            ("shm:///a?or=", "or="),
            ("shm:///a?or=tcp://b,c", "or="),
            ("shm:///a?or=tls://b", "or="),
            ("shm:///a?or=tcp://b&ca=/c", "tls://"),
        ] {
            let error = wrong(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("a:11211", "tcp://"),
            ("http://a", "http://"),
            ("tcp://", "HOST"),
            ("tcp://a:b", "HOST"),
            ("tcp://a:1:2", "HOST"),
            ("tcp://[::1", "HOST"),
            ("tcp://a/", "HOST"),
            ("tcp://a, b", "HOST"),
            ("tcp://\ta", "HOST"),
            ("tcp://a@b", "HOST"),
            ("tcp://a*0", "weight"),
            ("tcp://a?ca=/a.pem", "tls://"),
            ("unix:///a?cert=/a.pem", "tls://"),
            ("unix://run", "begins with /"),
            ("tcp://a*2?distribution=ketama_unweighted", "no weights"),
            ("tcp://a?timeout_ms=x", "timeout_ms=x"),
            ("tcp://a?timeout=1", "\"timeout\""),
            ("tcp://a?when_full=no", "wait or fail"),
            ("tcp://a?login_file=/nowhere", "/nowhere"),
            ("unix:///a?or=tcp://a", "or= is for shm://"),
        ] {
            let error = Address::parse(text, Options::default())
                .unwrap_err()
                .to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_login_is_read_from_its_file_and_not_shown() {
        let file =
            std::env::temp_dir().join(format!("nuthatch-client-login-{}", std::process::id()));
        std::fs::write(&file, "me:a:b\n").unwrap();
        let options = parsed(&format!("tcp://a?login_file={}", file.display())).options;
        std::fs::remove_file(file).unwrap();
        let login = options.login.as_ref().unwrap();
        assert_eq!(
            (login.name.as_str(), login.password.as_str()),
            ("me", "a:b")
        );
        assert!(!format!("{options:?}").contains("a:b"));
    }
}
