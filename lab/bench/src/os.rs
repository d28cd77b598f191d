//! Calls to the operating system: pinned threads, memory in use, another process's CPU time, its end.

use std::fs;
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// To the system, the thread or process that asks.
const CALLER: Pid = Pid::from_raw(0);

/// The cores that this process may use, in order.
pub fn cores() -> Vec<usize> {
    let allowed = sched_getaffinity(CALLER).unwrap_or_default();
    let cores: Vec<usize> = (0..CpuSet::count())
        .filter(|&core| allowed.is_set(core) == Ok(true))
        .collect();
    if cores.is_empty() { vec![0] } else { cores }
}

/// Pins the calling thread to one core.
pub fn pin(core: usize) -> Result<(), String> {
    pin_to(&[core])
}

/// Pins the calling thread, and what it starts from now on, to some cores.
pub fn pin_to(cores: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    for &core in cores {
        // One that the set has no place for is none of this machine's.
        let _ = set.set(core);
    }
    sched_setaffinity(CALLER, &set).map_err(|error| format!("cannot pin to {cores:?}: {error}"))
}

/// CPU time of a process, user and system, with that of threads that have ended. To the nanosecond, where the tick counts of
/// `/proc/PID/stat` are too coarse for a short run.
pub fn cpu_time(pid: u32) -> Result<Duration, String> {
    // No process has the largest of these numbers.
    let clock = clock_getcpuclockid(Pid::from_raw(pid.min(1 << 22) as i32));
    let time = clock.and_then(clock_gettime).map(Duration::from);
    time.map_err(|error| format!("CPU time of process {pid}: {error}"))
}

/// Threads of a process that have had at least a tenth of its CPU time.
pub fn working_threads(pid: u32) -> Result<usize, String> {
    let times = thread_times(pid)?;
    let tenth = times.iter().sum::<u64>() / 10;
    Ok(times.iter().filter(|&&time| time >= tenth.max(1)).count())
}

/// Nanoseconds on a core of each thread of a process that is alive.
fn thread_times(pid: u32) -> Result<Vec<u64>, String> {
    let folder = format!("/proc/{pid}/task");
    let tasks = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
    let mut times = Vec::new();
    for task in tasks.flatten() {
        // A thread that ended since the folder was read is left out.
        if let Ok(text) = fs::read_to_string(task.path().join("schedstat")) {
            times.push(on_cpu(&text).ok_or_else(|| format!("{folder}: schedstat: {text}"))?);
        }
    }
    Ok(times)
}

/// The first number of a schedstat: nanoseconds on a core.
fn on_cpu(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().next()?.parse().ok()
}

/// Bytes of memory that this process has now; 0 where the system does not report it.
pub fn resident() -> usize {
    bytes_in("/proc/self/status", "VmRSS:")
}

/// Bytes of it that lie in huge pages; 0 where the system does not report it.
pub fn in_huge_pages() -> usize {
    bytes_in("/proc/self/smaps_rollup", "AnonHugePages:")
}

/// A number of `/proc/PID/status` in bytes, as `VmRSS:`; `None` if there is no such process or the system does not
/// report it.
pub fn memory_of(pid: u32, name: &str) -> Option<u64> {
    match bytes_in(&format!("/proc/{pid}/status"), name) {
        0 => None,
        bytes => Some(bytes as u64),
    }
}

/// A number of kilobytes in a file of `/proc`, in bytes.
fn bytes_in(file: &str, name: &str) -> usize {
    let text = fs::read_to_string(file).unwrap_or_default();
    let kib = text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        rest.trim().strip_suffix(" kB")?.parse::<usize>().ok()
    });
    kib.unwrap_or(0) * 1024
}

/// Asks a process to end (SIGTERM). One that has ended already is fine.
pub fn ask_to_end(pid: u32) {
    // Numbers below 1 mean groups of processes.
    if let Some(pid) = i32::try_from(pid).ok().filter(|&pid| pid > 0) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_pinned() {
        let core = *cores().last().unwrap();
        let seen = std::thread::spawn(move || {
            pin(core).unwrap();
            cores()
        });
        assert_eq!(seen.join().unwrap(), [core]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn touched_memory_is_resident() {
        let bytes = 64 << 20;
        let before = resident();
        let touched = std::hint::black_box(vec![1_u8; bytes]);
        // Other tests of this process may give memory back meanwhile, but not so much.
        assert!(before > 0 && resident() >= before + bytes / 2);
        assert!(in_huge_pages() <= resident());
        drop(touched);
    }

    #[test]
    fn work_shows_in_cpu_time() {
        let pid = std::process::id();
        let before = cpu_time(pid).unwrap();
        let mut sum = 0u64;
        while cpu_time(pid).unwrap() < before + Duration::from_millis(5) {
            sum = (0..100_000u64).fold(sum, |sum, x| std::hint::black_box(sum ^ x));
        }
        assert!(cpu_time(u32::MAX).is_err());
        assert_eq!(on_cpu("17 2 3"), Some(17));
        assert_eq!(on_cpu("x"), None);
    }
}
