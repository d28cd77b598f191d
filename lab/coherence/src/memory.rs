//! Private caches, a third-level cache a socket, and a directory that keeps them coherent (MESI).
//!
//! A line is modified or exclusive in the caches of one core, its owner, or has copies in several. The third level holds
//! what the cores of its socket hold. A transfer that gives a line to another owner keeps it busy until it has arrived:
//! who wants it meanwhile waits. A line that leaves a socket keeps the socket's links busy for a moment.
//!
//! Invariants:
//! 1. A line with an owner has no copy elsewhere.
//! 2. Who holds a line in a private cache is its owner or among its holders, and the reverse.

use crate::machine::Machine;

/// Time is counted in parts of a cycle, so that a fraction of a cycle is not lost.
pub const TICKS: u64 = 16;

/// What is done to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A locked instruction.
    Atomic,
}

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum From {
    /// The core's first level.
    First,
    /// The core's second level.
    Second,
    /// A cache of the same socket; for a store also the right to write to it.
    Socket,
    /// Another socket's cache, or the right to write that had to be got there.
    Other,
    /// Memory.
    Memory,
}

/// How an access went.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Where the line came from.
    pub from: From,
    /// Ticks from the access until its end.
    pub ticks: u64,
    /// How many of them it waited for the line or for links.
    pub waited: u64,
}

const NOBODY: u8 = u8::MAX;

/// A line in the directory.
#[derive(Clone, Copy)]
struct Line {
    /// Cores that have a copy; the owner's bit too.
    holders: u128,
    /// The core that may write to it, or [`NOBODY`].
    owner: u8,
    /// The owner has written to it.
    modified: bool,
    /// Sockets whose third level has it.
    sockets: u8,
    /// Until then it is on its way.
    busy_until: u64,
}

/// A set-associative cache of line numbers; the least recently used line of a set goes.
struct Cache {
    ways: usize,
    sets: usize,
    /// Line + 1, newest first; 0 is empty.
    lines: Vec<u32>,
}

impl Cache {
    fn new(bytes: usize, ways: usize) -> Self {
        let sets = (bytes / 64 / ways).max(1);
        Self {
            ways,
            sets,
            lines: vec![0; sets * ways],
        }
    }

    fn set(&mut self, line: u32) -> &mut [u32] {
        // Multiplied, so that lines at equal distances do not share a few sets.
        let mixed = u64::from(line).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let set = (mixed as usize * self.sets) >> 32;
        &mut self.lines[set * self.ways..(set + 1) * self.ways]
    }

    /// True if the line is here; then it is the newest.
    fn touch(&mut self, line: u32) -> bool {
        let set = self.set(line);
        match set.iter().position(|&held| held == line + 1) {
            Some(at) => {
                set[..=at].rotate_right(1);
                true
            }
            None => false,
        }
    }

    /// Takes a line in that is not here; returns the one that had to go.
    fn insert(&mut self, line: u32) -> Option<u32> {
        let set = self.set(line);
        set.rotate_right(1);
        let gone = std::mem::replace(&mut set[0], line + 1);
        gone.checked_sub(1)
    }

    fn remove(&mut self, line: u32) {
        let set = self.set(line);
        if let Some(at) = set.iter().position(|&held| held == line + 1) {
            set[at..].rotate_left(1);
            set[set.len() - 1] = 0;
        }
    }
}

/// The memory of a machine.
pub struct Memory {
    machine: Machine,
    lines: Vec<Line>,
    firsts: Vec<Cache>,
    seconds: Vec<Cache>,
    thirds: Vec<Cache>,
    /// Until then a socket's links are busy.
    ports: Vec<u64>,
}

impl Memory {
    /// A memory of so many lines, in no cache.
    pub fn new(machine: &Machine, lines: usize) -> Self {
        let cores = machine.all_cores();
        let ways = machine.ways.is;
        let caches = |count, bytes| (0..count).map(|_| Cache::new(bytes, ways)).collect();
        let line = Line {
            holders: 0,
            owner: NOBODY,
            modified: false,
            sockets: 0,
            busy_until: 0,
        };
        Self {
            lines: vec![line; lines],
            firsts: caches(cores, machine.l1_bytes.is),
            seconds: caches(cores, machine.l2_bytes.is),
            thirds: caches(machine.sockets.is, machine.l3_bytes.is),
            ports: vec![0; machine.sockets.is],
            machine: machine.clone(),
        }
    }

