//! The parsers of commands about channels: PUBLISH, SUBSCRIBE, UNSUBSCRIBE and their like, PUBSUB.

use nuthatch_protocol::Limits;

use crate::ServerCommand;
use crate::arguments::{Arguments, Source, Stop, Values};
use crate::error::Error;
use crate::glob::PATTERN_LEN_MAX;
use crate::management::{Sub, at_least, exactly, help, pattern};
use crate::names::Verb;
use crate::parse::name;
use crate::rest::Rest;

/// What the name of a subscription stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// A channel (SUBSCRIBE).
    Channel,
    /// All channels whose names match (PSUBSCRIBE).
    Pattern,
    /// A channel of a shard (SSUBSCRIBE). This server is one shard.
    Shard,
}

impl ChannelKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Channel, Self::Pattern, Self::Shard];
}

/// A command about channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChannelCommand<'a> {
    /// SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE.
    Subscribe(ChannelKind, Values<'a>),
    /// UNSUBSCRIBE, PUNSUBSCRIBE, SUNSUBSCRIBE: from all of the kind if none is named.
    Unsubscribe(ChannelKind, Values<'a>),
    /// PUBLISH, SPUBLISH.
    Publish(Publish<'a>),
    /// PUBSUB CHANNELS, PUBSUB SHARDCHANNELS: those that match a pattern.
    Names(ChannelKind, Option<&'a [u8]>),
    /// PUBSUB NUMSUB, PUBSUB SHARDNUMSUB.
    Subscribers(ChannelKind, Values<'a>),
    /// PUBSUB NUMPAT.
    Patterns,
}

/// PUBLISH, SPUBLISH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Where.
    pub kind: ChannelKind,
    /// The channel.
    pub channel: &'a [u8],
    /// The message.
    pub text: &'a [u8],
}

const PUBSUB: &str = "CHANNELS [pattern], NUMPAT, NUMSUB [channel ...], SHARDCHANNELS [pattern], SHARDNUMSUB [channel ...]";

/// Parses the command of `verb`, if it is one of these.
pub(super) fn parse<'a>(
    verb: Verb,
    arguments: &mut Arguments<'a>,
) -> Result<Option<ServerCommand<'a>>, Stop<'a>> {
    use ChannelCommand::{Subscribe, Unsubscribe};
    use ChannelKind::{Channel, Pattern, Shard};
    let values = match verb {
        Verb::Subscribe
        | Verb::PSubscribe
        | Verb::SSubscribe
        | Verb::Unsubscribe
        | Verb::PUnsubscribe
        | Verb::SUnsubscribe => arguments.values()?,
        Verb::PubSub => return pub_sub(arguments).map(Some),
        _ => return Ok(None),
    };
    let is_long = values.into_iter().any(|it| it.len() > PATTERN_LEN_MAX);
    match verb {
        Verb::PSubscribe if is_long => return Err(Error::PATTERN_TOO_LONG.into()),
        Verb::Subscribe | Verb::SSubscribe if is_long => return Err(Error::CHANNEL_TOO_LONG.into()),
        _ => {}
    }
    let command = match verb {
        Verb::Subscribe => Subscribe(Channel, values),
        Verb::PSubscribe => Subscribe(Pattern, values),
        Verb::SSubscribe => Subscribe(Shard, values),
        Verb::Unsubscribe => Unsubscribe(Channel, values),
        Verb::PUnsubscribe => Unsubscribe(Pattern, values),
        _ => Unsubscribe(Shard, values),
    };
    Ok(Some(ServerCommand::Channel(command)))
}

/// PUBLISH and SPUBLISH, whose message may be as long as a value.
pub(super) fn publish<'a>(
    verb: Verb,
    arguments: &mut Arguments<'a>,
    limits: &Limits,
) -> Result<ServerCommand<'a>, Stop<'a>> {
    let kind = match verb {
        Verb::Publish => ChannelKind::Channel,
        _ => ChannelKind::Shard,
    };
    let channel = arguments.next()?;
    // Every message is compared with all patterns, by its channel's name.
    if channel.len() > PATTERN_LEN_MAX {
        return Err(Error::CHANNEL_TOO_LONG.into());
    }
    Ok(ServerCommand::Channel(ChannelCommand::Publish(Publish {
        kind,
        channel,
        text: arguments.piece(limits.value_max)?,
    })))
}

fn pub_sub<'a>(arguments: &mut Arguments<'a>) -> Result<ServerCommand<'a>, Stop<'a>> {
    use ChannelKind::{Channel, Shard};
    let mut sub = Sub::take("PUBSUB", arguments)?;
    let command = match sub.name() {
        b"channels" => names("pubsub|channels", Channel, arguments)?,
        b"shardchannels" => names("pubsub|shardchannels", Shard, arguments)?,
        b"numsub" => ChannelCommand::Subscribers(Channel, arguments.values()?),
        b"shardnumsub" => ChannelCommand::Subscribers(Shard, arguments.values()?),
        b"numpat" => {
            exactly(arguments, 0, "pubsub|numpat")?;
            ChannelCommand::Patterns
        }
        b"help" => return help(arguments, "PUBSUB", "pubsub|help", PUBSUB),
        _ => return Err(sub.unknown()),
    };
    Ok(ServerCommand::Channel(command))
}

