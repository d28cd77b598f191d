//! The parsers of Redis' commands that are not about one key.

use crate::arguments::{Arguments, Source, Stop};
use crate::command::{
    Ask, Client, ClientFilter, Command, Commands, Config, DatabaseCommand, Fact, Hello, Login,
    Memory, Object, ReplyMode, Scan, Scripts, ServerCommand, TransactionCommand, ValueCommand,
};
use crate::error::Error;
use crate::glob::PATTERN_LEN_MAX;
use crate::insight;
use crate::keyed;
use crate::kill::{ClientKind, kill};
use crate::names::{NAME_LEN_MAX, Verb, small};
use crate::number::integer;
use crate::pause::pause;
use crate::tracking::{caching, tracking};

/// Items that a SCAN looks at if it has no COUNT.
const SCAN_COUNT: u64 = 10;

/// Parses the command of `verb`. `None` if its first argument is a key.
pub(super) fn parse<'a>(
    verb: Verb,
    arguments: &mut Arguments<'a>,
) -> Result<Option<Command<'a>>, Stop<'a>> {
    Ok(Some(match verb {
        Verb::MsetNx => keyed::set_all_absent(arguments)?.into(),
        Verb::MsetEx => keyed::set_all(arguments)?.into(),
        Verb::Multi => TransactionCommand::Multi.into(),
        Verb::Exec => TransactionCommand::Exec.into(),
        Verb::Discard => TransactionCommand::Discard.into(),
        Verb::Watch => TransactionCommand::Watch(arguments.values()?).into(),
        Verb::Unwatch => TransactionCommand::Unwatch.into(),
        Verb::Move => ValueCommand::Move {
            key: arguments.key()?,
            database: match arguments.integer()? {
                number if i32::try_from(number).is_err() => return Err(Error::INT_RANGE.into()),
                number => number,
            },
        }
        .into(),
        verb => return Ok(server(verb, arguments)?.map(Command::Server)),
    }))
}

/// Parses a command about the server, the connection, or all items, if it is one.
fn server<'a>(
    verb: Verb,
    arguments: &mut Arguments<'a>,
) -> Result<Option<ServerCommand<'a>>, Stop<'a>> {
    Ok(Some(match verb {
        Verb::Keys => ServerCommand::Keys {
            pattern: pattern(arguments)?,
        },
        Verb::Scan => ServerCommand::Scan(scan(arguments)?),
        Verb::RandomKey => ServerCommand::RandomKey,
        Verb::DbSize => ServerCommand::DbSize,
        Verb::FlushAll => flush(arguments, DatabaseCommand::FlushAll)?,
        Verb::FlushDb => flush(arguments, DatabaseCommand::Flush)?,
        Verb::Ping => ping(arguments)?,
        Verb::Echo => ServerCommand::Echo(arguments.next()?),
        Verb::Hello => ServerCommand::Hello(hello(arguments)?),
        Verb::Auth => ServerCommand::Auth(auth(arguments)?),
        Verb::Select => match arguments.integer()? {
            // Redis' numbers of databases have 32 bits.
            number if i32::try_from(number).is_err() => return Err(Error::INT_RANGE.into()),
            number => ServerCommand::Database(DatabaseCommand::Select(number)),
        },
        Verb::SwapDb => {
            let one = index(arguments, Error::FIRST_INDEX)?;
            let other = index(arguments, Error::SECOND_INDEX)?;
            ServerCommand::Database(DatabaseCommand::Swap(one, other))
        }
        Verb::Script => script(arguments)?,
        Verb::Quit => {
            arguments.values()?;
            ServerCommand::Quit
        }
        Verb::Reset => ServerCommand::Reset,
        Verb::Client => client(arguments)?,
        Verb::Command => commands(arguments)?,
        Verb::Config => config(arguments)?,
        Verb::Info => ServerCommand::Info(arguments.values()?),
        Verb::Memory => memory(arguments)?,
        Verb::Object => object(arguments)?,
        Verb::Time => ServerCommand::Time,
        verb => return insight::parse(verb, arguments),
    }))
}

