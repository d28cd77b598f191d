//! What the tables have to keep to, and that the dashboard and the alerts in dist/ know the same names.

use std::collections::BTreeSet;
use std::path::Path;

use nuthatch_engine::stats::MORE_MEMORY;

use super::declared::{GENERAL, HITS_MEMORY, HITS_REMOVED, PAGE_ONLY, all};
use super::families::{BY_HAND, MORE_MEMORY_HITS};
use super::{Family, Kind, Place, Unit};

fn families() -> Vec<Family> {
    let in_tables = all().filter_map(|metric| metric.family());
    in_tables.chain(BY_HAND.into_iter().copied()).collect()
}

/// The names of samples of these kinds, as queries have them.
fn sample_names() -> BTreeSet<String> {
    let of = |family: &Family| match family.kind {
        Kind::Histogram => format!("{}_bucket", family.name),
        _ => family.sample_name(),
    };
    families().iter().map(of).collect()
}

/// Our names in a file of dist/.
fn named_in(file: &str) -> BTreeSet<String> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../dist");
    let text = std::fs::read_to_string(dist.join(file)).unwrap();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("nuthatch_"));
    ours.map(str::to_owned).collect()
}

#[test]
fn the_dashboard_shows_every_metric_and_no_other() {
    let (shown, known) = (named_in("grafana/nuthatch.json"), sample_names());
    assert_eq!(&known - &shown, BTreeSet::new(), "without a panel");
    assert_eq!(&shown - &known, BTreeSet::new(), "shown, but unknown");
}

#[test]
fn alerts_are_about_metrics_that_exist() {
    let known = sample_names();
    let unknown = &named_in("prometheus/nuthatch.rules.yml") - &known;
    assert_eq!(unknown, BTreeSet::new());
}

#[test]
fn names_are_there_once() {
    let general: Vec<_> = GENERAL.iter().map(|metric| metric.stat.unwrap()).collect();
    let hits = HITS_MEMORY.iter().chain(HITS_REMOVED);
    let hits: Vec<_> = hits.map(|metric| metric.stat.unwrap()).collect();
    for names in [general, hits] {
        let once: BTreeSet<_> = names.iter().collect();
        assert_eq!(once.len(), names.len(), "{names:?}");
    }
    let mut samples = BTreeSet::new();
    for metric in all() {
        if let Some(family) = metric.family() {
            let sample = (family.name, metric.labels());
            assert!(samples.insert(sample), "twice: {sample:?}");
        }
    }
    assert!(PAGE_ONLY.iter().all(|metric| metric.stat.is_none()));
}

#[test]
fn a_family_is_of_one_kind_and_its_name_has_its_unit() {
    for family in families() {
        let name = family.name;
        let unit = match family.unit {
            Unit::Bytes => "_bytes",
            Unit::Seconds | Unit::Microseconds => "_seconds",
            Unit::Count => "",
        };
        assert!(
            name.starts_with("nuthatch_") && name.ends_with(unit),
            "{name}"
        );
        assert_eq!(
            family.unit == Unit::Count,
            !name.ends_with("_bytes") && !name.ends_with("_seconds")
        );
        // The writer of the page adds it.
        assert!(!name.ends_with("_total"), "{name}");
        for metric in all().filter(|metric| metric.is_of(name)) {
            assert_eq!(
                (metric.kind, metric.unit),
                (family.kind, family.unit),
                "{name}"
            );
            assert_ne!(metric.kind, Kind::Text, "{name}");
        }
    }
}

#[test]
fn texts_need_no_escapes_and_are_sentences() {
    let plain = |text: &str| !text.contains(['"', '\\', '\n', '|']);
    let families = families();
    for help in all()
        .map(|metric| metric.help)
        .chain(families.iter().map(|family| family.help))
    {
        assert!(plain(help) && help.ends_with(['.', ':']), "{help}");
    }
    for metric in all() {
        assert!(
            metric
                .labels()
                .iter()
                .all(|(name, value)| plain(name) && plain(value))
        );
        assert!(plain(metric.note) && (metric.note.is_empty() || metric.note.ends_with('.')));
    }
}

#[test]
fn the_estimates_have_the_labels_of_the_engine() {
    let is_it = |place: Place| matches!(place, Place::Sample(family, _) if family.name == MORE_MEMORY_HITS.name);
    let estimates: Vec<_> = all().filter(|metric| is_it(metric.place)).collect();
    let percents = estimates
        .iter()
        .map(|metric| metric.labels()[0].1.parse().unwrap());
    assert_eq!(percents.collect::<Vec<u64>>(), MORE_MEMORY);
    let names = estimates
        .iter()
        .map(|metric| metric.stat.unwrap().to_owned());
    let expected = MORE_MEMORY.map(|percent| format!("more_hits_{percent}"));
    assert_eq!(names.collect::<Vec<_>>(), expected);
}
