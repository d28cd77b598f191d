//! The size classes of keys and values, from a table instead of a call to the engine.

use std::sync::Arc;

use nuthatch_engine::request::{COMMON_KEY_LEN_MAX, KEY_LEN_MAX};
use nuthatch_engine::{AnyEngine, Engine, Inspect};

/// The numbers that classes can have, with 0: memcached has fewer than 64 classes, and so has the store.
pub const CLASSES: usize = 64;

/// The table has keys and values of fewer bytes together.
const LOOKED_UP: usize = 2048;

/// Bytes of a key and of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lens {
    /// Of the key.
    pub key: usize,
    /// Of the value.
    pub value: usize,
}

/// Finds the class of an item.
pub struct SizeClasses {
    /// The class by the bytes of key and value together. 0 if these do not decide alone.
    by_len: [u8; LOOKED_UP],
    /// The engine, for all other items.
    engine: Option<Arc<AnyEngine>>,
}

/// Without an engine all items are in class 1.
impl Default for SizeClasses {
    fn default() -> Self {
        Self {
            by_len: [0; LOOKED_UP],
            engine: None,
        }
    }
}

impl SizeClasses {
    /// The classes of an engine.
    pub fn of(engine: &Arc<AnyEngine>) -> Self {
        let class = |key, value| engine.footprint(key, value).class;
        let of_sum = |sum: usize| {
            // An engine may round keys and values by themselves, cut long values into pieces, or give long keys another
            // header. Keys of one kind have one class if the shortest and the longest of them have it.
            let keys = [0, KEY_LEN_MAX, COMMON_KEY_LEN_MAX, engine.key_len_max()];
            let [first, others @ ..] = keys.map(|key| {
                let key = key.min(sum);
                class(key, sum - key)
            });
            let same = others.iter().all(|other| *other == first);
            if same { first as u8 } else { 0 }
        };
        Self {
            by_len: std::array::from_fn(of_sum),
            engine: Some(Arc::clone(engine)),
        }
    }

    /// The class of an item with the usual header.
    #[inline]
    pub fn class(&self, lens: Lens) -> usize {
        match self.by_len.get(lens.key + lens.value) {
            Some(&class) if class != 0 => class.into(),
            _ => self.asked(lens),
        }
    }

    #[inline(never)]
    fn asked(&self, lens: Lens) -> usize {
        let engine = self.engine.as_ref();
        engine.map_or(1, |engine| engine.footprint(lens.key, lens.value).class)
    }
}

#[cfg(test)]
mod tests {
    use nuthatch_chained::{Chained, ChainedConfig};
    use nuthatch_cuckoo::layout::EightWay;
    use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
    use nuthatch_engine::Engine;

    use super::*;

    fn agrees<E: Engine>(engine: E) {
        let engine = Arc::new(engine);
        let any = Arc::clone(&engine).any();
        let sizes = SizeClasses::of(&any);
        let known = sizes.by_len.iter().filter(|&&class| class != 0).count();
        assert!(known > 900, "{known}");
        for key in [1, 8, 100, 250, 300, 1500] {
            for value in (0..4000).chain([10_000, 300_000]) {
                let class = engine.footprint(key, value).class;
                assert_eq!(sizes.class(Lens { key, value }), class, "{key} {value}");
                assert!(class < CLASSES);
            }
        }
    }

    #[test]
    fn what_is_looked_up_is_what_the_engine_says() {
        agrees(Cuckoo::<EightWay>::new(CuckooConfig::default()).expect("there is memory"));
        let small = CuckooConfig {
            memory_limit: 1 << 20,
            item_size_max: 1 << 19,
            ..CuckooConfig::default()
        };
        agrees(Cuckoo::<EightWay>::new(small).expect("there is memory"));
        agrees(Chained::new(ChainedConfig::default()).expect("there is memory"));
    }
}