fn names<'a>(
    name: &'static str,
    kind: ChannelKind,
    arguments: &mut Arguments<'a>,
) -> Result<ChannelCommand<'a>, Stop<'a>> {
    if arguments.left == 0 {
        return Ok(ChannelCommand::Names(kind, None));
    }
    at_least(arguments, 1, name)?;
    exactly(arguments, 1, name)?;
    Ok(ChannelCommand::Names(kind, Some(pattern(arguments)?)))
}

/// The front of a request: the name of its command, and how it is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Front {
    /// The command.
    pub name: &'static str,
    /// Bytes that have arrived.
    pub consumed: usize,
    /// The rest behind them.
    pub rest: Rest,
}

/// The front of a request, if it has arrived and its command exists.
pub fn front(input: &[u8]) -> Option<Front> {
    let mut arguments = Arguments::of(input).ok().filter(|it| it.left > 0)?;
    let entry = name(&mut arguments).ok()?;
    Some(Front {
        name: entry.name,
        consumed: arguments.at,
        rest: arguments.rest(),
    })
}

/// Commands that are told with their subcommand.
const WITH_SUBCOMMANDS: [&str; 10] = [
    "acl", "client", "command", "config", "latency", "memory", "object", "pubsub", "script",
    "slowlog",
];

/// The command of the request that begins so, in Redis' words: `get`, `client|list`. `None` if it is none, or if its name is
/// not whole.
pub fn command_at(input: &[u8]) -> Option<String> {
    let mut arguments = Arguments::of(input).ok().filter(|it| it.left > 0)?;
    let entry = name(&mut arguments).ok()?;
    if !WITH_SUBCOMMANDS.contains(&entry.name) || arguments.left == 0 {
        return Some(String::from(entry.name));
    }
    let word = arguments.next().ok()?;
    let word = std::str::from_utf8(word).ok()?.to_ascii_lowercase();
    let is_name = word
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    is_name.then(|| format!("{}|{word}", entry.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{refused, server};

    #[test]
    fn requests_are_told_by_their_front() {
        for (front, command) in [
            ("*2\r\n$3\r\nGET\r\n$9\r\nse", Some("get")),
            (
                "*3\r\n$6\r\nCLIENT\r\n$7\r\nSetInfo\r\n$8\r\nlib-",
                Some("client|setinfo"),
            ),
            ("*1\r\n$6\r\nconfig\r\n", Some("config")),
            ("*2\r\n$6\r\nCONFIG\r\n$5\r\na b=c\r\n", None),
            ("*2\r\n$6\r\nSECRET\r\n$3\r\nabc\r\n", None),
            ("*2\r\n$3\r\nGE", None),
            ("\0\0\0", None),
            ("", None),
        ] {
            assert_eq!(
                command_at(front.as_bytes()).as_deref(),
                command,
                "{front:?}"
            );
        }
    }

    #[test]
    fn channels_have_kinds() {
        for (line, kind) in [
            ("SUBSCRIBE a b", ChannelKind::Channel),
            ("psubscribe a b", ChannelKind::Pattern),
            ("SSUBSCRIBE a b", ChannelKind::Shard),
        ] {
            let ServerCommand::Channel(ChannelCommand::Subscribe(its, names)) = server(line) else {
                panic!("{line}");
            };
            assert_eq!((its, names.len()), (kind, 2));
        }
        let none = server("UNSUBSCRIBE");
        assert!(matches!(
            none,
            ServerCommand::Channel(ChannelCommand::Unsubscribe(ChannelKind::Channel, names)) if names.len() == 0
        ));
        let publish = Publish {
            kind: ChannelKind::Shard,
            channel: b"c",
            text: b"hi",
        };
        let expected = ServerCommand::Channel(ChannelCommand::Publish(publish));
        assert_eq!(server("SPUBLISH c hi"), expected);
        for (line, words) in [
            ("PUBSUB foo", "unknown subcommand 'foo'. Try PUBSUB HELP."),
            (
                "PUBSUB CHANNELS a b",
                "wrong number of arguments for 'pubsub|channels' command",
            ),
            (
                "PUBLISH c",
                "wrong number of arguments for 'publish' command",
            ),
        ] {
            assert_eq!(refused(line), format!("-ERR {words}\r\n"));
        }
    }

    #[test]
    fn a_front_is_passed_over() {
        let input = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n";
        let Front {
            name,
            consumed,
            mut rest,
        } = front(input).unwrap();
        assert_eq!(name, "get");
        let passed = rest.pass(&input[consumed..]).unwrap();
        assert_eq!((consumed + passed, rest.is_over()), (20, true));
        assert_eq!(front(b"*1\r\n$3\r\nfoo\r\n"), None);
    }
}