pub(super) fn pattern<'a>(arguments: &mut Arguments<'a>) -> Result<&'a [u8], Stop<'a>> {
    let pattern = arguments.next()?;
    if pattern.len() > PATTERN_LEN_MAX {
        return Err(Error::PATTERN_TOO_LONG.into());
    }
    Ok(pattern)
}

/// A cursor as Redis reads it: a number that is written as usual is not negative. Else by strtoull, which allows blanks in front
/// and a sign.
fn cursor(text: &[u8]) -> Option<u64> {
    if let Some(number) = integer(text) {
        return u64::try_from(number).ok();
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let blanks = text.iter().take_while(|byte| is_blank(byte)).count();
    let (negative, digits) = match &text[blanks..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let digits = std::str::from_utf8(digits).ok();
    // Rust's parser would accept a second sign.
    let number: u64 = digits.filter(|it| !it.starts_with('+'))?.parse().ok()?;
    Some(match negative {
        true => number.wrapping_neg(),
        false => number,
    })
}

fn scan<'a>(arguments: &mut Arguments<'a>) -> Result<Scan<'a>, Stop<'a>> {
    let mut scan = Scan {
        cursor: cursor(arguments.next()?).ok_or(Error::CURSOR)?,
        pattern: None,
        count: SCAN_COUNT,
        of_values: true,
    };
    while arguments.left > 0 {
        let option = arguments.next()?;
        if arguments.left == 0 {
            return Err(Error::SYNTAX.into());
        }
        let mut room = [0; NAME_LEN_MAX];
        match small(option, &mut room) {
            b"match" => scan.pattern = Some(pattern(arguments)?),
            b"count" => match arguments.integer()? {
                count @ 1.. => scan.count = count as u64,
                _ => return Err(Error::SYNTAX.into()),
            },
            b"type" => {
                scan.of_values = arguments.next()?.eq_ignore_ascii_case(b"string");
            }
            _ => return Err(Error::SYNTAX.into()),
        }
    }
    Ok(scan)
}

/// The index of a database, of 32 bits as in Redis, or this error.
fn index<'a>(arguments: &mut Arguments<'a>, error: Error<'a>) -> Result<i64, Stop<'a>> {
    let number = integer(arguments.next()?).filter(|&number| i32::try_from(number).is_ok());
    number.ok_or_else(|| error.into())
}

/// FLUSHALL and FLUSHDB, with the word that says whether the caller waits.
fn flush<'a>(
    arguments: &mut Arguments<'a>,
    command: DatabaseCommand,
) -> Result<ServerCommand<'a>, Stop<'a>> {
    let mut words = arguments.values()?;
    let known = words.next().is_none_or(is_sync);
    if known && words.next().is_none() {
        Ok(ServerCommand::Database(command))
    } else {
        Err(Error::SYNTAX.into())
    }
}

/// True for the words that tell whether a flush is synchronous.
fn is_sync(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"sync") || word.eq_ignore_ascii_case(b"async")
}

fn ping<'a>(arguments: &mut Arguments<'a>) -> Result<ServerCommand<'a>, Stop<'a>> {
    match arguments.left {
        0 => Ok(ServerCommand::Ping(None)),
        1 => Ok(ServerCommand::Ping(Some(arguments.next()?))),
        _ => Err(Error::Arity("ping").into()),
    }
}

fn hello<'a>(arguments: &mut Arguments<'a>) -> Result<Hello<'a>, Stop<'a>> {
    let mut hello = Hello::default();
    if arguments.left == 0 {
        return Ok(hello);
    }
    let version = integer(arguments.next()?).ok_or(Error::PROTOCOL_NUMBER)?;
    hello.version = match version {
        2 => Some(2),
        3 => Some(3),
        _ => return Err(Error::NO_PROTOCOL.into()),
    };
    while arguments.left > 0 {
        let option = arguments.next()?;
        let mut room = [0; NAME_LEN_MAX];
        match (small(option, &mut room), arguments.left) {
            (b"auth", 2..) => {
                hello.login = Some(Login {
                    user: Some(arguments.next()?),
                    password: arguments.next()?,
                });
            }
            (b"setname", 1..) => hello.name = Some(client_name(arguments.next()?)?),
            _ => return Err(Error::HelloOption(option).into()),
        }
    }
    Ok(hello)
}

