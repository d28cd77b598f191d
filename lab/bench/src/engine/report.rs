//! What the engine bench found.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use super::RivalForm;
use super::lines::Lines;
use super::operations::{Distribution, Mixed};
use crate::host::Host;
use crate::limit::{Limits, WayReport};
use crate::report::Spread;

/// The results of the engine bench.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What it was measured on.
    pub host: Host,
    /// The engine's name.
    pub engine: String,
    /// Items stored.
    pub items: u64,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// The sizes differ: `key_size` and `value_size` are the means.
    pub mixed: Option<Mixed>,
    /// Threads.
    pub threads: usize,
    /// Operations at a time.
    pub batch: usize,
    /// The share of gets.
    pub get_ratio: f64,
    /// The share of gets that ask for keys that are not stored.
    pub miss_ratio: f64,
    /// Sets are of new keys; else of stored ones.
    #[serde(default)]
    pub new_keys: bool,
    /// A get that finds nothing is followed by a set of its key, and both are one operation.
    #[serde(default)]
    pub store_misses: bool,
    /// Which keys are requested.
    pub dist: Distribution,
    /// Bytes that the engine used, and over which the limit was measured.
    pub memory_used: u64,
    /// Bytes that the whole process had when all sides were filled.
    pub resident: usize,
    /// Bytes of it in huge pages. The engines request huge pages; the heap, where rivals are, does so only if it is
    /// configured to.
    pub resident_in_huge_pages: usize,
    /// Million operations a second of the engine.
    pub mops: f64,
    /// The same with its spread.
    pub mops_spread: Spread,
    /// Hits among gets.
    pub hit_ratio: f64,
    /// The raw limit, where there is one.
    pub limit: Option<LimitReport>,
    /// Bytes of the value that was held while the engine's rounds ran, if one was.
    pub hold: Option<usize>,
    /// With that value / with none, round by round.
    pub ratio_nothing_held: Option<Spread>,
    /// All threads / one thread alone, round by round, if there are several.
    pub ratio_one_thread: Option<Spread>,
    /// How rivals hold keys and values, if they were measured.
    pub form: Option<RivalForm>,
    /// The rivals, by name.
    pub rivals: BTreeMap<String, RivalReport>,
}

/// The results of a rival.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RivalReport {
    /// Its version.
    pub version: String,
    /// Million operations a second.
    pub mops: f64,
    /// The same with its spread.
    pub mops_spread: Spread,
    /// Hits among gets.
    pub hit_ratio: f64,
    /// Engine / rival, round by round.
    pub ratio: Spread,
}

/// The raw limit: million random lines a second, divided by the lines of an operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitReport {
    /// The lines of an operation.
    pub lines: Lines,
    /// Million operations a second of those lines that are far larger than the caches: buckets and items.
    pub mops: Spread,
    /// Engine / limit, round by round.
    pub ratio: Spread,
    /// The same if the line of the recency is counted too.
    pub ratio_all_lines: Spread,
    /// The ways in which the limit was measured, the best first.
    pub ways: Vec<WayReport>,
}

impl LimitReport {
    /// From the rounds of the limit and those of the engine.
    pub(super) fn new(lines: Lines, limits: &Limits, ours: &[f64]) -> Self {
        let far = limits.best();
        let share = lines.far() / lines.all();
        let all: Vec<f64> = far.iter().map(|mops| mops * share).collect();
        Self {
            lines,
            mops: Spread::of(far.iter().copied()),
            ratio: Spread::of_ratios(ours, far),
            ratio_all_lines: Spread::of_ratios(ours, &all),
            ways: limits.ways(),
        }
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.host)?;
        writeln!(
            out,
            "engine {}: {} items of {} + {} bytes{} in {} MiB, {} threads, batches of {}{}{}",
            self.engine,
            self.items,
            self.key_size,
            self.value_size,
            self.mixed.map_or("", |_| " on average"),
            self.memory_used >> 20,
            self.threads,
            self.batch,
            if self.new_keys {
                ", sets of new keys"
            } else {
                ""
            },
            if self.store_misses {
                ", misses stored"
            } else {
                ""
            }
        )?;
        writeln!(
            out,
            "  {:<22} {:.2} Mop/s, hit ratio {:.4}",
            self.engine, self.mops_spread, self.hit_ratio
        )?;
        if let Some(ratio) = &self.ratio_one_thread {
            writeln!(
                out,
                "  {:<22} all threads / one: {ratio:.2}",
                "one thread alone"
            )?;
        }
        if let (Some(bytes), Some(ratio)) = (self.hold, &self.ratio_nothing_held) {
            writeln!(
                out,
                "  {:<22} a value of {bytes} bytes held / none: {ratio:.2}",
                "nothing held"
            )?;
        }
        if let Some(limit) = &self.limit {
            writeln!(out, "{limit}")?;
        }
        if let Some(form) = self.form {
            writeln!(
                out,
                "rivals of {form}; {} of {} MiB of the process in huge pages",
                self.resident_in_huge_pages >> 20,
                self.resident >> 20
            )?;
        }
        for (name, rival) in &self.rivals {
            let name = format!("{name} {}", rival.version);
            writeln!(
                out,
                "  {name:<22} {:.2} Mop/s, hit ratio {:.4}; engine / rival: {:.2}",
                rival.mops_spread, rival.hit_ratio, rival.ratio
            )?;
        }
        Ok(())
    }
}

impl Display for LimitReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lines {
            buckets,
            item,
            recency,
        } = self.lines;
        write!(
            out,
            "  {:<22} {:.2} Mop/s of {buckets:.2} + {item:.2} lines; engine / limit: {:.2}; with {recency:.2} of \
             recency: {:.2}",
            "limit", self.mops, self.ratio, self.ratio_all_lines
        )?;
        match self.ways.first() {
            Some(best) => write!(out, "; {best}"),
            None => Ok(()),
        }
    }
}

impl Display for RivalForm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Bytes => "byte strings",
            Self::Arrays => "arrays",
        })
    }
}
