//! The items of a load: their keys, values and lifetimes, by number.

use nuthatch_workload::{ItemShape, KeyMaker, Workload};

use crate::content;

/// The longest lifetime in seconds: memcached takes a longer one for a moment since 1970.
pub const LIFETIME_MAX: u32 = 30 * 24 * 3600;

/// What the items of a load look like.
#[derive(Clone, Copy, Debug)]
pub struct Items {
    /// Whose items they are.
    pub workload: Workload,
    /// How many there are before the run: numbers from 0 on.
    pub count: u64,
    /// A lifetime of all items in seconds, in place of the workload's; 0: they do not expire.
    pub ttl: Option<u32>,
}

impl Items {
    /// The item with this number.
    pub fn shape(&self, number: u64) -> ItemShape {
        let shape = self.workload.item(number);
        let lifetime = match self.ttl {
            Some(0) => None,
            Some(seconds) => Some(seconds),
            None => shape.lifetime,
        };
        ItemShape {
            lifetime: lifetime.map(|seconds| seconds.min(LIFETIME_MAX)),
            ..shape
        }
    }

    /// Writes the key of the item with this number in place of what is in `room`.
    pub fn key(&self, number: u64, room: &mut Vec<u8>) {
        let size = self.workload.item(number).key;
        room.clear();
        room.resize(size, 0);
        KeyMaker::new(size).write(number, room);
    }

    /// Checks that a value is one that this load stored for this key.
    pub fn check(&self, number: u64, key: &[u8], value: &[u8]) -> Result<(), String> {
        let size = self.workload.item(number).value;
        if value.len() == size && content::vouches(key, value) {
            return Ok(());
        }
        Err(format!(
            "a wrong value for {}: {} bytes, not the {size} that were stored",
            String::from_utf8_lossy(key),
            value.len(),
        ))
    }
}
