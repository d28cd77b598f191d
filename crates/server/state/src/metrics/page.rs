//! The page for Prometheus (`--metrics`).

use nuthatch_engine::Engine;

use super::declared;
use super::exposition::{Format, Page};
use super::families::{BUILD, DURATIONS};
use super::{Reading, Unit, Value};
use crate::server_state::ServerState;
use crate::telemetry::latency::{Group, Times};

/// The whole page.
pub fn page(shared: &ServerState, format: Format) -> String {
    let at = Reading::take(shared, shared.clock.now());
    let mut page = Page::new(format);
    build(&mut page, shared);
    let mut written = Vec::new();
    // The samples of a family stand together, wherever the tables have them.
    for family in declared::all().filter_map(|metric| metric.family()) {
        if written.contains(&family.name) {
            continue;
        }
        written.push(family.name);
        if !family.when.holds(&at) {
            continue;
        }
        let mut is_first = true;
        for metric in declared::all().filter(|metric| metric.is_of(family.name)) {
            let value = metric.value(&at);
            if value == Value::Absent {
                continue;
            }
            if std::mem::take(&mut is_first) {
                page.family(&family);
            }
            sample(&mut page, family.unit, metric.labels(), value);
        }
    }
    latencies(&mut page, shared);
    page.end()
}

fn sample(page: &mut Page, unit: Unit, labels: super::Labels<'_>, value: Value) {
    match value {
        Value::Number(number) if unit == Unit::Microseconds => {
            page.sample(labels, number as f64 / 1e6);
        }
        Value::Number(number) => page.sample(labels, number),
        Value::Signed(number) => page.sample(labels, number),
        Value::Float(number) => page.sample(labels, number),
        Value::Absent | Value::Text(_) => {}
    }
}

fn build(page: &mut Page, shared: &ServerState) {
    let (version, engine) = (env!("CARGO_PKG_VERSION"), shared.engine.name());
    page.family(&BUILD);
    page.sample(&[("version", version), ("engine", engine)], 1);
}

fn latencies(page: &mut Page, shared: &ServerState) {
    page.family(&DURATIONS);
    for group in Group::all() {
        let times = Times::of(shared.workers.iter().map(|worker| &worker.latencies), group);
        let (count, sum) = (times.count(), times.seconds());
        let (command, size) = group.names();
        let labels = [("command", command), ("size", size)];
        page.histogram(labels, times.cumulated(), count, sum);
    }
}
