//! Tests of `nuthatch-lab bench load` from outside, with real servers: what it measures, refuses, and keeps if a server stops.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

#[path = "../../../crates/server/cli/tests/running/mod.rs"]
mod running;

use running::*;

const LAB: &str = env!("CARGO_BIN_EXE_nuthatch-lab");

fn command(line: &str) -> Command {
    let mut command = Command::new(LAB);
    command
        .args(["bench", "load"])
        .args(line.split_whitespace());
    command
}

fn load(line: &str) -> Output {
    command(line).output().unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Its report; it must succeed.
fn measured(line: &str) -> Value {
    let output = load(&format!("{line} --json"));
    assert!(output.status.success(), "{line}: {output:?}");
    report(&output)
}

/// Its report of at least `least` operations: where the machine is busy, the load is repeated with more seconds.
fn measured_often(line: &str, least: f64) -> Value {
    let mut seconds = 0.05;
    loop {
        let output = load(&format!("{line} --seconds {seconds} --json"));
        if output.status.success() {
            let report = report(&output);
            if number(&report["sides"][0]["operations"]) >= least {
                return report;
            }
        }
        assert!(seconds < 100.0, "{line}: {output:?}");
        seconds *= 4.0;
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn values_that_are_refused_end_with_2_and_say_why() {
    for (line, why) in [
        ("", "--workload"),
        ("--workload ycsb-z", "there are ycsb-a, ycsb-b"),
        ("--workload etc --rate 0", "--rate 0: 0.000001 to 10000000"),
        ("--workload etc --rate 1e-300", "--rate"),
        ("--workload etc --rate nan", "--rate NaN"),
        ("--workload etc --rate 1e9", "--rate"),
        ("--workload etc --bursts 1:1", "--rate"),
        ("--workload etc --rate 5 --bursts 0:1", "milliseconds"),
        ("--workload etc --rate 5 --arrivals often", "poisson"),
        (
            "--workload etc --rate 5 --bursts 100:900 --seconds 1.5",
            "--seconds 1.5: not a multiple",
        ),
        (
            "--workload etc --rate 5 --bursts 100:900 --seconds 0.1",
            "--seconds 0.1: not a multiple",
        ),
        ("--workload twitter-31 --store-misses", "--store-misses"),
        ("--workload etc --keys 0", "--keys 0"),
        ("--workload etc --conns 0", "--conns"),
        ("--workload etc --pipeline 10000000", "--pipeline"),
        ("--workload etc --conns 2 --threads 3", "--threads"),
        (
            "--workload etc --rate 5 --conns 3 --threads 2",
            "--conns 3: no multiple of --threads",
        ),
        ("--workload etc --ttl 2592001", "--ttl: at most 2592000"),
        ("--workload etc --seconds 0", "--seconds"),
        ("--workload etc --rounds 0", "--rounds"),
        (
            "--workload etc --target nobody",
            "--target nobody: not a HOST:PORT",
        ),
        ("--workload etc --target localhost:1 --rival x", "--rival"),
        ("--workload etc --pid 1", "--target"),
        ("--workload etc --load-cores 100000", "--load-cores"),
    ] {
        let output = load(line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(why), "{line}: {said}");
    }
}

#[test]
fn every_kind_of_workload_finds_its_items_on_a_server() {
    for workload in [
        "ycsb-a",
        "ycsb-c",
        "ycsb-d",
        "ycsb-e",
        "ycsb-f",
        "etc",
        "usr",
        "sys",
        "twitter-14",
        "twitter-50",
    ] {
        let line = "--keys 300 --conns 3 --pipeline 2 --rounds 1";
        let report = measured_often(&format!("--workload {workload} {line}"), 1000.0);
        let side = &report["sides"][0];
        assert_eq!(report["workload"], workload);
        assert_eq!(report["arrivals"], "closed");
        assert!(number(&side["hits"]) > 0.0, "{side}");
        let deletes = ["etc", "twitter-14"].contains(&workload);
        assert_eq!(number(&side["deleted"]) > 0.0, deletes, "{side}");
        // What is neither deleted nor inserted meanwhile by another connection is there.
        if !["ycsb-d", "ycsb-e"].contains(&workload) {
            assert_eq!(number(&side["misses"]) > 0.0, deletes, "{side}");
        }
        assert!(number(&side["latency"]["p50_us"]["median"]) > 0.0, "{side}");
        assert!(
            number(&side["server_cpu_us_per_op"]["median"]) > 0.0,
            "{side}"
        );
    }
}

#[test]
fn servers_take_turns_and_redis_protocol_is_spoken() {
    let nuthatch = nuthatch();
    let output = command("--workload ycsb-b --protocol redis --keys 200 --conns 2 --seconds 0.05")
        .args([
            "--rounds", "2", "--ttl", "60", "--rate", "2000", "--json", "--rival",
        ])
        .arg(format!(
            "{} -l 127.0.0.1 -p -1 --redis-port {{port}} -t 1",
            nuthatch.display()
        ))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let report = report(&output);
    let [ours, rival] = [0, 1].map(|side| &report["sides"][side]);
    for side in [ours, rival] {
        assert_eq!(
            (&side["name"], &side["rounds"]),
            (&"nuthatch".into(), &2.into())
        );
        assert_eq!(side["misses"], 0);
        assert!(
            side["version"].as_str().unwrap().starts_with("7."),
            "{side}"
        );
    }
    assert_eq!(ours["ratio_p99"], Value::Null);
    assert!(number(&rival["ratio_ops_per_s"]["median"]) > 0.0);
}

#[test]
fn a_rate_is_kept_and_its_bursts_too() {
    for more in [
        "--arrivals constant",
        "--arrivals gpareto",
        "--bursts 20:30",
        // A single burst.
        "--bursts 50:450",
        "--threads 2",
    ] {
        let line = "--workload usr --keys 500 --conns 4 --rate 1000 --seconds 0.5 --rounds 1";
        let report = measured(&format!("{line} {more}"));
        let side = &report["sides"][0];
        // A busy machine may be late with some, which then count as such.
        let due = number(&side["operations"]) + number(&side["unserved"]);
        assert!((350.0..650.0).contains(&due), "{more}: {side}");
    }
}

/// A server that misses everything, and takes its time for it.
fn slow_server(each: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut asked = BufReader::new(stream.try_clone().unwrap()).lines();
            while let Some(Ok(_)) = asked.next() {
                thread::sleep(each);
                if (&stream).write_all(b"END\r\n").is_err() {
                    break;
                }
            }
        }
    });
    address
}

