//! Tests of `nuthatch-lab record` with real servers: what is recorded, when it ends, and what is refused.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
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

/// A request of a client.
#[derive(Clone)]
struct Request {
    key: String,
    size: usize,
    writes: bool,
}

/// What a client does: half for a few keys, the rest for ever new ones, and now and then a set without a get.
fn sequence() -> Vec<Request> {
    let request = |number: u64| {
        let key = match number % 3 {
            0 => format!("once-{number}"),
            _ => format!("often:{}", number * number % 97),
        };
        let size = 10 + (key.len() * 37 + key.as_bytes()[key.len() - 1] as usize * 11) % 300;
        let writes = number % 10 == 9;
        Request { key, size, writes }
    };
    (0..3000).map(request).collect()
}

/// Plays requests, and one get more, behind which the others are complete.
fn play(address: &str, requests: &[Request]) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let mut line = || {
        let mut line = String::new();
        assert!(answers.read_line(&mut line).unwrap() > 0);
        line
    };
    for Request { key, size, writes } in requests {
        let mut store = *writes;
        if !writes {
            stream
                .write_all(format!("get {key}\r\n").as_bytes())
                .unwrap();
            store = line() == "END\r\n";
            if !store {
                // The value, and the end.
                line();
                line();
            }
        }
        if store {
            let value = "v".repeat(*size);
            stream
                .write_all(format!("set {key} 0 60 {size}\r\n{value}\r\n").as_bytes())
                .unwrap();
            assert_eq!(line(), "STORED\r\n");
        }
    }
    stream.write_all(b"get last\r\n").unwrap();
    assert_eq!(line(), "END\r\n");
}

/// A recording that has begun.
struct Recording {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Recording {
    fn begin(target: &str, path: &Path, more: &[&str]) -> Self {
        Self::begin_by(Command::new(LAB), target, path, more)
    }

    /// By a shell that says this first.
    fn begin_after(words: &str, target: &str, path: &Path, more: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{words}; exec \"$0\" \"$@\""), LAB]);
        Self::begin_by(shell, target, path, more)
    }

    fn begin_by(mut command: Command, target: &str, path: &Path, more: &[&str]) -> Self {
        let mut child = command
            .args(["record", target, "-o"])
            .arg(path)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.contains("recording from"), "{line}");
        Self { child, stderr }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Its exit code, and what it said.
    fn end(mut self) -> (Option<i32>, String) {
        let status = wait_until("the recording's end", || self.child.try_wait().unwrap());
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        let stdout = self.child.stdout.as_mut().unwrap();
        stdout.read_to_string(&mut said).unwrap();
        (status.code(), said)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // One that has ended is not there any more.
        let _ = self.child.kill();
    }
}

/// What policies make of a trace.
fn hits(path: &Path) -> Vec<(String, u64, String)> {
    let output = Command::new(LAB)
        .arg("hit-ratio")
        .arg(path)
        .args([
            "--sizes",
            "2000,10000",
            "--policies",
            "lru,s3-fifo,optimum",
            "--json",
            "-",
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let rows = lines.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        let policy = format!("{} {}", row["name"], row["size_typed"]);
        (
            policy,
            row["requests"].as_u64().unwrap(),
            row["hit_ratio"].to_string(),
        )
    });
    rows.collect()
}

/// Records the sequence, and compares with itself written down.
fn round_trip(address: &str, folder: &Path) {
    let requests = sequence();
    let gets = requests.iter().filter(|request| !request.writes).count();
    let direct = folder.join("direct.txt");
    let line = |Request { key, size, writes }: &Request| {
        format!("{key} {size}{}\n", if *writes { " set" } else { "" })
    };
    fs::write(&direct, requests.iter().map(line).collect::<String>()).unwrap();
    let expected = hits(&direct);
    assert_eq!(expected.len(), 6);
    for (name, keys) in [
        ("trace.zst", "a"),
        ("trace.csv.gz", "b"),
        ("trace.txt", "c"),
    ] {
        let path = folder.join(name);
        let limit = gets.to_string();
        let recording = Recording::begin(address, &path, &["--limit", &limit]);
        // Other keys than before: the server is empty for them.
        let own: Vec<_> = requests
            .iter()
            .map(|request| Request {
                key: format!("{keys}{}", request.key),
                ..request.clone()
            })
            .collect();
        play(address, &own);
        let (code, said) = recording.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.contains(&format!("{gets} gets and 300 other sets")),
            "{said}"
        );
        assert!(
            !said.contains("without a size") && !said.contains("missing"),
            "{said}"
        );
        assert_eq!(hits(&path), expected, "{name}");
    }
    let text = fs::read_to_string(folder.join("trace.txt")).unwrap();
    assert!(text.starts_with("conce-0 "), "{text}");
    assert!(
        text.contains("\ncoften:1 "),
        "keys are written as clients have them"
    );
}

