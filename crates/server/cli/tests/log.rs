//! Tests of the log: its contents, its destinations, and that a log that cannot be written blocks nothing.

use std::fs;
use std::io::{BufRead, BufReader, PipeWriter, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use tempfile::TempDir;

mod running;

use running::*;

/// Waits until a file has a text.
fn wait_for(path: &Path, text: &str) -> String {
    wait_until(text, || {
        let log = fs::read_to_string(path).unwrap_or_default();
        log.contains(text).then_some(log)
    })
}

/// The requests and replies of the connection, as logged, without the log's own words before each.
fn conversation(log: &str) -> Vec<String> {
    let line = log
        .lines()
        .find(|line| line.contains("new client connected"));
    let line = line.unwrap_or_else(|| panic!("nobody connected: {log}"));
    let fd = line.split('<').nth(1).unwrap().split(' ').next().unwrap();
    let signs = [format!("<{fd} "), format!(">{fd} ")];
    let said = |line: &str| {
        let at = signs
            .iter()
            .filter_map(|sign| line.find(sign.as_str()))
            .min()?;
        Some(line[at..].replacen(fd, "", 1))
    };
    log.lines().filter_map(said).collect()
}

#[test]
fn commands_and_replies_are_in_the_log() {
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1 -vv");
    let large = "v".repeat(20_000);
    let mut stream = TcpStream::connect(running.address()).unwrap();
    // In pieces, so that a value arrives by itself: nothing of it is taken for a command.
    let request = format!("set a 7 0 3\r\nabc\r\nget a b\r\nset big 0 0 20000\r\n{large}");
    stream.write_all(request.as_bytes()).unwrap();
    running.wait_for_stat("cmd_get");
    let rest = "\r\nget big a\r\nset q 0 0 2 noreply\r\n<9\r\nmg a v\r\nms m 4\r\n>9 x\r\nbad \x1b[1m\r\n\
                version\r\nget a\r\nquit\r\n";
    stream.write_all(rest.as_bytes()).unwrap();
    let mut replies = String::new();
    stream.read_to_string(&mut replies).unwrap();
    let (code, log) = running.end(Signal::SIGTERM);
    assert_eq!(code, Some(0));
    let mut said = conversation(&log);
    assert!(
        said.remove(0)
            .starts_with("< new client connected from tcp:127.0.0.1:")
    );
    assert_eq!(said.pop().unwrap(), "< connection closed.");
    let sorted = |mut lines: Vec<String>, sign: char| {
        lines.retain(|line| line.starts_with(sign));
        lines
    };
    assert_eq!(
        sorted(said.clone(), '<'),
        [
            "< set a 7 0 3",
            "< get a b",
            "< set big 0 0 20000",
            "< get big a",
            "< set q 0 0 2 noreply",
            "< mg a v",
            "< ms m 4",
            r"< bad \u{1b}[1m",
            "< version",
            "< get a",
            "< quit",
        ]
    );
    assert_eq!(
        sorted(said.clone(), '>'),
        [
            "> STORED",
            "> VALUE a 7 3",
            "> END",
            "> STORED",
            "> VALUE big 0 20000",
            "> VALUE a 7 3",
            "> END",
            "> VA 3",
            "> HD",
            "> ERROR",
            "> VERSION 1.6.45",
            "> VALUE a 7 3",
            "> END",
        ]
    );
    // A request stands before its reply.
    let place = |line: &str| said.iter().position(|said| said == line).unwrap();
    assert!(place("< get a b") < place("> VALUE a 7 3"));
    assert!(place("> VALUE big 0 20000") < place("< version"));
    assert!(!log.contains("a batch of"), "{log}");
}

#[test]
fn more_is_said_with_more() {
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1 -vvv");
    let settings = running.ask("get a b\r\nstats settings\r\nquit\r\n");
    assert!(settings.contains("STAT verbosity 3\r\n"));
    let (_, log) = running.end(Signal::SIGTERM);
    for line in [
        "a batch of 2 requests from 1 connections",
        " STAT verbosity 3",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
}

/// Class of bug: a log that cannot be written ends the thread that writes it.
#[test]
fn nobody_need_read_standard_error() {
    let mut running = Running::start("-l 127.0.0.1 -p 0 -t 1 -v");
    let (reader, writer) = std::io::pipe().unwrap();
    running.stderr = std::io::BufReader::new(std::process::ChildStderr::from(
        std::os::fd::OwnedFd::from(reader),
    ));
    drop(writer);
    for _ in 0..3 {
        let replies = running.ask("verbosity 3\r\nversion\r\nquit\r\n");
        assert!(replies.starts_with("OK\r\nVERSION "), "{replies}");
    }
    assert_eq!(running.end(Signal::SIGTERM).0, Some(0));
    // The line that says what runs needs no reader either.
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    serves_and_ends(&[], &socket, writer);
}

/// Checks that a server with this standard error and these words answers at a socket, and ends at a signal.
fn serves_and_ends(words: &[&str], socket: &Path, stderr: PipeWriter) {
    let mut server = Command::new(nuthatch())
        .args(words)
        .args(["-t", "1", "-s"])
        .arg(socket)
        .stderr(stderr)
        .spawn()
        .unwrap();
    let stream = wait_until("a server", || {
        assert!(server.try_wait().unwrap().is_none(), "it ended");
        UnixStream::connect(socket).ok()
    });
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(talk(stream, SET_AND_GET), SET_AND_GOT);
    kill(Pid::from_raw(server.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

/// Class of bug: a supervisor that hangs and does not read what its child writes stops the child.
#[test]
fn a_pipe_that_nobody_reads_keeps_nobody() {
    let mut running = Running::start("-l 127.0.0.1 -p 0 -t 1 -vv");
    let mut client = BufReader::new(TcpStream::connect(running.address()).unwrap());
    let mut ask = |sent: &str, answers: usize| {
        client.get_mut().write_all(sent.as_bytes()).unwrap();
        let mut got = Vec::new();
        for _ in 0..answers {
            client.read_until(b'\n', &mut got).unwrap();
        }
        String::from_utf8(got).unwrap()
    };
    // The pipe takes 64 KiB, and 2 MiB wait.
    let asked = "mg nobody v\r\n".repeat(100);
    for _ in 0..400 {
        assert_eq!(ask(&asked, 100), "EN\r\n".repeat(100));
    }
    let lost: u64 = running.stat("", "log_lines_lost").parse().unwrap();
    assert!(lost > 0);
    // Other threads that log are not blocked either.
    running.signal(Signal::SIGHUP);
    running.signal(Signal::SIGUSR2);
    assert!(
        running
            .ask("verbosity 0\r\nversion\r\nquit\r\n")
            .contains("VERSION")
    );
    // When the reader goes on, it gets the number of lost lines, behind the lines that had waited, and then all lines
    // since.
    let mut read = || {
        let mut line = String::new();
        running.stderr.read_line(&mut line).unwrap();
        line
    };
    let mut waited = 0;
    let told = loop {
        match read() {
            line if line.contains("lines of the log were lost") => break line,
            _ => waited += 1,
        }
    };
    assert!(waited > 5_000, "{waited}");
    let told: u64 = told.trim().rsplit('=').next().unwrap().parse().unwrap();
    assert!(told >= lost, "{told} {lost}");
    assert_eq!(running.stat("", "log_lines_lost"), told.to_string());
    let (code, rest) = running.end(Signal::SIGTERM);
    assert_eq!(code, Some(0), "{rest}");
}

#[test]
fn a_pipe_that_nobody_reads_keeps_no_end() {
    for wanted in ["-vv", "-vv --log-format json"] {
        let (reader, writer) = std::io::pipe().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        // It says what runs, warns and ends with a pipe that is full from the start.
        fcntl(&writer, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
        (&writer).write_all(&[b'x'; 4096]).unwrap();
        let words: Vec<&str> = wanted.split(' ').collect();
        serves_and_ends(&words, &socket, writer);
        drop(reader);
    }
}

/// When the process has ended, all that was logged is in the log, in its order.
#[test]
fn nothing_is_lost_at_the_end() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    let options = "-l 127.0.0.1 -p 0 -t 1 -vv --log-format json --log";
    let running = Running::start(&format!("{options} {}", log.display()));
    let asked: String = (0..3_000).map(|n| format!("get {n}\r\n")).collect();
    running.ask(&format!("{asked}quit\r\n"));
    assert_eq!(running.stat("", "log_lines_lost"), "0");
    assert_eq!(running.end(Signal::SIGTERM).0, Some(0));
    let log = fs::read_to_string(&log).unwrap();
    let gets = log.lines().filter_map(|line| {
        let (_, message) = line.split_once("\"message\":\"<")?;
        let (_, key) = message.split_once(" get ")?;
        key.split('"').next()
    });
    let wanted: Vec<String> = (0..3_000).map(|n| n.to_string()).collect();
    assert_eq!(gets.collect::<Vec<_>>(), wanted);
    // Numbers stay numbers.
    assert!(
        log.contains("\"message\":\"stopping\",\"signal\":15"),
        "{log}"
    );
}

/// Class of bug: a client fills the disk by what the log tells of its requests.
#[test]
fn no_client_fills_the_log() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    let line = format!("-l 127.0.0.1 -p 0 -t 1 --log {}", log.display());
    let running = Running::start(&line);
    let refused = "cache_memlimit 900000000 noreply\r\n".repeat(5_000);
    assert_eq!(running.ask(&format!("{refused}quit\r\n")), "");
    // A level that a client asks for: each of these would be two lines or more.
    let asked = "get a\r\n".repeat(50_000);
    let answers = running.ask(&format!("verbosity 3\r\n{asked}quit\r\n"));
    assert_eq!(answers, format!("OK\r\n{}", "END\r\n".repeat(50_000)));
    assert_eq!(running.end(Signal::SIGTERM).0, Some(0));
    let log = fs::read_to_string(&log).unwrap();
    assert!(log.len() < 2 << 20, "{} bytes", log.len());
    let of_kind = log
        .lines()
        .filter(|line| line.contains("cache_memlimit error"));
    assert_eq!(of_kind.count(), 10, "{log}");
    for left_out in [
        "seconds or more: cache_memlimit count=4990",
        "by the verbosity that a client sets",
    ] {
        assert!(log.contains(left_out), "{left_out}: {}", log.len());
    }
}

#[test]
fn a_file_is_written_and_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (log, old) = (folder.path().join("log"), folder.path().join("log.1"));
    fs::write(&log, "what was there\n").unwrap();
    let line = format!(
        "-l 127.0.0.1 -p 0 -t 1 -vv -o no_such=1 --log {}",
        log.display()
    );
    let running = Running::start(&line);
    // On standard error, and in the log.
    assert!(running.warnings.concat().contains("no_such=1"));
    running.ask("get before\r\nquit\r\n");
    let before = wait_for(&log, "connection closed.");
    for text in [
        "what was there\n",
        "no_such=1",
        ": engine cuckoo,",
        " get before",
    ] {
        assert!(before.contains(text), "{text}: {before}");
    }
    fs::rename(&log, &old).unwrap();
    running.ask("get between\r\nquit\r\n");
    wait_for(&old, " get between");
    running.signal(Signal::SIGHUP);
    wait_for(&log, "SIGHUP");
    running.ask("get after\r\nquit\r\n");
    let after = wait_for(&log, " get after");
    // Keys are not for everybody.
    let mode = fs::metadata(&log).unwrap().permissions().mode();
    assert_eq!(mode & 0o137, 0, "{mode:o}");
    assert!(!after.contains(" get between"));
    assert!(!fs::read_to_string(&old).unwrap().contains(" get after"));
    let (code, rest) = running.end(Signal::SIGTERM);
    assert_eq!(code, Some(0));
    assert!(!rest.contains(" get "), "{rest}");
}

/// A server that is ended if its test fails.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Class of bug: the path of a descriptor is opened anew, which another user may not, or a name makes a file.
#[test]
fn descriptors_are_used_as_they_are() {
    let folder = TempDir::new().unwrap();
    let is_root = nix::unistd::geteuid().is_root();
    for (name, more) in [
        ("stdout", ""),
        ("-", "-d"),
        ("/dev/stdout", "-u nobody"),
        ("/dev/fd/1", ""),
        ("/proc/self/fd/1", "-d"),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        // What another user may not open.
        nix::sys::stat::fchmod(&writer, Mode::S_IRUSR).unwrap();
        let more = if is_root || more == "-d" { more } else { "" };
        let pid = folder.path().join("pid");
        let server = Command::new(nuthatch())
            .current_dir(folder.path())
            .args(["-l", "127.0.0.1", "-p", "0", "-t", "1", "-v", "--log", name])
            .args(more.split_whitespace())
            .args((more == "-d").then(|| format!("-P{}", pid.display())))
            .stdout(writer)
            .stderr(std::process::Stdio::null())
            .spawn();
        let mut server = Ended(server.unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(reader).lines().map(Result::unwrap);
            lines.for_each(|line| tell.send(line).unwrap_or_default());
        });
        let wait_for = |text: &str| {
            let next = || told.recv_timeout(PATIENCE);
            while !next()
                .unwrap_or_else(|_| panic!("{name}: no {text}"))
                .contains(text)
            {}
        };
        wait_for(": engine cuckoo,");
        let id = match more {
            "-d" => {
                assert!(server.0.wait().unwrap().success());
                fs::read_to_string(&pid).unwrap().trim().parse().unwrap()
            }
            _ => server.0.id() as i32,
        };
        // It has no file to open again, and goes on.
        kill(Pid::from_raw(id), Signal::SIGHUP).unwrap();
        wait_for("SIGHUP");
        kill(Pid::from_raw(id), Signal::SIGTERM).unwrap();
        wait_for("stopping");
        // To its end: the daemon is gone then.
        while told.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Disconnected) {}
        server.0.wait().unwrap();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let output = run("-l 127.0.0.1 -p 0 --log /dev/fd/77");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("--log: descriptor 77: "), "{said}");
}

/// Frameworks swallow the errors of their cache: what is always refused must be seen somewhere else.
#[test]
fn the_first_refusal_of_a_kind_is_logged_and_all_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let line = format!(
        "-l 127.0.0.1 -p 0 -t 1 --redis-port 0 -I 8k --log {}",
        log.display()
    );
    let running = Running::start(&line);
    let limits = "for Redis' clients keys of 8155 bytes and items of 8 KiB (-I) at most";
    assert!(running.says.contains(limits), "{}", running.says);
    let request = |words: &[&str]| {
        let words = words.iter();
        let words: Vec<_> = words
            .map(|word| format!("${}\r\n{word}\r\n", word.len()))
            .collect();
        format!("*{}\r\n{}", words.len(), words.concat())
    };
    let (key, value) = ("k".repeat(8156), "v".repeat(2_000_000));
    let said = [
        request(&["GET", &key]),
        request(&["SET", &key, "v"]),
        request(&["MGET", "a", &key]),
        request(&["DEL", &key]),
        request(&["MSET", &key, "v"]),
        request(&["MSETNX", &key, "v"]),
        request(&["WATCH", &key]),
        request(&["EVAL", "return redis.call('get', KEYS[1])", "1", &key]),
        request(&["SET", "k", &value]),
        request(&["MSET", "k", &value]),
        request(&["APPEND", "k", &value]),
        request(&["SETRANGE", "k", "2000000", "v"]),
        request(&["INFO", "stats"]),
        request(&["QUIT"]),
    ];
    let stream = TcpStream::connect(running.redis_address()).unwrap();
    let answers = talk(stream, &said.concat());
    assert_eq!(
        answers.matches("longer than 8155 bytes").count(),
        7,
        "{answers}"
    );
    assert_eq!(answers.matches("larger than this cache's limit").count(), 4);
    for (name, count) in [("key_too_long", 8), ("store_too_large", 4)] {
        assert_eq!(running.stat("", name), count.to_string());
        assert!(
            answers.contains(&format!("\r\n{name}:{count}\r\n")),
            "{answers}"
        );
    }
    wait_for(&log, "key of more than 8155 bytes was refused");
    let logged = wait_for(&log, "an item has 8192 bytes at most");
    assert_eq!(logged.matches("was refused").count(), 2, "{logged}");
}

