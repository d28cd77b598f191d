//! Each bench at its least size, on the oracle: that it runs, and that it checks its answers.

use std::io;
use std::sync::Arc;

use clap::{Args, FromArgMatches};
use nuthatch_bench::engine::Room;
use nuthatch_bench::limit::By;
use nuthatch_bench::working_set::{self, Contender};
use nuthatch_bench::{Failure, engine, fill, full, growth, server};
use nuthatch_check::naive::{Naive, Options};
use nuthatch_engine::{AnyEngine, Engine};

mod fake_server;

use fake_server::{FakeServer, Manner};

/// Options as the command line gives them.
fn options<O: Args + FromArgMatches>(line: &str) -> O {
    let command = O::augment_args(clap::Command::new("bench"));
    let words = std::iter::once("bench").chain(line.split_whitespace());
    O::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

fn naive(room: Room) -> io::Result<Arc<Naive>> {
    Ok(Naive::new(Options {
        memory_limit: room.memory,
        ..Options::default()
    }))
}

#[test]
fn engine_beside_rivals() {
    for (sizes, form, yardstick) in [
        ("--key-size 16 --value-size 32", "arrays", "bare table"),
        ("--key-size 20 --value-size 100", "bytes", "nuthatch::Cache"),
    ] {
        for batch in [1, 8] {
            let line = format!(
                "{sizes} --items 2000 --threads 2 --batch {batch} --get-ratio 0.9 --dist zipf \
                 --rivals {form} --seconds 0.06 --rounds 3"
            );
            let report = engine::run(naive, &options(&line)).unwrap();
            assert_eq!(
                (report.items, report.threads, report.batch),
                (2000, 2, batch)
            );
            assert!(report.mops > 0.0 && report.limit.is_none());
            assert_eq!(report.hit_ratio, 1.0);
            assert!(report.ratio_one_thread.is_some_and(|ratio| ratio.min > 0.0));
            let mut names: Vec<&str> = report.rivals.keys().map(String::as_str).collect();
            names.retain(|&name| name != yardstick);
            let expected = [
                "lru in shards",
                "moka",
                "papaya",
                "papaya, held",
                "quick_cache",
            ];
            assert_eq!((names.as_slice(), report.rivals.len()), (&expected[..], 6));
            for (name, rival) in &report.rivals {
                assert!(rival.mops > 0.0 && rival.hit_ratio == 1.0, "{name}");
                let numbers = rival.version.split('.').count();
                assert_eq!(
                    numbers == 3,
                    name != "bare table",
                    "{name} {}",
                    rival.version
                );
            }
        }
    }
}

#[test]
fn the_limit_is_the_best_of_all_ways() {
    let line = "--items 2000 --seconds 0.05 --rounds 2";
    let report = engine::run(naive, &options(line)).unwrap();
    let limit = report.limit.unwrap();
    let mut ways = limit.ways.iter();
    assert!(ways.all(|way| way.mops.median <= limit.mops.median && way.mops.min > 0.0));
    assert_eq!(limit.mops, limit.ways[0].mops);
    assert!(limit.ratio.min <= limit.ratio.max);
    assert!(limit.ratio_all_lines.median > limit.ratio.median);
    let of = |by| limit.ways.iter().filter(move |way| way.by == by);
    for by in [By::Loads, By::NearPrefetches, By::FarPrefetches] {
        assert!(
            [8, 16, 48]
                .iter()
                .all(|&flight| of(by).any(|way| way.in_flight == flight))
        );
    }
}

/// Every side has the same items, of the sizes and the misses that were asked for.
#[test]
fn mixed_sizes_and_misses_are_measured() {
    for batch in [1, 8] {
        let line = format!(
            "--mixed etc --miss-ratio 0.5 --items 3000 --batch {batch} --rivals bytes --seconds 0.06 --rounds 2"
        );
        let report = engine::run(naive, &options(&line)).unwrap();
        assert!(
            report.mixed.is_some() && report.value_size > 100,
            "{report}"
        );
        let of_rivals = report.rivals.values().map(|rival| rival.hit_ratio);
        for ratio in of_rivals.chain([report.hit_ratio]) {
            assert!((0.45..0.55).contains(&ratio), "{report}");
        }
        let lines = report.limit.unwrap().lines;
        assert!(lines.item > 0.5 && lines.recency == 0.5, "{lines:?}");
    }
}

#[test]
fn new_keys_are_stored_by_one_thread_and_by_several() {
    let line = "--items 3000 --threads 2 --batch 8 --rounds 2 --rivals";
    let report = engine::insert::run(naive, &options(line)).unwrap();
    assert_eq!(report.sides.len(), 6, "{report}");
    for (name, side) in &report.sides {
        assert!(side.mops.min > 0.0 && side.ratio_alone.is_some(), "{name}");
        assert_eq!(side.ratio.median == 1.0, *name == report.engine, "{report}");
    }
    let report = engine::insert::run(naive, &options("--items 30 --threads 1 --rounds 1")).unwrap();
    assert!(report.sides.len() == 1 && report.sides[&report.engine].mops_alone.is_none());
    for line in [
        "--items 1 --threads 2",
        "--rounds 0",
        "--items 9999999 --value-size 1000",
    ] {
        let outcome = engine::insert::run(naive, &options(line));
        assert!(matches!(outcome, Err(Failure::Usage(_))), "{line}");
    }
}

#[test]
fn engine_that_evicts_has_misses() {
    let line = "--items 2000 --memory 100k --seconds 0.02 --rounds 1";
    let report = engine::run(naive, &options(line)).unwrap();
    assert!(report.hit_ratio < 0.99, "{}", report.hit_ratio);
    assert!(report.rivals.is_empty());
}

#[test]
fn sets_may_be_of_new_keys() {
    for batch in [1, 8] {
        let line = format!(
            "--items 3000 --threads 2 --batch {batch} --get-ratio 0.9 --new-keys --seconds 0.06 --rounds 2"
        );
        let engine = naive(Room {
            memory: 64 << 20,
            items: None,
        });
        let engine = engine.unwrap();
        let report = engine::run(|_| Ok(engine.clone()), &options(&line)).unwrap();
        assert!(report.new_keys && report.mops > 0.0, "{report}");
        assert_eq!(report.hit_ratio, 1.0, "{report}");
        // At most the tenth of 65,536 operations, in 2 rounds of 2 threads.
        let stats = engine.stats();
        let stored = stats.items - 3000;
        assert!(
            stored > 0 && stored < 27_500 && stats.evictions == 0,
            "{stored}"
        );
    }
}

#[test]
fn misses_may_be_stored() {
    let run = |more: &str| {
        let line =
            format!("--items 2000 --memory 100k --dist zipf --seconds 0.02 --rounds 1 {more}");
        engine::run(naive, &options(&line)).unwrap()
    };
    for batch in ["--batch 1", "--batch 8"] {
        let stored = run(&format!("{batch} --store-misses"));
        assert!(stored.store_misses && stored.mops > 0.0, "{stored}");
        // What was stored last is asked for most.
        let left = run(batch);
        assert!(
            left.hit_ratio < stored.hit_ratio && stored.hit_ratio < 0.999,
            "{left}{stored}"
        );
    }
}

#[test]
fn engine_refuses_what_cannot_be() {
    for line in [
        "--items 0",
        "--items 100000 --key-size 3",
        "--key-size 251",
        "--value-size 0",
        "--threads 0",
        "--batch 0",
        "--batch 1048577",
        "--rounds 0",
        "--get-ratio 1.5",
        "--seconds nan",
        "--rivals arrays --key-size 20",
        "--rivals arrays --value-size 31",
    ] {
        let refused = engine::run(naive, &options(line)).unwrap_err();
        assert!(matches!(refused, Failure::Usage(_)), "{line}: {refused}");
    }
}

#[test]
fn working_sets_are_met_by_each_engine_alike() {
    let line = "--working-set 64k,256k --seconds 0.04 --rounds 2";
    let contenders = [Contender::new(1, naive), Contender::new(2, naive)];
    let report = working_set::run(&contenders, &options(line)).unwrap();
    assert_eq!((report.batch, report.insert_ratio), (1000, 0.3));
    for (set, bytes) in report.working_sets.iter().zip([64 << 10, 256 << 10]) {
        assert_eq!((set.bytes, set.capacity), (bytes, bytes));
        assert_eq!(set.keys, bytes as u64 / 128);
        assert_eq!(set.engines.len(), 2);
        for engine in &set.engines {
            assert!(engine.mops > 0.0 && engine.messages.is_none());
            assert_eq!((engine.hit_ratio, engine.evictions_per_insert), (1.0, 0.0));
        }
        assert_eq!(set.engines[0].ratio.median, 1.0);
    }
    // Not all of it fits, and without inserts the table stays empty.
    let line = "--working-set 256k --capacity 16k --seconds 0.02 --rounds 1 --batch 10";
    let report = working_set::run(&contenders, &options(line)).unwrap();
    let engine = &report.working_sets[0].engines[0];
    assert!(engine.hit_ratio < 0.9 && engine.evictions_per_insert > 0.1);
    let line = "--working-set 64k --insert-ratio 0 --seconds 0.02 --rounds 1";
    let report = working_set::run(&contenders, &options(line)).unwrap();
    assert_eq!(report.working_sets[0].engines[1].hit_ratio, 0.0);
}

#[test]
fn working_sets_refuse_what_cannot_be() {
    for line in [
        "--working-set 100",
        "--working-set 64k --insert-ratio 2",
        "--working-set 64k --batch 0",
        "--working-set 64k --batch 1048577",
        "--working-set 64k --rounds 0",
    ] {
        let contenders = [Contender::new(1, naive)];
        let outcome = working_set::run(&contenders, &options(line));
        assert!(matches!(outcome, Err(Failure::Usage(_))), "{line}");
    }
    let nobody = working_set::run(&[Contender::new(0, naive)], &options("--working-set 64k"));
    assert!(nobody.is_err());
}

#[test]
fn growth_times_every_call() {
    let growth = growth::Growth {
        from: 1000,
        to: 3000,
    };
    let report = growth::run(naive, growth, &options("")).unwrap();
    assert!(report.machine.pages.count > 0 && report.machine.other_clock.count > 0);
    for phase in [report.steady, report.growing] {
        assert_eq!(phase.sets.count, 2000);
        assert!(phase.gets.count > 0 && phase.maintenance.count > 0);
        assert!(phase.sets.p50_us > 0.0 && phase.sets.p50_us <= phase.sets.p9999_us);
        assert!(phase.sets.p9999_us <= phase.sets.max_us);
    }
}

#[test]
fn growth_with_too_little_memory_is_an_error() {
    let growth = growth::Growth {
        from: 100,
        to: 3000,
    };
    let report = growth::run(naive, growth, &options("--memory 50k"));
    assert!(report.is_err());
}

#[test]
fn fill_counts_what_is_held() {
    let report = fill::run(naive, &options("--memory 100k --value-size 64")).unwrap();
    assert!(report.items_before_eviction >= 500);
    assert!(report.items_held >= report.items_before_eviction);
    assert!(report.bytes_per_item >= 80.0 && report.bytes_per_item <= 205.0);
}

#[test]
fn sets_in_a_full_memory_are_timed_side_by_side() {
    let contender = |name: &str| full::Contender {
        name: name.to_owned(),
        engine: AnyEngine::new(
            naive(Room {
                memory: 100 << 10,
                items: None,
            })
            .unwrap(),
        ),
    };
    let line = "--memory 100k --value-size 64 --requests 5000 --rounds 3 --rivals";
    let run = |line| full::run(vec![contender("one"), contender("other")], &options(line));
    let report = run(line).unwrap();
    let names: Vec<&str> = report.sides.iter().map(|side| &*side.name).collect();
    assert_eq!(names[..2], ["one", "other"]);
    let rivals = ["quick_cache ", "moka ", "lru in shards "].into_iter();
    assert!(
        rivals
            .zip(&names[2..])
            .all(|(rival, name)| name.starts_with(rival))
    );
    assert_eq!(names.len(), 5);
    assert_eq!(report.sides[0].p999_by_first.max, 1.0);
    for side in &report.sides {
        assert!(side.p50_us.median <= side.p999_us.median, "{report}");
        assert!(side.p999_us.max <= side.max_us.max, "{report}");
        assert!((0.1..0.9).contains(&side.hit_ratio), "{report}");
        assert!(
            side.evictions_per_set.is_none_or(|count| count > 0.1),
            "{report}"
        );
    }
    // The engines have less than the bench believes.
    assert!(run("--memory 1k --value-size 64").is_err());
}

#[test]
fn server_is_loaded_and_judged() {
    let fake = FakeServer::start(Manner::Good);
    for shape in [
        "--conns 3",
        "--conns 4 --threads 2 --pipeline 10 --get-ratio 0.5",
        "--conns 1 --pipeline 2 --multiget 20 --dist zipf",
    ] {
        let target = fake.address();
        let pid = std::process::id();
        let line =
            format!("--target {target} --pid {pid} --keys 500 --seconds 0.1 --overwrite {shape}");
        let report = server::run(&options(&line)).unwrap();
        assert!(report.ops_per_s > 0.0, "{shape}");
        assert!(report.hits > 0 && report.misses == 0, "{shape}");
        assert_eq!(report.stored > 0, shape.contains("0.5"), "{shape}");
        assert!(
            report.p50_us > 0.1 && report.p50_us <= report.p99_us && report.p99_us <= report.max_us
        );
        assert!(report.server_cpu_us_per_op.is_some());
    }
}

#[test]
fn misses_are_counted() {
    let fake = FakeServer::start(Manner::Forgetful);
    let target = fake.address();
    let line = format!("--target {target} --keys 50 --seconds 0.05 --conns 1 --multiget 3");
    let report = server::run(&options(&line)).unwrap();
    assert!(report.hits == 0 && report.misses > 0 && report.misses.is_multiple_of(3));
}

#[test]
fn wrong_servers_are_found_out() {
    for (manner, complaint) in [
        (Manner::Mixing, "a wrong reply: VALUE "),
        (Manner::Refusing, "a set was refused: SERVER_ERROR no"),
        (Manner::Closing, "the server closed a connection"),
    ] {
        let fake = FakeServer::start(manner);
        let target = fake.address();
        let line = format!("--target {target} --keys 50 --seconds 0.05 --overwrite");
        let error = server::run(&options(&line)).unwrap_err().to_string();
        assert!(error.starts_with(complaint), "{manner:?}: {error}");
    }
    let nobody = server::run(&options("--target nobody"));
    assert!(matches!(nobody, Err(Failure::Usage(words)) if words.contains("HOST:PORT")));
}

#[test]
fn a_server_that_holds_items_is_left_alone() {
    let fake = FakeServer::start(Manner::Good);
    let line = format!(
        "--target {} --keys 50 --seconds 0.05 --conns 1",
        fake.address()
    );
    // The server is empty at first, and then holds the load's items.
    server::run(&options(&line)).unwrap();
    let error = server::run(&options(&line)).unwrap_err().to_string();
    assert!(
        error.contains("holds 50 items") && error.contains("--overwrite"),
        "{error}"
    );
    server::run(&options(&format!("{line} --overwrite"))).unwrap();
    // A server that does not answer is refused too.
    let silent = FakeServer::start(Manner::Silent);
    let line = format!(
        "--target {} --keys 50 --seconds 0.05 --conns 1",
        silent.address()
    );
    let error = server::run(&options(&line)).unwrap_err().to_string();
    assert!(
        error.contains("does not say whether it holds items"),
        "{error}"
    );
    server::run(&options(&format!("{line} --overwrite"))).unwrap();
}
