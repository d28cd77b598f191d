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
