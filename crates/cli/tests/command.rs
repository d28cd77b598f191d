//! The binary from outside: what it prints, how it serves, how it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const NUTHATCH: &str = env!("CARGO_BIN_EXE_nuthatch");

fn run(line: &str) -> Output {
    let words = line.split_whitespace();
    Command::new(NUTHATCH).args(words).output().unwrap()
}

fn stdout(line: &str) -> String {
    let output = run(line);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A server, ended by its process id if a test fails.
struct Running {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    /// The line that says what runs.
    says: String,
    /// What was said before it.
    warnings: Vec<String>,
}

impl Running {
    /// Starts a server and waits until it says what runs.
    fn start(line: &str) -> Self {
        Self::start_with(line, |_| {})
    }

    fn start_with(line: &str, more: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(NUTHATCH);
        command.args(line.split_whitespace()).stderr(Stdio::piped());
        more(&mut command);
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut running = Self {
            child,
            stderr,
            says: String::new(),
            warnings: Vec::new(),
        };
        loop {
            let mut line = String::new();
            let length = running.stderr.read_line(&mut line).unwrap();
            assert!(length > 0, "it ended: {:?}", running.warnings);
            if line.contains(": engine ") {
                running.says = line;
                return running;
            }
            running.warnings.push(line);
        }
    }

    /// The address that it says it listens at.
    fn address(&self) -> &str {
        let memcached = self.says.split(", CPServer at ").next().unwrap();
        memcached.trim_end().rsplit(' ').next().unwrap()
    }

    /// The same for CPServer's clients.
    fn cpserver_address(&self) -> &str {
        self.says
            .trim_end()
            .rsplit_once(", CPServer at ")
            .unwrap()
            .1
    }

    fn ask(&self, request: &str) -> String {
        talk(TcpStream::connect(self.address()).unwrap(), request)
    }

    /// Ends it, and returns its exit code and the rest of what it said.
    fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request that ends with quit and reads to the end.
fn talk(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

const SET_AND_GET: &str = "set k 5 0 3\r\nabc\r\nget k\r\nquit\r\n";
const SET_AND_GOT: &str = "STORED\r\nVALUE k 5 3\r\nabc\r\nEND\r\n";

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
    for line in [
        "bench engine --items 0",
        "bench engine --engine cuckoo,chained",
        "bench fill --eviction random",
        "bench engine --working-set 64k --threads 0",
        "bench server --protocol cpserver --multiget 2",
        "bench server --protocol cpserver --get-ratio 0",
    ] {
        assert_eq!(run(line).status.code(), Some(1), "{line}");
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
fn a_daemon_goes_on_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, pid) = (folder.path().join("socket"), folder.path().join("pid"));
    let line = format!("-d -t 1 -s {} -P {}", socket.display(), pid.display());
    let output = run(&line);
    assert!(output.status.success(), "{output:?}");
    let stream = loop {
        if let Ok(stream) = UnixStream::connect(&socket) {
            break stream;
        }
        std::thread::yield_now();
    };
    assert_eq!(talk(stream, SET_AND_GET), SET_AND_GOT);
    while fs::read_to_string(&pid).is_ok_and(|text| !text.ends_with('\n')) || !pid.exists() {
        std::thread::yield_now();
    }
    kill(Pid::from_raw(written_pid(&pid)), Signal::SIGTERM).unwrap();
    while pid.exists() {
        std::thread::yield_now();
    }
}

/// A number of /proc/PID/status.
fn status(running: &Running, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", running.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn root_gives_itself_up() {
    let warns = |running: &Running| running.warnings.concat().contains("running as root");
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1 -u nobody");
    assert!(!warns(&running));
    assert_ne!(status(&running, "Uid:"), 0);
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
        assert_eq!(status(&running, "VmLck:") == 0, warned, "{line}");
        // In kilobytes: what is only reserved is not touched.
        assert!(status(&running, "VmRSS:") < 200_000);
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
fn versus_compares_two_servers() {
    let rival = format!("{NUTHATCH} -l 127.0.0.1 -p {{port}} -t 1");
    let output = Command::new(NUTHATCH)
        .args([
            "bench", "versus", "--rival", &rival, "--rounds", "2", "--json",
        ])
        .args(["--ours", "-l 127.0.0.1 -p {port} -t 1"])
        .args(["--conns", "2", "--keys", "500", "--seconds", "0.1"])
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for name in ["ratio_ops_per_s", "ratio_server_cpu"] {
        assert!(
            report.contains(&format!("\"{name}\":{{\"median\":")),
            "{report}"
        );
    }
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
