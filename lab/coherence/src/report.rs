//! What the model found.

use std::fmt::{self, Display};

use serde::Serialize;

use crate::figures::{self, Number};
use crate::machine::Machine;
use crate::memory::TICKS;
use crate::recording::{Class, Recording};
use crate::replay::{Counted, Load, Sources};

/// The model's results.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What is modelled, and on which machine: all its parameters, with their sources.
    pub machine: Machine,
    /// The recordings.
    pub recorded: Vec<RecordedReport>,
    /// Engine by engine, and by the number of threads.
    pub rows: Vec<Row>,
}

/// What was recorded, and how much each thread did of it.
#[derive(Clone, Debug, Serialize)]
pub struct RecordedReport {
    /// The engine.
    pub engine: String,
    /// Its partitions.
    pub partitions: usize,
    /// Operations at a time.
    pub batch: usize,
    /// Operations recorded.
    pub operations: usize,
    /// Operations of each thread before those that are counted.
    pub warm_up: u64,
    /// Operations of each thread that are counted.
    pub counted: u64,
    /// Instructions of an operation, those of servers included.
    pub instructions_per_op: f64,
    /// Of them, those of servers.
    pub server_instructions_per_op: f64,
    /// Lines of messages of an operation that the engine itself counted.
    pub lines_counted_per_op: f64,
    /// The same as the recording has them: items.
    pub lines_recorded_per_op: f64,
}

impl RecordedReport {
    /// Of a recording.
    pub fn of(recording: &Recording, warm_up: u64, counted: u64) -> Self {
        let operations = recording.all_operations() as f64;
        let items: usize = recording.pieces.iter().map(|piece| piece.items.len()).sum();
        Self {
            engine: recording.engine.clone(),
            partitions: recording.partitions,
            batch: recording.batch,
            operations: recording.all_operations(),
            warm_up,
            counted,
            instructions_per_op: recording.instructions as f64 / operations,
            server_instructions_per_op: recording.served_instructions as f64 / operations,
            lines_counted_per_op: recording.lines_sent as f64 / operations,
            lines_recorded_per_op: items as f64 / operations,
        }
    }
}

/// One engine with so many threads.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The engine.
    pub engine: String,
    /// Hardware threads.
    pub threads: usize,
    /// Only one hardware thread of a core is used.
    pub one_a_core: bool,
    /// Cores and sockets in use.
    pub cores: usize,
    /// Sockets in use.
    pub sockets: usize,
    /// Bytes of the working set.
    pub working_set: usize,
    /// Million operations a second.
    pub mops: f64,
    /// The same, of a socket.
    pub mops_per_socket: f64,
    /// The same, of the row of cphash / this row; none if there is none with as many threads.
    pub cphash_ratio: Option<f64>,
    /// Million operations a second that were measured on this machine, if they were.
    pub measured_mops: Option<f64>,
    /// The model / the measurement.
    pub of_measured: Option<f64>,
    /// Cycles of a client for an operation.
    pub cycles_per_op: f64,
    /// Of them, those in which it waited for locks.
    pub lock_wait_per_op: f64,
    /// Of them, those in which it waited for servers.
    pub server_wait_per_op: f64,
    /// The share of their time that servers spend on messages.
    pub server_busy: f64,
    /// The share of operations that found a lock taken.
    pub locks_taken_share: f64,
    /// Lines that came from elsewhere in the socket, an operation: the paper's L2 misses.
    pub from_socket_per_op: f64,
    /// Lines from other sockets or memory, an operation: the paper's L3 misses.
    pub from_afar_per_op: f64,
    /// Cycles of each of them.
    pub from_socket_cycles: f64,
    /// Cycles of each of them, waits for busy lines and links included.
    pub from_afar_cycles: f64,
    /// Of all of that, what clients do.
    pub client: Side,
    /// And what servers do.
    pub server: Side,
    /// This row's part of the paper's Figure 6.
    pub figure_6: Vec<Number>,
    /// And of its Figure 7.
    pub figure_7: Vec<Number>,
    /// The lines by what they hold, and by who wanted them.
    pub lines: Vec<LinesReport>,
}

