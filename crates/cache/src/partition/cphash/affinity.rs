//! Pinning a thread to a core (CPHash section 3).

use std::io;

/// Keeps the calling thread on one core. Errors: there is no such core, or it may not be used.
#[cfg(target_os = "linux")]
pub(super) fn pin(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: a set of bits, for which all zeros is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the core's number is below the set's size; the kernel reads the set during the call
    // only.
    let failed = unsafe {
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    match failed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Where threads cannot be pinned they are not.
#[cfg(not(target_os = "linux"))]
pub(super) fn pin(_core: usize) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
