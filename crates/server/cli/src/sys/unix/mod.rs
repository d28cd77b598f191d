//! Systems like macOS and FreeBSD. What they lack is refused with the settings, so nothing here has anything to do.

pub mod calls;
pub mod files;
pub mod groups;
pub mod lock;
pub mod memory;

use std::env::consts::OS;

use nuthatch_log::LogTo;

use crate::settings::ProcessSettings;

/// Errors: a setting asks for what only Linux has.
pub fn check(settings: &ProcessSettings) -> Result<(), String> {
    let is_to_journald = settings.log == LogTo::Journald;
    let asked = [
        (
            settings.confined,
            "-o drop_privileges",
            "Landlock and seccomp",
        ),
        (
            settings.lock_memory,
            "-k",
            "memory that is locked when it is touched",
        ),
        (is_to_journald, "--log journald", "systemd"),
    ];
    match asked.iter().find(|(is_asked, ..)| *is_asked) {
        Some((_, flag, what)) => Err(format!("{flag}: not on {OS}, since only Linux has {what}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_lacks_is_refused_by_name() {
        let none = ProcessSettings::default;
        assert_eq!(check(&none()), Ok(()));
        for (settings, flag) in [
            (
                ProcessSettings {
                    confined: true,
                    ..none()
                },
                "-o drop_privileges: ",
            ),
            (
                ProcessSettings {
                    lock_memory: true,
                    ..none()
                },
                "-k: ",
            ),
            (
                ProcessSettings {
                    log: LogTo::Journald,
                    ..none()
                },
                "--log journald: ",
            ),
        ] {
            let error = check(&settings).unwrap_err();
            assert!(error.starts_with(flag) && error.contains(OS), "{error}");
        }
    }
}
