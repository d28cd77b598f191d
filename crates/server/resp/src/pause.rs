//! The parser of CLIENT PAUSE, and what it holds up.

use crate::arguments::{Arguments, Stop};
use crate::error::Error;
use crate::names::described;
use crate::number::integer;
use crate::parse::{fitting, name};

/// CLIENT PAUSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// How long.
    pub milliseconds: u64,
    /// Requests that only read do not wait.
    pub writes_only: bool,
}

/// CLIENT PAUSE behind its name.
pub(super) fn pause<'a>(arguments: &mut Arguments<'a>) -> Result<Pause, Stop<'a>> {
    if !(1..=2).contains(&arguments.left) {
        return Err(Error::Arity("client|pause").into());
    }
    let time = integer(arguments.next()?);
    let mut writes_only = false;
    if arguments.left > 0 {
        let mode = arguments.next()?;
        writes_only = mode.eq_ignore_ascii_case(b"write");
        if !writes_only && !mode.eq_ignore_ascii_case(b"all") {
            return Err(Error::PAUSE_MODE.into());
        }
    }
    let time = time.ok_or(Error::TIMEOUT)?;
    let milliseconds = u64::try_from(time).map_err(|_| Error::TIMEOUT_NEGATIVE)?;
    Ok(Pause {
        milliseconds,
        writes_only,
    })
}

/// Commands that change something for others and are no writes in COMMAND INFO. EXEC, whatever it has queued.
const CHANGE_TOO: [&str; 5] = ["eval", "evalsha", "exec", "publish", "spublish"];

/// True if the request that begins so may write. False for a line that was typed by hand, and for what is refused because
/// of the number of its arguments: that need not wait.
#[cold]
pub fn writes(input: &[u8]) -> bool {
    let Some(mut arguments) = Arguments::of(input).ok().filter(|it| it.left > 0) else {
        return false;
    };
    let words = i64::from(arguments.left);
    let Ok(entry) = name(&mut arguments).and_then(|entry| fitting(entry, words)) else {
        return false;
    };
    let mut all = described().iter();
    let described = all.find(|command| command.name == entry.name);
    CHANGE_TOO.contains(&entry.name) || described.is_some_and(|it| it.flags.contains(&"write"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{refused, server};
    use crate::{Client, ServerCommand};

    #[test]
    fn how_long_and_what() {
        for (line, milliseconds, writes_only) in [
            ("CLIENT PAUSE 0", 0, false),
            ("client pause 500 all", 500, false),
            ("CLIENT PAUSE 7 Write", 7, true),
        ] {
            let expected = Pause {
                milliseconds,
                writes_only,
            };
            assert_eq!(server(line), ServerCommand::Client(Client::Pause(expected)));
        }
        for (line, words) in [
            (
                "CLIENT PAUSE x",
                "timeout is not an integer or out of range",
            ),
            ("CLIENT PAUSE -1", "timeout is negative"),
            (
                "CLIENT PAUSE 1 some",
                "CLIENT PAUSE mode must be WRITE or ALL",
            ),
        ] {
            assert_eq!(refused(line), format!("-ERR {words}\r\n"));
        }
    }

    #[test]
    fn what_writes() {
        for (request, does) in [
            ("*3\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\nb\r\n", true),
            ("*3\r\n$3\r\nset\r\n$1\r\na\r\n$1", true),
            ("*2\r\n$4\r\nINCR\r\n", true),
            ("*1\r\n$8\r\nFLUSHALL\r\n", true),
            ("*1\r\n$4\r\nEXEC\r\n", true),
            ("*1\r\n$3\r\nSET\r\n", false),
            ("*3\r\n$4\r\nINCR\r\n", false),
            ("*2\r\n$4\r\nEXEC\r\n", false),
            ("*2\r\n$3\r\nget\r\n", false),
            ("*2\r\n$6\r\nCLIENT\r\n$7\r\nUNPAUSE\r\n", false),
            ("*3\r\n$3\r\nse", false),
            ("set a b\r\n", false),
        ] {
            assert_eq!(writes(request.as_bytes()), does, "{request:?}");
        }
    }
}
