//! delete.

use crate::command::Command;
use crate::error::Error;
use crate::key;
use crate::parse::Reject;
use crate::words::Words;

/// `delete <key> [0] [noreply]`: the zero is a delay that old clients still send.
pub(crate) fn parse(args: Words<'_>) -> Result<Command<'_>, Reject> {
    let (words, count) = args.collect::<3>().ok_or(Error::Unknown)?;
    let noreply = match words[..count] {
        [] => return Err(Error::Unknown.into()),
        [_] | [_, b"0"] => false,
        [_, b"noreply"] | [_, b"0", b"noreply"] => true,
        [.., last] => {
            return Err(Reject::unless(last == b"noreply", Error::DELETE_USAGE));
        }
    };
    let key = key::check(words[0]).map_err(|error| Reject::unless(noreply, error))?;
    Ok(Command::Delete { key, noreply })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{accept, reject};

    #[test]
    fn a_key_and_the_zero_of_old_clients() {
        for (line, noreply) in [
            (&b"delete k\r\n"[..], false),
            (b"delete k 0\r\n", false),
            (b"delete k noreply\r\n", true),
            (b"delete  k  0  noreply \n", true),
        ] {
            assert_eq!(accept(line), Command::Delete { key: b"k", noreply });
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let usage = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
        let format = "CLIENT_ERROR bad command line format\r\n";
        for (line, error) in [
            (&b"delete\r\n"[..], "ERROR\r\n"),
            (b"delete a b c d e\r\n", "ERROR\r\n"),
            (b"delete k 5\r\n", usage),
            (b"delete k 0 5\r\n", usage),
            (b"delete k 5 noreply\r\n", ""),
            (b"delete a\x01\r\n", format),
            (b"delete a\x01 noreply\r\n", ""),
        ] {
            assert_eq!(reject(line), error, "{line:?}");
        }
    }
}
