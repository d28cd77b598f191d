//! Results: a table for each trace, the misses of all traces together, JSON.

use std::fmt::Write;

use nuthatch_engine::stats::MORE_MEMORY;
use nuthatch_program::Failure;
use serde::Serialize;

use crate::live::{MemoryUse, MoreHits};
use crate::policy::Movement;
use crate::simulate::Hits;
use crate::size::{By, CacheSize, bytes_in_words, whole};
use crate::trace::Trace;

/// The result of one contender at one size.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// None if it cannot have this size.
    pub hits: Option<Hits>,
    pub memory: MemoryUse,
    /// An engine's estimate of its hits with more memory.
    pub more_hits: Option<MoreHits>,
    /// What a simulated store holds, and what it moved.
    pub movement: Option<Movement>,
    /// Why there are no hits.
    pub note: Option<String>,
}

/// The results of one contender at each size.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    /// True for a policy that a cache could have.
    pub is_online_policy: bool,
    pub cells: Vec<Cell>,
}

/// The results of all contenders on one trace.
#[derive(Clone, Debug)]
pub struct Results {
    pub trace: String,
    /// The trace's file.
    pub path: String,
    pub by: By,
    pub requests: u64,
    pub keys: u64,
    /// 100 % of the trace: bytes or items.
    pub whole: u64,
    /// As typed, and in bytes or items.
    pub sizes: Vec<(CacheSize, u64)>,
    pub rows: Vec<Row>,
    /// Servers that were running already, each in its own size.
    pub running: Vec<Running>,
}

/// The result of a server that was running already.
#[derive(Clone, Debug)]
pub struct Running {
    pub name: String,
    /// Its memory limit in bytes.
    pub limit: u64,
    pub cell: Cell,
}

/// Width of a column of numbers.
const COLUMN: usize = 10;

impl Results {
    pub fn new(trace: &Trace, by: By, sizes: Vec<(CacheSize, u64)>, rows: Vec<Row>) -> Self {
        Self {
            trace: trace.name.clone(),
            path: trace.path.clone(),
            by,
            requests: trace.requests.len() as u64,
            keys: trace.keys.len() as u64,
            whole: whole(trace, by),
            sizes,
            rows,
            running: Vec::new(),
        }
    }

    /// A size in words.
    pub fn size_in_words(&self, size: u64) -> String {
        match self.by {
            By::Bytes => bytes_in_words(size),
            By::Items => size.to_string(),
        }
    }

    /// For people: percent of the requests, or of the bytes, that hit.
    pub fn text(&self, bytes: bool) -> String {
        let mut text = String::new();
        let each = match self.by {
            By::Bytes => format!(", {} if each is held once", bytes_in_words(self.whole)),
            By::Items => String::new(),
        };
        let (trace, requests, keys) = (&self.trace, self.requests, self.keys);
        let what = if bytes { "bytes" } else { "requests" };
        // Writing to a String does not fail, here and below.
        let _ = writeln!(
            text,
            "{trace}: {requests} requests for {keys} keys{each}; % of the {what} that hit"
        );
        let width = self.name_width();
        let heads = self.sizes.iter().map(|(typed, _)| typed.to_string());
        line(&mut text, width, "", heads);
        let heads = self.sizes.iter().map(|(_, size)| self.size_in_words(*size));
        line(&mut text, width, "", heads);
        for row in &self.rows {
            let cells = row.cells.iter().map(|cell| percent(cell.share(bytes)));
            line(&mut text, width, &row.name, cells);
        }
        if let Some(best) = self.best(bytes) {
            line(&mut text, width, BEST, best.into_iter());
        }
        for (name, of) in MEMORY {
            for row in &self.rows {
                if row.cells.iter().any(|cell| of(&cell.memory).is_some()) {
                    let cells = row.cells.iter().map(|cell| amount(of(&cell.memory)));
                    line(&mut text, width, &format!("{}, {name}", row.name), cells);
                }
            }
        }
        for row in &self.rows {
            if row.cells.iter().any(|cell| cell.movement.is_some()) {
                let of = |words: fn(Movement) -> String| {
                    let cells = row.cells.iter();
                    cells.map(move |cell| cell.movement.map_or("-".to_owned(), words))
                };
                let items = of(|movement| movement.items.to_string());
                line(&mut text, width, &format!("{}, items", row.name), items);
                let moved = of(Movement::moved_by_stored);
                line(&mut text, width, &format!("{}, moved", row.name), moved);
            }
        }
        for running in &self.running {
            let hits = percent(running.cell.share(bytes));
            let resident = amount(running.cell.memory.resident);
            let (name, limit) = (&running.name, bytes_in_words(running.limit));
            let _ = writeln!(text, "  {name} of {limit}: {hits}, resident {resident}");
        }
        for row in &self.rows {
            for ((typed, _), cell) in self.sizes.iter().zip(&row.cells) {
                if let Some(note) = &cell.note {
                    let _ = writeln!(text, "  {} has no {typed}: {note}", row.name);
                }
            }
        }
        text.push('\n');
        text
    }

