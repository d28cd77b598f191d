//! mg, md, ma, me, mn: the meta commands without a data block.

use crate::command::{Command, Meta, MetaFlags, MetaVerb};
use crate::error::Error;
use crate::meta_flags;
use crate::parse::Reject;
use crate::words::Words;

/// `mg <key> <flag>*`.
#[inline]
pub(crate) fn parse_get(args: Words<'_>) -> Result<Command<'_>, Reject> {
    let (key, flags) = key_and_flags(args, Error::Unknown)?;
    command(MetaVerb::Get, key, meta_flags::parse(key, flags)?)
}

/// `md <key> <flag>*`.
pub(crate) fn parse_delete(args: Words<'_>) -> Result<Command<'_>, Reject> {
    let (key, flags) = key_and_flags(args, Error::Unknown)?;
    command(MetaVerb::Delete, key, meta_flags::parse(key, flags)?)
}

/// `ma <key> <flag>*`.
pub(crate) fn parse_arithmetic(args: Words<'_>) -> Result<Command<'_>, Reject> {
    let (key, flags) = key_and_flags(args, Error::Unknown)?;
    command(
        MetaVerb::Arithmetic,
        key,
        meta_flags::parse_arithmetic(key, flags)?,
    )
}

/// `me <key> [b]`.
pub(crate) fn parse_debug(args: Words<'_>) -> Result<Command<'_>, Reject> {
    let (key, flags) = key_and_flags(args, Error::BAD_FORMAT)?;
    command(MetaVerb::Debug, key, meta_flags::parse(key, flags)?)
}

/// `mn`.
pub(crate) fn noop<'a>() -> Command<'a> {
    Command::Meta(Meta {
        verb: MetaVerb::Noop,
        key: &[],
        flags: MetaFlags::default(),
    })
}

#[inline]
fn key_and_flags(args: Words<'_>, none: Error) -> Result<(&[u8], Words<'_>), Error> {
    let mut words = args.iter();
    let key = words.next().ok_or(none)?;
    Ok((key, words.rest()))
}

#[inline]
fn command<'a>(verb: MetaVerb, key: &'a [u8], flags: MetaFlags<'a>) -> Result<Command<'a>, Reject> {
    Ok(Command::Meta(Meta { verb, key, flags }))
}