/// The kind of fault is coordinated omission: a load that slows down with the server would report the 5 ms of each answer.
#[test]
fn a_server_that_is_too_slow_shows_in_all_that_was_due() {
    let target = slow_server(Duration::from_millis(5));
    let line = format!(
        "--target {target} --overwrite --no-preload --workload ycsb-c --conns 1 --seconds 0.5 --rounds 1"
    );
    let open = measured(&format!("{line} --rate 2000 --arrivals constant"));
    let side = &open["sides"][0];
    assert_eq!(side["kept"], false);
    // 2000 a second were due, of which at most 200 a second were answered: the middle one has waited for most of a half.
    assert!(number(&side["unserved"]) > 700.0, "{side}");
    assert!(
        number(&side["latency"]["p50_us"]["median"]) > 100_000.0,
        "{side}"
    );
    assert!(
        number(&side["latency"]["max_us"]["max"]) > 400_000.0,
        "{side}"
    );
    let text = load(&format!("{line} --rate 2000"));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("the rate was not kept: "), "{text}");
    // The closed load asks for less.
    let closed = measured(&line);
    let side = &closed["sides"][0];
    assert!(number(&side["operations"]) <= 101.0, "{side}");
    assert_eq!(side["kept"], true);
}

/// The kind of fault is a server that vanishes from the report, or whose times look fine, because it stands still.
#[test]
fn a_server_that_answers_nothing_in_the_time_is_named() {
    let target = slow_server(Duration::from_secs(1));
    let line = format!(
        "--target {target} --overwrite --no-preload --workload ycsb-c --conns 1 --seconds 0.1 --rounds 1"
    );
    let output = load(&line);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("all connections waited"), "{said}");
}

/// Answers misses. The second connection stands still after a thousand, and ends a while after the first has answered 300 more.
fn half_stuck_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let mut streams = listener.incoming().map_while(Result::ok);
        let (first, second) = (streams.next().unwrap(), streams.next().unwrap());
        let (stuck, is_stuck) = mpsc::channel();
        let (end, is_over) = mpsc::channel();
        thread::spawn(move || {
            answer_misses(&second, 1000);
            stuck.send(()).unwrap();
            is_over.recv().unwrap();
            // So long at least its request has waited.
            thread::sleep(Duration::from_millis(100));
        });
        while is_stuck.try_recv().is_err() {
            answer_misses(&first, 1);
        }
        answer_misses(&first, 300);
        end.send(()).unwrap();
        answer_misses(&first, usize::MAX);
    });
    address
}