fn auth<'a>(arguments: &mut Arguments<'a>) -> Result<Login<'a>, Stop<'a>> {
    let first = arguments.next()?;
    match arguments.left {
        0 => Ok(Login {
            user: None,
            password: first,
        }),
        1 => Ok(Login {
            user: Some(first),
            password: arguments.next()?,
        }),
        _ => Err(Error::SYNTAX.into()),
    }
}

/// The longest name of a connection. Every CLIENT LIST shows the names of all connections, so a client's name costs all
/// others memory.
const CLIENT_NAME_MAX: usize = 256;

/// A connection's name: visible ASCII characters only.
fn client_name(name: &[u8]) -> Result<&[u8], Error<'static>> {
    if name.len() > CLIENT_NAME_MAX {
        Err(Error::CLIENT_NAME_TOO_LONG)
    } else if is_word(name) {
        Ok(name)
    } else {
        Err(Error::CLIENT_NAME)
    }
}

/// True if this would stay one word in a line of CLIENT LIST.
fn is_word(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

/// CLIENT SETINFO.
fn set_info<'a>(arguments: &mut Arguments<'a>) -> Result<ServerCommand<'a>, Stop<'a>> {
    exactly(arguments, 2, "client|setinfo")?;
    let (attribute, value) = (arguments.next()?, arguments.next()?);
    let mut room = [0; NAME_LEN_MAX];
    let fact = match small(attribute, &mut room) {
        b"lib-name" => Fact::Library,
        b"lib-ver" => Fact::LibraryVersion,
        _ => return Err(Error::InfoUnknown(attribute).into()),
    };
    if !is_word(value) {
        return Err(Error::Info(attribute).into());
    }
    Ok(ServerCommand::Client(Client::SetInfo(fact, value)))
}

/// Subcommands, for the answer to HELP.
const CLIENT: &str = "CACHING (YES | NO), GETNAME, GETREDIR, ID, INFO, KILL (ip:port | option value ...), LIST [TYPE type | ID id ...], NO-EVICT, NO-TOUCH, PAUSE timeout [WRITE | ALL], REPLY (ON | OFF | SKIP), SETINFO, SETNAME name, \
     TRACKING (ON | OFF) [option ...], TRACKINGINFO, UNPAUSE";
const COMMAND: &str = "COUNT, DOCS, GETKEYS command ..., INFO [name ...], LIST [FILTERBY PATTERN pattern | FILTERBY MODULE name]";
const CONFIG: &str = "GET pattern ..., RESETSTAT, SET maxmemory size";
const MEMORY: &str = "DOCTOR, PURGE, STATS, USAGE key [SAMPLES count]";
const OBJECT: &str = "ENCODING key, FREQ key, IDLETIME key, REFCOUNT key";
const SCRIPT: &str = "EXISTS sha1 ..., FLUSH [ASYNC | SYNC], KILL, LOAD script";

/// HELP of a command with subcommands.
pub(super) fn help<'a>(
    arguments: &Arguments<'a>,
    command: &'static str,
    name: &'static str,
    subcommands: &'static str,
) -> Result<ServerCommand<'a>, Stop<'a>> {
    exactly(arguments, 0, name)?;
    Ok(ServerCommand::Help {
        command,
        subcommands,
    })
}

/// A subcommand's name.
pub(super) struct Sub<'a> {
    command: &'static str,
    word: &'a [u8],
    room: [u8; NAME_LEN_MAX],
}

impl<'a> Sub<'a> {
    pub(super) fn take(
        command: &'static str,
        arguments: &mut Arguments<'a>,
    ) -> Result<Self, Stop<'a>> {
        Ok(Self {
            command,
            word: arguments.next()?,
            room: [0; NAME_LEN_MAX],
        })
    }

    pub(super) fn name(&mut self) -> &[u8] {
        small(self.word, &mut self.room)
    }

    /// The refusal of a subcommand that Redis does not have, or this server does not: clients match Redis' words to fall
    /// back to something else.
    pub(super) fn unknown(&self) -> Stop<'a> {
        Stop::Refused(Error::UnknownSubcommand {
            command: self.command,
            name: self.word,
        })
    }
}

