//! The lines of a screen, from what happened between two looks.

use std::collections::VecDeque;

use super::sample::{Between, Prefix};
use super::times::KINDS;

/// Most looks that the curve shows.
const HISTORY: usize = 200;

/// The columns that the hottest keys need, and those between them and the prefixes.
const KEYS_MIN: usize = 30;
const GAP: usize = 3;

/// Eighths of a cell.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Operations a second, look by look.
#[derive(Default)]
pub(super) struct History(VecDeque<f64>);

impl History {
    pub(super) fn push(&mut self, operations: f64) {
        if self.0.len() == HISTORY {
            self.0.pop_front();
        }
        self.0.push_back(operations);
    }

    /// The last looks, as many as there are columns, each as high as its part of the highest.
    fn curve(&self, columns: usize) -> String {
        let highest = self.0.iter().copied().fold(1.0, f64::max);
        let last = self.0.iter().skip(self.0.len().saturating_sub(columns));
        last.map(|operations| {
            let step = operations / highest * (STEPS.len() - 1) as f64;
            STEPS[(step.round() as usize).min(STEPS.len() - 1)]
        })
        .collect()
    }
}

/// The order of prefixes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Gets,
    Hits,
    Sets,
    Name,
}

/// A screen.
pub(super) struct View<'v> {
    server: &'v str,
    between: &'v Between,
    history: &'v History,
    order: Order,
}

impl<'v> View<'v> {
    pub(super) fn new(
        server: &'v str,
        between: &'v Between,
        history: &'v History,
        order: Order,
    ) -> Self {
        Self {
            server,
            between,
            history,
            order,
        }
    }

    /// As many lines as fit, each as long as fits.
    pub(super) fn lines(&self, columns: usize, rows: usize) -> Vec<String> {
        let mut lines = vec![self.title(columns), String::new()];
        lines.push(format!(
            "operations/s {:>9}  {}",
            short(self.between.operations()),
            self.history.curve(columns.saturating_sub(26))
        ));
        lines.push(self.requests());
        lines.push(self.changes());
        lines.push(String::new());
        lines.push(self.memory(columns));
        lines.extend(self.memory_use());
        lines.push(self.leaving());
        lines.extend(self.more_memory());
        lines.push(String::new());
        lines.push(self.connections());
        lines.extend(self.latencies());
        lines.extend(self.keys(columns, rows.saturating_sub(lines.len())));
        lines.truncate(rows);
        lines.into_iter().map(|line| fit(&line, columns)).collect()
    }

    fn title(&self, columns: usize) -> String {
        let own = self.between.text("nuthatch_version");
        let version = match own {
            "" => self.between.text("version"),
            own => own,
        };
        let up = duration(self.between.number("uptime"));
        let left = format!("nuthatch top  {}  {version}", self.server);
        let right = format!("up {up}");
        let gap = columns
            .saturating_sub(left.chars().count() + right.len())
            .max(2);
        format!("{left}{}{right}", " ".repeat(gap))
    }

    fn requests(&self) -> String {
        let (hits, misses) = (
            self.between.rate("get_hits"),
            self.between.rate("get_misses"),
        );
        format!(
            "gets/s       {:>9}  hits {:>7}  sets/s    {:>9}  touches/s {:>9}",
            short(self.between.rate("cmd_get")),
            percent(hits, hits + misses),
            short(self.between.rate("cmd_set")),
            short(self.between.rate("cmd_touch")),
        )
    }

    fn changes(&self) -> String {
        let sum = |names: [&str; 2]| {
            names
                .iter()
                .map(|name| self.between.rate(name))
                .sum::<f64>()
        };
        let arithmetic = sum(["incr_hits", "incr_misses"]) + sum(["decr_hits", "decr_misses"]);
        format!(
            "deletes/s    {:>9}               incr, decr/s {:>6}  processors {:>8}",
            short(sum(["delete_hits", "delete_misses"])),
            short(arithmetic),
            percent(sum(["rusage_user", "rusage_system"]), 1.0),
        )
    }

    fn memory(&self, columns: usize) -> String {
        let limit = self.between.number("limit_maxbytes");
        // memcached reports only the bytes of items.
        let used = match self.between.number("memory_used") {
            used if used > 0.0 => used,
            _ => self.between.number("bytes"),
        };
        let text = format!(
            " {} of {}  items {}",
            bytes(used),
            bytes(limit),
            short(self.between.number("curr_items"))
        );
        let width = columns
            .saturating_sub(text.chars().count() + 16)
            .clamp(4, 40);
        let filled = ((used / limit.max(1.0)) * width as f64).round() as usize;
        let filled = filled.min(width);
        format!(
            "memory       [{}{}]{text}",
            "#".repeat(filled),
            ".".repeat(width - filled)
        )
    }

