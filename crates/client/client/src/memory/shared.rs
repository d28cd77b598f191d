//! The memory of a server that was started with `--shared`.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use nuthatch_direct::{Direct, Meta};
pub(crate) use nuthatch_ring::SharedEnd;

use crate::backoff::Backoff;
use crate::{Item, Options};

/// Whether this build reads memory.
pub(crate) const IS_POSSIBLE: bool = true;

/// One server's memory.
pub(crate) struct View(Direct);

/// The memory that is read now, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    current: ArcSwapOption<View>,
    /// When it is looked for again, where there is none.
    retry: Mutex<Backoff>,
}

impl fmt::Debug for View {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("View")
    }
}

impl View {
    /// Asks the server for it. Errors in words.
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, String> {
        Direct::connect_within(path, patience)
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// The same, and a ring for commands to the same server.
    pub fn connect_with_ring(path: &Path, patience: Duration) -> Result<(Self, SharedEnd), String> {
        let made = Direct::connect_with_ring(path, patience);
        let made = made.and_then(|(direct, end)| Ok((Self(direct), SharedEnd::new(end)?)));
        made.map_err(|error| error.to_string())
    }

    fn item(&self, value: Vec<u8>, meta: Meta, with_left: bool) -> Item {
        Item {
            value,
            flags: meta.flags,
            cas: meta.cas,
            left: with_left.then(|| self.0.left(&meta)).flatten(),
        }
    }
}

impl Memory {
    /// From now on this one is read; or none, and it is looked for after a while.
    pub fn set(&self, view: Option<Arc<View>>, options: &Options) {
        let mut retry = self.retry.lock().unwrap_or_else(PoisonError::into_inner);
        match view {
            Some(_) => retry.succeeded(),
            None => retry.failed(Instant::now(), options),
        }
        self.current.store(view);
    }

    /// Whether the caller is to look for memory now, because there is none. Nobody else does for a while.
    pub fn begin_again(&self, options: &Options) -> bool {
        if self.current.load().is_some() {
            return false;
        }
        let now = Instant::now();
        let mut retry = self.retry.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = retry.remaining(now).is_none();
        if is_time {
            retry.failed(now, options);
        }
        is_time
    }

    /// What it says of a key. None: nothing, the server has to be asked. `with_left`: also how long the item has to live, which is one more look at the clock.
    #[inline]
    pub fn get(&self, key: &[u8], with_left: bool) -> Option<Option<Item>> {
        let current = self.current.load();
        let view = current.as_ref()?;
        // A copy's end is not its item's.
        if with_left && view.0.holds_copies() {
            return None;
        }
        let mut value = Vec::new();
        match view.0.get(key, &mut value) {
            // Of those that find it stale, the server chooses one.
            Ok(Some(meta)) if meta.stale => None,
            Ok(Some(meta)) => Some(Some(view.item(value, meta, with_left))),
            // It may be where the copies come from.
            Ok(None) if view.0.holds_copies() => None,
            Ok(None) => Some(None),
            Err(_) => None,
        }
    }

    /// Looks for several keys. Calls `each` with the numbers of those on which it has something to say.
    pub fn get_many(
        &self,
        keys: &[&[u8]],
        with_left: bool,
        mut each: impl FnMut(usize, Option<Item>),
    ) {
        if let Some(view) = &*self.current.load() {
            let holds_copies = view.0.holds_copies();
            if with_left && holds_copies {
                return;
            }
            // What it has not come to, is asked for.
            let _ = view.0.get_many(keys, |number, found| match found {
                Some((meta, _)) if meta.stale => {}
                None if holds_copies => {}
                found => {
                    let item =
                        found.map(|(meta, value)| view.item(value.to_vec(), meta, with_left));
                    each(number, item);
                }
            });
        }
    }

    /// Whether the server whose memory this is has ended.
    pub fn has_ended(&self) -> bool {
        let current = self.current.load();
        current.as_ref().is_some_and(|view| view.0.has_ended())
    }
}