#[test]
fn a_log_that_cannot_be_is_an_error() {
    let output = run("-l 127.0.0.1 -p 0 --log /no/such/folder/log");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("--log /no/such/folder/log: there is no such folder"),
        "{said}"
    );
}

/// In a folder that others may write to, they may lead the log to a file of this user's.
#[test]
fn a_link_of_another_user_is_no_log() {
    let folder = TempDir::new().unwrap();
    let [victim, link] = ["victim", "link"].map(|name| folder.path().join(name));
    fs::write(&victim, "keep").unwrap();
    symlink(&victim, &link).unwrap();
    let server = format!("-l 127.0.0.1 -p 0 --log {}", link.display());
    assert!(run(&format!("{server} --check")).status.success());
    // Root alone gives links away.
    if lchown(&link, Some(65534), None).is_err() {
        return;
    }
    for server in [format!("{server} --check"), server] {
        let output = run(&server);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr);
        let words = "is a link that the user 65534 has made";
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(fs::read_to_string(victim).unwrap(), "keep");
}

/// Folders that a server sees as /dev and /run, if the system allows mount namespaces.
struct View {
    folder: TempDir,
}

impl View {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("dev")).unwrap();
        fs::create_dir_all(folder.path().join("run/systemd/journal")).unwrap();
        fs::write(folder.path().join("dev/null"), "").unwrap();
        let view = Self { folder };
        view.command("true")
            .status()
            .unwrap()
            .success()
            .then_some(view)
    }

    fn command(&self, program: &str) -> Command {
        let path = self.folder.path().display();
        let script = format!(
            "mount --bind /dev/null {path}/dev/null && mount --rbind {path}/dev /dev && \
             mount --bind {path}/run /run && exec {program}"
        );
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script]);
        command
    }

    fn socket(&self, name: &str) -> UnixDatagram {
        let socket = UnixDatagram::bind(self.folder.path().join(name)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }
}

