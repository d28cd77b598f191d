//! incr, decr.

use crate::command::Command;
use crate::error::Error;
use crate::key;
use crate::number;
use crate::parse::Reject;
use crate::words::Words;

/// `incr <key> <number> [noreply]`, `decr <key> <number> [noreply]`.
pub(crate) fn parse(args: Words<'_>, down: bool) -> Result<Command<'_>, Reject> {
    let (words, count) = args.collect::<3>().ok_or(Error::Unknown)?;
    if count < 2 {
        return Err(Error::Unknown.into());
    }
    let noreply = words[2] == b"noreply";
    let key = key::check(words[0]).map_err(|error| Reject::unless(noreply, error))?;
    let by = number::unsigned(words[1]).ok_or(Reject::unless(noreply, Error::BAD_DELTA))?;
    Ok(Command::Delta {
        key,
        down,
        by,
        noreply,
    })
}
