//! The binary from outside: what it prints, how it serves, how it ends.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

mod running;

use running::*;

#[test]
fn version_help_completions_and_manual() {
    assert_eq!(
        stdout("-V"),
        format!("nuthatch {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert!(stdout("-h").contains("--memory-limit <NUM>"));
    assert!(stdout("completions bash").contains("_nuthatch"));
    assert!(stdout("completions fish").contains("nuthatch"));
    let manual = stdout("man");
    assert!(manual.contains(".TH nuthatch 1") && manual.contains("memory\\-limit"));
}

#[test]
fn the_start_line_names_the_index_and_its_rule() {
    for (flags, says) in [
        (
            "-m 64",
            "index of 131072 slots (room for one item a KiB of memory), ",
        ),
        (
            "-m 64 -o hashpower=12",
            "index of 8192 slots (room for the items asked for), ",
        ),
    ] {
        let server = Running::start(&format!("-l 127.0.0.1 -p 0 {flags}"));
        assert!(server.says.contains(says), "{}", server.says);
    }
}

#[test]
fn what_is_no_command_line_ends_with_2() {
    for (line, complaint) in [
        ("--no-such-flag", "unexpected argument"),
        ("-t 0", "-t: 1 to"),
        ("-U 11211", "there is no UDP"),
        ("-B binary", "there is no binary protocol"),
        ("-m many", "is not a size"),
        (
            "--cpserver nowhere.invalid",
            "--cpserver nowhere.invalid: no address",
        ),
        ("--batch 0", "--batch: 1 to"),
        (
            "--partitions 8",
            "--partitions: only for cphash and lockhash",
        ),
        ("--engine lockhash --pin 0", "--pin: only for cphash"),
        (
            "--engine cphash --server-threads 0",
            "is neither a number nor a range",
        ),
        (
            "--engine memory",
            "possible values: cuckoo, cuckoo-paper, cphash",
        ),
        ("--config /no/such/file", "/no/such/file"),
        ("serve -l nowhere.invalid", "-l nowhere.invalid: no address"),
        ("bench", "Usage"),
    ] {
        let output = run(line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(complaint), "{line}: {said}");
    }
}

#[test]
fn what_does_not_work_ends_with_1() {
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1");
    let taken = format!("-l {} -t 1", running.address());
    let output = run(&taken);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(running.address()));
    assert_eq!(
        run("bench server --target 127.0.0.1:1").status.code(),
        Some(1)
    );
}

#[test]
fn values_that_are_refused_end_with_2_whoever_refuses_them() {
    for line in [
        "bench engine --items 0",
        "bench engine --engine cuckoo,chained",
        "bench engine --memory 1k",
        "bench engine --key-size 251",
        "bench engine --working-set 64k --threads 0",
        "bench engine --working-set 64k --eviction random",
        "bench fill --eviction random",
        "bench fill --memory 1k",
        "bench fill --value-size 0",
        "bench server --target nobody",
        "bench server --seconds nan",
        "bench server --protocol cpserver --multiget 2",
        "bench server --protocol cpserver --get-ratio 0",
        "bench versus --rival true --rounds 0",
        "-l 127.0.0.1 -p 0 -m 512k",
        "-l 127.0.0.1 -p 0 -m 1 -I 1m",
        "-l 127.0.0.1 -p 0 --engine cphash --partitions 3",
        "-l 127.0.0.1 -p 0 --engine lockhash -m 1 -I 1m",
    ] {
        let output = run(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
    }
}

#[test]
fn it_says_what_runs_serves_and_stops() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let running = Running::start("-m 96 -p -1 -l 127.0.0.1 -t 2 -o modern,no_such=1 -U 0");
        assert!(
            running
                .says
                .contains("engine cuckoo, 96 MiB, 2 threads, index of ")
        );
        let warned = running.warnings.concat();
        assert!(
            warned.contains("no_such=1") && !warned.contains("modern"),
            "{warned}"
        );
        assert_eq!(running.ask(SET_AND_GET), SET_AND_GOT);
        let port = running.address().rsplit(':').next().unwrap().to_owned();
        let (code, rest) = running.end(signal);
        assert_eq!(code, Some(0));
        assert!(rest.contains(&format!("| nc 127.0.0.1 {port}")), "{rest}");
    }
}

#[test]
fn verbosity_turns_the_log_up_and_down() {
    let running = Running::start("-p 0 -l 127.0.0.1 -t 1");
    let connections = |said: &str| said.matches("connected").count();
    // Before, between, behind: only the one between is told of.
    running.ask("version\r\nverbosity 2\r\nquit\r\n");
    running.ask("verbosity 0\r\nquit\r\n");
    running.ask("version\r\nquit\r\n");
    let (code, rest) = running.end(Signal::SIGTERM);
    assert_eq!((code, connections(&rest)), (Some(0), 1), "{rest}");
}