/// The next datagram that has this text.
fn datagram(socket: &UnixDatagram, text: &str) -> String {
    let mut bytes = [0; 4096];
    loop {
        let length = socket.recv(&mut bytes).unwrap();
        let datagram = String::from_utf8_lossy(&bytes[..length]).into_owned();
        if datagram.contains(text) {
            return datagram;
        }
    }
}

/// A pipe without a reader would block the thread that opens it: the one that handles signals, and then no signal would
/// end the server.
#[test]
fn a_log_that_has_become_a_pipe_is_told_and_stops_nothing() {
    let folder = TempDir::new().unwrap();
    let [path, old] = ["log", "old"].map(|name| folder.path().join(name));
    let line = format!("-l 127.0.0.1 -p 0 -t 1 --log {}", path.display());
    let running = Running::start(&line);
    fs::rename(&path, &old).unwrap();
    mkfifo(&path, Mode::S_IRWXU).unwrap();
    running.signal(Signal::SIGHUP);
    wait_for(&old, "the old one is still written");
    assert_eq!(running.end(Signal::SIGTERM).0, Some(0));
    // A start does not wait either.
    let output = run(&line);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("--log"),
        "{said}"
    );
}

#[test]
fn the_systems_logs_are_written() {
    let Some(view) = View::new() else {
        println!("not tried: no namespaces of mounts for this user");
        return;
    };
    for (name, missing) in [("syslog", "/dev/log"), ("journald", "journald")] {
        let line = format!("-l 127.0.0.1 -p 0 -t 1 --log {name}");
        let output = view
            .command(&format!("{} {line}", nuthatch().display()))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("--log {name}: ")) && said.contains(missing),
            "{said}"
        );
    }
    let sockets = [
        ("syslog", view.socket("dev/log")),
        ("journald", view.socket("run/systemd/journal/socket")),
    ];
    for (name, socket) in sockets {
        let line = format!("-l 127.0.0.1 -p 0 -t 1 -vv -o no_such=1 --log {name}");
        let running = Running::spawn(view.command(&format!("{} {line}", nuthatch().display())));
        let warning = datagram(&socket, "no_such=1");
        running.ask("get k\r\nquit\r\n");
        let command = datagram(&socket, " get k");
        let (priority, detail) = match name {
            // The facility daemon is 3, times 8.
            "syslog" => ("<28>", "<31>"),
            // A length of 8 bytes stands before a field.
            _ => (
                "PRIORITY\n\x01\0\0\0\0\0\0\x004\n",
                "PRIORITY\n\x01\0\0\0\0\0\0\x006\n",
            ),
        };
        assert!(warning.contains(priority), "{warning}");
        assert!(command.contains(detail), "{command}");
        assert!(warning.contains("nuthatch"), "{warning}");
        // No thread waits for these logs either: a socket takes few datagrams without a reader.
        let replies = running.ask(&format!("{}quit\r\n", "get k\r\n".repeat(1_000)));
        assert_eq!(replies, "END\r\n".repeat(1_000));
        assert_eq!(running.end(Signal::SIGTERM).0, Some(0));
    }
}