/// What clients or servers do for an operation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Side {
    /// Cycles: of a client all, of a server those in which it serves.
    pub cycles_per_op: f64,
    /// Lines from elsewhere in the socket.
    pub from_socket_per_op: f64,
    /// Cycles of each of them.
    pub from_socket_cycles: f64,
    /// Lines from other sockets or memory.
    pub from_afar_per_op: f64,
    /// Cycles of each of them, waits for busy lines and links included.
    pub from_afar_cycles: f64,
}

impl Side {
    fn of(cycles_per_op: f64, classes: &[Sources], operations: f64) -> Self {
        let per_op = |(lines, _): (u64, u64)| lines as f64 / operations;
        let (near, far) = (sum(classes, near), sum(classes, far));
        Self {
            cycles_per_op,
            from_socket_per_op: per_op(near),
            from_socket_cycles: each(near),
            from_afar_per_op: per_op(far),
            from_afar_cycles: each(far),
        }
    }
}

/// Lines of the socket, and their ticks.
fn near(sources: &Sources) -> (u64, u64) {
    (sources.socket, sources.near_ticks)
}

/// Lines of other sockets and of memory, and their ticks.
fn far(sources: &Sources) -> (u64, u64) {
    (sources.other + sources.memory, sources.far_ticks)
}

