//! What the machine or its container gives of what the settings ask for. A server does with less, and warns: what
//! `stats` shows is what holds.

use std::num::NonZeroUsize;

use nuthatch_base::memory::group;

use crate::sys::{backlog_max, memory_of_machine};
use crate::system::{OTHER_FILES, raise_file_limit};
use nuthatch_settings::config::Config;

/// Lowers settings to what the system gives, and warns of each, and of a memory limit that is more than there is. A
/// start and `--check` call this.
pub fn keep_to(config: &mut Config, memory_limit: u64) {
    config.connections_max = connections(config.connections_max, config.threads);
    if let Some(most) = backlog_max()
        && most < config.backlog
    {
        let asked = config.backlog;
        tracing::warn!("-b {asked}: the system allows {most} (net.core.somaxconn)");
        config.backlog = most;
    }
    if let Some(words) = too_much_memory(memory_limit, group::limit(), memory_of_machine()) {
        tracing::warn!("{words}");
    }
}

/// Makes room for this many connections, as far as the system allows, and warns if it does not. Returns for how many
/// there is room.
pub fn connections(asked: NonZeroUsize, threads: NonZeroUsize) -> NonZeroUsize {
    let wanted = (asked.get() as u64).saturating_add(OTHER_FILES);
    let limit = raise_file_limit(wanted);
    if limit >= wanted {
        return asked;
    }
    let room = room(limit, threads).min(asked);
    if room < asked {
        tracing::warn!(
            "-c {asked}: the process may have {limit} file descriptors, enough for {room} connections (ulimit -n)"
        );
    }
    room
}

/// Descriptors of a server besides those of its workers and connections: standard streams, the log, signals,
/// listeners, metrics, a handover, files of items.
const SERVER_FILES: u64 = 20;
/// Descriptors of a worker: poll, waker, sockets for datagrams.
const WORKER_FILES: u64 = 4;

/// The connections for which this many descriptors suffice. Where they are so short, no connection that is refused is
/// kept until its client has read why, and few clients read metrics.
fn room(descriptors: u64, threads: NonZeroUsize) -> NonZeroUsize {
    let others = SERVER_FILES + WORKER_FILES * threads.get() as u64;
    let left = descriptors.saturating_sub(others);
    NonZeroUsize::new(left as usize).unwrap_or(NonZeroUsize::MIN)
}

/// Bytes that a server with this memory limit has when it is full, at most.
fn when_full(memory_limit: u64) -> u64 {
    const FIXED: u64 = 32 << 20;
    (memory_limit / 20)
        .saturating_add(memory_limit)
        .saturating_add(FIXED)
}

/// A warning if a full server needs more than the control group or the machine has.
fn too_much_memory(memory_limit: u64, group: Option<u64>, machine: Option<u64>) -> Option<String> {
    let container = group.map(|bytes| (bytes, "its control group (the container) allows"));
    let machine = machine.map(|bytes| (bytes, "the machine has"));
    let (least, whose) = container.into_iter().chain(machine).min()?;
    let full = when_full(memory_limit);
    (full > least).then(|| {
        let [limit, full, least] = [memory_limit, full, least].map(|bytes| bytes >> 20);
        format!(
            "-m {limit}: a full server has up to {full} MiB, and {whose} {least} MiB: the kernel would end it then"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tighter_of_container_and_machine_is_named() {
        const MIB: u64 = 1 << 20;
        let told = |limit, group, machine| too_much_memory(limit * MIB, group, machine);
        let (group, machine) = (Some(200 * MIB), Some(4096 * MIB));
        assert_eq!(told(64, group, machine), None);
        let words = told(1024, group, machine).unwrap();
        assert!(
            words.contains("-m 1024: ") && words.contains("container) allows 200 MiB"),
            "{words}"
        );
        // What the buffers and the index add counts too.
        assert!(told(200, group, machine).is_some());
        let words = told(8192, None, machine).unwrap();
        assert!(words.contains("the machine has 4096 MiB"), "{words}");
        // Without a limit, the first version of control groups tells a huge one.
        let words = told(8192, Some(u64::MAX >> 1), machine).unwrap();
        assert!(words.contains("the machine has"), "{words}");
        assert_eq!(told(1 << 30, None, None), None);
    }

    #[test]
    fn there_is_room_for_one_connection_at_least() {
        let threads = NonZeroUsize::new(4).unwrap();
        assert_eq!(room(60, threads).get(), 24);
        assert_eq!(room(10, threads).get(), 1);
        let asked = NonZeroUsize::new(7).unwrap();
        assert_eq!(connections(asked, threads), asked);
    }
}
