//! Pinning a thread to a core (CPHash section 3).

use std::io;

/// Cores for server threads, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cores(Vec<usize>);

impl Cores {
    /// The cores that this process may use, from `first` on, and behind the last again from the first.
    ///
    /// Errors: the process may not use `first`, or the system cannot pin threads.
    pub(super) fn from(first: usize) -> io::Result<Self> {
        Self::of(usable()?, first)
    }

    fn of(mut usable: Vec<usize>, first: usize) -> io::Result<Self> {
        let Some(place) = usable.iter().position(|&core| core == first) else {
            let words = format!(
                "--pin {first}: not one of the cores that this process may use: {usable:?}"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        };
        usable.rotate_left(place);
        Ok(Self(usable))
    }

    /// The core of a thread. Where there are more threads than cores, several threads have the same.
    pub(super) fn of_thread(&self, number: usize) -> usize {
        self.0[number % self.0.len()]
    }
}

/// The cores that this process may use, in order: those of its affinity (taskset, cpusets).
///
/// Errors: the system does not say.
#[cfg(target_os = "linux")]
pub fn usable() -> io::Result<Vec<usize>> {
    use nix::sched::{CpuSet, sched_getaffinity};
    use nix::unistd::Pid;

    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let is_allowed = |&core: &usize| allowed.is_set(core).unwrap_or(false);
    Ok((0..CpuSet::count()).filter(is_allowed).collect())
}

/// Keeps the calling thread on one core. Errors: the thread may not use it.
#[cfg(target_os = "linux")]
pub(super) fn pin(core: usize) -> io::Result<()> {
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;

    let mut cores = CpuSet::new();
    cores.set(core)?;
    let this_thread = Pid::from_raw(0);
    Ok(sched_setaffinity(this_thread, &cores)?)
}

/// Fails on systems that cannot pin threads.
#[cfg(not(target_os = "linux"))]
pub fn usable() -> io::Result<Vec<usize>> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Fails on systems that cannot pin threads.
#[cfg(not(target_os = "linux"))]
pub(super) fn pin(_core: usize) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_the_usable_cores_in_turn() {
        let cores = Cores::of(vec![1, 4, 5], 4).unwrap();
        let taken: Vec<usize> = (0..5).map(|number| cores.of_thread(number)).collect();
        assert_eq!(taken, [4, 5, 1, 4, 5]);
        let error = Cores::of(vec![1, 4, 5], 2).unwrap_err().to_string();
        assert_eq!(
            error,
            "--pin 2: not one of the cores that this process may use: [1, 4, 5]"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pinned_thread_may_use_its_core_alone() {
        let last = *usable().unwrap().last().unwrap();
        let seen = std::thread::spawn(move || {
            pin(last).unwrap();
            usable().unwrap()
        });
        assert_eq!(seen.join().unwrap(), [last]);
    }
}