const ENGINES: [&str; 9] = [
    "cuckoo",
    "cuckoo-paper",
    "cphash",
    "cphash-single",
    "lockhash",
    "chained",
    "chained-global",
    "chained-clock",
    "chained-global-clock",
];

#[test]
fn every_engine_serves() {
    for engine in ENGINES {
        let running = Running::start(&format!("serve --engine {engine} -p 0 -l 127.0.0.1 -t 1"));
        assert!(running.says.contains(&format!("engine {engine},")));
        assert_eq!(running.ask(SET_AND_GET), SET_AND_GOT);
    }
}

#[test]
fn what_the_engine_is_built_from_is_shown_and_felt() {
    for (line, shown) in [
        (
            "--engine cphash --partitions 4 --server-threads 2 --pin 0 --eviction random",
            &[
                "batch_max 1000",
                "partitions 4",
                "server_threads 2",
                "pin 0",
                "eviction random",
            ][..],
        ),
        (
            "--engine cphash --server-threads 1-2",
            &["server_threads 1-2", "pin no"],
        ),
        (
            "--engine lockhash --partitions 8 --batch 77",
            &["batch_max 77", "partitions 8", "eviction lru"],
        ),
    ] {
        let running = Running::start(&format!("-p 0 -l 127.0.0.1 -t 1 -m 64 {line}"));
        let raised = running.ask("cache_memlimit 100\r\nquit\r\n");
        assert_eq!(raised, "OK\r\n", "{line}");
        let settings = running.ask("stats settings\r\nquit\r\n");
        assert!(
            settings.contains("STAT maxbytes 104857600\r\n"),
            "{line}: {settings}"
        );
        for setting in shown {
            let setting = format!("STAT {setting}\r\n");
            assert!(settings.contains(&setting), "{line}: {setting}{settings}");
        }
    }
    let running = Running::start("-p 0 -l 127.0.0.1 -t 1 --engine lockhash -f 1.5");
    assert!(
        running
            .warnings
            .concat()
            .contains("-f: this engine has no size classes")
    );
}

#[test]
fn cpservers_clients_are_served_beside_memcacheds() {
    let running = Running::start("-p 0 -l 127.0.0.1 -t 2 --cpserver 127.0.0.1:0");
    let mut client = TcpStream::connect(running.cpserver_address()).unwrap();
    let number = u64::from_le_bytes(*b"nuthatch").to_le_bytes();
    client
        .write_all(&[&[1, 0, 0, 0, 4, 0, 0, 0], &number[..], b"seed"].concat())
        .unwrap();
    client.write_all(&[&[0; 8], &number[..]].concat()).unwrap();
    let mut answer = [0; 8];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"\x04\0\0\0seed");
    let got = running.ask("get nuthatch\r\nquit\r\n");
    assert_eq!(got, "VALUE nuthatch 0 4\r\nseed\r\nEND\r\n");
    assert!(
        running
            .ask("stats settings\r\nquit\r\n")
            .contains("STAT batch_max 1000\r\n")
    );
    for (protocol, load) in [
        ("cpserver", "--get-ratio 0.7 --pipeline 100"),
        ("cpserver-extended", "--get-ratio 0 --pipeline 3"),
        ("cpserver-extended", "--get-ratio 0.7 --threads 2"),
    ] {
        let report = stdout(&format!(
            "bench server --target {} --protocol {protocol} {load} --conns 4 --keys 1000 \
             --value-size 8 --seconds 0.1 --json",
            running.cpserver_address()
        ));
        assert!(report.contains("\"misses\":0,"), "{report}");
        assert!(!report.contains("\"stored\":0,"), "{report}");
    }
}

#[test]
fn a_file_says_the_same_as_flags() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nuthatch.toml");
    fs::write(
        &file,
        "memory-limit = 80\nthreads = 3\nlisten = \"127.0.0.1\"\nport = 0\n",
    )
    .unwrap();
    let running = Running::start(&format!("--config {} -t 2", file.display()));
    assert!(
        running.says.contains("80 MiB, 2 threads"),
        "{}",
        running.says
    );
    fs::write(&file, "prot = 1\n").unwrap();
    let output = run(&format!("--config {}", file.display()));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown field `prot`"));
}

#[test]
fn files_tell_the_port_and_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let (ports, pid) = (folder.path().join("ports"), folder.path().join("pid"));
    let line = format!("-l 127.0.0.1 -p 0 -t 1 -P {}", pid.display());
    let running = Running::start_with(&line, |command| {
        command.env("MEMCACHED_PORT_FILENAME", &ports);
    });
    let port = running.address().rsplit(':').next().unwrap();
    assert_eq!(
        fs::read_to_string(&ports).unwrap(),
        format!("TCP INET: {port}\n")
    );
    assert_eq!(written_pid(&pid), running.child.id() as i32);
    let (code, _) = running.end(Signal::SIGTERM);
    assert_eq!(code, Some(0));
    assert!(!pid.exists());
}

