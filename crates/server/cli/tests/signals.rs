//! Signals: which end a server, what is left behind, and what SIGHUP changes.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::signal::Signal;

mod running;

use running::*;

#[test]
fn nothing_is_left_behind_by_any_stop() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, pid) = (folder.path().join("socket"), folder.path().join("pid"));
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGUSR1,
        Signal::SIGQUIT,
        Signal::SIGXCPU,
        Signal::SIGPWR,
    ] {
        let line = format!("-t 1 -s {} -P {}", socket.display(), pid.display());
        let running = Running::start(&line);
        // These end nothing.
        for harmless in [
            Signal::SIGHUP,
            Signal::SIGPIPE,
            Signal::SIGUSR2,
            Signal::SIGXFSZ,
            Signal::SIGALRM,
            Signal::SIGVTALRM,
            Signal::SIGPROF,
            Signal::SIGIO,
            Signal::SIGSTKFLT,
            Signal::SIGTTIN,
            Signal::SIGTTOU,
        ] {
            running.signal(harmless);
            let stream = UnixStream::connect(&socket).unwrap();
            assert_eq!(talk(stream, SET_AND_GET), SET_AND_GOT);
        }
        assert!(pid.exists() && socket.exists());
        assert_eq!(running.end(signal).0, Some(0), "{signal}");
        assert!(!pid.exists() && !socket.exists(), "{signal}");
    }
}

/// Class of bug: a file of the start stays when a signal comes in the middle of it.
#[test]
fn nothing_is_left_behind_by_a_stop_during_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    for _ in 0..10 {
        let mut command = std::process::Command::new(nuthatch());
        command
            .args(["-l", "127.0.0.1", "-p", "0", "-t", "1", "-P"])
            .arg(&pid)
            .stderr(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        while !pid.exists() {
            assert_eq!(child.try_wait().unwrap(), None);
        }
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(child.id() as i32),
            Signal::SIGTERM,
        )
        .unwrap();
        assert!(child.wait().unwrap().success());
        assert!(!pid.exists());
    }
}

/// Those of real time have no names, and each ends a process by default.
#[test]
fn signals_without_a_meaning_end_nothing() {
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1");
    let status = fs::read_to_string(format!("/proc/{}/status", running.child.id())).unwrap();
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    let heeded = mask("SigIgn:") | mask("SigCgt:");
    // Faults of the program itself, two that nobody can heed, and those that end nothing or that a user stops it by.
    let not_ours = [
        Signal::SIGILL,
        Signal::SIGTRAP,
        Signal::SIGABRT,
        Signal::SIGBUS,
        Signal::SIGFPE,
        Signal::SIGSEGV,
        Signal::SIGSYS,
        Signal::SIGKILL,
        Signal::SIGSTOP,
        Signal::SIGTSTP,
        Signal::SIGCHLD,
        Signal::SIGCONT,
        Signal::SIGURG,
        Signal::SIGWINCH,
    ];
    let not_ours = not_ours.map(|signal| signal as u32);
    // 32 and 33 are the C library's own.
    let ends = (1..=64).filter(|number| !not_ours.contains(number) && ![32, 33].contains(number));
    let deadly: Vec<u32> = ends
        .filter(|number| heeded & 1 << (number - 1) == 0)
        .collect();
    assert_eq!(deadly, []);
}

/// Class of bug: a write beyond the limit of a file's size is a signal that ends the process.
#[test]
fn a_limit_of_the_size_of_files_is_as_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (log, copy, items) = (at("log"), at("copy"), at("items"));
    let mut command = std::process::Command::new("sh");
    let words = format!("-l 127.0.0.1 -p 0 -t 1 -vv --log {log} --save {copy} -e {items}");
    // Two blocks of 512 or 1024 bytes.
    let limited = format!("ulimit -f 2 && exec {} {words}", nuthatch().display());
    command.args(["-c", &limited]);
    let running = Running::spawn(command);
    let value = "v".repeat(5_000);
    let stored = running.ask(&format!("set k 0 0 5000\r\n{value}\r\nquit\r\n"));
    assert_eq!(stored, "STORED\r\n");
    running.signal(Signal::SIGUSR2);
    // The copy fails.
    running.wait_for_stat("saves_failed");
    // So does the log, which counts what it loses.
    running.wait_for_stat("log_lines_lost");
    assert!(fs::metadata(&log).unwrap().len() <= 2048);
    // The file of a restart cannot be written: the stop says so by its code, and is no crash.
    assert!(running.end(Signal::SIGTERM).0.is_some());
    assert!(!Path::new(&copy).exists());
}

