//! The forms that values have: how each is read, shown, merged, and what it becomes in the server.

use std::ffi::OsStr;
use std::fmt::{Debug, Display};
use std::marker::PhantomData;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path as FilePath, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use nuthatch_program::size;
use nuthatch_security::ciphers::Ciphers;

use crate::about::{About, Kind};
use crate::administration::Actions;
use crate::key_events::KeyEvents;

/// How a value is said. Settings name a form as a type; there are no values of it.
pub trait Form {
    /// Its kind.
    const KIND: Kind;
    /// What was said, or nothing.
    type Said: Clone + Debug + Default + PartialEq;

    /// Takes one more word. Errors: it has not this form.
    fn read(said: &mut Self::Said, word: Option<&OsStr>, about: &About) -> Result<(), String>;
    /// The command line's, and the file's behind it.
    fn over(line: Self::Said, file: Self::Said) -> Self::Said;
    /// Nothing in place of an empty value, which unsets what the file says.
    fn without_empty(said: Self::Said) -> Self::Said;
    /// As in a file.
    fn show(said: &Self::Said) -> Option<String>;
    /// The number, if it is a whole one, for its bounds.
    fn number(_said: &Self::Said) -> Option<u64> {
        None
    }
}

/// A form of one value, of which the last counts.
pub trait Single {
    /// Its kind.
    const KIND: Kind;
    /// The value.
    type Value: Clone + Debug + PartialEq;

    /// Errors: the word has not this form.
    fn parse(word: Option<&OsStr>, about: &About) -> Result<Self::Value, String>;
    /// As in a file.
    fn show(value: &Self::Value) -> String;
    /// It stands for nothing: it unsets what the file says.
    fn is_empty(_value: &Self::Value) -> bool {
        false
    }
    /// See [`Form::number`].
    fn number(_value: &Self::Value) -> Option<u64> {
        None
    }
}

impl<F: Single> Form for F {
    const KIND: Kind = F::KIND;
    type Said = Option<F::Value>;

    fn read(said: &mut Self::Said, word: Option<&OsStr>, about: &About) -> Result<(), String> {
        *said = Some(F::parse(word, about)?);
        Ok(())
    }

    fn over(line: Self::Said, file: Self::Said) -> Self::Said {
        line.or(file)
    }

    fn without_empty(said: Self::Said) -> Self::Said {
        said.filter(|value| !F::is_empty(value))
    }

    fn show(said: &Self::Said) -> Option<String> {
        said.as_ref().map(F::show)
    }

    fn number(said: &Self::Said) -> Option<u64> {
        said.as_ref().and_then(F::number)
    }
}

/// The value that a setting has in the server's [`Config`](crate::config::Config).
pub trait Gives<T>: Form {
    /// Errors: the value cannot be.
    fn value(said: &Self::Said, about: &About) -> Result<T, String>;
}

/// What was typed, as text. Errors: it is none.
fn text(word: Option<&OsStr>) -> Result<&str, String> {
    let word = word.unwrap_or_default();
    word.to_str()
        .ok_or_else(|| format!("`{}` is no text", word.display()))
}

/// A text as in a file of settings.
fn quoted(text: impl Display) -> String {
    format!("{:?}", text.to_string())
}

/// A whole number.
pub struct Number<T>(PhantomData<T>);

impl<T> Single for Number<T>
where
    T: Copy + Debug + PartialEq + Display + FromStr<Err: Display> + TryInto<u64>,
{
    const KIND: Kind = Kind::Number;
    type Value = T;

    fn parse(word: Option<&OsStr>, about: &About) -> Result<T, String> {
        let number = text(word)?.parse();
        number.map_err(|error: T::Err| match about.is_option {
            true => format!("a number, as in {}=20", about.name),
            false => error.to_string(),
        })
    }

    fn show(value: &T) -> String {
        value.to_string()
    }

    fn number(value: &T) -> Option<u64> {
        (*value).try_into().ok()
    }
}

/// A number whose sign or fraction matters.
fn parsed<T: FromStr<Err: Display>>(word: Option<&OsStr>) -> Result<T, String> {
    text(word)?
        .parse()
        .map_err(|error: T::Err| error.to_string())
}

/// A port, or 0 or -1.
pub struct Port;

impl Single for Port {
    const KIND: Kind = Kind::Signed;
    type Value = i32;

    fn parse(word: Option<&OsStr>, _about: &About) -> Result<i32, String> {
        parsed(word)
    }

    fn show(value: &i32) -> String {
        value.to_string()
    }
}

/// A number with a fraction.
pub struct Real;

impl Single for Real {
    const KIND: Kind = Kind::Real;
    type Value = f64;

    fn parse(word: Option<&OsStr>, _about: &About) -> Result<f64, String> {
        parsed(word)
    }