fn answer_misses(mut stream: &TcpStream, count: usize) {
    for _ in 0..count {
        // One request, which is not sent together with the next.
        let mut asked = [0; 256];
        if matches!(stream.read(&mut asked), Ok(0) | Err(_))
            || stream.write_all(b"END\r\n").is_err()
        {
            return;
        }
    }
}

#[test]
fn a_request_that_is_never_answered_is_among_the_times() {
    let line = format!(
        "--target {} --overwrite --no-preload --workload ycsb-c --conns 2 --rate 2000 --seconds 5 --rounds 1 --json",
        half_stuck_server()
    );
    let output = load(&line);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let side = &report(&output)["sides"][0];
    assert!(number(&side["unanswered"]) >= 1.0, "{side}");
    assert!(
        number(&side["latency"]["max_us"]["max"]) > 50_000.0,
        "{side}"
    );
}

#[test]
fn misses_are_stored_if_asked_for() {
    let line = "--workload twitter-52 --keys 100 --no-preload --conns 2 --rounds 1";
    let side = &measured_often(&format!("{line} --store-misses"), 1000.0)["sides"][0];
    assert!(number(&side["restored"]) > 0.0, "{side}");
    // Refills are no operations.
    assert_eq!(side["restored"], side["refills"]["count"]);
    assert_eq!(side["operations"], side["gets"]["count"]);
    assert_eq!(side["writes"], Value::Null);
    assert!(number(&side["hits"]) > number(&side["misses"]), "{side}");
    let side = &measured_often(&line.replace("twitter-52", "ycsb-c"), 1.0)["sides"][0];
    assert_eq!((&side["hits"], &side["stored"]), (&0.into(), &0.into()));
}

#[test]
fn a_value_that_was_not_stored_for_its_key_is_noticed() {
    let running = Running::start("-p 0 -l 127.0.0.1 -t 1 -m 64");
    let line = format!(
        "--target {} --keys 20 --conns 1 --rounds 1",
        running.address()
    );
    // Both have keys of 23 bytes.
    measured(&format!("{line} --workload twitter-8 --seconds 1"));
    let refused = load(&format!("{line} --workload ycsb-c"));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("holds 20 items"), "{said}");
    let wrong = load(&format!(
        "{line} --workload ycsb-c --overwrite --no-preload"
    ));
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(1), "{said}");
    assert!(said.contains("a wrong value for kkk"), "{said}");
}

/// A load on a server that has answered for more than the time that does not count.
fn under_way(running: &Running) -> Child {
    let child = command("--workload ycsb-b --keys 100 --conns 2 --rate 1000 --seconds 60 --json")
        .args(["--target", running.address()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("some requests", || {
        let stats = running.ask("stats\r\nquit\r\n");
        let gets = stats
            .lines()
            .find_map(|line| line.strip_prefix("STAT cmd_get "));
        let gets: u64 = gets?.trim().parse().ok()?;
        (gets > 1500).then_some(())
    });
    child
}

fn ended_early(child: Child, why: &str) {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(why), "{said}");
    let report = report(&output);
    assert!(report["ended"].as_str().unwrap().contains(why), "{report}");
    let side = &report["sides"][0];
    assert!(number(&side["operations"]) > 100.0, "{side}");
    let rate = number(&side["ops_per_s"]["median"]);
    assert!((500.0..1500.0).contains(&rate), "{side}");
}

#[test]
fn what_was_measured_before_a_server_stopped_is_kept() {
    let mut running = Running::start("-p 0 -l 127.0.0.1 -t 1 -m 64");
    let child = under_way(&running);
    running.child.kill().unwrap();
    ended_early(child, "in round 1: ");
}

#[test]
fn what_was_measured_before_an_interrupt_is_kept() {
    let running = Running::start("-p 0 -l 127.0.0.1 -t 1 -m 64");
    let child = under_way(&running);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    ended_early(child, "interrupted");
}

#[test]
fn a_server_that_cannot_be_had_is_named() {
    let output = command("--workload etc --rival /no/such/memcached --keys 10")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/no/such/memcached"), "{said}");
}
