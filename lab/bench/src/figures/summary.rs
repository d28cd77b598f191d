//! The tables of the README: ratios, and little else.

use std::fmt::Write as _;

use crate::engine;
use crate::figures::{Found, LIBRARY, Table, load, places, server_name, spread, thousands, work};

/// The tables, with what they were measured on.
pub fn tables(found: &Found, commit: &str) -> String {
    let mut text = format!(
        "{} Medians of the rounds, with the least and the greatest.\n",
        found.host(commit)
    );
    for table in [engines(found), servers(found), others(found)]
        .iter()
        .flatten()
    {
        let _ = write!(text, "\n{}", table.text);
    }
    for warning in found.warnings() {
        let _ = write!(text, "\n{warning}.\n");
    }
    text
}

/// Engines / rivals, in process.
fn engines(found: &Found) -> Option<Table> {
    found.beside_rivals().next()?;
    let rivals = found.rivals();
    let by = rivals
        .iter()
        .map(|(name, version)| format!("/ {name} {version}"));
    let head = ["in process, of", "million/s", "/ the memory's limit"].map(str::to_owned);
    let mut table = Table::new(head.into_iter().chain(by));
    for (report, form) in found.beside_rivals() {
        let ours = [
            format!("{form}: {}", work(report)),
            spread(&report.mops_spread),
            spread(&report.ratio_limit),
        ];
        let ratios = rivals.iter().map(|(name, _)| {
            let rival = report.rivals.get(*name);
            rival.map_or(String::new(), |rival| spread(&rival.ratio))
        });
        table.row(ours.into_iter().chain(ratios));
        if let Some(library) = report.rivals.get(LIBRARY) {
            table.row(library_row(report, library, &rivals));
        }
    }
    Some(table)
}

/// The library's row, from the same run. Its rounds were compared with the engine's only, so this row has quotients of
/// medians.
fn library_row(
    report: &engine::Report,
    library: &engine::RivalReport,
    rivals: &[(&str, &str)],
) -> Vec<String> {
    let by = |mops: f64| {
        let quotient = library.mops / mops;
        format!("{quotient:.0$}", places(quotient))
    };
    let mut row = vec![
        format!("the same, the library's `Cache`: {}", work(report)),
        spread(&library.mops_spread),
        by(report.limit_mops),
    ];
    row.extend(rivals.iter().map(|(name, _)| {
        let rival = report.rivals.get(*name);
        rival.map_or(String::new(), |rival| by(rival.mops))
    }));
    row
}

/// The server's CPU time / the rivals' CPU time.
fn servers(found: &Found) -> Option<Table> {
    found.versus.first()?;
    let servers = found.servers();
    let by = servers.iter().map(|name| format!("/ {name}"));
    let head = ["the server's CPU time for a key", "us"].map(str::to_owned);
    let mut table = Table::new(head.into_iter().chain(by));
    for report in &found.versus {
        let ours = [load(report), spread(&report.ours.server_cpu_us_per_op)];
        let ratios = servers.iter().map(|name| {
            let mut rivals = report.rivals.iter();
            let rival = rivals.find(|rival| server_name(&rival.side) == *name);
            rival.map_or(String::new(), |rival| spread(&rival.ratio_server_cpu))
        });
        table.row(ours.into_iter().chain(ratios));
    }
    Some(table)
}

/// The results that compare no speed with a rival.
fn others(found: &Found) -> Option<Table> {
    let mut table = Table::new(["and", "measured"]);
    let empty = table.text.len();
    for report in found.without_rivals() {
        match &report.ratio_one_thread {
            Some(ratio) => table.row([
                format!("{} threads / one alone: {}", report.threads, work(report)),
                format!(
                    "{}; {} million/s",
                    spread(ratio),
                    spread(&report.mops_spread)
                ),
            ]),
            None => table.row([
                format!(
                    "engine {} / the memory's limit: {}",
                    report.engine,
                    work(report)
                ),
                spread(&report.ratio_limit),
            ]),
        }
    }
    for report in &found.fills {
        let rival = report.rival.as_ref().map_or(String::new(), |rival| {
            format!(
                "; memcached {}: {}",
                rival.version,
                thousands(rival.items_before_eviction)
            )
        });
        table.row([
            format!(
                "items of {} + {} bytes in {} MiB before the first goes",
                report.key_size,
                report.value_size,
                report.memory_limit >> 20
            ),
            format!("{}{rival}", thousands(report.items_before_eviction)),
        ]);
    }
    (table.text.len() > empty).then_some(table)
}
