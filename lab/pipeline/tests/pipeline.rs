//! Compares the whole pipeline with a plain list of rules: whatever the caches keep or evict, a packet gets the verdict
//! of the list.

use nuthatch_base::hash::KeyHasher;
use nuthatch_flow::{Entry, Eviction, Layout, Vector};
use nuthatch_pipeline::classifier::{Classifier, Verdict};
use nuthatch_pipeline::design::{Design, rivals};
use nuthatch_pipeline::generate::{Scan, Shape, Traffic};
use nuthatch_pipeline::key::FlowKey;
use nuthatch_pipeline::pipeline::{Outcome, Pipeline, Stage};
use nuthatch_pipeline::rules::{DEFAULT_RULES, Rules};
use nuthatch_workload::Distribution;

const SHAPE: Shape = Shape {
    flows: 3000,
    distribution: Distribution::Zipf { theta: 0.8 },
    churn: 0.01,
};

fn by_linear_search(rules: &Rules, key: &FlowKey) -> Verdict {
    let found = rules
        .iter()
        .enumerate()
        .find(|(_, rule)| rule.matches.matches(key));
    found.map_or(Verdict::default(), |(number, rule)| Verdict {
        action: rule.action,
        rule: Some(number as u32),
    })
}

fn designs() -> Vec<Design> {
    let mut designs = vec![Design::None];
    for layout in Layout::ALL {
        for eviction in Eviction::ALL {
            for entry in Entry::ALL {
                if eviction.suits(layout) {
                    designs.push(Design::Table {
                        layout,
                        eviction,
                        entry,
                    });
                }
            }
        }
    }
    designs.extend(rivals());
    designs
}

#[test]
fn every_design_decides_as_the_list_does() {
    let rules: Rules = DEFAULT_RULES.parse().unwrap();
    let classifier = Classifier::new(&rules).unwrap();
    for design in designs() {
        // So few megaflows that their numbers are reused all the time.
        for megaflows in [3, 1 << 16] {
            let cache = design.build(512, Vector::detect(), 1).unwrap();
            let hasher = KeyHasher::seeded(1);
            let mut pipeline = Pipeline::new(cache, megaflows, &classifier, hasher);
            let (mut traffic, mut scan) = (Traffic::new(&SHAPE, 1), Scan::new(1));
            let mut outcomes = [Outcome::default(); 33];
            for burst in 0..120 {
                let keys: Vec<FlowKey> = (0..33)
                    .map(|packet| match (burst + packet) % 4 {
                        0 => scan.next_key(),
                        _ => traffic.next_key(),
                    })
                    .collect();
                pipeline.process(&keys, &mut outcomes);
                for (key, outcome) in keys.iter().zip(&outcomes) {
                    assert_eq!(
                        outcome.verdict,
                        by_linear_search(&rules, key),
                        "{}: {key:?}",
                        design.name()
                    );
                }
            }
            let tally = pipeline.take_tally();
            assert_eq!(tally.packets(), 120 * 33);
            assert_eq!(pipeline.counters().iter().sum::<u64>(), 120 * 33);
            assert!(pipeline.megaflows().len() <= megaflows);
            let hits = tally.decided[Stage::Microflow as usize];
            assert_eq!(hits > 0, design != Design::None, "{}", design.name());
        }
    }
}

#[test]
fn a_flow_is_decided_by_the_first_stage_that_knows_it() {
    let rules: Rules = "5 proto=tcp dport=80 -> forward 1\n0 -> drop"
        .parse()
        .unwrap();
    let classifier = Classifier::new(&rules).unwrap();
    let design = Design::Table {
        layout: Layout::Blp2x4,
        eviction: Eviction::PBLRU,
        entry: Entry::Tag32,
    };
    let cache = design.build(64, Vector::detect(), 1).unwrap();
    let mut pipeline = Pipeline::new(cache, 8, &classifier, KeyHasher::seeded(1));
    let mut stage = |key: FlowKey| {
        let mut outcomes = [Outcome::default()];
        pipeline.process(&[key], &mut outcomes);
        outcomes[0].stage
    };
    let key = Traffic::new(&SHAPE, 1).next_key();
    assert_eq!(stage(key), Stage::Classifier);
    assert_eq!(stage(key), Stage::Microflow);
    // Another flow, which the rules do not distinguish from the first.
    assert_eq!(stage(key.copy(1)), Stage::Megaflow);
    assert_eq!(stage(key.copy(1)), Stage::Microflow);
}

#[test]
fn a_burst_without_packets_does_nothing() {
    let rules = Rules::default();
    let classifier = Classifier::new(&rules).unwrap();
    let cache = Design::None.build(0, Vector::detect(), 1).unwrap();
    let mut pipeline = Pipeline::new(cache, 1, &classifier, KeyHasher::seeded(1));
    pipeline.process(&[], &mut []);
    assert_eq!(pipeline.take_tally().packets(), 0);
}