    fn socket(&self, core: usize) -> usize {
        core / self.machine.cores.is
    }

    /// Before the start: puts a line into a socket's third level, where it lies at rest. If it does not fit beside the
    /// others, one of them is in memory.
    pub fn lay(&mut self, socket: usize, line: u32) {
        self.place_in_socket(socket, line);
    }

    /// Before the start: puts a line into a core's caches, as if the core had read it.
    pub fn lay_near(&mut self, core: usize, line: u32) {
        self.share(core, line);
    }

    /// A core's access to a line at a moment.
    pub fn access(&mut self, core: usize, line: u32, how: Use, now: u64) -> Outcome {
        let state = self.lines[line as usize];
        let holds = state.holders >> core & 1 == 1;
        let owns = state.owner == core as u8;
        if owns || holds && how == Use::Load {
            return self.hit(core, line, how);
        }
        let (from, socket, cycles) = self.source(core, line, how);
        let mut start = now.max(state.busy_until);
        if from >= From::Other {
            start = start.max(self.ports[socket]);
            self.ports[socket] = start + self.machine.port.is * TICKS;
        }
        let end = start + cycles * TICKS;
        let moves = how != Use::Load || state.owner != NOBODY;
        if moves {
            self.lines[line as usize].busy_until = end;
        }
        match how {
            Use::Load => self.share(core, line),
            Use::Store | Use::Atomic => self.own(core, line),
        }
        Outcome {
            from,
            ticks: end - now,
            waited: start - now,
        }
    }

    fn hit(&mut self, core: usize, line: u32, how: Use) -> Outcome {
        let first = self.firsts[core].touch(line);
        let there = self.seconds[core].touch(line);
        debug_assert!(there, "the second level holds what the first holds");
        if !first {
            // What the first level gives up stays in the second.
            self.firsts[core].insert(line);
        }
        let state = &mut self.lines[line as usize];
        state.modified |= how != Use::Load;
        let mut cycles = if first { 0 } else { self.machine.l2.is };
        if how == Use::Atomic {
            cycles += self.machine.atomic_own.is;
        }
        Outcome {
            from: if first { From::First } else { From::Second },
            ticks: cycles * TICKS,
            waited: 0,
        }
    }

    /// Where a line comes from that the core has not (or may not write to), the socket there, and the cycles.
    fn source(&self, core: usize, line: u32, how: Use) -> (From, usize, u64) {
        let machine = &self.machine;
        let state = &self.lines[line as usize];
        let here = self.socket(core);
        let (socket, table) = if state.owner != NOBODY {
            let table = match (how, state.modified) {
                (Use::Load, true) => &machine.load_modified,
                (Use::Load, false) => &machine.load_exclusive,
                (Use::Store, true) => &machine.store_modified,
                (Use::Store, false) => &machine.store_exclusive,
                (Use::Atomic, _) => &machine.atomic_modified,
            };
            (self.socket(usize::from(state.owner)), table)
        } else if state.sockets == 0 {
            let home = line as usize % machine.sockets.is;
            let distance = Machine::distance(here, home);
            return (From::Memory, home, machine.load_memory.is[distance]);
        } else {
            let there = (0..machine.sockets.is).filter(|&at| state.sockets >> at & 1 == 1);
            let by_distance = |&at: &usize| Machine::distance(here, at);
            let alone = state.holders & !(1 << core) == 0 && state.sockets == 1 << here;
            if how == Use::Load || alone {
                let nearest = there.min_by_key(by_distance).unwrap_or(here);
                (nearest, &machine.load_shared)
            } else {
                // The last copy that has to go decides.
                let farthest = there.max_by_key(by_distance).unwrap_or(here);
                let table = match how {
                    Use::Atomic => &machine.atomic_shared,
                    _ => &machine.store_shared,
                };
                (farthest, table)
            }
        };
        let distance = Machine::distance(here, socket);
        let from = if distance == 0 {
            From::Socket
        } else {
            From::Other
        };
        (from, socket, table.is[distance])
    }

