//! Values that are too long to await in a buffer: the engine reserves an item, and the value's bytes go there as they
//! arrive. The key keeps its old value until the whole request has arrived, because options follow the value.

use std::collections::TryReserveError;

use nuthatch_base::memory::reserve::spare;
use nuthatch_commands::answers::resp::failure;
use nuthatch_commands::context::Context;
use nuthatch_commands::partial::PartialValue;
use nuthatch_resp::{Body, Error, Rest, emptied};

use crate::progress::Progress;

/// A value that arrives piece by piece.
pub struct Upload {
    pub target: Target,
    /// The request without the value, parsed again when all of it has arrived.
    pub emptied: Vec<u8>,
    /// Where the line with its length begins in the request.
    pub line: usize,
    /// Bytes of the request that have arrived, without those of its key and of the value.
    pub passed: usize,
    /// The part of the request behind the value.
    pub rest: Rest,
    /// The command of many keys that this value belongs to, if it does.
    pub progress: Option<Progress>,
}

/// Where the bytes go.
pub enum Target {
    Item(PartialValue),
    /// SETRANGE's bytes are only a part of an item's value, and a script decides what becomes of its arguments. So these
    /// are collected first.
    Buffer {
        bytes: Vec<u8>,
        missing: usize,
    },
}

impl Upload {
    /// Bytes of the value that are still to come.
    pub fn missing(&self) -> usize {
        match &self.target {
            Target::Item(value) => value.missing(),
            Target::Buffer { missing, .. } => *missing,
        }
    }

    /// The value under way, if it goes straight to the engine.
    pub fn partial(&mut self) -> Option<&mut PartialValue> {
        match &mut self.target {
            Target::Item(value) => Some(value),
            Target::Buffer { .. } => None,
        }
    }

    /// Bytes of memory, without those of the item, which are the engine's.
    pub fn memory(&self) -> usize {
        let buffered = match &self.target {
            Target::Item(_) => 0,
            Target::Buffer { bytes, .. } => bytes.capacity(),
        };
        buffered + self.emptied.capacity()
    }

    /// Records the command that this value is an element of.
    pub fn belongs_to(&mut self, progress: Progress) {
        self.progress = Some(progress);
    }

    /// Reserves an item for the value that the front of a request announces, if it is one's whole value.
    pub fn reserve(
        cx: &mut Context<'_, '_>,
        input: &[u8],
        body: &Body<'_>,
    ) -> Result<Self, Error<'static>> {
        let target = if body.whole {
            let reserved = cx.reserve(body.key, body.value_len);
            Target::Item(reserved.map_err(|reply| failure(&reply))?)
        } else {
            Target::Buffer {
                bytes: Vec::new(),
                missing: body.value_len,
            }
        };
        Ok(Self {
            target,
            emptied: emptied(input, body),
            line: body.line,
            passed: body.head - body.key.len(),
            rest: body.rest,
            progress: None,
        })
    }

    /// Errors: there is no memory for the piece.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), TryReserveError> {
        match &mut self.target {
            Target::Item(value) => value.write(piece),
            Target::Buffer { bytes, missing } => {
                spare(|| bytes.try_reserve(piece.len()))?;
                bytes.extend_from_slice(piece);
                *missing -= piece.len();
            }
        }
        Ok(())
    }
}
