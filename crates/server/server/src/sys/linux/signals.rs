//! Signals that not all systems have.

use libc::c_int;

/// One that asks a server to stop: the power fails, or the manager of a container stops it.
pub const STOPPING: &[c_int] = &[libc::SIGPWR];

/// Those that mean nothing to a server: those of real time, and SIGSTKFLT, which no system raises.
pub fn meaningless() -> impl Iterator<Item = c_int> {
    (libc::SIGRTMIN()..=libc::SIGRTMAX()).chain(STACK_FAULT)
}

/// SIGSTKFLT, where the processor's Linux has it: all but MIPS and SPARC.
const STACK_FAULT: Option<c_int> = {
    #[cfg(not(any(
        target_arch = "mips",
        target_arch = "mips32r6",
        target_arch = "mips64",
        target_arch = "mips64r6",
        target_arch = "sparc",
        target_arch = "sparc64"
    )))]
    let number = Some(libc::SIGSTKFLT);
    #[cfg(any(
        target_arch = "mips",
        target_arch = "mips32r6",
        target_arch = "mips64",
        target_arch = "mips64r6",
        target_arch = "sparc",
        target_arch = "sparc64"
    ))]
    let number = None;
    number
};
