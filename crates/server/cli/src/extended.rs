//! The options of memcached's `-o`: few change anything here, most ask for what this server does anyway, and a warning
//! names the rest, so that a memcached's command line keeps working. Those with an effect are declared with the other
//! [settings](nuthatch_server::settings).

use std::ffi::OsStr;
use std::fmt::Write;
use std::ops::Deref;

use nuthatch_server::settings::{OPTIONS, Options};

/// The options of `-o`, parsed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extended {
    /// Those with an effect.
    options: Options,
    /// Options that this server does not have, as typed.
    pub unknown: Vec<String>,
    /// Options that ask for the opposite of what this server always does, as typed.
    pub contrary: Vec<String>,
}

impl Deref for Extended {
    type Target = Options;

    fn deref(&self) -> &Options {
        &self.options
    }
}

/// The help of `-o`.
pub fn help() -> String {
    let mut text = "More options, separated by commas:\n".to_owned();
    for setting in OPTIONS {
        let about = setting.about;
        text += "\n";
        text += about.name;
        // Writing to a String does not fail.
        let _ = match about.value {
            "" => write!(text, ": {}", about.help),
            value => write!(text, "={value}: {}", about.help),
        };
        if !about.default.is_empty() {
            let _ = write!(text, " [default: {}]", about.default);
        }
    }
    text += "\n";
    text += &NATURAL.join(", ");
    text + ": accepted, without effect: the server always behaves this way\n\
            no_drop_privileges: revokes drop_privileges\n\n\
            Any other option is named in a warning and has no effect."
}

/// Options that change nothing: this server always behaves as they ask, or has nothing to set.
const NATURAL: [&str; 6] = [
    "maxconns_fast",
    "modern",
    "slab_reassign",
    "slab_automove",
    "lru_crawler",
    "lru_maintainer",
];

impl Extended {
    /// Parses options as typed. An existing option with an invalid value is an error.
    pub fn parse(options: &[String]) -> Result<Self, String> {
        let mut extended = Self::default();
        for option in options.iter().map(|option| option.trim()) {
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option, None),
            };
            extended
                .read(option, name, value)
                .map_err(|error| format!("-o {name}: {error}"))?;
        }
        Ok(extended)
    }

    /// Takes one more option.
    fn read(&mut self, option: &str, name: &str, value: Option<&str>) -> Result<(), String> {
        if name.is_empty() {
            return Ok(());
        }
        if name == "no_drop_privileges" {
            self.options.drop_privileges = None;
            return Ok(());
        }
        if let Some(setting) = OPTIONS.iter().find(|setting| setting.about.name == name) {
            (setting.read)(&mut self.options, value.map(OsStr::new))?;
            if name == "ssl_min_version" {
                return self.check_version(option);
            }
            return Ok(());
        }
        let is_contrary = match name.strip_prefix("no_") {
            Some(natural) => NATURAL.contains(&natural).then_some(true),
            None => {
                let is_off = value == Some("0") || value == Some("no");
                NATURAL.contains(&name).then_some(is_off)
            }
        };
        if name == "slab_automove" {
            check_automove(value)?;
        }
        match is_contrary {
            Some(true) => self.contrary.push(option.to_owned()),
            Some(false) => {}
            None => self.unknown.push(option.to_owned()),
        }
        Ok(())
    }

    /// Versions below 1.2 are not supported.
    fn check_version(&mut self, option: &str) -> Result<(), String> {
        match self.options.ssl_min_version {
            Some(4..) => Err("2 for 1.2, or 3 for 1.3".to_owned()),
            Some(..2) => {
                self.contrary.push(option.to_owned());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Each option that was set to another value than its default, and that value: to find what has changed in a file.
    pub fn said(&self) -> Vec<(String, String)> {
        let said = OPTIONS.iter().filter_map(|setting| {
            let value = (setting.show)(&self.options)?;
            (value != setting.about.default).then(|| (setting.about.key(), value))
        });
        said.collect()
    }
}

/// Errors: no value of memcached's.
fn check_automove(value: Option<&str>) -> Result<(), String> {
    match value.map(str::parse::<u32>) {
        None | Some(Ok(0..=2)) => Ok(()),
        Some(Ok(_)) => Err("from 0 to 2".to_owned()),
        Some(Err(_)) => Err("a number, as in slab_automove=20".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &str) -> Result<Extended, String> {
        let options: Vec<String> = options.split(',').map(str::to_owned).collect();
        Extended::parse(&options)
    }

    #[test]
    fn the_help_has_every_option() {
        let help = help();
        let declared = OPTIONS.iter().map(|setting| setting.about.name);
        for name in declared {
            assert!(help.contains(&format!("\n{name}")), "{name}");
        }
        for name in NATURAL {
            assert!(help.contains(name), "{name}");
            assert_eq!(parse(name), Ok(Extended::default()));
        }
    }

    #[test]
    fn known_natural_and_unknown() {
        let extended =
            parse("idle_timeout=30,hashpower=20,modern,no_modern,ext_path=/x:1G,").unwrap();
        assert_eq!(extended.idle_timeout, Some(30));
        assert_eq!(extended.hashpower, Some(20));
        assert_eq!(extended.unknown, ["ext_path=/x:1G"]);
        assert_eq!(extended.contrary, ["no_modern"]);
        let contrary = ["slab_automove=0", "no_lru_crawler"];
        assert_eq!(parse(&contrary.join(",")).unwrap().contrary, contrary);
        assert_eq!(parse("slab_automove=1"), Ok(Extended::default()));
    }

    #[test]
    fn every_option_is_told_as_what_it_comes_to() {
        let ciphers = "ssl_ciphers=ECDHE-RSA-AES128-GCM-SHA256";
        for option in [
            "idle_timeout=1",
            "login_timeout=1",
            "login_guesses=0",
            "udp_reply_max=64",
            "unix_peers=root",
            "hashpower=12",
            "drop_privileges",
            "ssl_chain_cert=a",
            "ssl_key=a",
            "ssl_ca_cert=a",
            "ssl_verify_mode=1",
            ciphers,
            "ssl_min_version=3",
            "ssl_session_cache",
        ] {
            let said = parse(option).unwrap().said();
            let names: Vec<&str> = said.iter().map(|(name, _)| name.as_str()).collect();
            let name = option.split('=').next().unwrap();
            assert_eq!(names, [format!("-o {name}")]);
        }
        assert_eq!(parse("modern,no_modern,other=1").unwrap().said(), []);
    }

    #[test]
    fn values_that_cannot_be() {
        for options in [
            "idle_timeout",
            "idle_timeout=",
            "idle_timeout=-1",
            "login_guesses",
            "login_guesses=x",
            "unix_peers",
            "unix_peers=",
            "hashpower=x",
            "slab_automove=9",
            "slab_automove=x",
            "ssl_ciphers",
            "ssl_ciphers=HIGH",
            "ssl_keyformat=2",
        ] {
            assert!(parse(options).is_err(), "{options}");
        }
    }
}
