//! mg, md, ma, me, mn: the meta commands without a data block.

use crate::command::{Meta, MetaFlags, MetaVerb};
use crate::error::Error;
use crate::meta_flags;
use crate::parse::Reject;
use crate::words::Words;

/// `mg <key> <flag>*`.
#[inline]
pub(crate) fn parse_get(args: Words<'_>) -> Result<Meta<'_>, Reject> {
    let (key, flags) = key_and_flags(args, Error::Unknown)?;
    let flags = meta_flags::parse(key, flags)?;
    Ok(meta(MetaVerb::Get, key, flags))
}

/// `md <key> <flag>*`.
pub(crate) fn parse_delete(args: Words<'_>) -> Result<Meta<'_>, Reject> {
    let (key, flags) = key_and_flags(args, Error::Unknown)?;
    let flags = meta_flags::parse(key, flags)?;
    Ok(meta(MetaVerb::Delete, key, flags))
}

/// `ma <key> <flag>*`.
pub(crate) fn parse_arithmetic(args: Words<'_>) -> Result<Meta<'_>, Reject> {
    let (key, flags) = key_and_flags(args, Error::Unknown)?;
    let flags = meta_flags::parse_arithmetic(key, flags)?;
    Ok(meta(MetaVerb::Arithmetic, key, flags))
}

/// `me <key> [b]`.
pub(crate) fn parse_debug(args: Words<'_>) -> Result<Meta<'_>, Reject> {
    let (key, flags) = key_and_flags(args, Error::BAD_FORMAT)?;
    let flags = meta_flags::parse(key, flags)?;
    Ok(meta(MetaVerb::Debug, key, flags))
}

/// `mn`: what stands behind it means nothing.
pub(crate) fn noop<'a>() -> Meta<'a> {
    meta(MetaVerb::Noop, &[], MetaFlags::default())
}

/// The key, and the words behind it. Without a key the error is `none`.
#[inline]
fn key_and_flags(args: Words<'_>, none: Error) -> Result<(&[u8], Words<'_>), Error> {
    let mut words = args.iter();
    let key = words.next().ok_or(none)?;
    Ok((key, words.rest()))
}

#[inline(always)]
fn meta<'a>(verb: MetaVerb, key: &'a [u8], flags: MetaFlags<'a>) -> Meta<'a> {
    Meta { verb, key, flags }
}
