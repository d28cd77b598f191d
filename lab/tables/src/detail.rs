//! Every figure of a run, a table for each bench.

use std::fmt::Write as _;

use crate::{Found, Table, load, server_name, spread, thousands, work};
use nuthatch_bench::engine::RivalForm;
use nuthatch_bench::times::Times;
use nuthatch_bench::{engine, fill, full, growth, versus};

/// The tables, with what they were measured on.
pub fn tables(found: &Found, commit: &str) -> String {
    let mut text = format!("{}\n", found.host(commit));
    for report in &found.engines {
        let _ = write!(text, "\n{}", engine(report));
    }
    for report in &found.inserts {
        let _ = write!(text, "\n{}", insert(report));
    }
    for report in &found.fulls {
        let _ = write!(text, "\n{}", full(report));
    }
    if let Some(table) = growths(&found.growths) {
        let _ = write!(
            text,
            "\nMicroseconds a call, while the index grows, while nothing grows, and of the machine without an \
             engine, each run on a line:\n\n{}",
            table.text
        );
    }
    if let Some(first) = found.versus.first() {
        let _ = write!(
            text,
            "\nServers under {} connections, {} keys, values of {} bytes:\n\n{}",
            first.conns,
            thousands(first.keys),
            first.value_size,
            servers(&found.versus).text
        );
    }
    for warning in found.warnings() {
        let _ = write!(text, "\n{warning}.\n");
    }
    if let Some(table) = fills(&found.fills) {
        let _ = write!(
            text,
            "\nItems before the first is evicted:\n\n{}",
            table.text
        );
    }
    text
}

fn engine(report: &engine::Report) -> String {
    let mut text = format!(
        "Engine {}, {} items of {} + {} bytes{} in {} MiB, {} thread{}: {}",
        report.engine,
        thousands(report.items),
        report.key_size,
        report.value_size,
        report.mixed.map_or("", |_| " on average, as in ETC,"),
        report.memory_used >> 20,
        report.threads,
        if report.threads == 1 { "" } else { "s" },
        work(report),
    );
    if let Some(form) = report.form {
        let sizes = match form {
            RivalForm::Bytes => "sizes unknown to the compiler, as of the rivals' byte strings",
            RivalForm::Arrays => "sizes known to the compiler, as of the rivals' arrays",
        };
        let _ = write!(
            text,
            "; {sizes}. {} of {} MiB of the process in huge pages",
            report.resident_in_huge_pages >> 20,
            report.resident >> 20
        );
    }
    text.push_str(".\n\n");
    let mut table = Table::new(["side", "million/s", "engine / it", "hit ratio"]);
    table.row([
        report.engine.clone(),
        spread(&report.mops_spread),
        String::new(),
        format!("{:.4}", report.hit_ratio),
    ]);
    if let Some(limit) = &report.limit {
        limit_rows(limit, &mut table);
    }
    if let Some(ratio) = &report.ratio_one_thread {
        table.row(["one thread alone", "", &spread(ratio), ""]);
    }
    if let (Some(bytes), Some(ratio)) = (report.hold, &report.ratio_nothing_held) {
        let name = format!("with no value of {} bytes held", thousands(bytes as u64));
        table.row([&name, "", &spread(ratio), ""]);
    }
    for (name, rival) in &report.rivals {
        table.row([
            format!("{name} {}", rival.version).trim_end().to_owned(),
            spread(&rival.mops_spread),
            spread(&rival.ratio),
            format!("{:.4}", rival.hit_ratio),
        ]);
    }
    text + &table.text
}

fn limit_rows(limit: &engine::LimitReport, table: &mut Table) {
    let engine::Lines {
        buckets,
        item,
        recency,
    } = limit.lines;
    let way = limit
        .ways
        .first()
        .map_or(String::new(), |best| format!(", {best}"));
    table.row([
        format!("the memory's limit: {buckets:.2} + {item:.2} lines{way}"),
        spread(&limit.mops),
        spread(&limit.ratio),
        String::new(),
    ]);
    table.row([
        format!("the same with {recency:.2} lines of recency"),
        String::new(),
        spread(&limit.ratio_all_lines),
        String::new(),
    ]);
}

