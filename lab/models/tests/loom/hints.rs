//! Models of what readers tell of the items that they use.

use std::sync::Arc;

use loom::thread;
use nuthatch_engine::hints::Hints;

use crate::world::model;

/// Hints: what is taken was noted, and once. Two threads of a reader note items that meet in a word, or do not.
#[test]
fn what_is_taken_was_noted_and_once() {
    model(3, || {
        let hints = Arc::new(Hints::local());
        let readers = [[4, 8], [12, 4]].map(|addresses| {
            let hints = Arc::clone(&hints);
            thread::spawn(move || {
                addresses
                    .into_iter()
                    .for_each(|address| hints.note(address))
            })
        });
        let mut taken: Vec<u64> = hints.take().collect();
        for reader in readers {
            reader.join().unwrap();
        }
        taken.extend(hints.take());
        // The last of a word is there, so that something is.
        assert!(!taken.is_empty());
        let times = |address| taken.iter().filter(|&&taken| taken == address).count();
        assert!(times(4) <= 2 && times(8) <= 1 && times(12) <= 1);
        assert_eq!(times(4) + times(8) + times(12), taken.len());
        assert_eq!(hints.take().count(), 0);
    });
}