/// Refuses another number of arguments than this.
pub(super) fn exactly<'a>(
    arguments: &Arguments<'a>,
    count: u32,
    name: &'static str,
) -> Result<(), Stop<'a>> {
    if arguments.left == count {
        Ok(())
    } else {
        Err(Error::Arity(name).into())
    }
}

/// Refuses less arguments than this.
pub(super) fn at_least<'a>(
    arguments: &Arguments<'a>,
    count: u32,
    name: &'static str,
) -> Result<(), Stop<'a>> {
    if arguments.left >= count {
        Ok(())
    } else {
        Err(Error::Arity(name).into())
    }
}

fn client<'a>(arguments: &mut Arguments<'a>) -> Result<ServerCommand<'a>, Stop<'a>> {
    let mut sub = Sub::take("CLIENT", arguments)?;
    let (count, name, client) = match sub.name() {
        b"id" => (0, "client|id", Client::Id),
        b"getname" => (0, "client|getname", Client::GetName),
        b"info" => (0, "client|info", Client::Info),
        b"getredir" => (0, "client|getredir", Client::GetRedir),
        b"help" => return help(arguments, "CLIENT", "client|help", CLIENT),
        b"unpause" => (0, "client|unpause", Client::Unpause),
        b"pause" => return Ok(ServerCommand::Client(Client::Pause(pause(arguments)?))),
        b"list" => return Ok(ServerCommand::Client(Client::List(listed(arguments)?))),
        b"tracking" => {
            return Ok(ServerCommand::Client(Client::Tracking(tracking(
                arguments,
            )?)));
        }
        b"caching" => return Ok(ServerCommand::Client(Client::Caching(caching(arguments)?))),
        b"trackinginfo" => (0, "client|trackinginfo", Client::TrackingInfo),
        b"kill" => return Ok(ServerCommand::Client(Client::Kill(kill(arguments)?))),
        b"setname" => {
            exactly(arguments, 1, "client|setname")?;
            let name = client_name(arguments.next()?)?;
            return Ok(ServerCommand::Client(Client::SetName(name)));
        }
        b"setinfo" => return set_info(arguments),
        b"no-evict" => {
            exactly(arguments, 1, "client|no-evict")?;
            switched(arguments)?;
            return Ok(ServerCommand::Client(Client::Noted));
        }
        b"no-touch" => {
            exactly(arguments, 1, "client|no-touch")?;
            return Ok(ServerCommand::Client(Client::NoTouch(switched(arguments)?)));
        }
        b"reply" => {
            exactly(arguments, 1, "client|reply")?;
            let word = arguments.next()?;
            let modes = [
                (&b"on"[..], ReplyMode::On),
                (b"off", ReplyMode::Off),
                (b"skip", ReplyMode::Skip),
            ];
            let mut modes = modes.into_iter();
            let mode = modes.find(|(name, _)| word.eq_ignore_ascii_case(name));
            let (_, mode) = mode.ok_or(Error::SYNTAX)?;
            return Ok(ServerCommand::Client(Client::Reply(mode)));
        }
        _ => return Err(sub.unknown()),
    };
    exactly(arguments, count, name)?;
    arguments.values()?;
    Ok(ServerCommand::Client(client))
}

/// The connections that CLIENT LIST shows.
fn listed<'a>(arguments: &mut Arguments<'a>) -> Result<ClientFilter<'a>, Stop<'a>> {
    if arguments.left == 0 {
        return Ok(ClientFilter::All);
    }
    let option = arguments.next()?;
    let mut room = [0; NAME_LEN_MAX];
    match (small(option, &mut room), arguments.left) {
        (b"type", 1) => {
            let kind = arguments.next()?;
            match ClientKind::named(kind) {
                Some(kind) => Ok(ClientFilter::Kind(kind)),
                None => Err(Error::ClientType(kind).into()),
            }
        }
        (b"id", 1..) => {
            let ids = arguments.values()?;
            match ids.into_iter().all(|id| integer(id).is_some()) {
                true => Ok(ClientFilter::Of(ids)),
                false => Err(Error::CLIENT_ID.into()),
            }
        }
        _ => Err(Error::SYNTAX.into()),
    }
}

