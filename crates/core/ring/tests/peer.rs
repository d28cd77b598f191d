//! A ring pair beside a peer that does anything. The fuzz target `ring` has the same body.
#![cfg(target_os = "linux")]
#![cfg(not(any(nuthatch_unix, nuthatch_portable)))]

mod peer_invariants;

use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    // Each makes memory for two processes, and moves some of it.
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn a_peer_may_do_anything(input in vec(any::<u8>(), 0..200)) {
        peer_invariants::check(&input);
    }

    #[test]
    fn an_honest_peer_is_served(steps in vec((0_u8..13, 0_u8..8), 0..200)) {
        let input: Vec<u8> = steps.iter().map(|(step, size)| step | (size << 4)).collect();
        peer_invariants::check(&input);
    }
}
