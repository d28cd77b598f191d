//! All items of a cache.

use super::Cache;
use crate::engine::{Cursor, Handle};

impl Cache {
    /// All items, as copies. Blocks nobody; what is stored or removed meanwhile may or may not be
    /// met, everything else is met exactly once. Values over 8 KiB are fetched by key.
    pub fn iter(&self) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + '_ {
        let mut from = Some(Cursor::default());
        let mut ready: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
        std::iter::from_fn(move || {
            loop {
                if let Some((key, value)) = ready.pop() {
                    match value {
                        Some(value) => return Some((key, value)),
                        // Removed since: as if it had never been met.
                        None => match self.get(&key) {
                            Ok(Some(value)) => return Some((key, value)),
                            _ => continue,
                        },
                    }
                }
                from = self.visit_some(from?, &mut ready);
            }
        })
    }

    fn visit_some(
        &self,
        from: Cursor,
        ready: &mut Vec<(Vec<u8>, Option<Vec<u8>>)>,
    ) -> Option<Cursor> {
        const AT_ONCE: usize = 256;
        let now = self.now();
        self.with_door(|door| {
            door.visit(now, from, AT_ONCE, &mut |visit| {
                let copied = visit.value.len() == visit.item.value_len;
                ready.push((visit.key.to_vec(), copied.then(|| visit.value.to_vec())));
            })
        })
    }
}
