//! Behaviour that other programs and tools rely on: names, pipes, small memory limits, foreign servers.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

mod running;

use running::*;

/// The output of the program when it is called by this name.
fn called(name: &str, line: &str) -> String {
    let mut command = Command::new(nuthatch());
    let output = command.arg0(name).args(line.split_whitespace()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn lines_of_the_log_are_objects_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let flags = format!(
        "-l 127.0.0.1 -p 0 -t 1 -vv --log-format json --log {}",
        log.display()
    );
    let running = Running::start(&flags);
    assert_eq!(running.ask(SET_AND_GET), SET_AND_GOT);
    assert_eq!(running.end(Signal::SIGTERM).0, Some(0));
    let lines = std::fs::read_to_string(&log).unwrap();
    assert!(
        lines.contains(r#""level":"DEBUG""#) && lines.contains(r#""message":"<"#),
        "{lines}"
    );
    for line in lines.lines() {
        assert!(
            line.starts_with(r#"{"timestamp":""#) && line.ends_with('}'),
            "{line}"
        );
    }
    if !Path::new(JOURNALD).exists() {
        let output = run("--log journald -p 0");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(JOURNALD), "{said}");
    }
    let output = run("--log-format json --log journald -p 0");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--log-format json: journald"), "{said}");
}

/// The socket of systemd's log, on machines with systemd.
const JOURNALD: &str = "/run/systemd/journal/socket";

/// True if all lines are objects.
fn are_objects(lines: &str) -> bool {
    lines
        .lines()
        .all(|line| line.starts_with(r#"{"timestamp":""#) && line.ends_with('}'))
}

#[test]
fn standard_error_has_objects_alone_if_the_log_has() {
    let mut command = Command::new(nuthatch());
    command.args("-l 127.0.0.1 -p 0 -t 1 --log-format json -o no_such=1".split_whitespace());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("engine cuckoo, ") {
        assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains("no_such=1") && are_objects(&said), "{said}");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    let output = run(&format!("-l {taken} -t 1 --log-format json"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("cannot listen at") && are_objects(&said),
        "{said}"
    );
}

#[test]
fn who_looks_for_a_memcached_finds_one() {
    let version = concat!(
        "memcached 1.6.45 (nuthatch ",
        env!("CARGO_PKG_VERSION"),
        ")"
    );
    for (name, option) in [
        ("memcached", ""),
        ("/usr/local/bin/memcached", ""),
        ("nuthatch", "--as-memcached"),
    ] {
        assert_eq!(
            called(name, &format!("{option} -V")),
            format!("{version}\n")
        );
        let help = called(name, &format!("-h {option}"));
        assert_eq!(help.lines().next(), Some(version), "{help}");
        assert!(help.contains("--memory-limit <NUM>"));
    }
    let own = concat!("nuthatch ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(called("/usr/bin/nuthatch", "-V"), own);
    let running = Running::start_with("-l 127.0.0.1 -p 0 -t 1 --as-memcached", |command| {
        command.arg0("memcached");
    });
    assert_eq!(running.ask(SET_AND_GET), SET_AND_GOT);
}

#[test]
fn the_license_is_printed_whole() {
    let license = include_str!("../../../../LICENSE");
    for flag in ["-i", "--license"] {
        assert_eq!(called("/usr/bin/memcached", flag), license);
    }
}

#[test]
fn what_is_missing_is_refused_with_a_sentence() {
    for (flags, sentence) in [
        (&["-Z", "--enable-ssl"][..], "-Z: needs -o ssl_chain_cert"),
        (&["-S", "--enable-sasl"], "-S: needs a file of names"),
        (
            &["-N 4", "--napi-ids=4"],
            "-N: connections are not given to threads",
        ),
        (&["-D #"], "-D: prefixes end at a colon"),
    ] {
        for flag in flags {
            let output = run(&format!("-m 64 {flag} -p 0"));
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{flag}: {said}");
            assert!(said.contains(sentence), "{flag}: {said}");
        }
    }
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1 -D : -W");
    assert_eq!(running.ask(SET_AND_GET), SET_AND_GOT);
    assert_eq!(running.stat("settings", "detail_enabled"), "yes");
}

#[test]
fn what_is_so_in_any_case_is_shown_so() {
    let line = "-l 127.0.0.1 -p 0 -t 1 -o slab_reassign,slab_automove,lru_crawler,lru_maintainer";
    let running = Running::start(line);
    assert!(!running.warnings.concat().contains("-o"));
    for (name, value) in [
        ("slab_reassign", "yes"),
        ("slab_automove", "1"),
        ("lru_crawler", "yes"),
        ("lru_maintainer_thread", "yes"),
        ("maxconns_fast", "yes"),
    ] {
        assert_eq!(running.stat("settings", name), value, "{name}");
    }
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1 -o slab_automove=0,no_lru_crawler");
    let warned = running.warnings.concat();
    for option in ["-o slab_automove=0: ", "-o no_lru_crawler: "] {
        assert!(warned.contains(option), "{warned}");
    }
}

#[test]
fn a_closed_pipe_ends_quietly() {
    for line in ["completions bash", "man", "-h", "-V"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let words = line.split_whitespace();
        let mut command = Command::new(nuthatch());
        let output = command.args(words).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(0), ""), "{line}");
    }
    // An error needs no reader either: its exit code stays the same.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(nuthatch());
    let status = command.args(["-t", "0"]).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn a_full_device_is_an_error_of_every_output() {
    for line in [
        "completions bash",
        "man",
        "-i",
        "-V",
        "-h",
        "--help",
        "help top",
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let mut command = Command::new(nuthatch());
        let command = command.args(line.split_whitespace()).stdout(full.unwrap());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(
            said.contains("standard output: No space left"),
            "{line}: {said}"
        );
    }
}

/// Class of fault: a password is thought to keep somebody out, and does not.
#[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
#[test]
fn that_memory_is_read_without_a_password_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:secret\n").unwrap();
    let shared = folder.path().join("shared");
    let line = format!("-l 127.0.0.1 -p 0 -t 1 -m 8 --shared {}", shared.display());
    let says = |line: &str| {
        Running::start(line)
            .warnings
            .concat()
            .contains("without a password")
    };
    assert!(says(&format!("{line} -Y {}", users.display())));
    assert!(!says(&line));
}
