//! What only Linux tells a server. Elsewhere nothing of it is known, and what asks goes on without.
//!
//! `--cfg nuthatch_unix` takes the other one on Linux, so that tests run on it there (scripts/test-portable.sh).

#[cfg(all(target_os = "linux", not(nuthatch_unix)))]
mod linux;
#[cfg(any(not(target_os = "linux"), nuthatch_unix))]
mod unix;

#[cfg(all(target_os = "linux", not(nuthatch_unix)))]
pub use linux::{backlog_max, memory_of_machine, resident_bytes, trim_memory, untaken};
#[cfg(any(not(target_os = "linux"), nuthatch_unix))]
pub use unix::{backlog_max, memory_of_machine, resident_bytes, trim_memory, untaken};
