//! What differs between systems, each in a folder of its own. Which of them is compiled is chosen here.
//!
//! | | `linux` | `unix`: macOS, FreeBSD |
//! |---|---|---|
//! | `check` | all settings can be | `-k`, `-o drop_privileges` and `--log journald` are refused |
//! | `files`, `calls`: `-o drop_privileges` | by Landlock and seccomp | |
//! | `groups`: `-u` | the C library's call | on macOS by a call of ours |
//! | `lock`: `-P` | that of the open file, waited for | flock(2), waited for a second |
//! | `memory`: `-k` | locked when it is touched | |
//!
//! `--cfg nuthatch_unix` takes the other one on Linux, so that tests run on it there (scripts/test-portable.sh).

#[cfg(all(target_os = "linux", not(nuthatch_unix)))]
mod linux;
#[cfg(any(not(target_os = "linux"), nuthatch_unix))]
mod unix;

#[cfg(all(target_os = "linux", not(nuthatch_unix)))]
pub use linux::{calls, check, files, groups, lock, memory};
#[cfg(any(not(target_os = "linux"), nuthatch_unix))]
pub use unix::{calls, check, files, groups, lock, memory};
