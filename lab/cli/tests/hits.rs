//! Tests of `nuthatch-lab hit-ratio` and `items-held` from outside: what they print, write, and refuse.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

#[path = "../../../crates/server/cli/tests/running/mod.rs"]
mod running;

use running::{Running, nuthatch};

const LAB: &str = env!("CARGO_BIN_EXE_nuthatch-lab");

fn lab(arguments: &[&str]) -> Output {
    Command::new(LAB).args(arguments).output().unwrap()
}

/// Its output; it must succeed.
fn printed(arguments: &[&str]) -> String {
    let output = lab(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A trace of 20,000 requests, half of them for 100 keys, in values of 1000 bytes.
fn trace(folder: &Path) -> String {
    let line = |number: u64| match number % 2 {
        0 => format!("often-{} 1000\n", number * number % 100),
        _ => format!("once-{number} 1000\n"),
    };
    let path = folder.join("half.txt");
    fs::write(&path, (0..20_000).map(line).collect::<String>()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The numbers behind a name in a table.
fn row(text: &str, name: &str) -> Vec<f64> {
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with(&format!("{name} ")));
    let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
    let words = line.trim_start()[name.len()..].split_whitespace();
    words.map(|word| word.parse().unwrap()).collect()
}

#[test]
fn a_trace_becomes_tables_json_and_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, json) = (trace(folder.path()), folder.path().join("results.json"));
    let pictures = folder.path().join("pictures");
    let text = printed(&[
        "hit-ratio",
        &trace,
        "--sizes",
        "1%,100%",
        "--policies",
        "lru,s3-fifo,optimum",
        "--json",
        json.to_str().unwrap(),
        "--plot",
        pictures.to_str().unwrap(),
    ]);
    let (lru, optimum) = (row(&text, "lru"), row(&text, "optimum"));
    assert_eq!(lru[1], optimum[1], "{text}");
    assert!(lru[0] <= optimum[0] && optimum[0] <= optimum[1], "{text}");
    assert!(text.contains("misses / those of lru"), "{text}");
    let lines = fs::read_to_string(json).unwrap();
    let lines: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0]["requests"], 20_000);
    assert!(
        fs::read_to_string(pictures.join("half.svg"))
            .unwrap()
            .starts_with("<svg")
    );
}

#[test]
fn engines_and_servers_are_replayed_under_real_limits() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    let server = nuthatch();
    let spawn = format!(
        "ours={} -l 127.0.0.1 -m {{mib}} -p {{port}} -t 1",
        server.display()
    );
    let text = printed(&[
        "hit-ratio",
        &trace,
        "--sizes",
        "64m,1k",
        "--policies",
        "fifo,engine:cuckoo,engine:lockhash:random",
        "--spawn",
        &spawn,
        "--baseline",
        "fifo",
        "--estimate",
    ]);
    // All fits into 64 MiB.
    let most = row(&text, "fifo")[0];
    for name in ["engine:cuckoo", "engine:lockhash:random", "ours"] {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        assert!(line.unwrap().contains(&format!("{most:.2}")), "{text}");
    }
    assert!(text.contains("ours, resident"), "{text}");
    assert!(text.contains("engine:cuckoo, used"), "{text}");
    // More memory gains nothing. lockhash has no estimate.
    let estimate = row(&text, "engine:cuckoo, 10 % more");
    assert_eq!(estimate[0], most, "{text}");
    assert!(!text.contains("lockhash:random, 10"), "{text}");
}

#[test]
fn a_running_server_is_replayed_if_it_is_empty_and_emptied_again() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    let running = Running::start("-p 0 -l 127.0.0.1 -t 1 -m 64");
    let line = [
        "hit-ratio",
        &trace,
        "--policies",
        "fifo",
        "--servers",
        running.address(),
    ];
    let text = printed(&line);
    assert!(text.contains(" of 64.0 MiB: "), "{text}");
    assert!(!text.contains("resident -"), "{text}");
    // Again at once: flushed items are still counted for a moment.
    printed(&line);
    assert_eq!(running.ask("get often-0\r\nquit\r\n"), "END\r\n");
    running.ask("set k 0 0 1\r\nx\r\nquit\r\n");
    let output = lab(&line);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(
        running.ask("get k\r\nquit\r\n"),
        "VALUE k 0 1\r\nx\r\nEND\r\n"
    );
}

#[test]
fn items_are_counted_in_engines_and_servers() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("held.json");
    let spawn = format!(
        "ours={} -l 127.0.0.1 -m {{mib}} -p {{port}} -t 1",
        nuthatch().display()
    );
    let text = printed(&[
        "items-held",
        "--engines",
        "cuckoo,lockhash",
        "--spawn",
        &spawn,
        "--values",
        "1000,uniform:1-3000",
        "-m",
        "8",
        "--json",
        json.to_str().unwrap(),
    ]);
    for name in ["engine:cuckoo", "engine:lockhash", "ours"] {
        let items = row(&text, name);
        assert!(
            items.iter().all(|items| (1500.0..8300.0).contains(items)),
            "{text}"
        );
    }
    assert_eq!(fs::read_to_string(json).unwrap().lines().count(), 6);
}

/// For programs: nothing but lines of JSON.
#[test]
fn json_takes_the_place_of_the_tables() {
    let lines = |words: &str| -> Vec<serde_json::Value> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let text = printed(&words);
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let held = lines("items-held --engines cuckoo --values 1000,300 -m 2 --json -");
    assert_eq!(held.len(), 2);
    assert_eq!(held[1]["values"], "300");
    let hits = lines(
        "hit-ratio made:zipf:1000:0.99:5000 --value-size 32 --sizes 10%,50% --policies lru --estimate --json -",
    );
    assert_eq!((hits.len(), &hits[0]["requests"]), (2, &5000.into()));
    let misses = hits[0]["miss_ratio"].as_f64().unwrap();
    assert!((0.3..0.7).contains(&misses), "{misses}");
    // A simulated policy has no resident memory.
    assert!(hits[0]["size_shown"].is_string() && hits[0]["keeps_size"].is_null());
}

