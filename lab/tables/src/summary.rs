//! The table of the README: medians alone. Their spreads, and all other figures, are in the other tables.

use crate::{Found, Table, load, places, server_name};
use nuthatch_bench::report::Spread;
use nuthatch_bench::server::Protocol;
use nuthatch_bench::versus;

/// The server's CPU time, and it / the rivals'. Empty if no servers were measured.
pub fn table(found: &Found) -> String {
    let rivals = rivals(found);
    let by = rivals.iter().map(|name| format!("/ {name}'s"));
    let head = ["a server's CPU time for a key", "Nuthatch, us"].map(str::to_owned);
    let mut table = Table::new(head.into_iter().chain(by));
    let reports = found.versus.iter().filter(|report| is_shown(report));
    let empty = table.text.len();
    for report in reports {
        let ours = [load(report), median(&report.ours.server_cpu_us_per_op)];
        let ratios = rivals.iter().map(|name| {
            let mut rivals = report.rivals.iter();
            let rival = rivals.find(|rival| server_name(&rival.side) == *name);
            rival.map_or(String::new(), |rival| median(&rival.ratio_server_cpu))
        });
        table.row(ours.into_iter().chain(ratios));
    }
    if table.text.len() == empty {
        return String::new();
    }
    table.text
}

/// Names of the rivals, but for those that come with a warning.
fn rivals(found: &Found) -> Vec<String> {
    let warned = found.versus.iter().flat_map(|report| &report.rivals);
    let warned: Vec<_> = warned
        .filter(|rival| rival.warning.is_some())
        .map(|rival| server_name(&rival.side))
        .collect();
    let mut names = found.servers();
    names.retain(|name| !warned.contains(name));
    names
}

/// Long pipelines and single requests, the ends between which all other loads are, in the protocols used most.
fn is_shown(report: &versus::Report) -> bool {
    let ends = [1, 100].contains(&report.pipeline) && report.multiget == 1;
    ends && matches!(report.protocol, Protocol::Memcached | Protocol::Redis)
}

fn median(spread: &Spread) -> String {
    format!("{:.1$}", spread.median, places(spread.median))
}
