//! Without the feature `shm`, and on other systems than Linux, no memory is read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::{Item, Options};

/// Whether this build reads memory.
pub(crate) const IS_POSSIBLE: bool = false;

/// No server's memory.
#[derive(Debug)]
pub(crate) struct View;

impl View {
    pub fn connect(_: &Path, _: Duration) -> Result<Self, String> {
        Err(super::IMPOSSIBLE.to_owned())
    }

    pub fn connect_with_ring(_: &Path, _: Duration) -> Result<(Self, SharedEnd), String> {
        Err(super::IMPOSSIBLE.to_owned())
    }
}

/// No ring.
#[derive(Debug)]
pub(crate) enum SharedEnd {}

impl AsFd for SharedEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}

#[cfg_attr(
    not(feature = "tokio"),
    allow(dead_code, reason = "tasks use more of it than threads")
)]
impl SharedEnd {
    pub fn read(&self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    pub fn write(&self, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    pub fn has_input(&self) -> bool {
        match *self {}
    }

    pub fn has_wanted_room(&self) -> bool {
        match *self {}
    }

    pub fn take_wanted_room(&self) -> bool {
        match *self {}
    }

    pub fn may_sleep(&self) -> bool {
        match *self {}
    }

    pub fn rise(&self) {
        match *self {}
    }

    pub fn shut_down(&self) -> io::Result<()> {
        match *self {}
    }
}

/// No memory.
#[derive(Debug, Default)]
pub(crate) struct Memory {}

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
