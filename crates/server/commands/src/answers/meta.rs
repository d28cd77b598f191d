//! What the answer to a meta command repeats of it.

use nuthatch_protocol::{MetaFlags, MetaVerb};

/// The parts of a meta command that its answer repeats.
#[derive(Clone, Copy, Debug)]
pub struct MetaFormat<'a> {
    pub verb: AnsweredVerb,
    /// The key as the client wrote it.
    pub key: &'a [u8],
    pub flags: MetaFlags<'a>,
}

/// A meta command as its answer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnsweredVerb {
    /// ms; whether it replaces whatever is there.
    Store { plain_set: bool },
    /// mg, md, ma, me.
    Other(MetaVerb),
}
