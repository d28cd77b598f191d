//! Pinning a thread to a core (CPHash section 3).

use std::io;

/// Keeps the calling thread on one core. Errors: the core does not exist, or the thread may not use it.
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
pub(super) fn pin(_core: usize) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