#[test]
fn a_made_trace_that_cannot_be_is_named() {
    for name in ["made:zipf:0:1:1", "made:nothing"] {
        let output = Command::new(LAB)
            .args(["hit-ratio", name])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("KEYS:THETA:REQUESTS"), "{said}");
    }
}

#[test]
fn broken_records_are_named_and_the_rest_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken");
    fs::write(&path, "a 1\nb x\na 1\n").unwrap();
    let output = lab(&[
        "hit-ratio",
        path.to_str().unwrap(),
        "--policies",
        "lru",
        "--sizes",
        "100%",
    ]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("1 records cannot be read and are left out: 2 (`x`"),
        "{said}"
    );
    assert_eq!(
        row(&String::from_utf8(output.stdout).unwrap(), "lru"),
        [50.0]
    );
}

#[test]
fn what_a_csv_has_and_is_not_read_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let text =
        "key,op,size,op_count,ttl\na,GET,1,1,60\na,SET,1,1,60\na,DELETE,1,1,0\na,get,1,1,0\n";
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let output = lab(&["hit-ratio", path, "--policies", "lru", "--sizes", "100%"]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    for words in [
        "4 (`DELETE` is an operation that is neither get nor set)",
        "`op_count` is not read",
        "no item expires",
    ] {
        assert_eq!(said.matches(words).count(), 1, "{words}: {said}");
    }
    // A set is no request.
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(row(&shown, "lru"), [50.0]);
}

fn with<'a>(base: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [base, more].concat()
}

#[test]
fn a_baseline_is_one_of_those_that_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    let base = ["hit-ratio", &trace, "--sizes", "50%", "--policies"];
    let text = printed(&with(
        &base,
        &["fifo,s3-fifo:0.2", "--baseline", "s3-fifo:0.2"],
    ));
    assert!(text.contains("misses / those of s3-fifo:0.2,"), "{text}");
    // Without the default baseline there is no comparison, and no error.
    assert!(!printed(&with(&base, &["fifo"])).contains("misses / those"));
    let output = lab(&with(&base, &["fifo", "--baseline", "typo"]));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("--baseline typo") && said.contains("fifo"),
        "{said}"
    );
}

#[test]
fn traces_that_cannot_be_read_are_named_and_the_others_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    let json = folder.path().join("hits.json");
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    let output = lab(&[
        "hit-ratio",
        "/no/such/trace",
        &trace,
        empty.to_str().unwrap(),
        "--sizes",
        "50%",
        "--policies",
        "fifo",
        "--json",
        json.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("/no/such/trace:") && said.contains("empty: no requests"),
        "{said}"
    );
    assert!(String::from_utf8(output.stdout).unwrap().contains("fifo"));
    assert_eq!(fs::read_to_string(&json).unwrap().lines().count(), 1);
    // A run that fails does not replace the existing file.
    let line = [
        "hit-ratio",
        "/no/such/trace",
        "--json",
        json.to_str().unwrap(),
    ];
    assert_eq!(lab(&line).status.code(), Some(1));
    assert_eq!(fs::read_to_string(&json).unwrap().lines().count(), 1);
}

/// Before, the later trace's picture replaced the other's, and lines of JSON did not tell them apart.
#[test]
fn traces_of_the_same_name_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let traces = ["one", "two"].map(|inner| {
        fs::create_dir(place(inner)).unwrap();
        trace(&folder.path().join(inner))
    });
    let (json, pictures) = (place("results.json"), place("pictures"));
    printed(&[
        "hit-ratio",
        &traces[0],
        &traces[1],
        "--policies",
        "lru",
        "--sizes",
        "1%",
        "--json",
        &json,
        "--plot",
        &pictures,
    ]);
    for name in ["half.svg", "half-2.svg"] {
        assert!(Path::new(&pictures).join(name).is_file(), "{name}");
    }
    let lines = fs::read_to_string(json).unwrap();
    let paths: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| line["path"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(paths, traces);
}

/// Class of bug: a file that cannot be written is found out only when hours of replays are over.
#[test]
fn a_file_for_json_is_opened_before_anything_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    for line in [
        vec!["hit-ratio", &trace, "--policies", "lru", "--json", "/no/x"],
        vec![
            "items-held",
            "-m",
            "8",
            "--values",
            "1000",
            "--json",
            "/no/x",
        ],
    ] {
        let output = lab(&line);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("/no/x"),
            "{output:?}"
        );
    }
}

#[test]
fn what_cannot_be_meant_ends_with_2_and_what_fails_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    for line in [
        "hit-ratio",
        "hit-ratio TRACE --sizes 0",
        "hit-ratio TRACE --policies nothing",
        "hit-ratio TRACE --policies engine:nothing",
        "hit-ratio TRACE --by items --policies engine:cuckoo",
        "hit-ratio TRACE --servers nowhere",
        "hit-ratio TRACE --spawn true",
        "hit-ratio TRACE --columns nothing",
        "hit-ratio TRACE --policies fifo --baseline lru",
        "hit-ratio TRACE --baseline typo",
        "items-held --values x",
        "items-held --overwrite 1",
        "items-held -m 0",
    ] {
        let line = line.replace("TRACE", &trace);
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = lab(&words);
        assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
    }
    let output = lab(&["hit-ratio", "/no/such/trace"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let output = lab(&["hit-ratio", &trace, "--spawn", "true -m {mib} -p {port}"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