    /// For people: percent of the requests that would have hit with more memory, as engines estimate.
    pub fn estimates(&self) -> String {
        let mut text = format!("{}, with more memory, estimated\n", self.trace);
        let width = self.name_width() + ", 100 % more".len();
        for row in self.rows.iter().filter(|row| row.has_estimates()) {
            for (step, percent_more) in MORE_MEMORY.iter().enumerate() {
                let cells = row.cells.iter().map(|cell| percent(cell.estimate(step)));
                let name = format!("{}, {percent_more} % more", row.name);
                line(&mut text, width, &name, cells);
            }
        }
        text.push('\n');
        text
    }

    /// The shares of the best simulated policies that do not know the future, if there are several.
    fn best(&self, bytes: bool) -> Option<Vec<String>> {
        let online: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.is_online_policy)
            .collect();
        if online.len() < 2 {
            return None;
        }
        let best = |column: usize| {
            let shares = online.iter().map(|row| row.cells[column].share(bytes));
            percent(shares.flatten().reduce(f64::max))
        };
        Some((0..self.sizes.len()).map(best).collect())
    }

    fn name_width(&self) -> usize {
        let memory = MEMORY.map(|(name, _)| name.len() + 2).into_iter().max();
        let width = |row: &Row| {
            let name = row.name.chars().count();
            let has_memory = (row.cells.iter())
                .any(|cell| cell.memory != MemoryUse::default() || cell.movement.is_some());
            name + memory.filter(|_| has_memory).unwrap_or(0)
        };
        self.rows
            .iter()
            .map(width)
            .max()
            .unwrap_or(0)
            .max(BEST.len())
    }

    /// For programs: a line for each row and size.
    pub fn json(&self) -> Result<String, Failure> {
        let mut text = String::new();
        for row in &self.rows {
            for ((typed, size), cell) in self.sizes.iter().zip(&row.cells) {
                text += &self.json_line(&row.name, &typed.to_string(), *size, cell)?;
            }
        }
        for Running { name, limit, cell } in &self.running {
            text += &self.json_line(name, "its own", *limit, cell)?;
        }
        Ok(text)
    }

    fn json_line(
        &self,
        name: &str,
        typed: &str,
        size: u64,
        cell: &Cell,
    ) -> Result<String, Failure> {
        let line = Line {
            trace: &self.trace,
            path: &self.path,
            name,
            size_typed: typed,
            size,
            size_unit: match self.by {
                By::Bytes => "bytes",
                By::Items => "items",
            },
            size_shown: self.size_in_words(size),
            keeps_size: cell.memory.resident.map(|bytes| is_near(bytes, size)),
            keys: self.keys,
            requests: self.requests,
            hits: cell.hits.map(|hits| hits.hits),
            hit_ratio: cell.share(false),
            miss_ratio: cell.share(false).map(|hits| 1.0 - hits),
            bytes: cell.hits.map(|hits| hits.bytes),
            hit_bytes: cell.hits.map(|hits| hits.hit_bytes),
            byte_hit_ratio: cell.share(true),
            resident: cell.memory.resident,
            resident_peak: cell.memory.resident_peak,
            used: cell.memory.used,
            more_hits: cell.more_hits,
            items: cell.movement.map(|movement| movement.items),
            stored_bytes: cell.movement.map(|movement| movement.stored),
            moved_bytes: cell.movement.map(|movement| movement.moved),
            note: cell.note.as_deref(),
        };
        let line = serde_json::to_string(&line);
        line.map(|line| line + "\n")
            .map_err(|error| Failure::run(error.to_string()))
    }
}

impl Row {
    fn has_estimates(&self) -> bool {
        self.cells.iter().any(|cell| cell.more_hits.is_some())
    }
}

impl Cell {
    /// The share of the requests that would have hit with this step of more memory.
    fn estimate(&self, step: usize) -> Option<f64> {
        let (hits, more) = self.hits.zip(self.more_hits)?;
        let all = Hits {
            hits: hits.hits + more[step],
            ..hits
        };
        Some(all.ratio())
    }

    /// The cell of a policy.
    pub fn simulated(hits: Hits, movement: Option<Movement>) -> Self {
        Self {
            movement,
            ..Self::live(hits, MemoryUse::default())
        }
    }

    /// The cell of a cache that takes memory.
    pub fn live(hits: Hits, memory: MemoryUse) -> Self {
        Self {
            hits: Some(hits),
            memory,
            ..Self::default()
        }
    }

    /// The cell of a cache that cannot have the size.
    pub fn none(note: String) -> Self {
        Self {
            note: Some(note),
            ..Self::default()
        }
    }

