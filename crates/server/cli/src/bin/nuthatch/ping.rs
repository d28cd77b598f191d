//! `nuthatch ping`: whether a server answers. For health checks, which go by the exit code.
//!
//! It asks for nothing that needs a login, and so neither sends a password nor demands to know who answers: a server that
//! wants a password, or a certificate of its clients, has answered.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use nuthatch_cli::cuckoo::DefaultEngine;
use nuthatch_cli::reach::Reach;
use nuthatch_program::{Failure, output};
use nuthatch_server::config::{PORT, Protocol};

use crate::connect::{self, Connection, Target};

/// Redis' port.
const REDIS_PORT: u16 = 6379;

/// The longest version that is read in the binary protocol.
const VERSION_MAX: usize = 256;

/// The server to ask, and how.
#[derive(Args, Clone, Debug)]
pub struct Ping {
    /// The server: HOST, HOST:PORT, an address (`::1`, `[::1]:11211`) or the path of a unix socket
    #[arg(default_value = "127.0.0.1")]
    pub server: String,
    /// The protocol; without a port in the server's address it is 11211, or 6379 for redis
    #[arg(long, value_enum, default_value_t = Language::Text)]
    pub protocol: Language,
    /// Connect over TLS; any certificate of the server's will do
    #[arg(long)]
    pub tls: bool,
    /// Ask the server that this TOML file of settings starts, at the first of its addresses that demands least of clients
    #[arg(long, value_name = "FILE", conflicts_with_all = ["server", "protocol", "tls"])]
    pub config: Option<PathBuf>,
    /// Seconds until there must be an answer, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pub timeout: f64,
}

/// The protocol in which to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// memcached's text protocol: version
    Text,
    /// memcached's binary protocol: version
    Binary,
    /// Redis' protocol: PING
    Redis,
}

/// Asks, and prints the answer.
pub fn run(ping: &Ping) -> Result<(), Failure> {
    if !(0.1..=3600.0).contains(&ping.timeout) {
        return Err(Failure::usage("--timeout: from 0.1 to 3600 seconds"));
    }
    let (answering, answers) = mpsc::channel();
    let asked = ping.clone();
    // One bound for all that may wait: a resolver, a full queue of connections, a handshake, an answer byte after byte. The
    // thread ends with the process.
    thread::Builder::new()
        .name("ask".to_owned())
        .spawn(move || {
            // An error means that nobody waits any more.
            let _ = answering.send(asked.answer());
        })?;
    match answers.recv_timeout(Duration::from_secs_f64(ping.timeout)) {
        Ok(answer) => output::print(&format!("{}\n", answer?)),
        Err(RecvTimeoutError::Timeout) => Err(Failure::run(format!(
            "ping: no answer within {} s",
            ping.timeout
        ))),
        Err(RecvTimeoutError::Disconnected) => Err(Failure::run("ping: it has failed")),
    }
}

impl Ping {
    /// The server's name with its answer. Errors name the server.
    fn answer(self) -> Result<String, Failure> {
        let asked = match &self.config {
            Some(file) => Asked::of(Reach::of_file::<DefaultEngine>(file).map_err(Failure::Usage)?),
            None => Asked {
                server: self.server,
                language: self.protocol,
                tls: self.tls,
            },
        };
        asked.answer().map_err(Failure::Run)
    }
}

/// Who is asked, and in which words.
struct Asked {
    server: String,
    language: Language,
    tls: bool,
}

impl Asked {
    fn of(reach: Reach) -> Self {
        Self {
            server: reach.server,
            language: match reach.protocol {
                Protocol::Redis => Language::Redis,
                Protocol::Binary => Language::Binary,
                _ => Language::Text,
            },
            tls: reach.tls,
        }
    }

    fn answer(self) -> Result<String, String> {
        let target = Target {
            server: self.server,
            port: match self.language {
                Language::Redis => REDIS_PORT,
                _ => PORT,
            },
            login: None,
            tls: self.tls.then(connect::trusting_any).transpose()?,
        };
        let mut connection = target.open()?;
        let answer = self.language.ask(&mut connection).or_else(|error| {
            match connect::wants_certificate(&error) {
                true => Ok(Answer::Alive("it wants a certificate".to_owned())),
                false => Err(connect::lost(error)),
            }
        });
        match answer {
            Ok(Answer::Alive(words)) => Ok(format!("{}: {words}", target.server)),
            Ok(Answer::Other(words)) => Err(format!(
                "{}: {} it answers `{words}`",
                target.server,
                self.language.complaint()
            )),
            Err(error) => Err(format!("{}: {error}", target.server)),
        }
    }
}

/// What came back.
enum Answer {
    /// Of a server that serves.
    Alive(String),
    /// Something else.
    Other(String),
}

impl Answer {
    fn of(line: String, is_alive: impl Fn(&str) -> bool) -> Self {
        match is_alive(&line) {
            true => Self::Alive(line),
            false => Self::Other(line.escape_debug().collect()),
        }
    }
}

impl Language {
    fn ask(self, connection: &mut Connection) -> std::io::Result<Answer> {
        match self {
            Self::Text => {
                connection.send(b"version\r\n")?;
                let line = connection.read_line()?;
                Ok(Answer::of(line, |line| {
                    line.starts_with("VERSION ") || line == "CLIENT_ERROR unauthenticated"
                }))
            }
            Self::Redis => {
                connection.send(b"*1\r\n$4\r\nPING\r\n")?;
                let line = connection.read_line()?;
                Ok(Answer::of(line, |line| {
                    line == "+PONG" || line.starts_with("-NOAUTH ")
                }))
            }
            Self::Binary => binary(connection),
        }
    }

    /// What an answer of another kind means.
    fn complaint(self) -> &'static str {
        match self {
            Self::Text => "no answer of memcached's text protocol (--protocol);",
            Self::Binary => "no answer of memcached's binary protocol (--protocol);",
            Self::Redis => "no answer of Redis' protocol (--protocol);",
        }
    }
}

/// Asks for the version in the binary protocol: a header of 24 bytes each way, in which the answer has its status and the
/// length of what follows.
fn binary(connection: &mut Connection) -> std::io::Result<Answer> {
    const VERSION: u8 = 0x0b;
    const UNAUTHENTICATED: u16 = 0x20;
    let mut header = [0; 24];
    header[..2].copy_from_slice(&[0x80, VERSION]);
    connection.send(&header)?;
    connection.read_exact(&mut header)?;
    let status = u16::from_be_bytes([header[6], header[7]]);
    let length = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
    match (header[0], header[1], status) {
        (0x81, VERSION, 0) => {
            let mut body = vec![0; length.min(VERSION_MAX)];
            connection.read_exact(&mut body)?;
            let version = String::from_utf8_lossy(&body).into_owned();
            Ok(Answer::Alive(format!("VERSION {version}")))
        }
        (0x81, VERSION, UNAUTHENTICATED) => Ok(Answer::Alive("it wants a password".to_owned())),
        _ => Ok(Answer::Other(header.escape_ascii().to_string())),
    }
}
