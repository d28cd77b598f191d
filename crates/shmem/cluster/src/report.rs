//! The report of a PE about the distributed store, for its operator: a name and a value a line.
//!
//! It is for the hour in which something does not answer. So it sends no message: servers put their statistics to every
//! PE, with the control words. And it waits for no session that a thread is using: what only such a session knows is
//! left out. The number of lines is bounded.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nuthatch_base::sync::clock::TICKS_PER_SECOND;
use nuthatch_base::sync::mutex::Mutex;
use nuthatch_fabric::Fabric;

use crate::bars::{self, Bars};
use crate::client::{Client, Kind};
use crate::control::{self, Control};
use crate::engine::Cluster;
use crate::layout::TALLY;
use crate::stats::ServerStats;

/// The most servers that are reported. If there are more, these are the first ones.
const SERVERS_MAX: usize = 64;

/// How many requests a session had for each server, as running counts.
pub type RequestCounts = Arc<[AtomicU64]>;

/// PEs that have sent nothing for a while.
#[derive(Default)]
pub struct SilentPes(Mutex<BTreeSet<usize>>);

impl SilentPes {
    fn has(&self, pe: usize) -> bool {
        self.0.lock().contains(&pe)
    }

    fn list(&self) -> String {
        let pes = self.0.lock();
        let pes: Vec<_> = pes.iter().take(SERVERS_MAX).map(usize::to_string).collect();
        match pes.is_empty() {
            true => "none".to_owned(),
            false => pes.join(","),
        }
    }
}

/// The lines.
#[derive(Default)]
struct Lines(Vec<(String, String)>);

impl Lines {
    fn add(&mut self, name: &str, value: impl Display) {
        self.0.push((name.to_owned(), value.to_string()));
    }

    fn of_server(&mut self, server: usize, name: &str, value: impl Display) {
        self.0
            .push((format!("server:{server}:{name}"), value.to_string()));
    }
}

impl<F: Fabric> Cluster<F> {
    /// Notes that a PE is silent, or is no longer.
    pub fn note_silence(&self, pe: usize, is_silent: bool) {
        let mut silent = self.silent.0.lock();
        match is_silent {
            true => silent.insert(pe),
            false => silent.remove(&pe),
        };
    }

    /// All lines of the report.
    pub(crate) fn report(&self) -> Vec<(String, String)> {
        let mut lines = Lines::default();
        self.write_this_pe(&mut lines);
        let servers = self.layout.servers;
        for server in 0..servers.min(SERVERS_MAX) {
            self.write_server(&mut lines, server);
        }
        if servers > SERVERS_MAX {
            lines.add("servers_left_out", servers - SERVERS_MAX);
        }
        lines.0
    }

    fn write_this_pe(&self, lines: &mut Lines) {
        let stats = self.client_stats();
        let fabric = &self.fabric;
        lines.add("pe", fabric.pe());
        lines.add("pes", fabric.pes());
        lines.add("servers", self.layout.servers);
        lines.add("sessions", self.clients.len());
        lines.add("silent_pes", self.silent.list());
        lines.add("directory_entries", self.config.directory);
        for (name, count) in [
            ("directory_hits", stats.directory_hits),
            ("directory_misses", stats.directory_misses),
            ("stale_pointers", stats.stale_pointers),
            ("direct_gets", stats.direct_gets),
            ("direct_misses", stats.direct_misses),
            ("direct_sets", stats.direct_sets),
            ("messages", stats.active),
            ("reads_again", stats.torn),
            ("locks_lost", stats.locks_lost),
            ("ring_full", stats.rings_full),
            ("recency_swaps", stats.recency_swaps),
        ] {
            lines.add(name, count);
        }
    }

    fn write_server(&self, lines: &mut Lines, server: usize) {
        let Control { epoch, flushes, .. } = Control::read(
            self.fabric
                .local(self.layout.control(server), control::WORDS),
        );
        let stats = self.told_by(server);
        let state = match (self.silent.has(server), self.fabric.is_gone(server)) {
            (true, _) => "silent",
            (_, true) => "gone",
            _ => "answers",
        };
        lines.of_server(server, "state", state);
        let ticks = self.latest_tick().saturating_sub(stats.tick);
        let seconds = ticks / u64::from(TICKS_PER_SECOND);
        lines.of_server(server, "told_seconds_ago", seconds);
        lines.of_server(server, "requests", self.requests(server));
        lines.of_server(server, "epoch", epoch);
        let bars = Bars::new(self.fabric.local(self.layout.bars(server), bars::WORDS));
        let classes = 0..self.layout.classes.len();
        let oldest = classes.map(|class| bars.of(class)).min().unwrap_or(epoch);
        lines.of_server(server, "expiration_bar", oldest);
        let flush = match (flushes.under_way, flushes.next) {
            (true, _) => "under way",
            (false, Some(_)) => "later",
            (false, None) => "none",
        };
        lines.of_server(server, "flush", flush);
        if let Some(session) = self.clients.iter().find_map(Mutex::try_lock) {
            write_choices(lines, server, &session);
        }
        write_stats(lines, server, &stats);
    }

    fn told_by(&self, server: usize) -> ServerStats {
        let at = self.layout.tally(server);
        ServerStats::read(self.fabric.local(at, TALLY))
    }

    /// The latest moment that any server has told.
    fn latest_tick(&self) -> u64 {
        let ticks = (0..self.layout.servers).map(|server| self.told_by(server).tick);
        ticks.max().unwrap_or(0)
    }

    /// Requests of this PE that were a server's to answer, since they were last counted from zero.
    fn requests(&self, server: usize) -> u64 {
        self.requests_in_all(server) - self.asked_before[server].load(Ordering::Relaxed)
    }

    fn requests_in_all(&self, server: usize) -> u64 {
        // Relaxed, here and above: counts.
        let of_session = |counts: &RequestCounts| counts[server].load(Ordering::Relaxed);
        self.requests.iter().map(of_session).sum()
    }

    /// Counts requests from zero.
    pub(crate) fn reset_requests(&self) {
        for server in 0..self.layout.servers {
            let sum = self.requests_in_all(server);
            self.asked_before[server].store(sum, Ordering::Relaxed);
        }
    }
}

/// Which way the session would choose for operations now, by how many of a kind a batch has.
fn write_choices<F: Fabric>(lines: &mut Lines, server: usize, session: &Client<F>) {
    let reached_by = match session.reaches(server) {
        true => "loads",
        false => "calls",
    };
    lines.of_server(server, "reached_by", reached_by);
    for kind in Kind::ALL {
        lines.of_server(server, kind.name(), session.choice(server, kind));
    }
}

fn write_stats(lines: &mut Lines, server: usize, stats: &ServerStats) {
    for (name, count) in [
        ("items", stats.items),
        ("item_bytes", stats.item_bytes),
        ("memory_limit", stats.memory_limit),
        ("memory_used", stats.memory_used),
        ("messages", stats.messages),
        ("ring_full", stats.rings_full),
        ("evictions", stats.evictions),
        ("expired", stats.expired),
        ("pages_moved", stats.pages_moved),
        ("stores_without_memory", stats.out_of_memory),
        ("overflowed", stats.overflowed),
        ("recovered", stats.recovered),
        ("blocks_lost", stats.blocks_lost),
        ("refused", stats.refused),
    ] {
        lines.of_server(server, name, count);
    }
}