#[test]
fn what_cannot_begin_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let output = run(&format!(
        "-t 1 -s {} -P /no/such/folder/pid",
        socket.display()
    ));
    assert_eq!(output.status.code(), Some(2));
    assert!(!socket.exists());
}

/// Waits until a log has a whole line with one of these texts behind what was `heard` of it. Returns what is new.
fn news(log: &Path, heard: &mut usize, ends: [&str; 2]) -> String {
    wait_until(ends[0], || {
        let said = fs::read_to_string(log).unwrap();
        let news = said[*heard..].to_owned();
        let is_whole = ends.iter().any(|end| news.contains(end)) && news.ends_with('\n');
        is_whole.then(|| {
            *heard = said.len();
            news
        })
    })
}

#[test]
fn sighup_reads_the_file_again() {
    let folder = tempfile::tempdir().unwrap();
    let [config, log] = ["config", "log"].map(|name| folder.path().join(name));
    let fixed = "listen = \"127.0.0.1\"\nport = 0\n";
    fs::write(&config, format!("{fixed}threads = 1\nmemory-limit = 64\n")).unwrap();
    // Settings of the command line stay, whatever the file says later.
    let line = format!(
        "--config {} --log {} -R 77",
        config.display(),
        log.display()
    );
    let running = Running::start(&line);
    let mut heard = 0;
    let mut hang_up = |text: &str| {
        fs::write(&config, format!("{fixed}{text}")).unwrap();
        running.signal(Signal::SIGHUP);
        // The last line that a SIGHUP logs.
        news(&log, &mut heard, ["restart: ", "nothing was changed"])
    };
    let news = hang_up(
        "threads = 3\nmemory-limit = 80\nconn-limit = 9\ndisable-flush-all = true\n\
         enable-shutdown = true\ndisable-dumping = true\ndisable-cas = true\nverbose = 1\n\
         max-reqs-per-event = 5\nextended = \"idle_timeout=100,hashpower=20,login_guesses=7,disable_admin=shutdown,conns_per_address=99,ssl_min_version=3,udp_reply_max=64\"\n",
    );
    let applied = "applied: -o conns_per_address = 99, -o disable_admin = \"shutdown\", -o idle_timeout = 100, -o login_guesses = 7, -o udp_reply_max = 64, conn-limit = 9, disable-cas = true, \
                   disable-dumping = true, disable-flush-all = true, enable-shutdown = true, \
                   memory-limit = 83886080, verbose = 1";
    assert!(news.contains(applied), "{news}");
    assert!(
        news.contains("needs a restart: -o hashpower, -o ssl_min_version, threads"),
        "{news}"
    );
    for (name, value) in [
        ("maxbytes", "83886080"),
        ("maxconns", "9"),
        ("reqs_per_event", "77"),
        ("verbosity", "1"),
        ("idle_timeout", "100"),
        ("shutdown_command", "yes"),
        ("disable_admin", "shutdown"),
        ("conns_per_address", "99"),
        ("flush_enabled", "no"),
        ("dump_enabled", "no"),
        ("cas_enabled", "no"),
        ("num_threads", "1"),
    ] {
        assert_eq!(running.stat("settings", name), value, "{name}");
    }
    assert_eq!(
        running.ask("flush_all\r\nquit\r\n"),
        "CLIENT_ERROR flush_all not allowed\r\n"
    );
    // An invalid file changes nothing.
    for wrong in ["no_such = 1\n", "conn-limit = 0\n", "threads = [\n"] {
        let news = hang_up(wrong);
        assert_eq!(news.lines().count(), 1, "{news}");
        assert!(news.contains("nothing was changed"), "{news}");
    }
    assert_eq!(running.stat("settings", "maxconns"), "9");
    // Back to the defaults; a setting that the engine refuses stays as it was.
    let news = hang_up("threads = 2\nmemory-limit = 1\n");
    assert!(news.contains("memory-limit stays: "), "{news}");
    assert!(news.contains("conn-limit as by default"), "{news}");
    assert!(news.contains("-o idle_timeout as by default"), "{news}");
    assert!(news.contains("needs a restart: threads"), "{news}");
    assert_eq!(running.stat("settings", "flush_enabled"), "yes");
    assert_eq!(running.stat("settings", "maxconns"), "1024");
    assert_eq!(running.stat("settings", "idle_timeout"), "0");
    assert_eq!(running.stat("settings", "maxbytes"), "83886080");
    // An empty value means the default too, where a value can be empty.
    hang_up("threads = 3\nextended = \"idle_timeout=100\"\n");
    assert_eq!(running.stat("settings", "idle_timeout"), "100");
    hang_up("threads = 3\nextended = \"\"\n");
    assert_eq!(running.stat("settings", "idle_timeout"), "0");
    let news = hang_up("threads = 3\nextended = \"idle_timeout=\"\n");
    assert!(
        news.contains("nothing was changed: -o idle_timeout"),
        "{news}"
    );
}