fn insert(report: &engine::insert::Report) -> String {
    let threads = report.threads;
    let mut table = Table::new([
        "side".to_owned(),
        "million/s, one thread".to_owned(),
        "engine / it".to_owned(),
        format!("million/s, {threads} threads"),
        "engine / it".to_owned(),
        format!("{threads} threads / one"),
    ]);
    let some = |it: &Option<_>| it.as_ref().map_or(String::new(), spread);
    for (name, side) in &report.sides {
        table.row([
            format!("{name} {}", side.version).trim_end().to_owned(),
            some(&side.mops_alone),
            some(&side.ratio_one_thread),
            spread(&side.mops),
            spread(&side.ratio),
            some(&side.ratio_alone),
        ]);
    }
    format!(
        "New keys into an empty {}, {} items of {} + {} bytes, {} at a time:\n\n{}",
        report.engine,
        thousands(report.items),
        report.key_size,
        report.value_size,
        report.batch,
        table.text
    )
}

fn full(report: &full::Report) -> String {
    let mut table = Table::new([
        "side",
        "p50",
        "p99",
        "p99.9",
        "longest",
        "p99.9: it / the first",
        "hit ratio",
    ]);
    for side in &report.sides {
        table.row([
            side.name.clone(),
            spread(&side.p50_us),
            spread(&side.p99_us),
            spread(&side.p999_us),
            spread(&side.max_us),
            spread(&side.p999_by_first),
            format!("{:.3}", side.hit_ratio),
        ]);
    }
    format!(
        "Microseconds of a set in a full cache: {} MiB, keys of {} bytes and values of {}; rivals hold {} items, as the \
         first:\n\n{}",
        report.memory_limit >> 20,
        report.key_size,
        report.value_size,
        thousands(report.items_held),
        table.text
    )
}

fn fills(reports: &[fill::Report]) -> Option<Table> {
    let first = reports.first()?;
    let rival = first.rival.as_ref().map_or(String::new(), |rival| {
        format!("memcached {}", rival.version)
    });
    let mut table = Table::new(["items", "nuthatch", &rival]);
    for report in reports {
        let rival = report
            .rival
            .as_ref()
            .map(|rival| rival.items_before_eviction);
        table.row([
            format!(
                "of {} + {} bytes in {} MiB",
                report.key_size,
                report.value_size,
                report.memory_limit >> 20
            ),
            thousands(report.items_before_eviction),
            rival.map_or(String::new(), thousands),
        ]);
    }
    Some(table)
}

fn growths(reports: &[growth::Report]) -> Option<Table> {
    let first = reports.first()?;
    let mut table = Table::new([
        &format!("{} to {}", thousands(first.from), thousands(first.to)),
        "p50",
        "p99.99",
        "longest",
        "over 1 ms",
        "calls",
    ]);
    type Of = fn(&growth::Report) -> &Times;
    let rows: [(&str, Of); 7] = [
        ("set, growing", |report| &report.growing.sets),
        ("set, steady", |report| &report.steady.sets),
        ("get, growing", |report| &report.growing.gets),
        ("get, steady", |report| &report.steady.gets),
        ("machine: clock beside new memory", |report| {
            &report.machine.clock
        }),
        ("machine: the other clock", |report| {
            &report.machine.other_clock
        }),
        ("machine: a new MiB", |report| &report.machine.pages),
    ];
    for (name, of) in rows {
        for times in reports.iter().map(of) {
            table.row([
                name.to_owned(),
                format!("{:.2}", times.p50_us),
                format!("{:.1}", times.p9999_us),
                format!("{:.0}", times.max_us),
                thousands(times.over_1_ms),
                thousands(times.count),
            ]);
        }
    }
    Some(table)
}

fn servers(reports: &[versus::Report]) -> Table {
    let mut table = Table::new([
        "load",
        "server",
        "thousand keys/s",
        "CPU us a key",
        "p99 us",
        "ours / it: keys/s",
        "ours / it: CPU",
    ]);
    for report in reports {
        let row = |name: String, side: &versus::Side, ratios: [String; 2]| {
            let thousand = |number: f64| number / 1e3;
            let mut rate = side.ops_per_s;
            rate.median = thousand(rate.median);
            rate.min = thousand(rate.min);
            rate.max = thousand(rate.max);
            let own = [
                load(report),
                name,
                spread(&rate),
                spread(&side.server_cpu_us_per_op),
                spread(&side.p99_us),
            ];
            own.into_iter().chain(ratios).collect::<Vec<_>>()
        };
        table.row(row("nuthatch".to_owned(), &report.ours, Default::default()));
        for rival in &report.rivals {
            let ratios = [&rival.ratio_ops_per_s, &rival.ratio_server_cpu].map(spread);
            table.row(row(server_name(&rival.side), &rival.side, ratios));
        }
    }
    table
}