/// The commands that COMMAND LIST shows.
fn listed_commands<'a>(arguments: &mut Arguments<'a>) -> Result<Commands<'a>, Stop<'a>> {
    if arguments.left == 0 {
        return Ok(Commands::List(None));
    }
    let filter = arguments.next()?;
    if arguments.left != 2 || !filter.eq_ignore_ascii_case(b"filterby") {
        return Err(Error::SYNTAX.into());
    }
    let mut room = [0; NAME_LEN_MAX];
    match small(arguments.next()?, &mut room) {
        b"pattern" => Ok(Commands::List(Some(pattern(arguments)?))),
        b"module" => {
            arguments.next()?;
            Ok(Commands::Nothing)
        }
        b"aclcat" => Err(Error::NotHere("command list filterby aclcat").into()),
        _ => Err(Error::SYNTAX.into()),
    }
}

/// ON, or else OFF.
fn switched<'a>(arguments: &mut Arguments<'a>) -> Result<bool, Stop<'a>> {
    let word = arguments.next()?;
    match (
        word.eq_ignore_ascii_case(b"on"),
        word.eq_ignore_ascii_case(b"off"),
    ) {
        (false, false) => Err(Error::SYNTAX.into()),
        (on, _) => Ok(on),
    }
}

fn commands<'a>(arguments: &mut Arguments<'a>) -> Result<ServerCommand<'a>, Stop<'a>> {
    if arguments.left == 0 {
        return Ok(ServerCommand::Command(Commands::All));
    }
    let mut sub = Sub::take("COMMAND", arguments)?;
    Ok(ServerCommand::Command(match sub.name() {
        b"count" => {
            exactly(arguments, 0, "command|count")?;
            Commands::Count
        }
        b"list" => listed_commands(arguments)?,
        b"info" if arguments.left == 0 => Commands::All,
        b"info" => Commands::Info(arguments.values()?),
        b"docs" => {
            arguments.values()?;
            Commands::Docs
        }
        b"getkeys" => insight::words_of_keys(arguments)?,
        b"help" => return help(arguments, "COMMAND", "command|help", COMMAND),
        _ => return Err(sub.unknown()),
    }))
}

fn config<'a>(arguments: &mut Arguments<'a>) -> Result<ServerCommand<'a>, Stop<'a>> {
    let mut sub = Sub::take("CONFIG", arguments)?;
    match sub.name() {
        b"get" => {
            at_least(arguments, 1, "config|get")?;
            let patterns = arguments.values()?;
            if patterns
                .into_iter()
                .any(|pattern| pattern.len() > PATTERN_LEN_MAX)
            {
                return Err(Error::PATTERN_TOO_LONG.into());
            }
            Ok(ServerCommand::Config(Config::Get(patterns)))
        }
        b"set" => {
            at_least(arguments, 2, "config|set")?;
            let pairs = arguments.values()?;
            if pairs.len() % 2 != 0 {
                return Err(Error::SYNTAX.into());
            }
            Ok(ServerCommand::Config(Config::Set(pairs)))
        }
        b"resetstat" => {
            exactly(arguments, 0, "config|resetstat")?;
            Ok(ServerCommand::Config(Config::ResetStat))
        }
        b"help" => help(arguments, "CONFIG", "config|help", CONFIG),
        _ => Err(sub.unknown()),
    }
}

