//! A look at a server, for people and for programs.

use std::fmt::Write;
use std::time::Duration;

use nuthatch_base::spread::Report;
use serde::Serialize;

use super::target::Target;
use super::view::{Buckets, Searches, View};
use crate::report::{Bar, Perfect, histogram_rows};
use nuthatch_program::Failure;

/// For people: the report of `hash analyze`, with searches as they were counted. `since` is the time since the last
/// look, and its view.
pub fn text(target: &Target, view: &View, since: Option<(Duration, &View)>) -> String {
    let mut text = String::new();
    let View { engine, items, .. } = view;
    // Writing to a String does not fail, here and below.
    let _ = writeln!(text, "== {engine} at {target}: {items} items");
    match &view.buckets {
        Some(buckets) => about_buckets(&mut text, buckets, &view.searches),
        None => text.push_str("this engine has no buckets to show\n"),
    }
    about_searches(&mut text, view);
    if let Some((elapsed, before)) = since {
        about_interval(&mut text, elapsed, view.searches.since(&before.searches));
    }
    text.push('\n');
    text
}

fn about_buckets(text: &mut String, buckets: &Buckets, searches: &Searches) {
    let Buckets { all, seen, .. } = buckets;
    if buckets.is_sample() {
        let _ = writeln!(
            text,
            "a sample: {} of {all} buckets, evenly spread; what follows is about those",
            seen.buckets()
        );
    }
    if let Some(slots) = buckets.slots {
        let _ = writeln!(text, "a bucket has {slots} slots, and a key two buckets");
    }
    let report = Report {
        seen,
        perfect: buckets.perfect,
        searched_hit: searches.per_hit(),
        searched_miss: searches.per_miss(),
    };
    let _ = write!(text, "{report}");
    if buckets.slots.is_none() {
        let _ = writeln!(
            text,
            "if all keys were equally likely: {:.3} objects for a hit, {:.3} for a miss",
            seen.searched_hit(),
            seen.searched_miss()
        );
    }
    if buckets.left_out > 0 {
        let _ = writeln!(text, "{} larger sizes were left out", buckets.left_out);
    }
}

fn about_searches(text: &mut String, view: &View) {
    let Searches { hits, misses, .. } = view.searches;
    let _ = writeln!(
        text,
        "{hits} hits and {misses} misses; {} false tag matches, {} reads retried, {} items displaced",
        view.false_tags, view.read_retries, view.displacements
    );
    if view.path_lengths.iter().any(|&paths| paths > 0) {
        let lengths: Vec<String> = view.path_lengths.iter().map(u64::to_string).collect();
        let _ = writeln!(
            text,
            "inserts that displaced 1, 2, ... items ({} or more last): {}",
            lengths.len(),
            lengths.join(" ")
        );
    }
}

fn about_interval(text: &mut String, elapsed: Duration, since: Option<Searches>) {
    let Some(since) = since else {
        text.push_str("the counters were reset since the last look\n");
        return;
    };
    let mean = |searched: Option<f64>| match searched {
        Some(searched) => format!("{searched:.3}"),
        None => "-".to_owned(),
    };
    let _ = writeln!(
        text,
        "in the last {:.1} s: {} hits, {} misses; objects searched: {} for a hit, {} for a miss",
        elapsed.as_secs_f64(),
        since.hits,
        since.misses,
        mean(since.per_hit()),
        mean(since.per_miss())
    );
}

/// One line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    target: String,
    engine: &'a str,
    items: u64,
    hits: u64,
    misses: u64,
    searched_hit: Option<f64>,
    searched_miss: Option<f64>,
    false_tags: u64,
    read_retries: u64,
    displacements: u64,
    path_lengths: &'a [u64],
    index: Option<Index>,
}

/// The buckets that were examined.
#[derive(Serialize)]
struct Index {
    buckets: u64,
    buckets_sampled: u64,
    is_sample: bool,
    slots: Option<u64>,
    items_sampled: u64,
    used_buckets: u64,
    largest: u64,
    share_up_to_mean: f64,
    perfect: Perfect,
    histogram: Vec<Bar>,
    sizes_left_out: u64,
}

/// For programs.
pub fn json(target: &Target, view: &View) -> Result<String, Failure> {
    let index = view.buckets.as_ref().map(|buckets| {
        let seen = &buckets.seen;
        Index {
            buckets: buckets.all,
            buckets_sampled: seen.buckets(),
            is_sample: buckets.is_sample(),
            slots: buckets.slots,
            items_sampled: seen.items(),
            used_buckets: seen.used_buckets(),
            largest: seen.largest(),
            share_up_to_mean: seen.share_up_to_mean(),
            perfect: Perfect::of(&buckets.perfect),
            histogram: histogram_rows(seen, buckets.perfect),
            sizes_left_out: buckets.left_out,
        }
    });
    let line = Line {
        target: target.to_string(),
        engine: &view.engine,
        items: view.items,
        hits: view.searches.hits,
        misses: view.searches.misses,
        searched_hit: view.searches.per_hit(),
        searched_miss: view.searches.per_miss(),
        false_tags: view.false_tags,
        read_retries: view.read_retries,
        displacements: view.displacements,
        path_lengths: &view.path_lengths,
        index,
    };
    let line = serde_json::to_string(&line);
    line.map(|line| line + "\n")
        .map_err(|error| Failure::run(error.to_string()))
}
