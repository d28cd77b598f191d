//! Statistics of a server, and what they come to between two moments.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest line, and the most of them in an answer, that are read.
const LINE_MAX: u64 = 4096;
const LINES_MAX: usize = 20_000;

/// Prefixes that are looked at.
const PREFIXES_MAX: usize = 4096;

trait Connection: Read + Write + Send {}

impl<S: Read + Write + Send> Connection for S {}

/// A connection on which statistics are asked for.
pub(super) struct Asker {
    connection: BufReader<Box<dyn Connection>>,
    counts_prefixes: bool,
}

impl Asker {
    /// Connects to HOST, HOST:PORT, or a path.
    pub(super) fn connect(server: &str) -> Result<Self, String> {
        let named = |error: io::Error| format!("{server}: {error}");
        let connection: Box<dyn Connection> = if server.starts_with('/') {
            let stream = UnixStream::connect(server).map_err(named)?;
            stream.set_read_timeout(Some(PATIENCE)).map_err(named)?;
            Box::new(stream)
        } else {
            let stream = match TcpStream::connect(server) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    TcpStream::connect((server, nuthatch_server::config::PORT))
                }
                connected => connected,
            };
            let stream = stream.map_err(named)?;
            stream.set_read_timeout(Some(PATIENCE)).map_err(named)?;
            Box::new(stream)
        };
        Ok(Self {
            connection: BufReader::new(connection),
            counts_prefixes: false,
        })
    }

    /// The lines of an answer, without its end. An error's line is an answer without lines.
    fn ask(&mut self, command: &str) -> Result<Vec<String>, String> {
        let lost = |error: io::Error| format!("the server: {error}");
        let text = format!("{command}\r\n");
        self.connection
            .get_mut()
            .write_all(text.as_bytes())
            .map_err(lost)?;
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            let mut limited = (&mut self.connection).take(LINE_MAX);
            let count = limited.read_until(b'\n', &mut line).map_err(lost)?;
            if count == 0 {
                return Err("the server closed the connection".to_owned());
            }
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end();
            match line {
                "END" | "OK" | "RESET" => return Ok(lines),
                _ if line.starts_with("ERROR") || line.contains("_ERROR") => {
                    return match line.contains("unauthenticated") {
                        true => Err("the server wants a password".to_owned()),
                        false => Ok(Vec::new()),
                    };
                }
                _ if lines.len() >= LINES_MAX => {
                    return Err("no server of memcached's protocol".to_owned());
                }
                _ => lines.push(line.to_owned()),
            }
        }
    }

    fn stats(&mut self, topic: &str) -> Result<HashMap<String, String>, String> {
        let lines = self.ask(format!("stats {topic}").trim_end())?;
        let parsed = lines.iter().filter_map(|line| {
            let (name, value) = line.strip_prefix("STAT ")?.split_once(' ')?;
            Some((name.to_owned(), value.to_owned()))
        });
        Ok(parsed.collect())
    }

    /// Has the server count by prefix, or no longer.
    pub(super) fn toggle_prefixes(&mut self) -> Result<(), String> {
        self.counts_prefixes = !self.counts_prefixes;
        let word = if self.counts_prefixes { "on" } else { "off" };
        self.ask(&format!("stats detail {word}")).map(|_| ())
    }

    /// Asks for all.
    pub(super) fn sample(&mut self) -> Result<Sample, String> {
        let general = self.stats("")?;
        if general.is_empty() {
            return Err("no server of memcached's protocol answers there".to_owned());
        }
        // Ours alone has these; another server says ERROR.
        let is_ours = general.contains_key("engine");
        let (latency, hits) = match is_ours {
            true => (self.stats("latency")?, self.stats("hits")?),
            false => Default::default(),
        };
        let hot = match is_ours {
            true => self.ask("stats hotkeys")?,
            false => Vec::new(),
        };
        let prefixes = match self.counts_prefixes {
            true => self.ask("stats detail dump")?,
            false => Vec::new(),
        };
        let prefixes = prefixes.iter().filter_map(|line| Prefix::parse(line));
        Ok(Sample {
            at: Instant::now(),
            general,
            latency,
            hits,
            hot: hot_keys(&hot),
            prefixes: prefixes.take(PREFIXES_MAX).collect(),
        })
    }
}

/// Names of keys that are asked for most, and their percentage of the requests: `STAT key:1 user%3A7` and
/// `STAT key:1:percent 12.34`.
fn hot_keys(lines: &[String]) -> Vec<(String, f64)> {
    let stats = lines.iter().filter_map(|line| line.strip_prefix("STAT "));
    let named: HashMap<&str, &str> = stats.filter_map(|stat| stat.split_once(' ')).collect();
    let key = |number: usize| {
        let name = *named.get(&*format!("key:{number}"))?;
        let percent = named.get(&*format!("key:{number}:percent"))?;
        Some((name.to_owned(), percent.parse().ok()?))
    };
    (1..).map_while(key).collect()
}

/// What a prefix of keys was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) name: String,
    pub(super) gets: u64,
    pub(super) hits: u64,
    pub(super) sets: u64,
}

