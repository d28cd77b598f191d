//! The cuckoo engine's designs under every check: items in a log, in size classes with CLOCK, and the paper's.

use std::sync::Arc;

use nuthatch_check::conformance::{Client, Setup};
use nuthatch_check::suite;
use nuthatch_check::suite::Extent;
use nuthatch_cuckoo::config::{LogPolicyKind, POLICIES};
use nuthatch_cuckoo::layout::{EightWay, EightWayClock, Paper, Variant};
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::{AnyEngine, Engine};

fn make<D: Variant>(setup: Setup) -> Arc<Cuckoo<D>> {
    make_evicting(setup, CuckooConfig::default().eviction)
}

fn make_evicting<D: Variant>(setup: Setup, eviction: &'static LogPolicyKind) -> Arc<Cuckoo<D>> {
    let config = CuckooConfig {
        memory_limit: setup.memory_limit,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        eviction,
        // Small at first, so that it doubles under every check.
        initial_items: Some(100),
        ..CuckooConfig::default()
    };
    Arc::new(Cuckoo::new(config).expect("there is address space"))
}

suite!(eight_way, make::<EightWay>, Extent::SMOKE);
suite!(clock, make::<EightWayClock>, PAPER);

/// MemC3's own: 4 slots, 1-byte tags, one writer.
const PAPER: Extent = Extent {
    batches_of_churn: Extent::SMOKE.batches_of_churn,
    histories: Extent::SMOKE.histories,
    ..Extent::SMOKE.part(10)
};
suite!(paper, make::<Paper>, PAPER);

/// The policies of the log beside the default: what may depend on who leaves.
mod other_policies {
    use super::*;

    fn each(check: fn(&dyn Fn(Setup) -> Arc<AnyEngine>, &Extent)) {
        for &eviction in &POLICIES[1..] {
            let make = |setup| make_evicting::<EightWay>(setup, eviction).any();
            check(&make, &PAPER);
        }
    }

    #[test]
    fn conform() {
        each(suite::conforms);
    }

    #[test]
    fn forget_only_whole_items_under_pressure() {
        each(suite::forgets_only_whole_items_under_pressure);
    }

    #[test]
    fn stress_under_pressure_with_mixed_sizes() {
        each(suite::stress_under_pressure_with_mixed_sizes);
    }

    #[test]
    fn residents_are_never_missed() {
        each(suite::residents_are_never_missed);
    }

    #[test]
    fn histories_are_linearizable_under_eviction() {
        each(suite::histories_are_linearizable_under_eviction);
    }
}

/// In a small memory the largest chunk is no longer than what a get copies, so a value may lie in pieces and be copied:
/// hits keep such a value like one that is read in place.
#[test]
fn hits_keep_a_value_in_pieces_that_is_copied() {
    const STORES: usize = 2000;
    let setup = Setup {
        memory_limit: 1 << 20,
        item_size_max: 64 << 10,
        evicts: true,
    };
    let mut client = Client::new(make::<EightWayClock>(setup).any());
    let mut misses_of = |len: usize| {
        let value = vec![b'v'; len];
        let mut misses = 0;
        for number in 0..STORES {
            for _ in 0..3 {
                if client.get(b"used").is_none() {
                    misses += 1;
                    client.set(b"used", &value);
                }
            }
            client.set(format!("other {number}").as_bytes(), &value);
        }
        client.delete(b"used");
        misses
    };
    // Both lie in pieces; the second is read in place.
    let [copied, read_in_place] = [8_190, 8_193].map(&mut misses_of);
    assert!(
        copied <= read_in_place + 1,
        "missed {copied} times of {STORES}, {read_in_place} times where it is read in place"
    );
}
