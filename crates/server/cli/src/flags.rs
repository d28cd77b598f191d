//! The command line and the file of a server, made of the declarations of its [settings](nuthatch_server::settings).
//!
//! This module checks only the form of values, and sets no defaults: `settings.rs` does both, once, for
//! both sources together. Flags that a program has for its engine are declared where the program is: see
//! [`EngineFlags`](crate::engine::EngineFlags).

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Deref;
use std::sync::LazyLock;

use clap::builder::{
    BoolValueParser, OsStringValueParser, PossibleValue, PossibleValuesParser, StringValueParser,
    TypedValueParser, ValueParser,
};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use nuthatch_server::settings::{FLAGS, Kind, Setting};
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};

use crate::extended;

pub use nuthatch_server::settings::Flags;

/// The flags of a server on a command line. Long names are memcached's, and the file's keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Typed(pub Flags);

impl Deref for Typed {
    type Target = Flags;

    fn deref(&self) -> &Flags {
        &self.0
    }
}

impl Args for Typed {
    fn augment_args(command: Command) -> Command {
        command.args(FLAGS.iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Typed {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Flags::default();
        for setting in FLAGS {
            let words = matches.get_many::<OsString>(setting.about.name);
            for word in words.into_iter().flatten() {
                (setting.read)(&mut flags, Some(word)).map_err(invalid)?;
            }
        }
        Ok(Self(flags))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let Self(newer) = Self::from_arg_matches(matches)?;
        self.0 = newer.over(std::mem::take(&mut self.0));
        Ok(())
    }
}

/// The argument's own parser has read this word already.
fn invalid(error: String) -> clap::Error {
    clap::Error::raw(clap::error::ErrorKind::ValueValidation, error)
}

/// The argument of a flag.
fn argument(setting: &'static Setting<Flags>) -> Arg {
    let about = setting.about;
    let help = match about.default {
        "" => about.help.to_owned(),
        default => format!("{} [default: {default}]", about.help),
    };
    let argument = Arg::new(about.name)
        .long(about.name)
        .short(about.short)
        .alias(about.alias)
        .help(help)
        .value_name(match setting.kind {
            Kind::Switch => "BOOL",
            _ => about.value,
        })
        .action(ArgAction::Set)
        .value_parser(parser(setting));
    let argument = match setting.kind {
        Kind::Switch => argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .hide_possible_values(true),
        Kind::Level => argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("")
            .action(ArgAction::Append),
        Kind::List => argument.value_delimiter(',').action(ArgAction::Append),
        Kind::Signed => argument.allow_negative_numbers(true),
        // For completions.
        Kind::Path => argument.value_hint(ValueHint::AnyPath),
        _ => argument,
    };
    match about.name {
        "extended" => argument.long_help(extended::help()),
        _ => argument,
    }
}

/// Checks the form of a word, for an error that names the argument.
fn parser(setting: &'static Setting<Flags>) -> ValueParser {
    match setting.kind {
        Kind::Switch => BoolValueParser::new()
            .map(|is_on| OsString::from(is_on.to_string()))
            .into(),
        Kind::Choice => {
            let choices = setting.about.choices.iter();
            let values = choices.map(|(name, help)| PossibleValue::new(*name).help(*help));
            PossibleValuesParser::new(values).map(OsString::from).into()
        }
        // Only names of files may be no text.
        Kind::Path => OsStringValueParser::new().into(),
        _ => StringValueParser::new()
            .try_map(|text| {
                let word = OsString::from(text);
                (setting.read)(&mut Flags::default(), Some(&word)).map(|()| word)
            })
            .into(),
    }
}

/// Reads the keys of a file: all of them are flags of a server.
pub struct FromFile;

/// The keys, for the error about another one.
static KEYS: LazyLock<Vec<&str>> =
    LazyLock::new(|| FLAGS.iter().map(|setting| setting.about.name).collect());

impl<'de> DeserializeSeed<'de> for FromFile {
    type Value = Flags;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Flags, D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FromFile {
    type Value = Flags;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("settings")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Flags, M::Error> {
        let mut flags = Flags::default();
        while let Some(setting) = map.next_key_seed(Key)? {
            map.next_value_seed(InFile(setting, &mut flags))?;
        }
        Ok(flags)
    }
}

/// Reads a key of the file.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = &'static Setting<Flags>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        let name = String::deserialize(input)?;
        let mut all = FLAGS.iter();
        all.find(|setting| setting.about.name == name)
            .ok_or_else(|| de::Error::unknown_field(&name, &KEYS))
    }
}

/// Reads the value of this setting.
struct InFile<'f>(&'static Setting<Flags>, &'f mut Flags);

impl<'de> DeserializeSeed<'de> for InFile<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        let Self(setting, flags) = self;
        let words = match setting.kind {
            Kind::Switch => vec![bool::deserialize(input)?.to_string()],
            Kind::Signed => vec![i32::deserialize(input)?.to_string()],
            Kind::Number => vec![u64::deserialize(input)?.to_string()],
            Kind::Real => vec![f64::deserialize(input)?.to_string()],
            Kind::Level => vec![u8::deserialize(input)?.to_string()],
            Kind::NumberOrText => vec![match NumberOrText::deserialize(input)? {
                NumberOrText::Number(number) => number.to_string(),
                NumberOrText::Text(text) => text,
            }],
            Kind::Text | Kind::Path | Kind::Choice => vec![String::deserialize(input)?],
            Kind::List => one_or_many(input)?,
        };
        for word in &words {
            (setting.read)(flags, Some(OsStr::new(word))).map_err(de::Error::custom)?;
        }
        Ok(())
    }
}