    /// What the memory is used for, if the server reports it.
    fn memory_use(&self) -> Option<String> {
        let parts = [
            "values", "keys", "headers", "padding", "gaps", "index", "ghosts",
        ];
        self.between.of_hits("memory_values")?;
        let used = parts.map(|part| self.between.of_hits(&format!("memory_{part}")));
        let used = used.map(|used| used.unwrap_or(0.0));
        let all: f64 = used.iter().sum();
        // 80 columns have room for no more digits.
        let shown = parts.iter().zip(used).map(|(part, used)| {
            let percent = used / all.max(1.0) * 100.0;
            format!("{part} {percent:.0}%")
        });
        Some(format!("  {}", shown.collect::<Vec<_>>().join("  ")))
    }

    fn leaving(&self) -> String {
        format!(
            "evicted/s    {:>9}  never read {:>7}/s  expired/s {:>9}",
            short(self.between.rate("evictions")),
            short(self.between.rate("evicted_unfetched")),
            short(self.between.rate("reclaimed")),
        )
    }

    /// What more memory would have gained, if the server reports it.
    fn more_memory(&self) -> Option<String> {
        let gets = self.between.number("cmd_get");
        let shown = [10, 25, 50, 100].iter().map(|more| {
            let hits = self.between.of_hits(&format!("more_hits_{more}"))?;
            Some(format!("+{more}% {}", percent(hits, gets)))
        });
        let shown: Option<Vec<_>> = shown.collect();
        Some(format!("  hits by more memory: {}", shown?.join("  ")))
    }

    fn connections(&self) -> String {
        format!(
            "connections  {:>9} of {}  in {}/s  out {}/s",
            self.between.text("curr_connections"),
            self.between.text("max_connections"),
            bytes(self.between.rate("bytes_read")),
            bytes(self.between.rate("bytes_written")),
        )
    }

    /// Percentiles of the requests since the last look, if the server reports them.
    fn latencies(&self) -> Vec<String> {
        let Some(times) = &self.between.times else {
            return Vec::new();
        };
        let head = "microseconds        p50        p90        p99      p99.9";
        let lines = KINDS.iter().enumerate().map(|(number, kind)| {
            let shown = match times.percentiles(number) {
                Some(shown) => shown.map(|time| format!("{time:>10.1}")),
                None => [const { String::new() }; 4].map(|_| format!("{:>10}", "-")),
            };
            format!("  {kind:<10} {}", shown.join(" "))
        });
        std::iter::once(head.to_owned()).chain(lines).collect()
    }

    /// The hottest keys and the prefixes, in `rows` rows: beside each other if there are both.
    fn keys(&self, columns: usize, rows: usize) -> Vec<String> {
        let left = columns * 4 / 9;
        let both = !self.between.hot.is_empty() && !self.between.prefixes.is_empty();
        if !both || left < KEYS_MIN {
            let mut lines = self.prefixes(columns, rows);
            lines.extend(self.hot(columns, rows.saturating_sub(lines.len())));
            return lines;
        }
        let hot = self.hot(left, rows);
        let prefixes = self.prefixes(columns - left - GAP, rows);
        let lines = (0..hot.len().max(prefixes.len())).map(|row| {
            let of = |lines: &[String]| lines.get(row).cloned().unwrap_or_default();
            format!("{:<1$}{2}", of(&hot), left + GAP, of(&prefixes))
        });
        lines.map(|line| line.trim_end().to_owned()).collect()
    }

    /// The most requested keys, in `rows` rows.
    fn hot(&self, columns: usize, rows: usize) -> Vec<String> {
        let hot = &self.between.hot;
        if hot.is_empty() || rows < 3 {
            return Vec::new();
        }
        let width = columns.saturating_sub(10).clamp(14, 80);
        let head = format!("{:<width$} {:>9}", "hottest keys", "requests");
        let lines = hot.iter().take(rows - 2);
        let lines =
            lines.map(|(name, percent)| format!("{:<width$} {percent:>7.2} %", fit(name, width)));
        [String::new(), head].into_iter().chain(lines).collect()
    }

    /// Prefixes in order, in `rows` rows.
    fn prefixes(&self, columns: usize, rows: usize) -> Vec<String> {
        if self.between.prefixes.is_empty() || rows < 3 {
            return Vec::new();
        }
        let mut prefixes: Vec<&Prefix> = self.between.prefixes.iter().collect();
        // Names break ties, so that lines do not jump.
        prefixes.sort_by(|one, other| {
            let by_count = match self.order {
                Order::Gets => other.gets.cmp(&one.gets),
                Order::Hits => other.hits.cmp(&one.hits),
                Order::Sets => other.sets.cmp(&one.sets),
                Order::Name => std::cmp::Ordering::Equal,
            };
            by_count.then_with(|| one.name.cmp(&other.name))
        });
        let width = columns.saturating_sub(25).clamp(14, 60);
        let head = format!(
            "{:<width$} {:>7} {:>8} {:>7}",
            "prefix", "gets/s", "hits", "sets/s"
        );
        let lines = prefixes.iter().take(rows - 2).map(|prefix| {
            format!(
                "{:<width$} {:>7} {:>8} {:>7}",
                fit(&prefix.name, width),
                short(self.between.a_second(prefix.gets)),
                percent(prefix.hits as f64, prefix.gets as f64),
                short(self.between.a_second(prefix.sets)),
            )
        });
        [String::new(), head].into_iter().chain(lines).collect()
    }
}

