//! Every setting of a server, each declared once: `table.rs`. From there follow the command line and its help, the file,
//! how the two are merged and what has changed in them, the fields of [`Config`] and of [`Live`], the lines of `stats
//! settings`, and the tables of docs/running.md and dist/nuthatch.toml. CONTRIBUTING.md has the steps for a new one.
//!
//! A declaration names a form ([`forms`]), and what people read of it ([`about`](About)). The macro in `declare.rs`
//! makes types of the list, so that code reads a setting as a field, and a field that is not declared does not compile.
//! What of a value is more than a number or a word is in [`config`], [`address`] (addresses as typed) and
//! [`administration`].

#[macro_use]
mod declare;
mod about;
pub mod address;
pub mod administration;
pub mod config;
pub mod forms;
pub mod key_events;
mod persistence;
mod shown;
mod table;

use std::ffi::OsStr;

use nix::unistd::User;

pub use about::{About, Kind, Now, Range, Reload, Setting, Stat};
pub use forms::{Verbosity, absolute, verbosity};
pub use shown::yes_no;
pub use table::{Config, FLAGS, Flags, Live, OPTIONS, Options, check_bounds, flag, option};

use forms::Gives;

impl Flags {
    /// The level of logging.
    pub fn verbosity(&self) -> u8 {
        verbosity(&self.verbose)
    }
}

/// A user of the system. Errors name it.
pub fn user(name: &str) -> Result<User, String> {
    User::from_name(name)
        .map_err(|error| format!("{name}: {error}"))?
        .ok_or_else(|| format!("{name}: no such user"))
}

/// The value that comes of what was said, or else of the default.
pub fn value_of<F: Gives<T>, T>(said: &F::Said, about: &About) -> Result<T, String> {
    if about.default.is_empty() || *said != F::Said::default() {
        return F::value(said, about);
    }
    let mut default = F::Said::default();
    F::read(&mut default, Some(OsStr::new(about.default)), about)?;
    F::value(&default, about)
}

/// The default. A test reads each of them.
fn default_of<F: Gives<T>, T>(about: &About) -> T {
    debug_assert!(
        about.range.is_none() || !about.default.is_empty(),
        "{} has bounds and no default: it would begin as 0, whatever they are",
        about.typed()
    );
    value_of::<F, T>(&F::Said::default(), about)
        .unwrap_or_else(|error| panic!("the default of {}: {error}", about.typed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class of bug: a default that its own form does not accept, or that is out of its bounds.
    #[test]
    fn every_default_is_a_value() {
        let config = Config::default();
        let mut taken = config.clone();
        let (flags, options) = (Flags::default(), Options::default());
        assert_eq!(taken.take(&flags, &options), Ok(()));
        assert_eq!(format!("{taken:?}"), format!("{config:?}"));
        assert_eq!(config.threads.get(), 4);
        assert_eq!(config.commands_per_turn.get(), 1024);
        assert_eq!(config.batch_max.get(), 256);
        assert_eq!(config.udp_reply_max.get(), 16 << 10);
        assert_eq!(config.login_timeout.as_secs(), 30);
        assert!(config.allow_flush && config.allow_dump && config.cas && !config.allow_shutdown);
    }

    /// Every name is there once: in a list of options the first one would hide the other.
    #[test]
    fn names_and_lines_are_unique() {
        let all = || {
            let flags = FLAGS.iter().map(|setting| setting.about);
            flags.chain(OPTIONS.iter().map(|setting| setting.about))
        };
        let names = all().map(About::key);
        let shorts = all().filter_map(|about| about.short.map(String::from));
        let lines = all()
            .flat_map(|about| about.stats)
            .map(|(name, _)| format!("stats {name}"));
        let mut found: Vec<String> = names.chain(shorts).chain(lines).collect();
        let count = found.len();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), count);
    }

    #[test]
    fn numbers_out_of_their_bounds_are_told_with_their_names() {
        let flags = Flags {
            save_every: Some(0),
            ..Flags::default()
        };
        let many = Flags {
            threads: Some(1025),
            ..Flags::default()
        };
        let few = Options {
            udp_reply_max: Some(63),
            ..Options::default()
        };
        let hashpower = Options {
            hashpower: Some(33),
            ..Options::default()
        };
        for (flags, options, error) in [
            (flags, Options::default(), "--save-every: at least 1 second"),
            (many, Options::default(), "-t: 1 to 1024"),
            (
                Flags::default(),
                few,
                "-o udp_reply_max: from 64 to 2097152 bytes",
            ),
            (Flags::default(), hashpower, "-o hashpower: from 12 to 32"),
        ] {
            assert_eq!(check_bounds(&flags, &options), Err(error.to_owned()));
        }
    }
}