#[test]
fn a_recorded_sequence_hits_as_the_sequence_itself() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start("-p 0 -l 127.0.0.1 -t 1 -m 64");
    round_trip(running.address(), folder.path());
}

/// memcached makes the lines, if it is installed.
#[test]
fn memcached_is_recorded_too() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let started = Command::new("memcached")
        .args([
            "-l",
            "127.0.0.1",
            "-u",
            "nobody",
            "-t",
            "1",
            "-p",
            &port.to_string(),
            // Kilobytes for lines that are not sent yet: on a busy machine it drops what does not fit, and the recording would
            // wait for that for ever.
            "-o",
            "worker_logbuf_size=8192,watcher_logbuf_size=8192",
        ])
        .spawn();
    let Ok(mut memcached) = started else { return };
    let address = format!("127.0.0.1:{port}");
    wait_until("memcached", || TcpStream::connect(&address).ok());
    let folder = tempfile::tempdir().unwrap();
    let played = std::panic::catch_unwind(|| round_trip(&address, folder.path()));
    memcached.kill().unwrap();
    memcached.wait().unwrap();
    played.unwrap();
}

/// Plays a short sequence, until its lines are sent.
fn play_some(running: &Running) {
    let sent = || {
        let stats = running.ask("stats\r\nquit\r\n");
        let sent = stats
            .lines()
            .find_map(|line| line.strip_prefix("STAT log_watcher_sent "));
        sent?.trim().parse::<u64>().ok()
    };
    let before = sent().unwrap_or(0);
    play(running.address(), &sequence()[..50]);
    // Each of them has a line of its own at least.
    wait_until("the lines are sent", || {
        (sent()? > before + 50).then_some(())
    });
}

/// A recording of a short sequence, whose lines have come.
fn under_way(running: &Running, path: &Path) -> Recording {
    let recording = Recording::begin(running.address(), path, &["--for", "1000"]);
    play_some(running);
    recording
}

#[test]
fn a_recording_that_is_ended_is_kept() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let running = Running::start("-p 0 -l 127.0.0.1 -t 1 -m 64");
        let recording = under_way(&running, &path);
        assert!(!path.exists(), "a file under way has no name yet");
        recording.signal(signal);
        let (code, said) = recording.end();
        assert_eq!(code, Some(0), "{signal}: {said}");
        let rows = fs::read_to_string(&path).unwrap();
        assert!(rows.lines().count() > 0, "{signal}: {said}");
    }
}

/// As `nohup` begins it.
#[test]
fn a_recording_whose_terminal_may_close_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let running = Running::start("-p 0 -l 127.0.0.1 -t 1 -m 64");
    let recording = Recording::begin_after("trap '' HUP", running.address(), &path, &[]);
    recording.signal(Signal::SIGHUP);
    play_some(&running);
    recording.signal(Signal::SIGINT);
    let (code, said) = recording.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(fs::metadata(&path).unwrap().len() > 0, "{said}");
}

/// Class of fault: work that goes on for nobody.
#[test]
fn a_recording_that_nobody_reads_any_more_ends() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("trace");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let address = watched(|mut stream| {
        stream.write_all(b"OK\r\n").unwrap();
        let line = |number: u64| {
            format!(
                "ts=1.0 gid={number} type=item_get key={number:0240} status=found cfd=9 size=5\n"
            )
        };
        let mut numbers = 1..;
        while stream
            .write_all(line(numbers.next().unwrap()).as_bytes())
            .is_ok()
        {}
    });
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || drop(fs::File::open(pipe).unwrap())
    });
    let recording = Recording::begin(&address, &pipe, &[]);
    reader.join().unwrap();
    let (code, said) = recording.end();
    assert_eq!(code, Some(0), "{said}");
}