/// The beginning of a line that fits, without characters that would move the cursor.
pub(super) fn fit(line: &str, columns: usize) -> String {
    let plain = line
        .chars()
        .map(|char| if char.is_control() { '?' } else { char });
    plain.take(columns).collect()
}

/// A number in up to six characters.
fn short(number: f64) -> String {
    match number {
        _ if number >= 999_950_000.0 => format!("{:.2}G", number / 1e9),
        _ if number >= 999_950.0 => format!("{:.2}M", number / 1e6),
        _ if number >= 99_950.0 => format!("{:.0}k", number / 1e3),
        _ if number >= 9_995.0 => format!("{:.1}k", number / 1e3),
        _ if number >= 10.0 || number == 0.0 => format!("{number:.0}"),
        _ => format!("{number:.1}"),
    }
}

fn bytes(number: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (number.max(1.0).log2() / 10.0) as usize;
    let power = power.min(units.len() - 1);
    let scaled = number / 1024_f64.powi(power as i32);
    match power {
        0 => format!("{scaled:.0} B"),
        _ => format!("{scaled:.1} {}", units[power]),
    }
}

fn percent(part: f64, whole: f64) -> String {
    match whole > 0.0 {
        true => format!("{:.1} %", part / whole * 100.0),
        false => "-".to_owned(),
    }
}

fn duration(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match days {
        0 => format!("{hours}:{minutes:02}:{:02}", seconds % 60),
        days => format!("{days} d {hours}:{minutes:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::times::Times;
    use super::*;

    #[test]
    fn every_line_fits_and_says_what_there_is() {
        let stats = [
            ("version", "1.6.45"),
            ("nuthatch_version", "0.1.0"),
            ("uptime", "90061"),
            ("cmd_get", "3000000"),
            ("get_hits", "2000"),
            ("get_misses", "2000"),
            ("limit_maxbytes", "1073741824"),
            ("memory_used", "536870912"),
            ("memory_values", "400000000"),
            ("more_hits_10", "30000"),
            ("more_hits_25", "0"),
            ("more_hits_50", "0"),
            ("more_hits_100", "3000000"),
        ];
        let mut between = Between::of(&[], &stats);
        let times = ["STAT get:12.5 7", "STAT get:20000.25 1"].map(str::to_owned);
        between.times = Some(Times::parse(&times));
        between.hot = vec![("user:1:name".to_owned(), 12.5), ("x".repeat(200), 1.0)];
        let prefix = Prefix {
            name: "user".to_owned(),
            gets: 500,
            hits: 250,
            sets: 10,
        };
        between.prefixes = vec![prefix; 30];
        let mut history = History::default();
        for look in 0..300 {
            history.push(f64::from(look));
        }
        let view = View::new("127.0.0.1:11211", &between, &history, Order::default());
        for (columns, rows) in [(80, 24), (40, 10), (200, 60), (1, 1), (0, 0)] {
            let lines = view.lines(columns, rows);
            assert!(lines.len() <= rows);
            assert!(lines.iter().all(|line| line.chars().count() <= columns));
        }
        let text = view.lines(80, 24).join("\n");
        for part in [
            "up 1 d 1:01",
            "1.50M",
            "50.0 %",
            "512.0 MiB of 1.0 GiB",
            "values 100%",
            "ghosts 0%",
            "+10% 1.0 %",
            "+100% 100.0 %",
            "20000.2",
            "user:1:name",
            "50.0 %     5.0",
            "█",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn numbers_stay_short() {
        for (number, said) in [
            (0.0, "0"),
            (1.25, "1.2"),
            (12.4, "12"),
            (9_994.0, "9994"),
            (12_345.0, "12.3k"),
            (123_456.0, "123k"),
            (1_234_567.0, "1.23M"),
            (5e9, "5.00G"),
        ] {
            assert_eq!(short(number), said);
            assert!(said.len() <= 6);
        }
        assert_eq!(bytes(0.0), "0 B");
        assert_eq!(bytes(1536.0), "1.5 KiB");
        assert_eq!(fit("a\x1b[2Jb", 4), "a?[2");
    }
}
