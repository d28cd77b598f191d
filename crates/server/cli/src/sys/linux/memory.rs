//! Locked memory.

use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use nix::unistd::geteuid;

/// Locks all memory that is mapped now or later.
pub fn lock(changes_user: bool) -> Result<(), String> {
    // While the process may still be root, for the user that it becomes.
    let unlimited = setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY).is_ok()
        || getrlimit(Resource::RLIMIT_MEMLOCK).is_ok_and(|(soft, _)| soft == RLIM_INFINITY);
    let stays_root = geteuid().is_root() && !changes_user;
    if !unlimited && !stays_root {
        // Locked under a limit, the engine could not even reserve its addresses.
        return Err("the limit of locked memory is too low (ulimit -l)".to_owned());
    }
    // On fault: the engine reserves more addresses than it will ever use, and to touch all of them
    // at once would take all of the machine's memory.
    let on_fault = MlockAllFlags::from_bits_retain(nix::libc::MCL_ONFAULT);
    let all = MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault;
    mlockall(all).map_err(|error| error.to_string())
}
