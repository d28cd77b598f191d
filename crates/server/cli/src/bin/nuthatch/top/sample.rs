//! Statistics of a server, and their changes between two moments.

use std::collections::HashMap;
use std::time::Instant;

use super::times::Times;
use crate::connect::{Connection, Target};

/// Statistics by their names.
type Stats = HashMap<String, String>;

/// Most prefixes that are read.
const PREFIXES_MAX: usize = 4096;

/// Requests a server's statistics, and connects again when the connection is lost.
pub(super) struct Asker {
    target: Target,
    connection: Option<Connection>,
    /// Prefixes are wanted.
    counts_prefixes: bool,
    /// The server did not count them before: counting is switched off at the end.
    switched_on: bool,
}

impl Asker {
    /// Connects.
    pub(super) fn connect(target: Target) -> Result<Self, String> {
        let connection = Some(target.open()?);
        Ok(Self {
            target,
            connection,
            counts_prefixes: false,
            switched_on: false,
        })
    }

    /// The server as it was typed.
    pub(super) fn server(&self) -> &str {
        &self.target.server
    }

    /// The lines of an answer. After an error the next question connects again.
    fn ask(&mut self, command: &str) -> Result<Vec<String>, String> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.target.open()?,
        };
        let answer = connection.ask(command)?;
        self.connection = Some(connection);
        Ok(answer)
    }

    fn stats(&mut self, topic: &str) -> Result<Stats, String> {
        let lines = self.ask(format!("stats {topic}").trim_end())?;
        let parsed = lines.iter().filter_map(|line| {
            let (name, value) = line.strip_prefix("STAT ")?.split_once(' ')?;
            Some((name.to_owned(), value.to_owned()))
        });
        Ok(parsed.collect())
    }

    /// Has the server count by prefix, or no longer unless it did so before.
    pub(super) fn toggle_prefixes(&mut self) -> Result<(), String> {
        self.counts_prefixes = !self.counts_prefixes;
        match self.counts_prefixes {
            true => self.count_prefixes(),
            false => self.leave_prefixes(),
        }
    }

    fn count_prefixes(&mut self) -> Result<(), String> {
        let settings = self.stats("settings")?;
        if settings.get("detail_enabled").is_some_and(|is| is == "yes") {
            return Ok(());
        }
        self.ask("stats detail on")?;
        self.switched_on = true;
        Ok(())
    }

    /// Leaves the setting as it was found.
    fn leave_prefixes(&mut self) -> Result<(), String> {
        match std::mem::take(&mut self.switched_on) {
            true => self.ask("stats detail off").map(|_| ()),
            false => Ok(()),
        }
    }

    /// Requests all statistics.
    pub(super) fn sample(&mut self) -> Result<Sample, String> {
        // It may be another process: a setting that was switched on ended with the one before.
        if self.connection.is_none() {
            self.connection = Some(self.target.open()?);
            self.switched_on = false;
            if self.counts_prefixes {
                self.count_prefixes()?;
            }
        }
        let general = self.stats("")?;
        if general.is_empty() {
            return Err("no server of memcached's protocol answers there".to_owned());
        }
        // Only Nuthatch has these; another server answers ERROR.
        let is_ours = general.contains_key("engine");
        let (buckets, hits) = match is_ours {
            true => (self.ask("stats latency_buckets")?, self.stats("hits")?),
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
            times: is_ours.then(|| Times::parse(&buckets)),
            hits,
            hot: hot_keys(&hot),
            prefixes: prefixes.take(PREFIXES_MAX).collect(),
        })
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        // If the connection is lost, there is no setting to restore.
        if self.connection.is_some() {
            let _ = self.leave_prefixes();
        }
    }
}

/// Names of the most requested keys, and their percentage of the requests: `STAT key:1 user%3A7` and `STAT
/// key:1:percent 12.34`.
fn hot_keys(lines: &[String]) -> Vec<(String, f64)> {
    let stats = lines.iter().filter_map(|line| line.strip_prefix("STAT "));
    let named: HashMap<&str, &str> = stats.filter_map(|stat| stat.split_once(' ')).collect();
    let key = |number: usize| {
        let name = *named.get(&*format!("key:{number}"))?;
        let percent = named.get(&*format!("key:{number}:percent"))?;
        Some((unescaped(name), percent.parse().ok()?))
    };
    (1..).map_while(key).collect()
}

/// A key as it is: the server writes all but letters, digits and a few other characters as `%3A`.
fn unescaped(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let digits = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The requests for a prefix of keys.
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
    general: Stats,
    times: Option<Times>,
    hits: Stats,
    hot: Vec<(String, f64)>,
    prefixes: Vec<Prefix>,
}

/// What happened between two moments.
pub(super) struct Between {
    seconds: f64,
    before: Stats,
    general: Stats,
    /// How long requests took, if the server reports it.
    pub(super) times: Option<Times>,
    hits: Stats,
    /// The most requested keys, and their percentage of the requests.
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
            times: now.times.as_ref().map(|times| match &before.times {
                Some(before) => times.since(before),
                None => times.clone(),
            }),
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

    /// A line of `stats hits`, if the server has it.
    pub(super) fn of_hits(&self, name: &str) -> Option<f64> {
        number(&self.hits, name)
    }
}

fn number(stats: &Stats, name: &str) -> Option<f64> {
    stats.get(name)?.parse().ok()
}

#[cfg(test)]
impl Between {
    /// Made from the given statistics.
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
            times: None,
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
            "key:1 a%20b%3A%253A",
            "key:1:percent 12.5",
            "key:2:percent 3.25",
            "key:3 c",
        ];
        let lines = lines.map(|line| format!("STAT {line}"));
        assert_eq!(
            hot_keys(&lines),
            [("a b:%3A".to_owned(), 12.5), ("b".to_owned(), 3.25)]
        );
        assert_eq!(hot_keys(&[]), []);
        assert_eq!(unescaped("%4"), "%4");
        assert_eq!(unescaped("%zz%é%"), "%zz%é%");
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