fn written_pid(file: &Path) -> i32 {
    fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

#[test]
fn a_unix_socket_has_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let running = Running::start(&format!("-s {} -a 0750 -t 1", socket.display()));
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    let stream = UnixStream::connect(&socket).unwrap();
    assert_eq!(talk(stream, SET_AND_GET), SET_AND_GOT);
    assert_eq!(running.end(Signal::SIGTERM).0, Some(0));
    assert!(!socket.exists());
}

#[test]
fn root_gives_itself_up() {
    let warns = |running: &Running| running.warnings.concat().contains("running as root");
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1 -u nobody");
    assert!(!warns(&running));
    assert_ne!(running.status("Uid:"), 0);
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1");
    assert_eq!(warns(&running), nix::unistd::geteuid().is_root());
}

#[test]
fn memory_is_locked_or_else_it_is_said() {
    for line in [
        "-l 127.0.0.1 -p 0 -t 1 -k",
        "-l 127.0.0.1 -p 0 -t 1 -k -u nobody",
    ] {
        let running = Running::start(line);
        assert_eq!(running.ask(SET_AND_GET), SET_AND_GOT);
        let warned = running.warnings.concat().contains("memory is not locked");
        assert_eq!(running.status("VmLck:") == 0, warned, "{line}");
        // In kilobytes: what is only reserved is not touched.
        assert!(running.status("VmRSS:") < 200_000);
    }
}

#[test]
fn an_interrupted_bench_ends_its_servers() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let rival = format!(
        "{NUTHATCH} -l 127.0.0.1 -p {{port}} -t 1 -P {}",
        pid.display()
    );
    let mut bench = Command::new(NUTHATCH)
        .args(["bench", "versus", "--rival", &rival, "--seconds", "100000"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !pid.exists() {
        assert!(bench.try_wait().unwrap().is_none(), "it ended at once");
        std::thread::yield_now();
    }
    kill(Pid::from_raw(bench.id() as i32), Signal::SIGTERM).unwrap();
    let output = bench.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"));
    assert!(!pid.exists(), "the rival still runs");
}

#[test]
fn the_server_bench_measures_a_server() {
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1");
    let (target, pid) = (running.address(), running.child.id());
    let report = stdout(&format!(
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
    let rival = format!("{NUTHATCH} -l 127.0.0.1 -p {{port}} -t 1");
    let output = Command::new(NUTHATCH)
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
        ("\"version\":\"1.6.45-nuthatch-", 3),
        ("\"compiler\":\"rustc ", 1),
        ("\"kernel\":\"Linux ", 1),
        ("\"processor\":\"", 1),
    ] {
        assert_eq!(report.matches(name).count(), times, "{name}: {report}");
    }
}

#[test]
fn figures_are_tables_of_what_benches_found() {
    let rival = format!("{NUTHATCH} -l 127.0.0.1 -p {{port}} -t 1 -m 8");
    let folder = tempfile::tempdir().unwrap();
    let found = folder.path().join("found.jsonl");
    let mut lines = stdout("bench engine --items 2000 --rivals --seconds 0.05 --rounds 2 --json");
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
        let output = Command::new(NUTHATCH)
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
    let tables = stdout(&format!("bench figures --from {found} --commit abc"));
    for part in [
        "(abc), rustc ",
        "| by quick_cache ",
        "| byte strings: GET, 32 at a time |",
    ] {
        assert!(tables.contains(part), "{part}: {tables}");
    }
    let tables = stdout(&format!("bench figures --from {found} --detail"));
    for part in [
        "| nuthatch::Cache ",
        "| GET, one at a time | memcached 1.6.45-nuthatch-",
    ] {
        assert!(tables.contains(part), "{part}: {tables}");
    }
    let missing = Command::new(NUTHATCH)
        .args(["bench", "figures", "--from", "/no/such/file"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/no/such/file: "));
}

#[test]
fn engines_are_compared_over_working_sets() {
    let engines = ["cphash", "lockhash", "chained", "chained-global", "cuckoo"];
    let report = stdout(&format!(
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
    let report = stdout("bench engine --engine chained,cuckoo --working-set 64k --seconds 0.02");
    assert!(report.contains("working set 64 KiB, 512 keys"), "{report}");
}

#[test]
fn engine_benches_measure_the_engine() {
    for engine in ["cuckoo", "cuckoo-paper", "lockhash", "chained-clock"] {
        let report = stdout(&format!(
            "bench engine --engine {engine} --items 5000 --seconds 0.05 --rounds 1 --json"
        ));
        assert!(
            report.contains(&format!("\"engine\":\"{engine}\"")),
            "{report}"
        );
        assert!(report.contains("\"hit_ratio\":1.0,"), "{report}");
        let report = stdout(&format!("bench engine --engine {engine} --grow 2000:9000"));
        assert!(report.contains("2000 to 9000 items"), "{report}");
        let report = stdout(&format!(
            "bench fill --engine {engine} --memory 8M --value-size 400"
        ));
        assert!(report.contains("in 8 MiB"), "{report}");
    }
}