/// Class of fault: a wait for a peer in which nobody looks for the end.
#[test]
fn a_server_that_never_agrees_is_left_at_once() {
    for signal in [Signal::SIGINT, Signal::SIGHUP] {
        let folder = tempfile::tempdir().unwrap();
        let (asked, asking) = mpsc::channel();
        let address = watched(move |stream| asked.send(stream).unwrap());
        let mut command = Command::new(LAB);
        command.args(["record", &address, "-o"]);
        command.arg(folder.path().join("trace"));
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        // It neither answers nor closes.
        let _stream = asking.recv_timeout(PATIENCE).unwrap();
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said, "nuthatch-lab: interrupted\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// The same class.
#[test]
fn a_line_that_comes_byte_by_byte_does_not_hold_up_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let address = watched(|mut stream| {
        stream.write_all(b"OK\r\n").unwrap();
        while stream.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
    });
    let path = folder.path().join("trace");
    let (code, said) = Recording::begin(&address, &path, &["--for", "0.1"]).end();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_server_that_ends_leaves_what_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let mut running = Running::start("-p 0 -l 127.0.0.1 -t 1 -m 64");
    let recording = under_way(&running, &path);
    running.child.kill().unwrap();
    let (code, said) = recording.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the server closed the connection"), "{said}");
    assert_eq!(
        fs::read_to_string(&path).unwrap().lines().count(),
        51,
        "{said}"
    );
}

/// A server that does this with who watches it.
fn watched(serve: impl FnOnce(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut asked = String::new();
        BufReader::new(&stream).read_line(&mut asked).unwrap();
        assert_eq!(asked, "watch fetchers mutations evictions deletions\r\n");
        serve(stream);
    });
    address
}

/// A server that sends these lines to who watches it, and closes.
fn writing(lines: String) -> String {
    watched(move |mut stream| stream.write_all(lines.as_bytes()).unwrap())
}

/// Class of fault: a sum of numbers that a peer chooses.
#[test]
fn no_number_of_a_server_ends_a_recording() {
    let most = u64::MAX;
    let line = |gid: u64, rest: &str| {
        format!(
            "ts={most}.{most} gid={gid} cfd={most} type={rest} size={}\n",
            u32::MAX
        )
    };
    let mut lines = format!("OK\r\n{}", format!("skipped={most}\n").repeat(3));
    // The get that missed is given its size by another connection's set, and taken back.
    lines += &line(1, "item_get key=a status=not_found");
    lines +=
        "ts=1.0 gid=2 cfd=2 type=item_store key=a status=stored ttl=18446744073709551615 size=3\n";
    lines += &line(3, "deleted key=a");
    lines += &line(most - 1, "item_get key=b status=found");
    lines += &line(most, "item_get key=b status=found");
    let folder = tempfile::tempdir().unwrap();
    for (name, rows) in [
        ("trace", "b 4294967295\n"),
        ("trace.csv", "0.000000,get,b,4294967295,0\n"),
    ] {
        let path = folder.path().join(name);
        let (code, said) = Recording::begin(&writing(lines.clone()), &path, &[]).end();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("the server closed the connection"), "{said}");
        assert!(
            said.contains(&format!("{most} lines are missing")),
            "{said}"
        );
        assert!(
            fs::read_to_string(&path)
                .unwrap()
                .ends_with(&rows.repeat(2)),
            "{said}"
        );
    }
}