    fn show(value: &f64) -> String {
        value.to_string()
    }
}

/// Bytes: a number of so many, or one with k, m or g behind it.
pub struct Size<const UNIT: usize>;

/// Bytes.
pub type Bytes = Size<1>;
/// Bytes; a number without a letter is of megabytes, as memcached's -m.
pub type Megabytes = Size<{ 1 << 20 }>;

impl<const UNIT: usize> Single for Size<UNIT> {
    const KIND: Kind = Kind::NumberOrText;
    type Value = usize;

    fn parse(word: Option<&OsStr>, _about: &About) -> Result<usize, String> {
        size::parse_in(text(word)?, UNIT).map_err(|error| error.to_string())
    }

    fn show(value: &usize) -> String {
        value.to_string()
    }
}

/// Permissions.
pub struct Octal;

impl Single for Octal {
    const KIND: Kind = Kind::NumberOrText;
    type Value = u32;

    fn parse(word: Option<&OsStr>, _about: &About) -> Result<u32, String> {
        let text = text(word)?;
        u32::from_str_radix(text, 8)
            .ok()
            .filter(|mode| *mode <= 0o777)
            .ok_or_else(|| format!("`{text}` is not an octal mode like 700"))
    }

    fn show(value: &u32) -> String {
        format!("\"{value:o}\"")
    }
}

/// True or false. The server's value is true if it is said to be `ON`: `Flag<false>` switches something off that is on by
/// default.
pub struct Flag<const ON: bool>;

/// True or false.
pub type Switch = Flag<true>;
/// True or false, where true switches something off that is on by default.
pub type OffSwitch = Flag<false>;

impl<const ON: bool> Single for Flag<ON> {
    const KIND: Kind = Kind::Switch;
    type Value = bool;

    fn parse(word: Option<&OsStr>, _about: &About) -> Result<bool, String> {
        let text = text(word)?;
        text.parse()
            .map_err(|_| format!("`{text}` is neither true nor false"))
    }

    fn show(value: &bool) -> String {
        value.to_string()
    }
}

impl<const ON: bool> Gives<bool> for Flag<ON> {
    fn value(said: &Option<bool>, _about: &About) -> Result<bool, String> {
        Ok(said.unwrap_or_default() == ON)
    }
}

/// A text.
pub struct Text;

impl Single for Text {
    const KIND: Kind = Kind::Text;
    type Value = String;

    fn parse(word: Option<&OsStr>, _about: &About) -> Result<String, String> {
        text(word).map(str::to_owned)
    }

    fn show(value: &String) -> String {
        quoted(value)
    }

    fn is_empty(value: &String) -> bool {
        value.is_empty()
    }
}

/// The character that ends a prefix, which is a colon.
pub struct Colon;

impl Single for Colon {
    const KIND: Kind = Kind::Text;
    type Value = String;

    fn parse(word: Option<&OsStr>, _about: &About) -> Result<String, String> {
        text(word).map(str::to_owned)
    }

    fn show(value: &String) -> String {
        quoted(value)
    }
}

/// Whether commands are counted by prefix from the start.
impl Gives<bool> for Colon {
    fn value(said: &Option<String>, about: &About) -> Result<bool, String> {
        match said.as_deref() {
            None => Ok(false),
            Some(":") => Ok(true),
            Some(_) => Err(format!(
                "{}: prefixes end at a colon, and at nothing else",
                about.typed()
            )),
        }
    }
}

/// One of the names that the declaration lists.
pub struct Choice;

impl Single for Choice {
    const KIND: Kind = Kind::Choice;
    type Value = &'static str;

    fn parse(word: Option<&OsStr>, about: &About) -> Result<&'static str, String> {
        let text = text(word)?;
        let mut names = about.choices.iter().map(|(name, _)| *name);
        names.find(|name| *name == text).ok_or_else(|| {
            let names: Vec<&str> = about.choices.iter().map(|(name, _)| *name).collect();
            format!("`{text}` is none of {}", names.join(", "))
        })
    }

    fn show(value: &&'static str) -> String {
        quoted(value)
    }
}

/// A file, by a name of any bytes.
pub struct Path;

impl Single for Path {
    const KIND: Kind = Kind::Path;
    type Value = PathBuf;

    fn parse(word: Option<&OsStr>, _about: &About) -> Result<PathBuf, String> {
        Ok(word.unwrap_or_default().into())
    }

    fn show(value: &PathBuf) -> String {
        quoted(value.display())
    }

    fn is_empty(value: &PathBuf) -> bool {
        value.as_os_str().is_empty()
    }
}

