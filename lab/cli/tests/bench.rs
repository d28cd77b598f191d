//! Tests of `nuthatch-lab bench` from outside: what it prints, what it refuses, and what it leaves unchanged.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

#[path = "../../../crates/server/cli/tests/running/mod.rs"]
mod running;

use running::*;

const LAB: &str = env!("CARGO_BIN_EXE_nuthatch-lab");

fn run_lab(line: &str) -> Output {
    let words = line.split_whitespace();
    Command::new(LAB).args(words).output().unwrap()
}

/// Its output; it must succeed.
fn lab(line: &str) -> String {
    let output = run_lab(line);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn values_that_are_refused_end_with_2() {
    for line in [
        "bench",
        "-p 11211",
        "bench engine --items 0",
        "bench engine --engine cuckoo,chained",
        "bench engine --memory 1k",
        "bench engine --key-size 251",
        "bench engine --working-set 64k --threads 0",
        "bench engine --working-set 64k --eviction random",
        "bench engine --miss-ratio 1.1",
        "bench engine --items 10 --hold 10 --get-ratio 2",
        "bench engine --new-keys --rivals",
        "bench engine --new-keys --miss-ratio 0.1",
        "bench engine --new-keys --items 3000 --key-size 3",
        "bench engine --new-keys --store-misses",
        "bench engine --store-misses --grow 1:10",
        "bench memc3",
        "bench memc3 lookups --threads 0",
        "bench memc3 lookups --items 0",
        "bench memc3 lookups --seconds nan",
        "bench memc3 paths --paths 0",
        "bench memc3 paths --buckets 100",
        "bench memc3 caches --keys 0",
        "bench memc3 caches --sizes 0x",
        "bench memc3 caches --get-ratio 2",
        "bench insert --threads 0",
        "bench fill --eviction random",
        "bench fill --memory 1k",
        "bench fill --value-size 0",
        "bench fill --key-size 1",
        "bench fill --key-size 2 --memory 2M",
        "bench full --memory 0",
        "bench full --memory 1k",
        "bench full --engine cphash --partitions 1",
        "bench full --value-size 0",
        "bench scale --machines 0",
        "bench scale --machines 1000000",
        "bench scale --keys 0",
        "bench scale --window 0",
        "bench scale --card nan",
        "bench scale --card 0",
        "bench scale --gets 101",
        "bench server --target nobody",
        "bench server --seconds nan",
        "bench server --protocol cpserver --multiget 2",
        "bench server --protocol cpserver --get-ratio 0",
        "bench server --protocol cpserver",
        "bench server --protocol cpserver-extended",
        "bench local --rounds 0",
        "bench local --seconds 0",
        "bench local --seconds nan",
        "bench local --processes 0",
        "bench local --processes 65",
        "bench local --keys 0",
        "bench local --operations delete",
        "bench local --callers 1001",
        "bench local --value-size 0",
        "bench versus --rival true --rounds 0",
        "bench versus --rival true --shards 0",
        "bench versus --rival true --shards 2 --protocol redis",
        "bench versus --rival true --server-cores 100000",
        "bench versus --rival true --load-cores 100000",
    ] {
        let output = run_lab(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
    }
}

/// The fields that figures read.
#[test]
fn tables_of_the_memc3_paper_are_measured() {
    let json = |line: &str| -> serde_json::Value {
        serde_json::from_str(&lab(&format!("bench memc3 {line} --json"))).unwrap()
    };
    let lookups = json("lookups --items 3000 --seconds 0.002 --rounds 1");
    assert_eq!(lookups["bench"], "lookups");
    assert_eq!(lookups["rows"][1]["table"], "chaining");
    assert_eq!(lookups["rows"][1]["keys"], "negative");
    assert!(lookups["rows"][1]["mops"]["median"].as_f64() > Some(0.0));
    let paths = json("paths --paths 2 --buckets 1024");
    assert_eq!(paths["tables"][1]["name"], "2 paths");
    assert_eq!(paths["tables"][1]["loads"][49]["load"], 0.5);
    assert!(paths["tables"][0]["bytes_per_item"].as_f64() > Some(13.0));
    let caches = json("caches --keys 2000 --sizes 64K,1M --requests 5000");
    assert_eq!(caches["rows"][4]["cache"], "chaining+LRU");
    assert_eq!(caches["rows"][4]["items"], 2000);
    assert!(caches["rows"][0]["miss_ratio"].as_f64() > Some(0.05));
}

/// Before, such values ended with "items are lost" after some time, or with an allocation that failed.
#[test]
fn values_that_no_engine_takes_are_named_at_once() {
    for bench in [
        "fill",
        "fill --engine lockhash",
        "full",
        "full --engine chained,cphash",
        "engine --items 10",
        "engine --grow 1:10",
    ] {
        for size in ["1048576", "2000000", "40000000", "9999999999"] {
            let line = format!("bench {bench} --value-size {size}");
            let output = run_lab(&line);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line}: {said}");
            assert!(
                said.contains(&format!("--value-size {size}")),
                "{line}: {said}"
            );
        }
    }
    // The largest item follows from the memory.
    let line = "bench fill --memory 1M --value-size 600000";
    assert_eq!(run_lab(line).status.code(), Some(2));
}

/// Class of bug: requests made beforehand take more memory than there is, since their number does not depend on the
/// size of values.
#[test]
fn values_near_the_largest_are_measured() {
    lab("bench fill --value-size 1000000");
    lab("bench engine --value-size 1000000 --items 10 --get-ratio 0.9 --rounds 1 --seconds 0.1");
    let running = Running::start("-p 0 -l 127.0.0.1 -t 1 -m 64");
    let line = format!(
        "bench server --target {} --keys 10 --get-ratio 0.5 --seconds 0.1 --conns 2",
        running.address()
    );
    lab(&format!("{line} --value-size 1000000"));
    let output = run_lab(&format!("{line} --value-size 2000000 --overwrite"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--value-size 2000000"), "{said}");
    let output = run_lab(&format!("{line} --value-size 9999999999 --overwrite"));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// By default the largest item is what the memory allows.
#[test]
fn the_smallest_memory_is_enough_for_every_engine() {
    for (engine, memory) in [
        ("cuckoo", "1M"),
        ("cuckoo-paper", "1M"),
        ("chained", "1M"),
        ("cphash", "1M"),
        ("lockhash", "1M"),
    ] {
        for bench in ["fill", "full --requests 1000 --rounds 1"] {
            lab(&format!(
                "bench {bench} --engine {engine} --memory {memory}"
            ));
        }
    }
}

#[test]
fn what_does_not_work_ends_with_1() {
    let output = run_lab("bench server --target 127.0.0.1:1");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn version_completions_and_manual() {
    assert_eq!(
        lab("-V"),
        format!("nuthatch-lab {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert!(lab("completions bash").contains("nuthatch-lab"));
    assert!(lab("man").contains(".TH nuthatch-lab 1"));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    for line in [
        "completions bash",
        "man",
        "-h",
        "bench fill --memory 2M --value-size 400",
        "flow theory",
        "hash size --memory 1G",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let words = line.split_whitespace();
        let mut command = Command::new(LAB);
        let output = command.args(words).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(0), ""), "{line}");
    }
}

#[test]
fn cpservers_clients_are_measured() {
    let running = Running::start_in_lab("-p 0 -l 127.0.0.1 -t 2 --cpserver 127.0.0.1:0");
    for (protocol, load) in [
        ("cpserver", "--get-ratio 0.7 --pipeline 100"),
        ("cpserver-extended", "--get-ratio 0 --pipeline 3"),
        ("cpserver-extended", "--get-ratio 0.7 --threads 2"),
    ] {
        let report = lab(&format!(
            "bench server --target {} --protocol {protocol} {load} --conns 4 --keys 1000 \
             --value-size 8 --seconds 0.1 --overwrite --json",
            running.cpserver_address()
        ));
        assert!(report.contains("\"misses\":0,"), "{report}");
        assert!(!report.contains("\"stored\":0,"), "{report}");
    }
}

#[test]
fn an_interrupted_bench_ends_its_servers() {
    // SIGHUP: its terminal is closed, which Nuthatch takes for a wish to read its settings again.
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        ends_its_servers(signal, &["versus", "--seconds", "100000"]);
    }
    // A rival with so much memory is never full.
    ends_its_servers(Signal::SIGTERM, &["fill", "--memory", "1M"]);
}

fn ends_its_servers(signal: Signal, bench: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let rival = format!(
        "{} -l 127.0.0.1 -p {{port}} -t 1 -m 16384 -P {}",
        nuthatch().display(),
        pid.display()
    );
    let mut bench = Command::new(LAB)
        .arg("bench")
        .args(bench)
        .args(["--rival", &rival])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !pid.exists() {
        assert!(bench.try_wait().unwrap().is_none(), "it ended at once");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    kill(Pid::from_raw(bench.id() as i32), signal).unwrap();
    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"));
    assert!(!pid.exists(), "the rival still runs");
}

/// Class of fault: an error of one of several servers that does not say which.
#[test]
fn a_server_that_stops_in_the_middle_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let flags = format!("-l 127.0.0.1 -p {{port}} -t 1 -P {}", file.display());
    let rival = format!("{} {flags}", nuthatch().display());
    let mut bench = Command::new(LAB)
        .args(["bench", "versus", "--rival", &rival, "--rounds", "1000000"])
        .args(["--conns", "2", "--keys", "500", "--seconds", "0.1"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = loop {
        assert!(bench.try_wait().unwrap().is_none(), "it ended at once");
        let told = std::fs::read_to_string(&file).unwrap_or_default();
        if let Ok(pid) = told.trim().parse() {
            break Pid::from_raw(pid);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    kill(pid, Signal::SIGKILL).unwrap();
    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&file.display().to_string()), "{said}");
}

#[test]
fn the_server_bench_measures_a_server() {
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1");
    let (target, pid) = (running.address(), running.child.id());
    let report = lab(&format!(
        "bench server --target {target} --pid {pid} --conns 2 --pipeline 5 --multiget 3 \
         --get-ratio 0.9 --keys 1000 --value-size 32 --seconds 0.1 --json"
    ));
    for name in [
        "ops_per_s",
        "p50_us",
        "p90_us",
        "p99_us",
        "p999_us",
        "max_us",
        "hits",
        "misses",
        "server_cpu_us_per_op",
    ] {
        assert!(report.contains(&format!("\"{name}\":")), "{name}: {report}");
    }
    assert!(report.contains("\"misses\":0,"), "{report}");
}

#[test]
fn versus_compares_servers() {
    let rival = format!("{} -l 127.0.0.1 -p {{port}} -t 1", nuthatch().display());
    let output = Command::new(LAB)
        .args(["bench", "versus", "--rival", &rival, "--rival", &rival])
        .args(["--rounds", "2", "--json"])
        .args(["--ours", "-l 127.0.0.1 -p {port} -t 1"])
        .args(["--conns", "2", "--keys", "500", "--seconds", "0.1"])
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for (name, times) in [
        ("\"ratio_ops_per_s\":{\"median\":", 2),
        ("\"ratio_server_cpu\":{\"median\":", 2),
        ("\"version\":\"1.6.45 (nuthatch ", 3),
        ("\"compiler\":\"rustc ", 1),
        ("\"kernel\":\"Linux ", 1),
        ("\"processor\":\"", 1),
    ] {
        assert_eq!(report.matches(name).count(), times, "{name}: {report}");
    }
}

/// Runs the versus bench of nuthatch with itself.
/// A client that divides its keys finds each of them.
#[test]
fn versus_divides_keys_among_the_servers_of_a_rival() {
    let flags = "-l 127.0.0.1 -p {port} -t 1";
    let load = "--shards 3 --multiget 7 --get-ratio 0.9 --dist zipf";
    let report = versus_itself(flags, &load.split(' ').collect::<Vec<_>>());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["ours"]["servers"], 1);
    let rival = &report["rivals"][0];
    assert_eq!(
        (&rival["servers"], &rival["misses"]),
        (&3.into(), &0.into())
    );
    assert!(rival["server_cpu_us_per_op"]["median"].as_f64() > Some(0.0));
}

fn versus_itself(flags: &str, load: &[&str]) -> String {
    let rival = format!("{} {flags}", nuthatch().display());
    let output = Command::new(LAB)
        .args(["bench", "versus", "--rival", &rival, "--ours", flags])
        .args(["--rounds", "1", "--json", "--conns", "2", "--keys", "500"])
        .args(["--seconds", "0.1", "--pipeline", "10"])
        .args(load)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn versus_speaks_other_protocols() {
    let report = versus_itself(
        "-l 127.0.0.1 -p {port} -t 1",
        &["--protocol", "binary", "--get-ratio", "0.9"],
    );
    assert_eq!(report.matches("\"misses\":0").count(), 2, "{report}");
    assert!(report.contains("\"protocol\":\"binary\""), "{report}");
    let flags = "-l 127.0.0.1 -p -1 --redis-port {port} -t 1";
    let report = versus_itself(flags, &["--protocol", "redis", "--get-ratio", "0.9"]);
    assert_eq!(report.matches("\"misses\":0").count(), 2, "{report}");
    assert!(report.contains("\"program\":\"redis-server\""), "{report}");
    assert!(report.contains("\"version\":\"7."), "{report}");
}

#[test]
fn versus_speaks_tls() {
    let folder = tempfile::tempdir().unwrap();
    let Some(files) = certificate(folder.path()) else {
        return;
    };
    let flags = format!("-l 127.0.0.1 -p {{port}} -t 1 -Z -o {files}");
    // Values of several records each, and blocks of sets that no socket takes at once.
    let report = versus_itself(&flags, &["--tls", "--value-size", "40000"]);
    assert_eq!(report.matches("\"misses\":0").count(), 2, "{report}");
    assert!(report.contains("\"tls\":true"), "{report}");
}

/// Makes a key and a certificate, and the option that names them; `None` if there is no openssl to make them with.
fn certificate(folder: &Path) -> Option<String> {
    let [key, cert] = ["key", "cert"].map(|name| folder.join(name));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
        ])
        .args(["-nodes", "-subj", "/CN=bench", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .output();
    let (key, cert) = (key.display(), cert.display());
    let is_made = made.is_ok_and(|made| made.status.success());
    is_made.then(|| format!("ssl_chain_cert={cert},ssl_key={key}"))
}

#[test]
fn figures_are_tables_of_what_benches_found() {
    let rival = format!(
        "{} -l 127.0.0.1 -p {{port}} -t 1 -m 8",
        nuthatch().display()
    );
    let folder = tempfile::tempdir().unwrap();
    let found = folder.path().join("found.jsonl");
    let mut lines = lab("bench engine --items 2000 --rivals --seconds 0.05 --rounds 2 --json");
    for words in [
        &[
            "versus",
            "--rounds",
            "1",
            "--seconds",
            "0.05",
            "--keys",
            "500",
        ][..],
        &["fill", "--memory", "8M"],
    ] {
        let output = Command::new(LAB)
            .arg("bench")
            .args(words)
            .args(["--rival", &rival, "--json"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        lines += &String::from_utf8_lossy(&output.stdout);
    }
    // A server of ours holds as many items as the engine does in process.
    let held: Vec<f64> = lines
        .split("\"items_before_eviction\":")
        .skip(1)
        .map(|rest| rest.split([',', '}']).next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(held.len(), 2, "{lines}");
    assert!((0.8..1.25).contains(&(held[1] / held[0])), "{held:?}");

    std::fs::write(&found, lines).unwrap();
    let found = found.display();
    let summary = lab(&format!("bench tables --from {found}"));
    for part in ["| Nuthatch, us |", "| GET, one at a time |"] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    let tables = lab(&format!(
        "bench tables --from {found} --commit abc --detail"
    ));
    for part in [
        "(abc), rustc ",
        "| quick_cache ",
        "| nuthatch::Cache ",
        "| GET, one at a time | memcached 1.6.45 (nuthatch ",
    ] {
        assert!(tables.contains(part), "{part}: {tables}");
    }
    let missing = Command::new(LAB)
        .args(["bench", "tables", "--from", "/no/such/file"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/no/such/file: "));
}

/// Each row of `make bench` at its least size: it runs, all its answers are right, and the tables take it.
#[test]
fn every_row_works() {
    let rows = lab("bench row");
    let mut lines = String::new();
    for row in rows.lines() {
        let [name, times, words] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        assert!(
            times.parse::<u64>().unwrap() > 0 && !words.is_empty(),
            "{row}"
        );
        let line = lab(&format!("bench row --trial {name} --json"));
        assert!(line.starts_with("{\"bench\":\""), "{name}: {line}");
        lines += &line;
    }
    assert_eq!(lines.lines().count(), rows.lines().count(), "{lines}");
    let folder = tempfile::tempdir().unwrap();
    let found = folder.path().join("found.jsonl");
    std::fs::write(&found, lines).unwrap();
    let tables = lab(&format!("bench tables --from {} --detail", found.display()));
    for part in [
        "items of 16 + 300 bytes in ",
        // As the records of the log lie: whole lines of 64 bytes, 136 bytes, 336 bytes.
        "limit: 2.00 + 1.00 lines",
        "limit: 2.00 + 3.00 lines",
        "limit: 2.00 + 6.00 lines",
        " on average, as in ETC, in ",
        "GET, 10 % misses, 32 at a time",
        "GET, by Zipf 0.99, 32 at a time",
        "SET of stored keys, 32 at a time",
        "| with no value of 100,000 bytes held | ",
        "New keys into an empty cuckoo, 2,000 items",
        "| quick_cache 0.",
        "| cuckoo clock | ",
    ] {
        assert!(tables.contains(part), "{part}: {tables}");
    }
    let output = run_lab("bench row nothing");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn engines_are_compared_over_working_sets() {
    let engines = ["cphash", "lockhash", "chained", "chained-global", "cuckoo"];
    let report = lab(&format!(
        "bench engine --engine {} --working-set 64k,256k --threads 2 --seconds 0.02 --rounds 1 \
         --server-threads 1 --json",
        engines.join(",")
    ));
    for engine in engines {
        let name = format!("\"engine\":\"{engine}\"");
        assert_eq!(report.matches(&name).count(), 2, "{engine}: {report}");
    }
    assert_eq!(
        report.matches("\"lines_sent_per_op\":").count(),
        2,
        "{report}"
    );
    let report = lab("bench engine --engine chained,cuckoo --working-set 64k --seconds 0.02");
    assert!(report.contains("working set 64 KiB, 512 keys"), "{report}");
}

#[test]
fn engine_benches_measure_the_engine() {
    for engine in ["cuckoo", "cuckoo-paper", "lockhash", "chained-clock"] {
        let report = lab(&format!(
            "bench engine --engine {engine} --items 5000 --seconds 0.05 --rounds 1 --json"
        ));
        assert!(
            report.contains(&format!("\"engine\":\"{engine}\"")),
            "{report}"
        );
        assert!(report.contains("\"hit_ratio\":1.0,"), "{report}");
        let report = lab(&format!("bench engine --engine {engine} --grow 2000:9000"));
        assert!(report.contains("2000 to 9000 items"), "{report}");
        let report = lab(&format!(
            "bench fill --engine {engine} --memory 8M --value-size 400"
        ));
        assert!(report.contains("in 8 MiB"), "{report}");
    }
}

#[test]
fn the_bench_leaves_a_foreign_servers_items_alone() {
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1");
    let address = running.address();
    let load = format!("bench server --target {address} --conns 1 --keys 100 --seconds 0.05");
    // The same key that the load begins with.
    let mine = "set kkkkkkkkkkkkkkk0 0 0 4\r\nmine\r\nquit\r\n";
    assert_eq!(
        talk(TcpStream::connect(address).unwrap(), mine),
        "STORED\r\n"
    );
    let output = run_lab(&load);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("holds 1 items") && said.contains("--overwrite"),
        "{said}"
    );
    assert_eq!(
        running.ask("get kkkkkkkkkkkkkkk0\r\nquit\r\n"),
        "VALUE kkkkkkkkkkkkkkk0 0 4\r\nmine\r\nEND\r\n"
    );
    let report = lab(&format!("{load} --overwrite --json"));
    assert!(report.contains("\"misses\":0,"), "{report}");
    assert_ne!(running.stat("", "curr_items"), "1");
}

/// In whichever protocol the load speaks, and within TLS.
#[test]
fn the_bench_asks_in_every_protocol_whether_there_are_items() {
    let folder = tempfile::tempdir().unwrap();
    let files = certificate(folder.path());
    let plain = Running::start("-l 127.0.0.1 -p 0 -t 1 --redis-port 0");
    let within =
        files.map(|files| Running::start(&format!("-l 127.0.0.1 -p 0 -t 1 -Z -o {files}")));
    let mut targets = vec![
        ("--protocol binary", plain.address()),
        ("--protocol redis", plain.redis_address()),
    ];
    if let Some(within) = &within {
        targets.push(("--tls", within.address()));
        targets.push(("--tls --protocol binary", within.address()));
    }
    for (flags, target) in targets {
        let load =
            format!("bench server {flags} --target {target} --conns 1 --keys 100 --seconds 0.05");
        // An empty server is loaded; then it holds the load's items.
        lab(&format!("{load} --overwrite"));
        let output = run_lab(&load);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{flags}: {said}");
        assert!(said.contains("holds 100 items"), "{flags}: {said}");
    }
}

/// Every way that can be had is measured, and what cannot is told with its reason.
#[test]
fn ways_to_a_cache_on_this_machine_are_measured() {
    let nuthatch = nuthatch();
    assert!(nuthatch.is_file());
    let line = "bench local --processes 1,3 --keys 100,300 --callers 1,5 --rounds 2 --seconds 0.02 \
                --memcached /no/such/memcached --python python3 --json";
    let report: serde_json::Value = serde_json::from_str(&lab(line)).unwrap();
    assert_eq!(report["bench"], "local");
    let rows = report["rows"].as_array().unwrap();
    let count = |way: &str| rows.iter().filter(|row| row["way"] == way).count();
    // Gets and sets, two numbers of keys and of processes; Python's with the first number of keys.
    for way in [
        "cache",
        "client unix",
        "client tcp",
        "plain unix",
        "plain tcp",
    ] {
        assert_eq!(count(way), 8, "{way}: {report}");
    }
    assert_eq!(count("direct"), 4, "{report}");
    assert_eq!(count("python dict"), 4, "{report}");
    assert_eq!(count("python multiprocessing"), 4, "{report}");
    let pipelining = report["pipelining"].as_array().unwrap();
    assert_eq!(pipelining.len(), 8, "{report}");
    for row in rows.iter().chain(pipelining) {
        let median = |name: &str| row[name]["median"].as_f64();
        for name in ["p50_us", "ops_per_s", "client_cpu_us_per_op"] {
            assert!(median(name) > Some(0.0), "{name}: {row}");
        }
        assert!(median("p99_us") >= median("p50_us"), "{row}");
        let has_server = ![
            "cache",
            "python dict",
            "python nuthatch.Cache",
            "python diskcache",
        ]
        .iter()
        .any(|way| row["way"] == *way);
        assert_eq!(
            median("server_cpu_us_per_op").is_some(),
            has_server,
            "{row}"
        );
    }
    let skipped = report["skipped"].as_array().unwrap();
    let why = skipped.iter().find(|skipped| skipped["way"] == "memcached");
    let why = why.unwrap()["why"].as_str().unwrap();
    assert!(why.contains("/no/such/memcached"), "{why}");
}
