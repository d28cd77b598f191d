//! Compares the classifier and the megaflow cache with a plain list of rules, over random rules and packets from small
//! ranges, so that everything overlaps.

use std::net::IpAddr;

use nuthatch_pipeline::classifier::{Classifier, Verdict};
use nuthatch_pipeline::key::{FlowKey, Fragment, Header, TAGGED};
use nuthatch_pipeline::megaflow::Megaflows;
use nuthatch_pipeline::rules::{Action, Rules};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

/// The first rule that matches, by a linear search.
fn by_linear_search(rules: &Rules, key: &FlowKey) -> Verdict {
    let found = rules
        .iter()
        .enumerate()
        .find(|(_, rule)| rule.matches.matches(key));
    match found {
        Some((number, rule)) => Verdict {
            action: rule.action,
            rule: Some(number as u32),
        },
        None => Verdict {
            action: Action::Drop,
            rule: None,
        },
    }
}

const V4: [&str; 4] = ["10.0.0.1", "10.0.1.1", "10.128.0.1", "192.0.2.1"];
const V6: [&str; 3] = ["fd00::1", "fd00:1::1", "::10.0.0.1"];
const PORTS: [u16; 7] = [0, 1, 79, 80, 81, 1024, 65535];

fn address(v4: bool) -> BoxedStrategy<IpAddr> {
    let texts = if v4 { &V4[..] } else { &V6[..] };
    select(texts).prop_map(|text| text.parse().unwrap()).boxed()
}

fn packet() -> impl Strategy<Value = FlowKey> {
    let fragment = prop_oneof![
        8 => Just(Fragment::Whole),
        1 => Just(Fragment::First),
        1 => Just(Fragment::Later),
    ];
    let protocol = select(vec![6, 17, 1, 58, 47]);
    let tag = select(vec![0, TAGGED, TAGGED | 5]);
    any::<bool>().prop_flat_map(move |v4| {
        let addresses = (address(v4), address(v4));
        let ports = (select(&PORTS[..]), select(&PORTS[..]));
        (
            addresses,
            protocol.clone(),
            ports,
            fragment.clone(),
            tag.clone(),
        )
            .prop_map(|((source, destination), protocol, ports, fragment, tag)| {
                let has_ports = fragment != Fragment::Later && protocol != 47;
                FlowKey::new(&Header {
                    source,
                    destination,
                    protocol,
                    ports: if has_ports { ports } else { (0, 0) },
                    fragment,
                    tags: [tag, 0, 0],
                })
            })
    })
}

/// A line of a rule file.
fn rule() -> impl Strategy<Value = String> {
    let prefix = |v4: bool| {
        let lengths = if v4 {
            vec![0, 8, 9, 24, 32]
        } else {
            vec![0, 16, 32, 128]
        };
        (address(v4), select(lengths)).prop_map(|(address, length)| format!("{address}/{length}"))
    };
    let range = || {
        (select(&PORTS[..]), select(&PORTS[..]))
            .prop_map(|(one, other)| format!("{}-{}", one.min(other), one.max(other)))
    };
    let addresses = any::<bool>()
        .prop_flat_map(move |v4| (weighted(0.3, prefix(v4)), weighted(0.3, prefix(v4))));
    let kind = prop_oneof![
        Just(String::new()),
        (
            select(vec!["tcp", "udp"]),
            weighted(0.5, range()),
            weighted(0.5, range())
        )
            .prop_map(|(protocol, source, destination)| {
                let field = |name, value: Option<String>| {
                    value.map_or(String::new(), |value| format!(" {name}={value}"))
                };
                format!(
                    " proto={protocol}{}{}",
                    field("sport", source),
                    field("dport", destination)
                )
            }),
        Just(" proto=icmp type=80".to_owned()),
        Just(" proto=47".to_owned()),
    ];
    let others = (
        weighted(0.2, select(vec!["none", "any", "0", "5"])),
        weighted(0.2, select(vec!["no", "any", "first"])),
    );
    (0..4_u32, addresses, kind, others, 0..4_u16).prop_map(
        |(priority, (source, destination), kind, (vlan, frag), port)| {
            let mut line = priority.to_string() + &kind;
            let fields = [("src", source), ("dst", destination)];
            for (name, value) in fields {
                if let Some(value) = value {
                    line += &format!(" {name}={value}");
                }
            }
            for (name, value) in [("vlan", vlan), ("frag", frag)] {
                if let Some(value) = value {
                    line += &format!(" {name}={value}");
                }
            }
            line + &format!(" -> forward {port}\n")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_classifier_says_what_the_list_says(lines in vec(rule(), 0..24), packets in vec(packet(), 1..60)) {
        let rules: Rules = lines.concat().parse().unwrap();
        let classifier = Classifier::new(&rules).unwrap();
        for key in &packets {
            prop_assert_eq!(classifier.classify(key).verdict, by_linear_search(&rules, key), "{:?}", key);
        }
    }

    #[test]
    fn a_mask_covers_only_packets_with_the_same_verdict(
        lines in vec(rule(), 0..24),
        packets in vec(packet(), 2..60),
    ) {
        let rules: Rules = lines.concat().parse().unwrap();
        let classifier = Classifier::new(&rules).unwrap();
        for one in &packets {
            let found = classifier.classify(one);
            for other in &packets {
                if other.masked(&found.mask) == one.masked(&found.mask) {
                    prop_assert_eq!(by_linear_search(&rules, other), found.verdict, "{:?} and {:?}", one, other);
                }
            }
        }
    }

    #[test]
    fn megaflows_say_what_the_list_says_however_few_there_are(
        lines in vec(rule(), 0..24),
        packets in vec(packet(), 1..120),
        limit in 1..20_usize,
    ) {
        let rules: Rules = lines.concat().parse().unwrap();
        let classifier = Classifier::new(&rules).unwrap();
        let mut megaflows = Megaflows::new(limit);
        for key in &packets {
            let verdict = match megaflows.find(key) {
                Some((number, verdict)) => {
                    prop_assert_eq!(megaflows.holds(number.into(), key), Some(verdict));
                    verdict
                }
                None => {
                    let found = classifier.classify(key);
                    megaflows.insert(key, &found);
                    found.verdict
                }
            };
            prop_assert_eq!(verdict, by_linear_search(&rules, key), "{:?}", key);
            prop_assert!(megaflows.len() <= limit);
            // A stale number is detected, or its megaflow has the same verdict.
            for number in 0..limit as u64 {
                if let Some(verdict) = megaflows.holds(number, key) {
                    prop_assert_eq!(verdict, by_linear_search(&rules, key));
                }
            }
        }
    }
}
