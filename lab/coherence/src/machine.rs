//! A machine's parameters: a TOML file, each value with its source.

use std::path::Path;

use nuthatch_program::Failure;
use serde::{Deserialize, Serialize};

/// A value, and where it is from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sourced<T> {
    /// The value.
    pub is: T,
    /// Where it is from.
    pub source: String,
}

/// Cycles by distance: within the socket, one hop away, two hops.
pub type ByDistance = Sourced<[u64; 3]>;

/// A machine. Latencies are in cycles, without contention.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Sockets, each with a third-level cache and memory of its own.
    pub sockets: Sourced<usize>,
    /// Cores of a socket, each with a first- and a second-level cache of its own.
    pub cores: Sourced<usize>,
    /// Hardware threads of a core.
    pub threads: Sourced<usize>,
    /// Cycles in a nanosecond.
    pub ghz: Sourced<f64>,
    /// Bytes of a core's first-level cache of data.
    pub l1_bytes: Sourced<usize>,
    /// Bytes of a core's second-level cache.
    pub l2_bytes: Sourced<usize>,
    /// Bytes of a socket's third-level cache.
    pub l3_bytes: Sourced<usize>,
    /// Lines of a set, in all caches.
    pub ways: Sourced<usize>,
    /// A hit in the second level.
    pub l2: Sourced<u64>,
    /// A load of a line that another core has changed.
    pub load_modified: ByDistance,
    /// A load of a line that one other core has, and has not changed.
    pub load_exclusive: ByDistance,
    /// A load of a line that a third-level cache has.
    pub load_shared: ByDistance,
    /// A load from memory.
    pub load_memory: ByDistance,
    /// A store to a line that another core has changed.
    pub store_modified: ByDistance,
    /// A store to a line that one other core has.
    pub store_exclusive: ByDistance,
    /// A store to a line that has copies elsewhere.
    pub store_shared: ByDistance,
    /// An atomic operation on a line that one other core has.
    pub atomic_modified: ByDistance,
    /// An atomic operation on a line that has copies elsewhere.
    pub atomic_shared: ByDistance,
    /// An atomic operation on a line that the core owns.
    pub atomic_own: Sourced<u64>,
    /// Stores of a thread that may wait for their lines while it goes on.
    pub store_buffer: Sourced<usize>,
    /// Cycles of a load that the core hides behind other instructions.
    pub window: Sourced<u64>,
    /// Instructions a cycle, beside misses.
    pub ipc: Sourced<f64>,
    /// Cycles for which a line that leaves a socket keeps its links busy.
    pub port: Sourced<u64>,
}

const PAPER: &str = include_str!("../machines/paper.toml");
const HERE: &str = include_str!("../machines/here.toml");

/// The most cores that a line's set of owners can hold.
const CORES_MAX: usize = 128;

impl Machine {
    /// The machine of this name, or of this file.
    pub fn named(name: &str) -> Result<Self, Failure> {
        let text = match name {
            "paper" => PAPER.to_owned(),
            "here" => HERE.to_owned(),
            file => std::fs::read_to_string(Path::new(file)).map_err(|error| {
                Failure::Usage(format!(
                    "--machine {file}: not paper, here or a file: {error}"
                ))
            })?,
        };
        Self::parse(&text).map_err(|error| Failure::Usage(format!("--machine {name}: {error}")))
    }

    /// The same machine with these instructions a cycle.
    pub fn with_ipc(mut self, ipc: f64) -> Self {
        (self.ipc.is, self.ipc.source) = (ipc, "--ipc".to_owned());
        self
    }

    /// The same machine with lines that take so many times as long from other caches and from memory.
    pub fn with_latency(mut self, times: f64) -> Self {
        for of_kind in [
            &mut self.load_modified,
            &mut self.load_exclusive,
            &mut self.load_shared,
            &mut self.load_memory,
            &mut self.store_modified,
            &mut self.store_exclusive,
            &mut self.store_shared,
            &mut self.atomic_modified,
            &mut self.atomic_shared,
        ] {
            of_kind.is = of_kind.is.map(|cycles| (cycles as f64 * times) as u64);
            of_kind.source = format!("{}; times {times} (--latency)", of_kind.source);
        }
        self
    }

    fn parse(text: &str) -> Result<Self, String> {
        let machine: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        machine.check()?;
        Ok(machine)
    }

    fn check(&self) -> Result<(), String> {
        let counts = [
            ("sockets", self.sockets.is, 8),
            ("cores", self.cores.is, CORES_MAX),
            ("threads", self.threads.is, 8),
            ("ways", self.ways.is, 64),
            ("store_buffer", self.store_buffer.is, 1 << 10),
        ];
        for (name, value, most) in counts {
            if !(1..=most).contains(&value) {
                return Err(format!("{name}: 1 to {most}"));
            }
        }
        if self.all_cores() > CORES_MAX {
            return Err(format!("sockets times cores: at most {CORES_MAX}"));
        }
        for (name, value) in [("ghz", self.ghz.is), ("ipc", self.ipc.is)] {
            if !(0.01..=100.0).contains(&value) {
                return Err(format!("{name}: 0.01 to 100"));
            }
        }
        let bytes = [
            ("l1_bytes", self.l1_bytes.is),
            ("l2_bytes", self.l2_bytes.is),
            ("l3_bytes", self.l3_bytes.is),
        ];
        for (name, bytes) in bytes {
            if bytes < 64 * self.ways.is || bytes > 1 << 30 {
                return Err(format!("{name}: a set at least, and at most 1 GiB"));
            }
        }
        Ok(())
    }

    /// Cores of all sockets.
    pub fn all_cores(&self) -> usize {
        self.sockets.is * self.cores.is
    }

    /// The distance of two sockets: 0 to 2. Eight sockets are a cube, of which the longer diagonals are shortened to two
    /// hops; two or four are a part of it.
    pub fn distance(one: usize, other: usize) -> usize {
        ((one ^ other).count_ones() as usize).min(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_that_come_along_are_valid() {
        assert_eq!(Machine::named("paper").unwrap().all_cores(), 80);
        assert!(Machine::named("here").unwrap().all_cores() >= 1);
    }

    #[test]
    fn latencies_are_multiplied_and_say_so() {
        let slower = Machine::named("paper").unwrap().with_latency(1.5);
        let before = Machine::named("paper").unwrap();
        assert_eq!(
            slower.load_shared.is,
            before.load_shared.is.map(|is| is * 3 / 2)
        );
        assert!(slower.atomic_shared.source.contains("--latency"));
        assert_eq!(slower.l2.is, before.l2.is);
    }

    #[test]
    fn a_wrong_file_is_refused_with_its_name() {
        let failure = Machine::named("no-such-file.toml").unwrap_err();
        assert!(failure.to_string().contains("no-such-file.toml"));
        let twice = PAPER.replace("ghz = { is = 2.4", "ghz = { is = 0.0");
        assert!(Machine::parse(&twice).unwrap_err().contains("ghz"));
        let more = PAPER.replace("cores = { is = 10", "cores = { is = 100");
        assert!(Machine::parse(&more).unwrap_err().contains("at most 128"));
        let unknown = format!("{PAPER}\nl4 = 3\n");
        assert!(Machine::parse(&unknown).is_err());
    }

    #[test]
    fn no_socket_is_more_than_two_hops_away() {
        let far = (0..8).map(|other| Machine::distance(0, other));
        assert_eq!(far.collect::<Vec<_>>(), [0, 1, 1, 2, 1, 2, 2, 2]);
    }
}
