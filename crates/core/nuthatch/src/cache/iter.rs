//! [`Iter`]: iteration over all items of a cache.

use std::fmt;
use std::iter::FusedIterator;

use nuthatch_engine::{Cursor, Handle};

use super::Cache;

/// Index places that are visited at a time.
const AT_ONCE: usize = 256;

/// All items of a [`Cache`], as copies: see [`Cache::iter`].
pub struct Iter<'c> {
    cache: &'c Cache,
    from: Option<Cursor>,
    /// Keys, and values if the visit copied them.
    ready: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Cache {
    /// All items, as copies, in no order. It blocks no other thread, and does not count as a use. Values over 8 KiB are
    /// fetched by key.
    ///
    /// If nothing is stored meanwhile, and the limit was not lowered just before, each item is returned once. Items
    /// that are stored or removed meanwhile may or may not be returned. A full cache moves items to make room for new
    /// ones. An item that was moved may be returned again. Where items move faster than the iteration goes, it may miss
    /// some although they stay in the cache.
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            cache: self,
            from: Some(Cursor::default()),
            ready: Vec::new(),
        }
    }
}

impl<'c> IntoIterator for &'c Cache {
    type Item = (Vec<u8>, Vec<u8>);
    type IntoIter = Iter<'c>;

    fn into_iter(self) -> Iter<'c> {
        self.iter()
    }
}

impl Iter<'_> {
    fn visit_some(&mut self, from: Cursor) {
        let Self { cache, ready, .. } = self;
        let now = cache.now();
        let mut spare = None;
        let (_, mut session) = cache.session(&mut spare);
        self.from = session.visit(now, from, AT_ONCE, &mut |visit| {
            let copied = visit.value.len() == visit.item.value_len;
            ready.push((visit.key.to_vec(), copied.then(|| visit.value.to_vec())));
        });
    }
}

impl Iterator for Iter<'_> {
    type Item = (Vec<u8>, Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((key, value)) = self.ready.pop() else {
                self.visit_some(self.from?);
                continue;
            };
            // An item that was removed since is skipped.
            if let Some(value) = value.or_else(|| Some(self.cache.peek(&key)?.0)) {
                return Some((key, value));
            }
        }
    }
}

impl FusedIterator for Iter<'_> {}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Iter").finish_non_exhaustive()
    }
}
