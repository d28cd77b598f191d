use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use super::*;
use nuthatch_bench::engine::{LIBRARY, RivalForm, RivalReport};
use nuthatch_bench::fill_server::FilledServer;
use nuthatch_bench::host::Host;
use nuthatch_bench::limit::{By, WayReport};
use nuthatch_bench::server::Protocol;
use nuthatch_bench::versus::{RivalSide, Side};

fn of(median: f64) -> Spread {
    Spread {
        median,
        min: median * 0.5,
        max: median * 2.0,
    }
}

fn host() -> Host {
    Host {
        nuthatch: "1.2.3".to_owned(),
        compiler: "rustc 1.95.0".to_owned(),
        processor: "Processor X".to_owned(),
        cores: 2,
        cache: "32768K".to_owned(),
        kernel: "Linux 6.18".to_owned(),
        huge_pages: "madvise".to_owned(),
    }
}

fn rival(version: &str, ratio: f64) -> RivalReport {
    RivalReport {
        version: version.to_owned(),
        mops: 1.0,
        mops_spread: of(1.0),
        hit_ratio: 1.0,
        ratio: of(ratio),
    }
}

fn engine(batch: usize, form: Option<RivalForm>) -> engine::Report {
    let rivals = [
        ("moka", rival("0.12.16", 30.0)),
        ("papaya", rival("0.2.5", 3.0)),
        ("papaya, held", rival("0.2.5", 2.0)),
        ("bare table", rival("", 0.7)),
    ];
    let rivals = rivals.map(|(name, rival)| (name.to_owned(), rival));
    let mut rivals = form.map_or(BTreeMap::new(), |_| BTreeMap::from(rivals));
    if form == Some(RivalForm::Bytes) {
        let library = RivalReport {
            mops: 11.0,
            mops_spread: of(11.0),
            ..rival("1.2.3", 1.6)
        };
        rivals.insert(LIBRARY.to_owned(), library);
    }
    engine::Report {
        host: host(),
        engine: "cuckoo".to_owned(),
        items: 10_000_000,
        key_size: 16,
        value_size: 32,
        threads: 1,
        batch,
        mixed: None,
        get_ratio: 1.0,
        miss_ratio: 0.1,
        dist: engine::Distribution::Zipf,
        memory_used: 800 << 20,
        resident: 8000 << 20,
        resident_in_huge_pages: 7000 << 20,
        mops: 18.0,
        mops_spread: of(18.0),
        hit_ratio: 1.0,
        limit: Some(engine::LimitReport {
            lines: engine::Lines {
                buckets: 2.0,
                item: 1.875,
                recency: 1.0,
            },
            mops: of(22.0),
            ratio: of(0.8),
            ratio_all_lines: of(0.9),
            ways: vec![WayReport {
                by: By::FarPrefetches,
                in_flight: 32,
                mops: of(22.0),
            }],
        }),
        new_keys: false,
        store_misses: false,
        hold: Some(100_000),
        ratio_nothing_held: Some(of(0.9)),
        ratio_one_thread: None,
        form,
        rivals,
    }
}

fn side(version: Option<&str>) -> Side {
    Side {
        program: "memcached".to_owned(),
        command: "/somewhere/memcached -p 1".to_owned(),
        servers: 1,
        version: version.map(str::to_owned),
        ops_per_s: of(2_000_000.0),
        server_cpu_us_per_op: of(0.125),
        p99_us: of(70.0),
        misses: 0,
        crowded: None,
    }
}

fn versus(pipeline: usize, get_ratio: f64) -> versus::Report {
    let rival = |version, warning: Option<&str>| RivalSide {
        ratio_ops_per_s: of(4.0),
        ratio_server_cpu: of(0.18),
        side: side(Some(version)),
        warning: warning.map(str::to_owned),
    };
    versus::Report {
        host: host(),
        protocol: Protocol::Memcached,
        tls: false,
        conns: 50,
        pipeline,
        multiget: 1,
        get_ratio,
        keys: 100_000,
        value_size: 32,
        ours: side(Some("1.6.45-nuthatch-1.2.3")),
        rivals: vec![rival("1.6.45", None), rival("1.6.18", Some("it is old"))],
    }
}

fn fill() -> fill::Report {
    fill::Report {
        host: host(),
        engine: "cuckoo".to_owned(),
        key_size: 16,
        value_size: 32,
        memory_limit: 64 << 20,
        memory_used: 64 << 20,
        items_before_eviction: 897_024,
        items_held: 900_000,
        bytes_per_item: 76.5,
        index_bytes_per_item: 9.0,
        index_load: 0.9,
        load_before_growth: None,
        rival: Some(FilledServer {
            version: "1.6.45".to_owned(),
            items_before_eviction: 559_232,
        }),
    }
}