fn sum<'s>(
    of: impl IntoIterator<Item = &'s Sources>,
    what: fn(&Sources) -> (u64, u64),
) -> (u64, u64) {
    let all = of.into_iter().map(what);
    all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// The mean cycles of an access.
fn each((accesses, ticks): (u64, u64)) -> f64 {
    ticks as f64 / TICKS as f64 / accesses.max(1) as f64
}

/// Lines of a class that came from elsewhere, an operation.
#[derive(Clone, Debug, Serialize)]
pub struct LinesReport {
    /// Client or server.
    pub by: &'static str,
    /// What they hold.
    pub class: Class,
    /// From the same socket.
    pub from_socket: f64,
    /// From another socket.
    pub from_other: f64,
    /// From memory.
    pub from_memory: f64,
    /// Cycles of all of them.
    pub cycles: f64,
    /// Of them, those in which they waited for a busy line or busy links.
    pub waited: f64,
}

impl Row {
    /// Of a replay.
    pub fn of(recording: &Recording, machine: &Machine, load: &Load, counted: &Counted) -> Self {
        let operations = counted.operations.max(1) as f64;
        let per_op = |ticks: u64| ticks as f64 / TICKS as f64 / operations;
        let seconds = counted.ticks.max(1) as f64 / TICKS as f64 / machine.ghz.is / 1e9;
        let mops = counted.operations as f64 / seconds / 1e6;
        let of_core = if load.alone { 1 } else { machine.threads.is };
        let cores = load.threads.div_ceil(of_core);
        let sockets = cores.div_ceil(machine.cores.is);
        let (near, far) = (
            sum(counted.sources.iter().flatten(), near),
            sum(counted.sources.iter().flatten(), far),
        );
        let cycles_per_op = per_op(counted.ticks) * counted.clients as f64;
        let [client, server] = &counted.sources;
        let mut row = Self {
            engine: recording.engine.clone(),
            threads: load.threads,
            one_a_core: load.alone,
            cores,
            sockets,
            working_set: recording.working_set * load.copies,
            mops,
            mops_per_socket: mops / sockets as f64,
            cphash_ratio: None,
            measured_mops: None,
            of_measured: None,
            cycles_per_op,
            lock_wait_per_op: per_op(counted.lock_wait),
            server_wait_per_op: per_op(counted.awaited),
            server_busy: counted.served as f64
                / (counted.ticks.max(1) * counted.servers.max(1) as u64) as f64,
            locks_taken_share: counted.lock_misses as f64 / operations,
            from_socket_per_op: near.0 as f64 / operations,
            from_afar_per_op: far.0 as f64 / operations,
            from_socket_cycles: each(near),
            from_afar_cycles: each(far),
            client: Side::of(cycles_per_op, client, operations),
            server: Side::of(per_op(counted.served), server, operations),
            figure_6: Vec::new(),
            figure_7: Vec::new(),
            lines: lines(counted),
        };
        row.figure_6 = figures::figure_6(&row, recording.served);
        row.figure_7 = figures::figure_7(&row.lines, recording.served);
        row
    }
}

fn lines(counted: &Counted) -> Vec<LinesReport> {
    let operations = counted.operations.max(1) as f64;
    let mut found = Vec::new();
    for (by, classes) in ["client", "server"].into_iter().zip(&counted.sources) {
        for (class, sources) in Class::ALL.into_iter().zip(classes) {
            if sources.socket + sources.other + sources.memory == 0 {
                continue;
            }
            let per_op = |count: u64| count as f64 / operations;
            let cycles = |ticks: u64| per_op(ticks) / TICKS as f64;
            found.push(LinesReport {
                by,
                class,
                from_socket: per_op(sources.socket),
                from_other: per_op(sources.other),
                from_memory: per_op(sources.memory),
                cycles: cycles(sources.near_ticks + sources.far_ticks),
                waited: cycles(sources.waited),
            });
        }
    }
    found
}

impl Report {
    /// Sets each row's ratio to cphash's.
    pub fn compare(&mut self) {
        let place = |row: &Row| (row.threads, row.one_a_core, row.working_set);
        let cphash: Vec<_> = self
            .rows
            .iter()
            .filter(|row| row.engine == "cphash")
            .map(|row| (place(row), row.mops))
            .collect();
        for row in &mut self.rows {
            let same = cphash.iter().find(|(at, _)| *at == place(row));
            row.cphash_ratio = same.map(|(_, mops)| mops / row.mops);
        }
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "A model, not a measurement: {}", self.machine.name)?;
        for recorded in &self.recorded {
            writeln!(
                out,
                "recorded: {}, {} partitions, batches of {}, {} operations of {:.0} instructions, {:.0} of them by servers; \
                 lines of messages an operation: {:.3}, counted by the engine {:.3}; of each thread {} operations are counted, \
                 after {}",
                recorded.engine,
                recorded.partitions,
                recorded.batch,
                recorded.operations,
                recorded.instructions_per_op,
                recorded.server_instructions_per_op,
                recorded.lines_recorded_per_op,
                recorded.lines_counted_per_op,
                recorded.counted,
                recorded.warm_up
            )?;
        }
        writeln!(
            out,
            "engine    threads cores sockets working set  Mop/s  cphash is  cycles an op (locks, servers)  servers busy  \
             misses in the socket, beyond (cycles)"
        )?;
        for row in &self.rows {
            let ratio = row
                .cphash_ratio
                .map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
            writeln!(
                out,
                "{:<10}{:>7}{:>6}{:>8}{:>8} KiB{:>7.1}{:>11}{:>10.0} ({:.0}, {:.0}){:>12.0} %{:>10.2} ({:.0}), {:.2} \
                 ({:.0})",
                row.engine,
                row.threads,
                row.cores,
                row.sockets,
                row.working_set >> 10,
                row.mops,
                ratio,
                row.cycles_per_op,
                row.lock_wait_per_op,
                row.server_wait_per_op,
                100.0 * row.server_busy,
                row.from_socket_per_op,
                row.from_socket_cycles,
                row.from_afar_per_op,
                row.from_afar_cycles
            )?;
            if let (Some(measured), Some(ratio)) = (row.measured_mops, row.of_measured) {
                writeln!(
                    out,
                    "          measured here: {measured:.2} Mop/s; the model has {ratio:.2} of that"
                )?;
            }
        }
        self.show_lines(out)
    }
}

impl Report {
    /// The lines an operation, of the rows with the most threads.
    fn show_lines(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(most) = self.rows.iter().map(|row| row.threads).max() else {
            return Ok(());
        };
        writeln!(
            out,
            "lines an operation with {most} threads: in the socket, from another, from memory; cycles (waits)"
        )?;
        for row in self.rows.iter().filter(|row| row.threads == most) {
            for line in &row.lines {
                let class = format!("{:?}", line.class).to_lowercase();
                writeln!(
                    out,
                    "  {:<10}{:<8}{:<10}{:>6.2}{:>6.2}{:>6.2}{:>7.0} ({:.0})",
                    row.engine,
                    line.by,
                    class,
                    line.from_socket,
                    line.from_other,
                    line.from_memory,
                    line.cycles,
                    line.waited
                )?;
            }
        }
        Ok(())
    }
}