fn memory<'a>(arguments: &mut Arguments<'a>) -> Result<ServerCommand<'a>, Stop<'a>> {
    let mut sub = Sub::take("MEMORY", arguments)?;
    match sub.name() {
        b"usage" => {
            at_least(arguments, 1, "memory|usage")?;
            let key = arguments.key()?;
            let mut options = arguments.values()?;
            match (options.next(), options.next(), options.next()) {
                (None, ..) => Ok(ServerCommand::Memory(Memory::Usage(key))),
                (Some(word), Some(samples), None) if word.eq_ignore_ascii_case(b"samples") => {
                    match integer(samples).ok_or(Error::NOT_INTEGER)? {
                        0.. => Ok(ServerCommand::Memory(Memory::Usage(key))),
                        _ => Err(Error::SYNTAX.into()),
                    }
                }
                _ => Err(Error::SYNTAX.into()),
            }
        }
        b"doctor" => {
            exactly(arguments, 0, "memory|doctor")?;
            Ok(ServerCommand::Memory(Memory::Doctor))
        }
        b"purge" => {
            exactly(arguments, 0, "memory|purge")?;
            Ok(ServerCommand::Memory(Memory::Purge))
        }
        b"stats" => {
            exactly(arguments, 0, "memory|stats")?;
            Ok(ServerCommand::Memory(Memory::Stats))
        }
        b"help" => help(arguments, "MEMORY", "memory|help", MEMORY),
        _ => Err(sub.unknown()),
    }
}

fn object<'a>(arguments: &mut Arguments<'a>) -> Result<ServerCommand<'a>, Stop<'a>> {
    let mut sub = Sub::take("OBJECT", arguments)?;
    let (name, ask) = match sub.name() {
        b"encoding" => ("object|encoding", Ask::Encoding),
        b"refcount" => ("object|refcount", Ask::RefCount),
        b"idletime" => ("object|idletime", Ask::IdleTime),
        b"freq" => ("object|freq", Ask::Freq),
        b"help" => return help(arguments, "OBJECT", "object|help", OBJECT),
        _ => return Err(sub.unknown()),
    };
    exactly(arguments, 1, name)?;
    let key = arguments.key()?;
    Ok(ServerCommand::Object(Object { key, ask }))
}

