//! The process around the server: limits, locked memory, user.

use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use nix::unistd::{geteuid, initgroups, setgid, setuid};
use nuthatch_program::Failure;
use nuthatch_server::{OTHER_FILES, raise_file_limit, user};

use crate::settings::ProcessSettings;

/// Gives the process what the settings ask for, except for the background and the user. Must run before any thread is
/// started. Returns warnings.
pub fn prepare(settings: &ProcessSettings, connections: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    raise_files(connections);
    if settings.lock_memory
        && let Err(error) = lock_memory(settings.user.is_some())
    {
        warnings.push(format!("-k: memory is not locked: {error}"));
    }
    if settings.core_dumps
        && let Err(error) = allow_core_files()
    {
        warnings.push(format!("-r: core files stay limited: {error}"));
    }
    // memcached refuses to run as root without -u. In containers root is the usual user, and the first thing a newcomer
    // does there should work: this is only a warning.
    if settings.user.is_none() && geteuid().is_root() {
        warnings.push("running as root; -u USER gives that up".to_owned());
    }
    warnings
}

/// Lets the process open files for this many connections, while it may still be root. What the server is to do with
/// fewer, it finds out later.
pub fn raise_files(connections: usize) {
    let _ = raise_file_limit((connections as u64).saturating_add(OTHER_FILES));
}

/// Becomes the user of `-u`, as root alone can. Returns its name if the process became this user.
///
/// Errors: there is no such user, which makes the setting invalid; the system refuses.
pub fn change_user(settings: &ProcessSettings) -> Result<Option<&str>, Failure> {
    let user = settings.user.as_deref();
    let user = user.filter(|_| geteuid().is_root());
    user.map(become_user).transpose()?;
    Ok(user)
}

/// Core files as large as possible: without a limit, or up to the hard limit.
fn allow_core_files() -> nix::Result<()> {
    setrlimit(Resource::RLIMIT_CORE, RLIM_INFINITY, RLIM_INFINITY).or_else(|_| {
        let (_, hard) = getrlimit(Resource::RLIMIT_CORE)?;
        setrlimit(Resource::RLIMIT_CORE, hard, hard)
    })
}

/// Locks all memory that is mapped now or later.
fn lock_memory(changes_user: bool) -> Result<(), String> {
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

fn become_user(name: &str) -> Result<(), Failure> {
    let user = user(name).map_err(|error| Failure::usage(format!("-u {error}")))?;
    let c_name =
        std::ffi::CString::new(name).map_err(|error| Failure::usage(format!("-u: {error}")))?;
    initgroups(&c_name, user.gid)
        .and_then(|()| setgid(user.gid))
        .and_then(|()| setuid(user.uid))
        .map_err(|error| Failure::run(format!("-u {name}: {error}")))
}
