//! What differs between systems, each in a folder of its own. Which of them is compiled is chosen here.
//!
//! | | `linux` | `unix`: macOS, FreeBSD | `portable`: Windows, and all else |
//! |---|---|---|---|
//! | `clock` | the kernel's, coarse and exact | the same | the standard library's |
//! | `pages` | huge, filled ahead, given back at once | given back when the system wants them | the process keeps them |
//! | `files` | kinds, owners, mounts and flags are checked | kinds and owners | kinds |
//! | `links` | what they say, and who made them | the same | |
//! | `program` | pages of the program's file are given back | | |
//! | `shared` | memory that other processes can read and not change | (`unshared`) | (`unshared`) |
//!
//! `--cfg nuthatch_unix` and `--cfg nuthatch_portable` choose the other two on Linux, so that tests run on them there
//! (scripts/test-portable.sh). The second one has no `links`: what needs them has no users on Windows.

#[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
mod linux;
#[cfg(any(not(unix), nuthatch_portable))]
mod portable;
/// What `linux` and `unix` share.
#[cfg(all(unix, not(nuthatch_portable)))]
pub mod posix;
#[cfg(all(
    unix,
    any(not(target_os = "linux"), nuthatch_unix),
    not(nuthatch_portable)
))]
mod unix;

#[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
pub use linux::{clock, files, links, pages, program, shared};
#[cfg(any(not(unix), nuthatch_portable))]
pub use portable::{clock, files, pages, program};
#[cfg(all(
    unix,
    any(not(target_os = "linux"), nuthatch_unix),
    not(nuthatch_portable)
))]
pub use unix::{clock, files, links, pages, program};

#[cfg(any(not(target_os = "linux"), nuthatch_unix, nuthatch_portable))]
pub mod unshared;
#[cfg(any(not(target_os = "linux"), nuthatch_unix, nuthatch_portable))]
pub use unshared as shared;