/// A daemon changes its directory: relative paths start from the directory in which it was started.
impl Gives<Option<PathBuf>> for Path {
    fn value(said: &Option<PathBuf>, _about: &About) -> Result<Option<PathBuf>, String> {
        said.as_deref().map(absolute).transpose()
    }
}

/// The file by its name from the root.
pub fn absolute(path: &FilePath) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Texts; those of the command line count instead of the file's.
pub struct List;

impl Form for List {
    const KIND: Kind = Kind::List;
    type Said = Vec<String>;

    fn read(said: &mut Vec<String>, word: Option<&OsStr>, _about: &About) -> Result<(), String> {
        said.push(text(word)?.to_owned());
        Ok(())
    }

    fn over(line: Vec<String>, file: Vec<String>) -> Vec<String> {
        if line.is_empty() { file } else { line }
    }

    fn without_empty(mut said: Vec<String>) -> Vec<String> {
        said.retain(|text| !text.is_empty());
        said
    }

    fn show(said: &Vec<String>) -> Option<String> {
        (!said.is_empty()).then(|| format!("{said:?}"))
    }
}

/// The options of -o: those of the command line follow the file's. They are compared one by one.
pub struct MoreOptions;

impl Form for MoreOptions {
    const KIND: Kind = Kind::List;
    type Said = Vec<String>;

    fn read(said: &mut Vec<String>, word: Option<&OsStr>, about: &About) -> Result<(), String> {
        List::read(said, word, about)
    }

    fn over(line: Vec<String>, file: Vec<String>) -> Vec<String> {
        [file, line].concat()
    }

    fn without_empty(said: Vec<String>) -> Vec<String> {
        said
    }

    fn show(_said: &Vec<String>) -> Option<String> {
        None
    }
}

/// The level of the log.
pub struct Level;

/// One `-v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// One level more than before.
    More,
    /// This level.
    Level(u8),
}

/// The level that these come to.
pub fn verbosity(said: &[Verbosity]) -> u8 {
    said.iter().fold(0, |level, said| match said {
        Verbosity::More => level.saturating_add(1),
        Verbosity::Level(level) => *level,
    })
}

impl Form for Level {
    const KIND: Kind = Kind::Level;
    type Said = Vec<Verbosity>;

    fn read(said: &mut Vec<Verbosity>, word: Option<&OsStr>, _about: &About) -> Result<(), String> {
        said.push(match text(word)? {
            "" => Verbosity::More,
            level => {
                let read = level.parse();
                Verbosity::Level(read.map_err(|_| format!("`{level}` is not a level: 0 to 3"))?)
            }
        });
        Ok(())
    }

    fn over(line: Vec<Verbosity>, file: Vec<Verbosity>) -> Vec<Verbosity> {
        if line.is_empty() { file } else { line }
    }

    fn without_empty(said: Vec<Verbosity>) -> Vec<Verbosity> {
        said
    }

    /// By the result, also where nothing is said: clients change it.
    fn show(said: &Vec<Verbosity>) -> Option<String> {
        Some(verbosity(said).to_string())
    }
}

impl Gives<u32> for Octal {
    fn value(said: &Option<u32>, _about: &About) -> Result<u32, String> {
        Ok(said.unwrap_or_default())
    }
}

impl Gives<u32> for Level {
    fn value(said: &Vec<Verbosity>, _about: &About) -> Result<u32, String> {
        Ok(verbosity(said).into())
    }
}

impl Gives<u32> for Number<u32> {
    fn value(said: &Option<u32>, _about: &About) -> Result<u32, String> {
        Ok(said.unwrap_or_default())
    }
}

/// The bounds of these settings begin at 1, and they have a default: [`About::check`] has refused a 0.
impl Gives<NonZeroU32> for Number<u32> {
    fn value(said: &Option<u32>, _about: &About) -> Result<NonZeroU32, String> {
        Ok(NonZeroU32::new(said.unwrap_or_default()).unwrap_or(NonZeroU32::MIN))
    }
}

/// The same.
impl Gives<NonZeroUsize> for Number<usize> {
    fn value(said: &Option<usize>, _about: &About) -> Result<NonZeroUsize, String> {
        Ok(NonZeroUsize::new(said.unwrap_or_default()).unwrap_or(NonZeroUsize::MIN))
    }
}

/// 0 is no limit.
impl Gives<Option<NonZeroU32>> for Number<u32> {
    fn value(said: &Option<u32>, _about: &About) -> Result<Option<NonZeroU32>, String> {
        Ok(NonZeroU32::new(said.unwrap_or_default()))
    }
}

/// The same.
impl Gives<Option<NonZeroUsize>> for Number<usize> {
    fn value(said: &Option<usize>, _about: &About) -> Result<Option<NonZeroUsize>, String> {
        Ok(NonZeroUsize::new(said.unwrap_or_default()))
    }
}

