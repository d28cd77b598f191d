//! What differs between systems, each in a folder of its own. Which of them is compiled is chosen here.
//!
//! | | `linux` | `unix`: macOS, FreeBSD |
//! |---|---|---|
//! | `bound` | the file of a unix socket gets its permissions by descriptors | by the process's mask, while it is made |
//! | `passing` | the kernel closes descriptors that came when a program is started | a call of ours sees to that |
//! | `signals` | SIGPWR stops the server; those of real time are ignored | macOS has neither; FreeBSD's of real time end the process |
//! | `systemd` | is told that clients can connect | there is none |
//!
//! `--cfg nuthatch_unix` takes the other one on Linux, so that tests run on it there (scripts/test-portable.sh). Who is at
//! the other end of a unix socket (`peer`) each system tells by a call that the other has not.

#[cfg(all(target_os = "linux", not(nuthatch_unix)))]
mod linux;
pub mod peer;
#[cfg(any(not(target_os = "linux"), nuthatch_unix))]
mod unix;

#[cfg(all(target_os = "linux", not(nuthatch_unix)))]
pub use linux::{bound, passing, signals, systemd};
#[cfg(any(not(target_os = "linux"), nuthatch_unix))]
pub use unix::{bound, passing, signals, systemd};