/// Compares the file with what runs, not with the file of before.
#[test]
fn sighup_brings_back_what_a_command_changed_and_warns_as_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let [config, log] = ["config", "log"].map(|name| folder.path().join(name));
    let fixed = "listen = \"127.0.0.1\"\nport = 0\nthreads = 1\n";
    fs::write(&config, format!("{fixed}memory-limit = 32\n")).unwrap();
    let line = format!("--config {} --log {}", config.display(), log.display());
    let running = Running::start(&line);
    let mut heard = 0;
    let mut hang_up = || {
        running.signal(Signal::SIGHUP);
        // The last line, if nothing needs a restart.
        news(&log, &mut heard, ["applied: ", "no setting has changed"])
    };
    assert_eq!(
        running.ask("cache_memlimit 40\r\nverbosity 1\r\nquit\r\n"),
        "OK\r\nOK\r\n"
    );
    let news = hang_up();
    assert!(
        news.contains("applied: memory-limit = 33554432, verbose = 0"),
        "{news}"
    );
    assert_eq!(running.stat("settings", "maxbytes"), "33554432");
    assert_eq!(running.stat("settings", "verbosity"), "0");
    assert!(hang_up().contains("no setting has changed"));
    // The same for a limit that the file does not name.
    fs::write(
        &config,
        format!("{fixed}extended = \"bogus=1,idle_timeout=1\"\n"),
    )
    .unwrap();
    let news = hang_up();
    let warning = "-o bogus=1: no such option here; it has no effect";
    assert!(news.contains(warning), "{news}");
    assert!(
        news.contains("applied: -o idle_timeout = 1, memory-limit as by default"),
        "{news}"
    );
    assert_eq!(running.stat("settings", "maxbytes"), (64 << 20).to_string());
    running.ask("cache_memlimit 40\r\nquit\r\n");
    assert!(hang_up().contains("applied: memory-limit as by default"));
}

/// Class of bug: a worker that sleeps without a timeout does not learn of a new one.
#[test]
fn an_idle_timeout_reaches_who_is_asleep() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let file = "listen = \"127.0.0.1\"\nport = 0\nthreads = 1\n";
    fs::write(&config, file).unwrap();
    let running = Running::start(&format!("--config {}", config.display()));
    let mut idle = TcpStream::connect(running.address()).unwrap();
    idle.set_read_timeout(Some(PATIENCE)).unwrap();
    idle.write_all(b"version\r\n").unwrap();
    assert_ne!(idle.read(&mut [0; 100]).unwrap(), 0);
    fs::write(&config, format!("{file}extended = \"idle_timeout=1\"\n")).unwrap();
    running.signal(Signal::SIGHUP);
    assert_eq!(idle.read(&mut [0; 100]).unwrap(), 0);
    assert_eq!(running.stat("", "idle_kicks"), "1");
}