    /// The core gets a copy.
    fn share(&mut self, core: usize, line: u32) {
        let state = self.lines[line as usize];
        let nowhere = state.holders == 0 && state.sockets == 0;
        let owner = usize::from(state.owner);
        if state.owner != NOBODY {
            self.lines[line as usize].owner = NOBODY;
            self.place_in_socket(self.socket(owner), line);
        }
        self.take_in(core, line);
        if nowhere {
            let state = &mut self.lines[line as usize];
            (state.owner, state.modified) = (core as u8, false);
        }
    }

    /// The core gets the only copy.
    fn own(&mut self, core: usize, line: u32) {
        let state = self.lines[line as usize];
        let others = state.holders & !(1 << core);
        self.drop_from(line, others);
        for socket in 0..self.thirds.len() {
            if socket != self.socket(core) && state.sockets >> socket & 1 == 1 {
                self.thirds[socket].remove(line);
            }
        }
        let kept = &mut self.lines[line as usize];
        kept.holders &= 1 << core;
        kept.sockets &= 1 << (core / self.machine.cores.is);
        self.take_in(core, line);
        let state = &mut self.lines[line as usize];
        (state.owner, state.modified) = (core as u8, true);
    }

    /// Removes a line from the private caches of these cores.
    fn drop_from(&mut self, line: u32, mut cores: u128) {
        while cores != 0 {
            let core = cores.trailing_zeros() as usize;
            cores &= cores - 1;
            self.firsts[core].remove(line);
            self.seconds[core].remove(line);
        }
    }

    /// Puts a line into a core's caches and its socket's.
    fn take_in(&mut self, core: usize, line: u32) {
        self.place_in_socket(self.socket(core), line);
        let bit = 1 << core;
        if self.lines[line as usize].holders & bit == 0 {
            self.lines[line as usize].holders |= bit;
            if let Some(gone) = self.seconds[core].insert(line) {
                self.firsts[core].remove(gone);
                let gone = &mut self.lines[gone as usize];
                gone.holders &= !bit;
                if gone.owner == core as u8 {
                    gone.owner = NOBODY;
                }
            }
            self.firsts[core].insert(line);
        } else {
            self.seconds[core].touch(line);
            if !self.firsts[core].touch(line) {
                self.firsts[core].insert(line);
            }
        }
    }

    /// Puts a line into a socket's third level. The line that has to go for it leaves the socket's cores too.
    fn place_in_socket(&mut self, socket: usize, line: u32) {
        let bit = 1 << socket;
        if self.lines[line as usize].sockets & bit != 0 {
            self.thirds[socket].touch(line);
            return;
        }
        self.lines[line as usize].sockets |= bit;
        let Some(gone) = self.thirds[socket].insert(line) else {
            return;
        };
        let cores = self.machine.cores.is;
        let of_socket = ((1_u128 << cores).wrapping_sub(1)) << (socket * cores);
        let state = self.lines[gone as usize];
        self.drop_from(gone, state.holders & of_socket);
        let state = &mut self.lines[gone as usize];
        state.sockets &= !bit;
        state.holders &= !of_socket;
        if state.owner != NOBODY && of_socket >> state.owner & 1 == 1 {
            state.owner = NOBODY;
        }
    }

    /// Checks the invariants of a line.
    #[cfg(test)]
    fn check(&self, line: u32) {
        let state = &self.lines[line as usize];
        if state.owner != NOBODY {
            assert_eq!(state.holders, 1 << state.owner, "invariant 1");
        }
        for (core, cache) in self.seconds.iter().enumerate() {
            let here = cache.lines.contains(&(line + 1));
            assert_eq!(here, state.holders >> core & 1 == 1, "invariant 2");
            assert!(here || !self.firsts[core].lines.contains(&(line + 1)));
        }
        for (socket, cache) in self.thirds.iter().enumerate() {
            let here = cache.lines.contains(&(line + 1));
            assert_eq!(here, state.sockets >> socket & 1 == 1);
        }
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