    /// The share of the requests, or of the bytes, that hit.
    pub fn share(&self, bytes: bool) -> Option<f64> {
        self.hits.map(|hits| match bytes {
            true => hits.byte_ratio(),
            false => hits.ratio(),
        })
    }
}

/// The row of the best policy that does not know the future.
const BEST: &str = "best online policy";

/// Kinds of memory that a table shows, if they are known.
type MemoryKind = (&'static str, fn(&MemoryUse) -> Option<u64>);
const MEMORY: [MemoryKind; 3] = [
    ("resident", |memory| memory.resident),
    ("peak", |memory| memory.resident_peak),
    ("used", |memory| memory.used),
];

/// Whether a server whose limit is `size` is resident in about as much: a program has some memory beside its items, and a
/// server that takes far more is another comparison.
fn is_near(resident: u64, size: u64) -> bool {
    let beside = (size * 2 / 5).max(8 << 20);
    resident <= size + beside
}

/// Bytes in words, if they are known.
fn amount(bytes: Option<u64>) -> String {
    bytes.map_or("-".to_owned(), bytes_in_words)
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.2}", 100.0 * share))
}

fn line(text: &mut String, width: usize, name: &str, cells: impl Iterator<Item = String>) {
    let _ = write!(text, "  {name:width$}");
    for cell in cells {
        let _ = write!(text, " {cell:>COLUMN$}");
    }
    text.push('\n');
}

/// One line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    trace: &'a str,
    path: &'a str,
    name: &'a str,
    size_typed: &'a str,
    size: u64,
    size_unit: &'a str,
    /// The size as the tables show it.
    size_shown: String,
    /// Whether what is resident is near the size; nothing if that is not known.
    keeps_size: Option<bool>,
    keys: u64,
    requests: u64,
    hits: Option<u64>,
    hit_ratio: Option<f64>,
    miss_ratio: Option<f64>,
    bytes: Option<u64>,
    hit_bytes: Option<u64>,
    byte_hit_ratio: Option<f64>,
    resident: Option<u64>,
    resident_peak: Option<u64>,
    used: Option<u64>,
    more_hits: Option<MoreHits>,
    items: Option<u64>,
    stored_bytes: Option<u64>,
    moved_bytes: Option<u64>,
    note: Option<&'a str>,
}

/// Misses of all contenders compared with the misses of one, over all traces.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    sizes: Vec<String>,
    rows: Vec<SummaryRow>,
    traces: usize,
}

#[derive(Clone, Debug)]
struct SummaryRow {
    name: String,
    /// For each size the logarithms of misses / the baseline's misses, one for each trace.
    ratios: Vec<Vec<f64>>,
}

impl Summary {
    /// Adds a trace, if it was replayed on the baseline.
    pub fn add(&mut self, results: &Results, baseline: &str) {
        let Some(base) = results.rows.iter().find(|row| row.name == baseline) else {
            return;
        };
        self.traces += 1;
        self.sizes = results
            .sizes
            .iter()
            .map(|(typed, _)| typed.to_string())
            .collect();
        for row in &results.rows {
            let at = self.rows.iter().position(|known| known.name == row.name);
            let at = at.unwrap_or_else(|| {
                let (name, ratios) = (row.name.clone(), vec![Vec::new(); row.cells.len()]);
                self.rows.push(SummaryRow { name, ratios });
                self.rows.len() - 1
            });
            let known = &mut self.rows[at];
            for (ratios, (cell, base)) in known
                .ratios
                .iter_mut()
                .zip(row.cells.iter().zip(&base.cells))
            {
                // The first request misses in every cache, so neither is 0.
                if let Some((hits, base)) = cell.hits.zip(base.hits) {
                    ratios.push((hits.miss_ratio() / base.miss_ratio()).ln());
                }
            }
        }
    }

    /// For people; empty if no trace was replayed on the baseline.
    pub fn text(&self, baseline: &str) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let traces = self.traces;
        let mut text =
            format!("misses / those of {baseline}, in %: geometric mean of {traces} traces\n");
        let width = self.rows.iter().map(|row| row.name.chars().count());
        let width = width.max().unwrap_or(0);
        let heads = self.sizes.iter().cloned().chain(["all".to_owned()]);
        line(&mut text, width, "", heads);
        for row in &self.rows {
            let all: Vec<f64> = row.ratios.concat();
            let means = row.ratios.iter().chain([&all]).map(|ratios| mean(ratios));
            line(&mut text, width, &row.name, means);
        }
        text
    }
}