/// A number or a text in the file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number from 0, or a text like \"64m\"")]
enum NumberOrText {
    Number(u64),
    Text(String),
}

/// `"a,b"` or `["a", "b"]` in the file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a text, or a list of texts")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Reads a list of texts from a file: one text with commas, or several.
pub fn one_or_many<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    Ok(match OneOrMany::deserialize(input)? {
        OneOrMany::One(text) => text.split(',').map(str::to_owned).collect(),
        OneOrMany::Many(texts) => texts,
    })
}

/// The first list, or the second if it is empty.
pub fn either<T>(first: Vec<T>, second: Vec<T>) -> Vec<T> {
    if first.is_empty() { second } else { first }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use clap::error::ErrorKind;

    use super::*;
    use crate::cuckoo::DefaultEngine;

    fn typed(line: &str) -> Result<Flags, clap::Error> {
        let command = Typed::augment_args(clap::Command::new("nuthatch"));
        let words = std::iter::once("nuthatch").chain(line.split_whitespace());
        Ok(Typed::from_arg_matches(&command.try_get_matches_from(words)?)?.0)
    }

    fn file(text: &str) -> Flags {
        crate::file::parse::<DefaultEngine>(text).unwrap().0
    }

    #[test]
    fn short_long_and_file_say_the_same() {
        let short = typed(
            "-p 1 -U 0 -l a,b -l c:2 -s /s -a 0770 -m 1024 -c 5 -t 2 -b 7 -R 9 -I 2m -n 64 -f 1.5 \
             -M -F -X -W -D : -C -A -L -k -r -B auto -d -u nobody -P /p --verbose=2 --log /l --log-format json -o modern,idle_timeout=3 \
             --redis-port 6 --batch 500 --memory-limit-max 2048",
        )
        .unwrap();
        let long = typed(
            "--port=1 --udp-port=0 --listen=a,b,c:2 --unix-socket=/s --unix-mask=770 \
             --memory-limit=1g --conn-limit=5 --threads=2 --listen-backlog=7 \
             --max-reqs-per-event=9 --max-item-size=2048k --slab-min-size=64 \
             --slab-growth-factor=1.5 --disable-evictions --disable-flush-all --disable-dumping --disable-watch \
             --prefix-delimiter=: \
             --disable-cas --enable-shutdown --enable-largepages --lock-memory --coredumps \
             --protocol=auto --daemon \
             --user=nobody --pidfile=/p --verbose=2 --log=/l --log-format=json --extended=modern,idle_timeout=3 \
             --redis-port=6 --batch=500 --memory-limit-max=2g",
        )
        .unwrap();
        let file = file(
            r#"
            port = 1
            udp-port = 0
            listen = ["a", "b", "c:2"]
            unix-socket = "/s"
            unix-mask = "770"
            memory-limit = 1024
            memory-limit-max = "2g"
            conn-limit = 5
            threads = 2
            listen-backlog = 7
            max-reqs-per-event = 9
            max-item-size = "2m"
            slab-min-size = 64
            slab-growth-factor = 1.5
            disable-evictions = true
            disable-flush-all = true
            disable-dumping = true
            disable-watch = true
            prefix-delimiter = ":"
            disable-cas = true
            enable-shutdown = true
            enable-largepages = true
            lock-memory = true
            coredumps = true
            protocol = "auto"
            daemon = true
            user = "nobody"
            pidfile = "/p"
            verbose = 2
            log = "/l"
            log-format = "json"
            extended = "modern,idle_timeout=3"
            redis-port = 6
            batch = 500
            "#,
        );
        assert_eq!(short, long);
        assert_eq!(short, file);
        assert_eq!(short.memory_limit, Some(1 << 30));
        assert_eq!(short.unix_mask, Some(0o770));
        // A source over itself is itself, except that options add up.
        let mut twice = short.clone().over(file);
        twice.extended.truncate(2);
        assert_eq!(twice, short);
    }

    #[test]
    fn flags_override_the_file() {
        let file = file("port = 1\nthreads = 8\nlisten = \"a\"\nextended = \"x\"");
        let flags = typed("-p 2 -l b -o y").unwrap().over(file);
        assert_eq!((flags.port, flags.threads), (Some(2), Some(8)));
        assert_eq!(flags.listen, ["b"]);
        assert_eq!(flags.extended, ["x", "y"]);
        assert_eq!(typed("-p -1").unwrap().port, Some(-1));
    }

    #[test]
    fn switches_are_turned_off_against_the_file() {
        let file =
            || file("daemon = true\ndisable-evictions = true\nlock-memory = true\nverbose = 2");
        let flags = typed("--daemon=false -M=false").unwrap().over(file());
        assert_eq!(
            (flags.daemon, flags.disable_evictions),
            (Some(false), Some(false))
        );
        assert_eq!((flags.lock_memory, flags.verbosity()), (Some(true), 2));
        // Short flags in one word, as usual.
        let flags = typed("-dMkvv").unwrap();
        assert_eq!(
            (flags.daemon, flags.disable_evictions),
            (Some(true), Some(true))
        );
        assert_eq!((flags.lock_memory, flags.verbosity()), (Some(true), 2));
        for (said, level) in [
            ("-v", 1),
            ("-vvv", 3),
            ("--verbose=0", 0),
            ("-v -v=1 -v", 2),
        ] {
            assert_eq!(
                typed(said).unwrap().over(file()).verbosity(),
                level,
                "{said}"
            );
        }
    }

    #[test]
    fn a_path_may_have_any_bytes() {
        let path = std::ffi::OsStr::from_bytes(b"/\xff");
        let command = Typed::augment_args(clap::Command::new("nuthatch"));
        let words = ["nuthatch".as_ref(), "-s".as_ref(), path];
        let typed = command.try_get_matches_from(words).unwrap();
        let Typed(flags) = Typed::from_arg_matches(&typed).unwrap();
        assert_eq!(flags.unix_socket.unwrap().as_os_str(), path);
    }

    #[test]
    fn values_are_unset_against_the_file() {
        let file = file(
            "listen = \"a\"\nunix-socket = \"/s\"\nauth-file = \"/y\"\nmetrics = \"a\"\n\
             memory-file = \"/e\"\nload = \"/l\"\nsave = \"/s\"\nhandover = \"/h\"\nuser = \"u\"\npidfile = \"/p\"\n\
             log = \"syslog\"\nprotocol = \"ascii\"",
        );
        let unset =
            typed("-l= -s= -Y= --metrics= -e= --load= --save= --handover= --user= -P= --log= -B=");
        let flags = unset.unwrap().over(file.clone()).without_empty();
        assert_eq!(flags, Flags::default());
        assert_eq!(file.clone().without_empty(), file);
    }

    #[test]
    fn what_has_no_form_is_refused() {
        for line in [
            "-m lots",
            "-p x",
            "-a 8",
            "-a 1000",
            "-t -3",
            "-I 1q",
            "--no-such-flag",
            "--daemon=perhaps",
            "--verbose=much",
        ] {
            assert!(typed(line).is_err(), "{line}");
        }
        assert_eq!(typed("-z").unwrap_err().kind(), ErrorKind::UnknownArgument);
    }

    #[test]
    fn the_example_file_says_every_key() {
        let path = Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../dist/nuthatch.toml"
        ));
        assert_eq!(
            crate::file::read(path),
            Ok((Flags::default(), DefaultEngine::default())),
            "all is commented out"
        );
        // With the comment signs removed it is still a valid file, and has every key.
        let text: String = std::fs::read_to_string(path)
            .unwrap()
            .lines()
            .filter_map(|line| line.strip_prefix('#'))
            .filter(|line| !line.starts_with(' ') && line.contains(" = "))
            .fold(String::new(), |text, line| text + line + "\n");
        crate::file::parse::<DefaultEngine>(&text).unwrap_or_else(|error| panic!("{error}"));
        let command = Typed::augment_args(clap::Command::new("nuthatch"));
        let command = DefaultEngine::augment_args(command);
        for argument in command.get_arguments() {
            let name = argument.get_long().unwrap();
            let key = format!("{name} = ");
            assert!(
                text.lines().any(|line| line.starts_with(&key)),
                "{name} is missing: DOCS=write cargo test -p nuthatch-cli --test documents"
            );
        }
    }
}
