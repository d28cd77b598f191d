//! Without the feature `shm`, and on other systems than Linux, no memory is read.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::{Item, Options};

/// Whether this build reads memory.
pub(crate) const IS_POSSIBLE: bool = false;

/// Nobody forks from what is not shared.
#[derive(Debug)]
pub(crate) struct ForkMark;

impl ForkMark {
    pub fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn is_child(&self) -> bool {
        false
    }
}

/// No server's memory.
#[derive(Debug)]
pub(crate) struct View;

impl View {
    pub fn connect(_: &Path, _: Duration) -> Result<Self, String> {
        Err(super::IMPOSSIBLE.to_owned())
    }
}

/// No memory.
#[derive(Debug, Default)]
pub(crate) struct Memory;

impl Memory {
    pub fn set(&self, _: Option<Arc<View>>, _: &Options) {}

    pub fn begin_again(&self, _: &Options) -> bool {
        false
    }

    pub fn get(&self, _: &[u8], _: bool) -> Option<Option<Item>> {
        None
    }

    pub fn get_many(&self, _: &[&[u8]], _: bool, _: impl FnMut(usize, Option<Item>)) {}

    pub fn has_ended(&self) -> bool {
        false
    }
}
