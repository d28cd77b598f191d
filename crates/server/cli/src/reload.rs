//! SIGHUP: reads the configuration file again, and applies the settings that can change while the server runs.

use std::collections::BTreeMap;

use nuthatch_log::Log;
use nuthatch_server::settings::{FLAGS, OPTIONS, Reload as How};
use nuthatch_server::{Controls, TlsSettings};
use toml::Table;

use crate::engine::EngineFlags;
use crate::extended::Extended;
use crate::flags::Flags;
use crate::serve::Serve;
use crate::settings::Settings;

/// What was said: each setting under its key in the file, options of `-o` behind that, with its value as there.
type Said = BTreeMap<String, String>;

/// Reads settings again.
pub struct Reload<E: EngineFlags> {
    source: Serve<E>,
    /// The settings that are in effect, each under its key in the file.
    running: Said,
    log: Log,
    /// A SIGHUP came before the server was up.
    missed: bool,
}

impl<E: EngineFlags> Reload<E> {
    /// For a server that was started by `flags` and the program's own, which came from `source`.
    pub fn new(source: Serve<E>, flags: &Flags, own: &E, log: Log) -> Result<Self, String> {
        Ok(Self {
            source,
            running: table(flags, own)?,
            log,
            missed: false,
        })
    }

    /// Opens the log again: all that SIGHUP does before the server is up. [`Reload::catch_up`] does the rest.
    pub fn reopen_log(&mut self) {
        self.log.reopen();
        self.missed = true;
        tracing::warn!("SIGHUP: the server is not up; settings are read again when it is");
    }

    /// The server is up: reads settings again if a SIGHUP came before that.
    pub fn catch_up(&mut self, controls: &Controls) {
        if std::mem::take(&mut self.missed) {
            self.run(controls);
        }
    }

    /// Opens the log again, reads the file again, and logs the outcome.
    pub fn run(&mut self, controls: &Controls) {
        self.log.reopen();
        let read = read(&self.source);
        // An invalid file names no other certificates. The files that were named before may have changed in place.
        let files = read.as_ref().ok();
        let files = files.and_then(|(settings, _)| settings.server.tls.as_ref());
        let certificates = controls.refresh_certificates(files);
        let passwords = controls.read_passwords();
        for (what, read) in [
            ("certificates", certificates.as_ref()),
            ("passwords", passwords.as_ref()),
        ] {
            match read {
                Some(Err(error)) => {
                    tracing::warn!("SIGHUP: the {what} of before stay: {error}");
                }
                Some(Ok(())) => tracing::warn!("SIGHUP: the {what} were read again"),
                None => {}
            }
        }
        match &read {
            Ok((settings, wanted)) => {
                // Addresses need a restart, and here there is another one in place of each name.
                for warning in &settings.warnings {
                    tracing::warn!("SIGHUP: {warning}");
                }
                let are_read = match (files, certificates) {
                    (Some(_), Some(read)) => Some(read.is_ok()),
                    _ => None,
                };
                self.apply(controls, settings, wanted, are_read);
            }
            Err(error) => tracing::warn!("SIGHUP: nothing was changed: {error}"),
        }
    }

    /// Applies what has changed. `are_read` is true if certificates were read where the settings say, false if they could
    /// not be, and `None` if a server with TLS would be one without, or the other way round.
    fn apply(
        &mut self,
        controls: &Controls,
        settings: &Settings,
        wanted: &Said,
        are_read: Option<bool>,
    ) {
        let changed = self.changed(controls, settings, wanted);
        // Also where a client has set the same level: from here on it is the operator's.
        controls.set_verbosity(settings.server.verbosity);
        if changed.iter().any(|key| matches!(how(key), How::Live)) {
            // Once, whatever their number: nobody sees some of them.
            controls.apply(&settings.server);
        }
        let (mut applied, mut waiting) = (Vec::new(), Vec::new());
        for key in changed {
            let done = match how(&key) {
                How::Restart => {
                    waiting.push(key);
                    continue;
                }
                How::Own if key == "memory-limit" => {
                    controls.set_memory_limit(settings.engine.memory_limit)
                }
                // The verbosity is set already.
                How::Own => Ok(()),
                How::Certificates => match are_read {
                    Some(true) => Ok(()),
                    // Reported already.
                    Some(false) => continue,
                    None => {
                        waiting.push(key);
                        continue;
                    }
                },
                // It is in effect already. Watchers get a line for each.
                How::Live => {
                    controls.notify_applied();
                    Ok(())
                }
            };
            match (done, wanted.get(&key).cloned()) {
                (Err(error), _) => tracing::warn!("SIGHUP: {key} stays: {error}"),
                (Ok(()), Some(value)) => {
                    applied.push(format!("{key} = {value}"));
                    self.running.insert(key, value);
                }
                (Ok(()), None) => {
                    applied.push(format!("{key} as by default"));
                    self.running.remove(&key);
                }
            }
        }
        match applied.is_empty() {
            true => tracing::warn!("SIGHUP: no setting has changed that can be applied"),
            false => tracing::warn!("SIGHUP: applied: {}", applied.join(", ")),
        }
        if !waiting.is_empty() {
            tracing::warn!("SIGHUP: needs a restart: {}", waiting.join(", "));
        }
    }

