//! Properties of the hash split that hold for every table size.

use nuthatch_base::hash::sizing;
use proptest::prelude::*;

proptest! {
    #[test]
    fn an_index_fits_its_memory(
        memory in 4_u64 << 20..1 << 45,
        items in prop::option::of(any::<u64>()),
        slots in prop::sample::select(vec![4_u64, 8]),
    ) {
        let size = sizing::index(memory, items, sizing::IndexShape::cuckoo(slots), 64);
        prop_assert!(size.buckets.is_power_of_two() && size.buckets >= 64);
        prop_assert!(size.bytes() <= memory / 4);
        if size.rule == sizing::IndexRule::Items {
            prop_assert!(size.buckets * size.slots >= items.unwrap());
        }
    }
}