fn script<'a>(arguments: &mut Arguments<'a>) -> Result<ServerCommand<'a>, Stop<'a>> {
    let mut sub = Sub::take("SCRIPT", arguments)?;
    match sub.name() {
        b"exists" => {
            at_least(arguments, 1, "script|exists")?;
            Ok(ServerCommand::Script(Scripts::Exists(arguments.values()?)))
        }
        b"load" => {
            exactly(arguments, 1, "script|load")?;
            Ok(ServerCommand::Script(Scripts::Load(arguments.next()?)))
        }
        b"flush" => {
            let mut words = arguments.values()?;
            let known = words.next().is_none_or(is_sync);
            if known && words.next().is_none() {
                Ok(ServerCommand::Script(Scripts::Flush))
            } else {
                Err(Error::SCRIPT_FLUSH.into())
            }
        }
        b"kill" => {
            exactly(arguments, 0, "script|kill")?;
            Ok(ServerCommand::Script(Scripts::Kill))
        }
        b"help" => help(arguments, "SCRIPT", "script|help", SCRIPT),
        _ => Err(sub.unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{refused, server};

    #[test]
    fn a_scan_has_options() {
        let ServerCommand::Scan(scan) = server("SCAN 17 match a* COUNT 100 type STRING") else {
            panic!();
        };
        let expected = Scan {
            cursor: 17,
            pattern: Some(b"a*"),
            count: 100,
            of_values: true,
        };
        assert_eq!(scan, expected);
        assert_eq!(refused("SCAN x"), "-ERR invalid cursor\r\n");
        for (written, read) in [
            ("", None),
            ("-0", Some(0)),
            ("+17", Some(17)),
            ("007", Some(7)),
            ("-1", None),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-", None),
            ("++1", None),
            ("-+1", None),
            (" \t1", Some(1)),
            ("-01", Some(u64::MAX)),
            ("1 ", None),
            ("0x1", None),
        ] {
            assert_eq!(cursor(written.as_bytes()), read, "{written:?}");
        }
        for line in ["SCAN 0 MATCH", "SCAN 0 foo bar", "SCAN 0 COUNT 0"] {
            assert_eq!(refused(line), "-ERR syntax error\r\n", "{line}");
        }
        let long = format!("KEYS {}", "*".repeat(PATTERN_LEN_MAX + 1));
        assert_eq!(refused(&long), "-ERR pattern is longer than 1024 bytes\r\n");
    }

    #[test]
    fn a_database_has_a_number_of_32_bits() {
        assert_eq!(
            server("SELECT -2147483648"),
            ServerCommand::Database(DatabaseCommand::Select(-(1 << 31)))
        );
        let words = "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n";
        for line in ["SELECT 2147483648", "SELECT -2147483649"] {
            assert_eq!(refused(line), words);
        }
        let words = "-ERR value is not an integer or out of range\r\n";
        assert_eq!(refused("SELECT 9223372036854775808"), words);
    }

    #[test]
    fn hello_names_a_version_and_who_it_is() {
        let ServerCommand::Hello(hello) = server("HELLO 3 AUTH default secret SETNAME me") else {
            panic!();
        };
        assert_eq!((hello.version, hello.name), (Some(3), Some(&b"me"[..])));
        let login = hello.login.unwrap();
        assert_eq!(login.password, b"secret");
        for (line, words) in [
            ("HELLO 4", "-NOPROTO unsupported protocol version\r\n"),
            (
                "HELLO x",
                "-ERR Protocol version is not an integer or out of range\r\n",
            ),
            (
                "HELLO 3 AUTH x",
                "-ERR Syntax error in HELLO option 'AUTH'\r\n",
            ),
        ] {
            assert_eq!(refused(line), words);
        }
    }

    #[test]
    fn subcommands_are_checked() {
        for (line, words) in [
            (
                "CLIENT foo",
                "-ERR unknown subcommand 'foo'. Try CLIENT HELP.\r\n",
            ),
            (
                "CONFIG REWRITE",
                "-ERR unknown subcommand 'REWRITE'. Try CONFIG HELP.\r\n",
            ),
            (
                "SCRIPT DEBUG yes",
                "-ERR unknown subcommand 'DEBUG'. Try SCRIPT HELP.\r\n",
            ),
            (
                "OBJECT foo k",
                "-ERR unknown subcommand 'foo'. Try OBJECT HELP.\r\n",
            ),
            (
                "CLIENT ID 1",
                "-ERR wrong number of arguments for 'client|id' command\r\n",
            ),
            (
                "client",
                "-ERR wrong number of arguments for 'client' command\r\n",
            ),
            (
                "CONFIG GET",
                "-ERR wrong number of arguments for 'config|get' command\r\n",
            ),
            ("FLUSHALL now", "-ERR syntax error\r\n"),
            (
                "PING a b",
                "-ERR wrong number of arguments for 'ping' command\r\n",
            ),
        ] {
            assert_eq!(refused(line), words);
        }
        assert_eq!(server("PING"), ServerCommand::Ping(None));
        assert_eq!(
            server("flushdb ASYNC"),
            ServerCommand::Database(DatabaseCommand::Flush)
        );
    }

    #[test]
    fn what_clients_say_of_themselves_is_checked() {
        for (line, fact, text) in [
            ("CLIENT SETINFO lib-name x", Fact::Library, &b"x"[..]),
            ("client setinfo LIB-VER ", Fact::LibraryVersion, b""),
        ] {
            let expected = Client::SetInfo(fact, text);
            assert_eq!(server(line), ServerCommand::Client(expected));
        }
        for (line, words) in [
            (
                "CLIENT SETINFO lib-name a\tb",
                "-ERR lib-name cannot contain spaces, newlines or special characters.\r\n",
            ),
            (
                "CLIENT SETINFO LIB-VER 1\n2",
                "-ERR LIB-VER cannot contain spaces, newlines or special characters.\r\n",
            ),
            (
                "CLIENT SETINFO lib-nam x",
                "-ERR Unrecognized option 'lib-nam'\r\n",
            ),
            (
                "CLIENT SETINFO lib-name",
                "-ERR wrong number of arguments for 'client|setinfo' command\r\n",
            ),
        ] {
            assert_eq!(refused(line), words);
        }
    }
}
