//! Linux.
//!
//! `-o drop_privileges`: the process gives up what a running server does not need, so that an attacker who exploits it
//! gains little.
//!
//! * [`files`], by Landlock: the process opens only the files of its settings, starts no program, connects to no TCP
//!   port, and reaches neither abstract unix sockets nor other processes.
//! * [`calls`], by seccomp: the process makes only the system calls that a running server makes.

pub mod calls;
pub mod files;
pub mod groups;
pub mod lock;
pub mod memory;

use crate::settings::ProcessSettings;

/// Errors: none, Linux has all that settings ask for.
pub fn check(_settings: &ProcessSettings) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread;

    /// In a thread of its own, since a thread cannot take back what it has given up.
    pub fn confined<T: Send>(body: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| scope.spawn(body).join().expect("it does not panic"))
    }
}