/// A limit for the sizes of files takes the place of a full disk.
#[test]
fn a_full_disk_keeps_what_had_room() {
    const GETS: u64 = 100_000;
    const ROOM: u64 = 64 << 10;
    let key = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let get = |number: u64| {
        format!(
            "ts=1.0 gid={number} type=item_get key={:x} status=found cfd=9 size=5\n",
            key(number)
        )
    };
    let lines = format!("OK\r\n{}", (0..GETS).map(get).collect::<String>());
    let begin = |blocks: u64, path: &Path| {
        let words = format!("trap '' XFSZ; ulimit -f {blocks}");
        Recording::begin_after(&words, &writing(lines.clone()), path, &[])
    };
    let folder = tempfile::tempdir().unwrap();
    for name in ["trace", "trace.csv.gz", "trace.zst"] {
        let path = folder.path().join(name);
        let (code, said) = begin(ROOM / 512, &path).end();
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains("File too large (os error 27); it ends with a whole row"),
            "{said}"
        );
        let missing = said
            .split(" and misses ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let missing: u64 = missing.unwrap().parse().unwrap();
        let length = fs::metadata(&path).unwrap().len();
        assert!((ROOM - 512..=ROOM).contains(&length), "{name}: {length}");
        for (policy, requests, _) in hits(&path) {
            assert_eq!(requests, GETS - missing, "{name} {policy}: {said}");
        }
    }
    let rows = fs::read_to_string(folder.path().join("trace")).unwrap();
    let expected: String = (0..GETS)
        .map(|number| format!("{:x} 5\n", key(number)))
        .collect();
    assert!(rows.ends_with('\n') && expected.starts_with(&rows));
    let kept = fs::read_dir(folder.path()).unwrap().count();
    let (code, said) = begin(0, &folder.path().join("none.csv")).end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("none.csv: File too large"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), kept);
}

/// A change begins with a look-up, which is no request, whether or not it changes anything.
#[test]
fn a_change_of_a_missing_key_leaves_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let running = Running::start("-p 0 -l 127.0.0.1 -t 1 -m 64");
    let recording = Recording::begin(running.address(), &path, &["--limit", "1"]);
    running.ask(
        "incr zz 1\r\ndecr zz 1\r\nma zz\r\nappend zz 0 0 1\r\na\r\nreplace zz 0 0 1\r\na\r\n\
         get one\r\nget more\r\nquit\r\n",
    );
    let (code, said) = recording.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n", "{said}");
}

#[test]
fn what_is_missing_is_told_and_a_size_is_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    // Out of order, as several threads of a server write.
    let get = |number: u64| {
        let (gid, key) = (number ^ 1, number ^ 1);
        format!("ts=1.0 gid={gid} type=item_get key=k{key} status=found clsid=1 cfd=9 size=5\n")
    };
    let lines: String = (0..100_000).map(get).collect();
    let address = writing(format!("OK\r\n{lines}skipped=12\n"));
    let (code, said) = Recording::begin(&address, &path, &[]).end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("12 lines are missing"), "{said}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("k0 5\nk1 5\nk2 5\n"), "{}", &text[..100]);
    assert_eq!(text.lines().count(), 100_000);

    let address = writing(format!("OK\r\n{lines}"));
    let (code, said) = Recording::begin(&address, &path, &["--max-size", "1000"]).end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("--max-size 1000"), "{said}");
    assert!(fs::metadata(&path).unwrap().len() >= 1000);
}

fn record(words: &[&str], path: &PathBuf) -> Output {
    let mut command = Command::new(LAB);
    command.arg("record").args(words).arg("-o").arg(path);
    command.output().unwrap()
}

#[test]
fn what_cannot_be_meant_or_watched_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let unwatched = Running::start("-p 0 -l 127.0.0.1 -t 1 -m 64 -W");
    for (words, code, why) in [
        (&["nobody"][..], 2, "nobody: not a HOST:PORT"),
        (&["localhost:1"], 1, "localhost:1: "),
        (&["localhost:1", "--for", "0"], 2, "--for"),
        (&["localhost:1", "--limit", "0"], 2, "--limit"),
        (&["localhost:1", "--max-size", "x"], 2, "is not a size"),
        (&[unwatched.address()], 1, "does not let itself be watched"),
    ] {
        let output = record(words, &path);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(said.contains(why), "{words:?}: {said}");
        assert!(!path.exists(), "{words:?}");
    }
    let output = record(&["localhost:1"], &folder.path().join("trace.lis"));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let output = record(&["localhost:1"], &folder.path().join("no/such/folder"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
