//! The process around the server: limits, locked memory, user.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use nix::unistd::{geteuid, setgid, setuid};
use nuthatch_program::Failure;
use nuthatch_server::{OTHER_FILES, raise_file_limit, user};

use crate::settings::ProcessSettings;
use crate::sys::{groups, memory};

/// Gives the process what the settings ask for, except for the background and the user. Must run before any thread is
/// started. Returns warnings.
pub fn prepare(settings: &ProcessSettings, connections: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    raise_files(connections);
    if settings.lock_memory
        && let Err(error) = memory::lock(settings.user.is_some())
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
    raise_file_limit((connections as u64).saturating_add(OTHER_FILES));
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

fn become_user(name: &str) -> Result<(), Failure> {
    let user = user(name).map_err(|error| Failure::usage(format!("-u {error}")))?;
    let c_name =
        std::ffi::CString::new(name).map_err(|error| Failure::usage(format!("-u: {error}")))?;
    groups::join(&c_name, user.gid)
        .and_then(|()| setgid(user.gid))
        .and_then(|()| setuid(user.uid))
        .map_err(|error| Failure::run(format!("-u {name}: {error}")))
}