/// As `report::print` writes it.
fn line<R: Serialize>(bench: &str, report: &R) -> String {
    let mut line = json!({ "bench": bench });
    let report = serde_json::to_value(report).unwrap();
    let fields = line.as_object_mut().unwrap();
    fields.extend(report.as_object().unwrap().clone());
    line.to_string() + "\n"
}

#[test]
fn the_summary_has_medians_of_pipelines_and_single_requests() {
    let redis = versus::Report {
        protocol: Protocol::Redis,
        rivals: vec![RivalSide {
            ratio_ops_per_s: of(4.0),
            ratio_server_cpu: of(0.23),
            side: side(Some("7.0")),
            warning: None,
        }],
        ..versus(100, 1.0)
    };
    let binary = versus::Report {
        protocol: Protocol::Binary,
        ..versus(1, 1.0)
    };
    let lines = [
        line("engine", &engine(32, Some(RivalForm::Bytes))),
        line("versus", &versus(100, 1.0)),
        line("versus", &versus(10, 1.0)),
        line("versus", &versus(1, 0.0)),
        line("versus", &binary),
        line("versus", &redis),
    ];
    let found = Found::read(&lines.concat()).unwrap();
    let expected = "\
| a server's CPU time for a key | Nuthatch, us | / memcached 1.6.45's | / memcached 7.0's |
|---|---|---|---|
| GET, pipelines of 100 | 0.125 | 0.180 |  |
| SET, one at a time | 0.125 | 0.180 |  |
| Redis' GET, pipelines of 100 | 0.125 |  | 0.23 |
";
    assert_eq!(summary::table(&found), expected);
    assert_eq!(summary::table(&Found::default()), "");
}

#[test]
fn the_detail_has_every_side() {
    let lines = [
        line("engine", &engine(32, Some(RivalForm::Bytes))),
        line("versus", &versus(100, 1.0)),
        line("fill", &fill()),
    ];
    let detail = detail::tables(&Found::read(&lines.concat()).unwrap(), "");
    for row in [
        "| cuckoo | 18.0 (9.0 to 36.0) |  | 1.0000 |",
        "| the memory's limit: 2.00 + 1.88 lines, by prefetches into the second level, 32 in flight | 22 (11 to 44) | 0.80 (0.40 to 1.60) |  |",
        "| the same with 1.00 lines of recency |  | 0.90 (0.45 to 1.80) |  |",
        "| with no value of 100,000 bytes held |  | 0.90 (0.45 to 1.80) |  |",
        "| bare table | 1.00 (0.50 to 2.00) | 0.70 (0.35 to 1.40) | 1.0000 |",
        "| papaya, held 0.2.5 | 1.00 (0.50 to 2.00) | 2.00 (1.00 to 4.00) | 1.0000 |",
        "| GET, pipelines of 100 | nuthatch | 2000 (1000 to 4000) | 0.125 (0.062 to 0.250) | 70 (35 to 140) |  |  |",
        "| GET, pipelines of 100 | memcached 1.6.18 | 2000 (1000 to 4000) | 0.125 (0.062 to 0.250) | 70 (35 to 140) | 4.00 (2.00 to 8.00) | 0.180 (0.090 to 0.360) |",
        "it is old.",
        "| items | nuthatch | memcached 1.6.45 |",
        "| of 16 + 32 bytes in 64 MiB | 897,024 | 559,232 |",
    ] {
        assert!(detail.lines().any(|line| line == row), "{row}\n{detail}");
    }
    // Paths of the machine do not get into documents.
    assert!(!detail.contains("/somewhere"));
}

#[test]
fn figures_that_do_not_belong_together_are_refused() {
    let mut other = engine(1, None);
    other.host.kernel = "Linux 5.0".to_owned();
    let lines = line("engine", &engine(32, None)) + &line("engine", &other);
    let error = Found::read(&lines).err().unwrap();
    assert!(error.starts_with("line 2: of another machine"), "{error}");
    for odd in [
        "{}",
        "what",
        "{\"bench\":\"engine\"}",
        "{\"bench\":\"server\"}",
    ] {
        let lines = line("engine", &engine(32, None)) + odd + "\n";
        let error = Found::read(&lines).err().unwrap();
        assert!(error.starts_with("line 2: "), "{odd}: {error}");
    }
}

#[test]
fn numbers_have_the_digits_that_say_something() {
    assert_eq!(spread(&of(0.035)), "0.035 (0.018 to 0.070)");
    assert_eq!(spread(&of(0.8)), "0.80 (0.40 to 1.60)");
    assert_eq!(spread(&of(7.2)), "7.2 (3.6 to 14.4)");
    assert_eq!(spread(&of(40.0)), "40 (20 to 80)");
    assert_eq!(thousands(901_120), "901,120");
    assert_eq!(thousands(12), "12");
    assert_eq!(thousands(1_000_000), "1,000,000");
}
