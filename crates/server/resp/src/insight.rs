//! The parsers of commands about what a server does: ROLE, LASTSAVE, WAIT, SLOWLOG, LATENCY, ACL.

use crate::arguments::{Arguments, Source, Stop};
use crate::command::{Acl, Constant, Insight};
use crate::error::Error;
use crate::management::{Sub, at_least, exactly, help};
use crate::names::Verb;
use crate::number::integer;
use crate::{ServerCommand, categories, channels, command};

const SLOWLOG: &str = "GET [count], LEN, RESET";
const LATENCY: &str = "DOCTOR, HISTOGRAM [command ...], HISTORY event, LATEST, RESET [event ...]";
const ACL: &str = "CAT [category], GETUSER username, LIST, USERS, WHOAMI";

/// Parses the command of `verb`, if it is one of these.
pub(super) fn parse<'a>(
    verb: Verb,
    arguments: &mut Arguments<'a>,
) -> Result<Option<ServerCommand<'a>>, Stop<'a>> {
    let insight = match verb {
        Verb::Role => Insight::Role,
        Verb::LastSave => Insight::LastSave,
        Verb::Wait => wait(arguments)?,
        Verb::SlowLog => return slow_log(arguments).map(Some),
        Verb::Latency => return latency(arguments).map(Some),
        Verb::Acl => return acl(arguments).map(Some),
        verb => return channels::parse(verb, arguments),
    };
    Ok(Some(insight.into()))
}

impl<'a> From<Insight<'a>> for ServerCommand<'a> {
    fn from(insight: Insight<'a>) -> Self {
        Self::Insight(insight)
    }
}

/// WAIT: there are no replicas, so none has confirmed anything, however long a client waits.
fn wait<'a>(arguments: &mut Arguments<'a>) -> Result<Insight<'a>, Stop<'a>> {
    arguments.integer()?;
    let timeout = integer(arguments.next()?).ok_or(Error::TIMEOUT)?;
    match timeout {
        0.. => Ok(Insight::Constant(Constant::Zero)),
        _ => Err(Error::TIMEOUT_NEGATIVE.into()),
    }
}

fn slow_log<'a>(arguments: &mut Arguments<'a>) -> Result<ServerCommand<'a>, Stop<'a>> {
    let mut sub = Sub::take("SLOWLOG", arguments)?;
    let constant = match sub.name() {
        b"get" => {
            if arguments.left > 0 {
                exactly(arguments, 1, "slowlog|get")?;
                let count = integer(arguments.next()?).filter(|&count| count >= -1);
                count.ok_or(Error::SLOWLOG_COUNT)?;
            }
            Constant::Empty
        }
        b"len" => {
            exactly(arguments, 0, "slowlog|len")?;
            Constant::Zero
        }
        b"reset" => {
            exactly(arguments, 0, "slowlog|reset")?;
            Constant::Ok
        }
        b"help" => return help(arguments, "SLOWLOG", "slowlog|help", SLOWLOG),
        _ => return Err(sub.unknown()),
    };
    Ok(Insight::Constant(constant).into())
}

fn latency<'a>(arguments: &mut Arguments<'a>) -> Result<ServerCommand<'a>, Stop<'a>> {
    let mut sub = Sub::take("LATENCY", arguments)?;
    let constant = match sub.name() {
        b"latest" => {
            exactly(arguments, 0, "latency|latest")?;
            Constant::Empty
        }
        b"history" => {
            exactly(arguments, 1, "latency|history")?;
            arguments.values()?;
            Constant::Empty
        }
        b"reset" => {
            arguments.values()?;
            Constant::Zero
        }
        b"histogram" => {
            arguments.values()?;
            Constant::EmptyMap
        }
        b"doctor" => {
            exactly(arguments, 0, "latency|doctor")?;
            Constant::Doctor
        }
        b"help" => return help(arguments, "LATENCY", "latency|help", LATENCY),
        _ => return Err(sub.unknown()),
    };
    Ok(Insight::Constant(constant).into())
}

fn acl<'a>(arguments: &mut Arguments<'a>) -> Result<ServerCommand<'a>, Stop<'a>> {
    let mut sub = Sub::take("ACL", arguments)?;
    let (name, acl) = match sub.name() {
        b"cat" if arguments.left == 0 => ("acl|cat", Acl::Categories),
        b"cat" if arguments.left == 1 => {
            let commands = categories::commands(arguments.next()?)?;
            ("acl|cat", Acl::Category(commands))
        }
        b"cat" => return Err(Error::CATEGORIES.into()),
        b"getuser" => {
            exactly(arguments, 1, "acl|getuser")?;
            ("acl|getuser", Acl::User(arguments.next()?))
        }
        b"whoami" => ("acl|whoami", Acl::WhoAmI),
        b"users" => ("acl|users", Acl::Users),
        b"list" => ("acl|list", Acl::List),
        b"help" => return help(arguments, "ACL", "acl|help", ACL),
        _ => return Err(sub.unknown()),
    };
    exactly(arguments, 0, name)?;
    Ok(Insight::Acl(acl).into())
}

/// COMMAND GETKEYS: the words of a command, its name first.
pub(super) fn words_of_keys<'a>(
    arguments: &mut Arguments<'a>,
) -> Result<command::Commands<'a>, Stop<'a>> {
    at_least(arguments, 1, "command|getkeys")?;
    Ok(command::Commands::GetKeys(arguments.values()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{refused, server};

    #[test]
    fn what_there_is_none_of_is_nothing() {
        for (line, constant) in [
            ("WAIT 1 1000", Constant::Zero),
            ("SLOWLOG GET", Constant::Empty),
            ("slowlog get -1", Constant::Empty),
            ("SLOWLOG LEN", Constant::Zero),
            ("SLOWLOG RESET", Constant::Ok),
            ("LATENCY LATEST", Constant::Empty),
            ("LATENCY HISTORY fork", Constant::Empty),
            ("LATENCY RESET", Constant::Zero),
            ("LATENCY HISTOGRAM get", Constant::EmptyMap),
            ("LATENCY DOCTOR", Constant::Doctor),
        ] {
            let expected = ServerCommand::Insight(Insight::Constant(constant));
            assert_eq!(server(line), expected, "{line}");
        }
        for (line, words) in [
            ("WAIT 1 -1", "timeout is negative"),
            ("WAIT 1 x", "timeout is not an integer or out of range"),
            ("WAIT x 1", "value is not an integer or out of range"),
            (
                "SLOWLOG GET -2",
                "count should be greater than or equal to -1",
            ),
            ("ACL CAT foo", "Unknown category 'foo'"),
            ("ACL foo", "unknown subcommand 'foo'. Try ACL HELP."),
            (
                "ACL LIST x",
                "wrong number of arguments for 'acl|list' command",
            ),
        ] {
            assert_eq!(refused(line), format!("-ERR {words}\r\n"));
        }
    }
}
