//! touch.

use crate::command::Command;
use crate::error::Error;
use crate::key;
use crate::number;
use crate::parse::Reject;
use crate::words::Words;

/// `touch <key> <exptime> [noreply]`.
pub(crate) fn parse(args: Words<'_>) -> Result<Command<'_>, Reject> {
    let (words, count) = args.collect::<3>().ok_or(Error::Unknown)?;
    if count < 2 {
        return Err(Error::Unknown.into());
    }
    let noreply = words[2] == b"noreply";
    let key = key::check(words[0]).map_err(|error| Reject::unless(noreply, error))?;
    let exptime = number::exptime(words[1]).ok_or(Reject::unless(noreply, Error::BAD_EXPTIME))?;
    Ok(Command::Touch {
        key,
        exptime,
        noreply,
    })
}