/// Seconds.
impl Gives<Duration> for Number<u32> {
    fn value(said: &Option<u32>, _about: &About) -> Result<Duration, String> {
        Ok(Duration::from_secs(said.unwrap_or_default().into()))
    }
}

/// Seconds; 0 is never.
impl Gives<Option<Duration>> for Number<u32> {
    fn value(said: &Option<u32>, _about: &About) -> Result<Option<Duration>, String> {
        let seconds = said.filter(|seconds| *seconds > 0);
        Ok(seconds.map(|seconds| Duration::from_secs(seconds.into())))
    }
}

/// An option that has no value.
pub struct Bare;

impl Single for Bare {
    const KIND: Kind = Kind::Switch;
    type Value = bool;

    fn parse(_word: Option<&OsStr>, _about: &About) -> Result<bool, String> {
        Ok(true)
    }

    fn show(value: &bool) -> String {
        value.to_string()
    }
}

/// A file of an option.
pub struct OptionFile;

impl Single for OptionFile {
    const KIND: Kind = Kind::Path;
    type Value = PathBuf;

    fn parse(word: Option<&OsStr>, about: &About) -> Result<PathBuf, String> {
        let word = word.filter(|word| !word.is_empty());
        let word = word.ok_or_else(|| {
            format!(
                "a file, as in {name}=/etc/ssl/{name}.pem",
                name = about.name
            )
        })?;
        Ok(word.into())
    }

    fn show(value: &PathBuf) -> String {
        quoted(value.display())
    }
}

/// Users, by name or number, with colons between.
pub struct Users;

impl Single for Users {
    const KIND: Kind = Kind::Text;
    type Value = Vec<String>;

    fn parse(word: Option<&OsStr>, about: &About) -> Result<Vec<String>, String> {
        let users = text(word)?;
        match users.is_empty() {
            true => Err(format!(
                "users with colons between, as in {}=www-data:1000",
                about.name
            )),
            false => Ok(users.split(':').map(str::to_owned).collect()),
        }
    }

    fn show(value: &Vec<String>) -> String {
        quoted(value.join(":"))
    }
}

impl Gives<Option<Vec<u32>>> for Users {
    fn value(said: &Option<Vec<String>>, about: &About) -> Result<Option<Vec<u32>>, String> {
        let users = said.as_ref().map(|users| {
            let users = users.iter().map(|user| match user.parse() {
                Ok(number) => Ok(number),
                Err(_) => crate::user(user)
                    .map(|user| user.uid.as_raw())
                    .map_err(|error| format!("{}: {error}", about.typed())),
            });
            users.collect()
        });
        users.transpose()
    }
}

/// Actions with colons between, or all.
pub struct ActionList;

impl Single for ActionList {
    const KIND: Kind = Kind::Text;
    type Value = Actions;

    fn parse(word: Option<&OsStr>, _about: &About) -> Result<Actions, String> {
        match word {
            None => Ok(Actions::ALL),
            word => text(word)?.parse(),
        }
    }

    fn show(value: &Actions) -> String {
        quoted(value)
    }
}

impl Gives<Actions> for ActionList {
    fn value(said: &Option<Actions>, _about: &About) -> Result<Actions, String> {
        Ok(said.unwrap_or_default())
    }
}

/// Redis' letters for events about keys.
pub struct Letters;

impl Single for Letters {
    const KIND: Kind = Kind::Text;
    type Value = KeyEvents;

    fn parse(word: Option<&OsStr>, _about: &About) -> Result<KeyEvents, String> {
        text(word)?.parse().map_err(str::to_owned)
    }

    fn show(value: &KeyEvents) -> String {
        quoted(value)
    }
}

impl Gives<KeyEvents> for Letters {
    fn value(said: &Option<KeyEvents>, _about: &About) -> Result<KeyEvents, String> {
        Ok(said.unwrap_or_default())
    }
}

/// Cipher suites.
pub struct Suites;

impl Single for Suites {
    const KIND: Kind = Kind::Text;
    type Value = Ciphers;

    fn parse(word: Option<&OsStr>, _about: &About) -> Result<Ciphers, String> {
        Ciphers::parse(text(word)?).map_err(|error| error.to_string())
    }

    fn show(value: &Ciphers) -> String {
        quoted(value)
    }
}

/// memcached's number for PEM, and its help's word.
pub struct Pem;

impl Single for Pem {
    const KIND: Kind = Kind::Text;
    type Value = ();

    fn parse(word: Option<&OsStr>, _about: &About) -> Result<(), String> {
        match text(word)? {
            "1" | "PEM" => Ok(()),
            _ => Err("1, which is PEM, alone".to_owned()),
        }
    }

    fn show((): &()) -> String {
        quoted("PEM")
    }
}