impl Prefix {
    /// `PREFIX name get 1 hit 2 set 3 del 4`
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["PREFIX", name, "get", gets, "hit", hits, "set", sets, ..] = words[..] else {
            return None;
        };
        Some(Self {
            name: name.to_owned(),
            gets: gets.parse().ok()?,
            hits: hits.parse().ok()?,
            sets: sets.parse().ok()?,
        })
    }
}

/// Statistics at a moment.
pub(super) struct Sample {
    at: Instant,
    general: HashMap<String, String>,
    latency: HashMap<String, String>,
    hits: HashMap<String, String>,
    hot: Vec<(String, f64)>,
    prefixes: Vec<Prefix>,
}

/// What happened between two moments.
pub(super) struct Between {
    seconds: f64,
    before: HashMap<String, String>,
    general: HashMap<String, String>,
    latency: HashMap<String, String>,
    hits: HashMap<String, String>,
    /// Keys that are asked for most, and their percentage of the requests.
    pub(super) hot: Vec<(String, f64)>,
    pub(super) prefixes: Vec<Prefix>,
}

impl Between {
    pub(super) fn new(before: &Sample, now: &Sample) -> Self {
        let counted = |name: &str| {
            let found = before.prefixes.iter().find(|prefix| prefix.name == name);
            found.cloned().unwrap_or_default()
        };
        let prefixes = now.prefixes.iter().map(|prefix| {
            let then = counted(&prefix.name);
            Prefix {
                name: prefix.name.clone(),
                gets: prefix.gets.saturating_sub(then.gets),
                hits: prefix.hits.saturating_sub(then.hits),
                sets: prefix.sets.saturating_sub(then.sets),
            }
        });
        Self {
            seconds: now.at.duration_since(before.at).as_secs_f64().max(0.001),
            before: before.general.clone(),
            general: now.general.clone(),
            latency: now.latency.clone(),
            hits: now.hits.clone(),
            hot: now.hot.clone(),
            prefixes: prefixes.collect(),
        }
    }

    /// A statistic as text; empty if the server has none of that name.
    pub(super) fn text(&self, name: &str) -> &str {
        self.general.get(name).map_or("", String::as_str)
    }

    /// A statistic now; 0 if there is none.
    pub(super) fn number(&self, name: &str) -> f64 {
        number(&self.general, name).unwrap_or(0.0)
    }

    /// How much it rises in a second.
    pub(super) fn rate(&self, name: &str) -> f64 {
        let then = number(&self.before, name).unwrap_or(0.0);
        ((self.number(name) - then) / self.seconds).max(0.0)
    }

    /// A prefix's count in a second.
    pub(super) fn a_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds
    }

    /// Gets, sets, deletes, touches and arithmetic in a second.
    pub(super) fn operations(&self) -> f64 {
        let names = [
            "cmd_get",
            "cmd_set",
            "cmd_touch",
            "delete_hits",
            "delete_misses",
            "incr_hits",
            "incr_misses",
            "decr_hits",
            "decr_misses",
        ];
        names.iter().map(|name| self.rate(name)).sum()
    }

    /// A percentile in microseconds, if the server tells and had such a request.
    pub(super) fn latency(&self, kind: &str, part: &str) -> Option<f64> {
        number(&self.latency, &format!("{kind}_count")).filter(|count| *count > 0.0)?;
        number(&self.latency, &format!("{kind}_{part}_us"))
    }

    /// A line of `stats hits`, if the server tells.
    pub(super) fn of_hits(&self, name: &str) -> Option<f64> {
        number(&self.hits, name)
    }
}

fn number(stats: &HashMap<String, String>, name: &str) -> Option<f64> {
    stats.get(name)?.parse().ok()
}

#[cfg(test)]
impl Between {
    /// Of statistics that are said here.
    pub(super) fn of(before: &[(&str, &str)], now: &[(&str, &str)]) -> Self {
        let map = |stats: &[(&str, &str)]| {
            let stats = stats.iter();
            stats
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        Self {
            seconds: 2.0,
            before: map(before),
            general: map(now),
            latency: map(now),
            hits: map(now),
            hot: Vec::new(),
            prefixes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_by_the_second_and_a_restart_makes_none_negative() {
        let between = Between::of(
            &[("cmd_get", "100"), ("x", "9")],
            &[("cmd_get", "300"), ("x", "1")],
        );
        assert_eq!(between.rate("cmd_get"), 100.0);
        assert_eq!(between.rate("x"), 0.0);
        assert_eq!(between.rate("none"), 0.0);
        assert_eq!(between.operations(), 100.0);
    }

    #[test]
    fn hot_keys_in_order() {
        let lines = [
            "looked_at 9",
            "key:2 b",
            "key:1 a%20b",
            "key:1:percent 12.5",
            "key:2:percent 3.25",
            "key:3 c",
        ];
        let lines = lines.map(|line| format!("STAT {line}"));
        assert_eq!(
            hot_keys(&lines),
            [("a%20b".to_owned(), 12.5), ("b".to_owned(), 3.25)]
        );
        assert_eq!(hot_keys(&[]), []);
    }

    #[test]
    fn prefixes() {
        let parsed = Prefix::parse("PREFIX user get 5 hit 3 set 2 del 0").unwrap();
        assert_eq!(
            (parsed.name.as_str(), parsed.gets, parsed.hits, parsed.sets),
            ("user", 5, 3, 2)
        );
        assert_eq!(Prefix::parse("END"), None);
    }
}
