//! Invariants of any bytes, as a capture and as a frame. Also the body of the fuzz target.

use std::sync::LazyLock;

use nuthatch_pipeline::capture::{Capture, FRAME_MAX};
use nuthatch_pipeline::classifier::Classifier;
use nuthatch_pipeline::key::FlowKey;
use nuthatch_pipeline::packet::{Link, parse};
use nuthatch_pipeline::rules::{DEFAULT_RULES, Rules};

const LINKS: [Link; 5] = [
    Link::Ethernet,
    Link::Ip,
    Link::Loopback,
    Link::LinuxCooked,
    Link::LinuxCooked2,
];

static RULES: LazyLock<(Rules, Classifier)> = LazyLock::new(|| {
    let rules: Rules = DEFAULT_RULES.parse().expect("the default rules are right");
    let classifier = Classifier::new(&rules).expect("the default rules are few");
    (rules, classifier)
});

/// Checks bytes as a capture and as a frame of each link.
pub fn check(bytes: &[u8]) {
    let mut capture = Capture::default();
    if capture.read(bytes).is_ok() {
        for number in 0..capture.len() {
            let (link, frame) = capture.frame(number);
            assert!(!frame.is_empty() && frame.len() <= FRAME_MAX);
            check_frame(link, frame);
        }
    }
    let frame = &bytes[..bytes.len().min(FRAME_MAX)];
    for link in LINKS {
        check_frame(link, frame);
    }
}

/// A frame that is cut short has the key of the whole frame, or none. The classifier has the same verdict on a key as
/// the list of rules.
pub fn check_frame(link: Link, frame: &[u8]) {
    let whole = parse(link, frame);
    for length in 0..frame.len() {
        if let Ok(key) = parse(link, &frame[..length]) {
            assert_eq!(
                Ok(key),
                whole,
                "{link:?}, cut to {length} bytes: {frame:x?}"
            );
        }
    }
    if let Ok(key) = whole {
        check_key(&key);
        check_key(&key.copy(1));
    }
}

fn check_key(key: &FlowKey) {
    let (rules, classifier) = &*RULES;
    let list = rules.iter().position(|rule| rule.matches.matches(key));
    let found = classifier.classify(key).verdict.rule;
    assert_eq!(found, list.map(|rule| rule as u32), "{key:?}");
}