/// The geometric mean of ratios whose logarithms these are.
fn mean(logarithms: &[f64]) -> String {
    let count = logarithms.len() as f64;
    let mean = (count > 0.0).then(|| (logarithms.iter().sum::<f64>() / count).exp());
    percent(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(misses: [[u64; 2]; 2]) -> Results {
        let cell = |misses| {
            Cell::simulated(
                Hits {
                    requests: 100,
                    hits: 100 - misses,
                    bytes: 1000,
                    hit_bytes: 10,
                },
                None,
            )
        };
        let row = |name: &str, misses: [u64; 2]| Row {
            name: name.to_owned(),
            is_online_policy: true,
            cells: misses.map(cell).to_vec(),
        };
        let size = |text: &str| (text.parse().unwrap(), 2048);
        Results {
            trace: "t".to_owned(),
            path: "traces/t.txt".to_owned(),
            by: By::Bytes,
            requests: 100,
            keys: 10,
            whole: 1 << 20,
            sizes: vec![size("1%"), size("2k")],
            rows: vec![row("lru", misses[0]), row("arc", misses[1])],
            running: Vec::new(),
        }
    }

    #[test]
    fn a_server_keeps_its_size_with_some_memory_beside_it() {
        for (resident, size, near) in [
            (8, 0, true),
            (9, 0, false),
            (139, 100, true),
            (141, 100, false),
        ] {
            assert_eq!(
                is_near(resident << 20, size << 20),
                near,
                "{resident} of {size}"
            );
        }
    }

    #[test]
    fn a_table_has_a_row_for_each_contender() {
        let results = results([[50, 40], [25, 45]]);
        let expected = "\
t: 100 requests for 10 keys, 1.00 MiB if each is held once; % of the requests that hit
                             1%         2k
                       2.00 KiB   2.00 KiB
  lru                     50.00      60.00
  arc                     75.00      55.00
  best online policy      75.00      60.00

";
        assert_eq!(results.text(false), expected);
        assert!(
            results
                .text(true)
                .contains("lru                      1.00       1.00")
        );
    }

    #[test]
    fn live_caches_show_their_memory_and_what_they_cannot_do() {
        let mut results = results([[50, 40], [25, 45]]);
        let memory = MemoryUse {
            resident: Some(1 << 20),
            ..MemoryUse::default()
        };
        let hits = results.rows[1].cells[1].hits.unwrap();
        results.rows[1] = Row {
            name: "server".to_owned(),
            is_online_policy: false,
            cells: vec![Cell::none("too small".to_owned()), Cell::live(hits, memory)],
        };
        results.running.push(Running {
            name: "host:1".to_owned(),
            limit: 1 << 26,
            cell: Cell::live(hits, memory),
        });
        let text = results.text(false);
        for line in [
            "  server                      -      55.00\n",
            "  server, resident            -   1.00 MiB\n",
            "  server has no 1%: too small\n",
            "  host:1 of 64.0 MiB: 55.00, resident 1.00 MiB\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let mut summary = Summary::default();
        summary.add(&results, "lru");
        assert!(
            summary
                .text("lru")
                .contains("server          -     112.50     112.50")
        );
        assert_eq!(results.json().unwrap().lines().count(), 5);
    }

    #[test]
    fn simulated_stores_show_what_they_hold_and_moved() {
        let mut results = results([[50, 40], [25, 45]]);
        results.rows[1].cells[1].movement = Some(Movement {
            items: 7,
            stored: 1000,
            moved: 250,
        });
        let text = results.text(false);
        for line in [
            "  arc, items                  -          7\n",
            "  arc, moved                  -       0.25\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let json = results.json().unwrap();
        let last: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
        assert_eq!(
            (&last["items"], &last["moved_bytes"]),
            (&7.into(), &250.into())
        );
    }

    #[test]
    fn json_has_a_line_for_each_cell() {
        let json = results([[50, 40], [25, 45]]).json().unwrap();
        assert_eq!(json.lines().count(), 4);
        let last: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
        assert_eq!(last["name"], "arc");
        assert_eq!(last["size_typed"], "2k");
        assert_eq!(last["size"], 2048);
        assert_eq!(last["hit_ratio"], 0.55);
        let misses = last["miss_ratio"].as_f64().unwrap();
        assert!((misses - 0.45).abs() < 1e-9, "{misses}");
        assert_eq!(last["byte_hit_ratio"], 0.01);
    }

    #[test]
    fn misses_of_traces_are_averaged_as_ratios() {
        let mut summary = Summary::default();
        summary.add(&results([[50, 40], [25, 40]]), "lru");
        summary.add(&results([[10, 10], [20, 40]]), "lru");
        let expected = "\
misses / those of lru, in %: geometric mean of 2 traces
              1%         2k        all
  lru     100.00     100.00     100.00
  arc     100.00     200.00     141.42
";
        assert_eq!(summary.text("lru"), expected);
        let mut none = Summary::default();
        none.add(&results([[10, 10], [20, 40]]), "fifo");
        assert_eq!(none.text("fifo"), "");
    }
}