    /// The keys of the settings that differ from what runs, in the alphabet's order.
    fn changed(&self, controls: &Controls, settings: &Settings, wanted: &Said) -> Vec<String> {
        let mut changed = changes(&self.running, wanted);
        // Commands change these two as well, so what the file said before does not tell what runs.
        let (limit, verbosity) = (settings.engine.memory_limit, settings.server.verbosity);
        for (key, differs) in [
            ("memory-limit", controls.memory_limit() != limit),
            ("verbose", controls.verbosity() != verbosity),
        ] {
            changed.retain(|changed| changed != key);
            if differs {
                changed.push(key.to_owned());
            }
        }
        changed.sort();
        changed
    }
}

/// The settings of all sources now, and each of them under its key in the file.
fn read<E: EngineFlags>(source: &Serve<E>) -> Result<(Settings, Said), String> {
    let (flags, own) = source.clone().flags()?;
    Ok((Settings::check_again(&flags, &own)?, table(&flags, &own)?))
}

/// The newest paths of certificates, for `refresh_certs`.
pub fn newest_tls<E: EngineFlags>(source: &Serve<E>) -> Option<TlsSettings> {
    match read(source) {
        Ok((settings, _)) => settings.server.tls,
        Err(error) => {
            tracing::warn!("refresh_certs: the files of before are read: {error}");
            None
        }
    }
}

/// Keys whose values differ, in the alphabet's order.
fn changes(running: &Said, wanted: &Said) -> Vec<String> {
    let mut keys: Vec<String> = running.keys().chain(wanted.keys()).cloned().collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| running.get(key) != wanted.get(key));
    keys
}

/// How a change of the setting with this key is applied.
fn how(key: &str) -> How {
    let flags = FLAGS.iter().map(|flag| (flag.about, flag.reload));
    let options = OPTIONS.iter().map(|option| (option.about, option.reload));
    let mut all = flags.chain(options);
    let found = all.find(|(about, _)| about.key() == key);
    // The flags of engines are not among them.
    found.map_or(How::Restart, |(_, reload)| reload)
}

/// What these flags say, those of the program's engine too.
fn table<E: EngineFlags>(flags: &Flags, own: &E) -> Result<Said, String> {
    let said = FLAGS.iter().filter_map(|setting| {
        let value = (setting.show)(flags)?;
        Some((setting.about.key(), value))
    });
    let own = Table::try_from(own).map_err(|error| error.to_string())?;
    let own = own.into_iter().map(|(key, value)| (key, value.to_string()));
    let options = Extended::parse(&flags.extended)?.said();
    Ok(said.chain(own).chain(options).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuckoo::DefaultEngine;

    fn of(text: &str) -> Said {
        let (flags, own) = crate::file::parse::<DefaultEngine>(text).unwrap();
        table(&flags, &own).unwrap()
    }

    #[test]
    fn what_differs_is_found_whatever_its_form() {
        let running = of("port = 1\nverbose = 1\nextended = [\"idle_timeout=3\"]\nthreads = 2");
        let wanted =
            of("port = 1\nverbose = 2\nextended = \"modern,idle_timeout=3\"\nlisten = \"a\"");
        assert_eq!(changes(&running, &wanted), ["listen", "threads", "verbose"]);
        let wanted = of("memory-limit = \"64m\"\nextended = \"idle_timeout=4\"");
        let running = of("memory-limit = 64");
        assert_eq!(changes(&running, &wanted), ["-o idle_timeout"]);
    }

    #[test]
    fn what_is_applied_are_keys_of_the_file() {
        let all = of(
            "conn-limit = 1\nmax-reqs-per-event = 1\ndisable-flush-all = true\n\
             disable-dumping = true\ndisable-cas = true\nenable-shutdown = true\n\
             verbose = 1\nmemory-limit = 1\n\
             extended = \"idle_timeout=1,login_guesses=1,login_timeout=1,udp_reply_max=64,unix_peers=root,\
             conns_per_address=1,disable_admin\"",
        );
        assert_eq!(all.len(), 15, "{all:?}");
        for key in all.keys() {
            assert!(matches!(how(key), How::Live | How::Own), "{key}");
        }
        assert_eq!(how("-o ssl_key"), How::Certificates);
        for key in ["port", "threads", "-o hashpower", "engine"] {
            assert_eq!(how(key), How::Restart, "{key}");
        }
        // A setting that has a default is in the table only if it is set.
        assert_eq!(of("").len(), 1);
    }
}
