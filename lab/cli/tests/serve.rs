//! Tests of `nuthatch-lab serve`: the server of `nuthatch` on every engine, with the switches that papers need.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output};

use clap::ValueEnum;
use nix::sys::signal::Signal;
use nuthatch_engines::EngineName;

#[path = "../../../crates/server/cli/tests/running/mod.rs"]
mod running;

use running::*;

/// Runs `nuthatch-lab serve` to its end.
fn serve(line: &str) -> Output {
    let mut command = Command::new(nuthatch_lab());
    let words = line.split_whitespace();
    command.arg("serve").args(words).output().unwrap()
}

#[test]
fn what_is_no_command_line_ends_with_2() {
    for (line, complaint) in [
        ("-t 0", "-t: 1 to"),
        ("--cpserver nowhere.invalid", "--cpserver nowhere.invalid: "),
        (
            "--partitions 8",
            "--partitions: only for cphash, cphash-single, lockhash",
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
        ("-Y users --cpserver 127.0.0.1", "-Y: CPServer's protocol"),
        (
            "--check -p 0 --engine cphash --partitions 1",
            "--partitions: ",
        ),
        (
            "--check -p 0 --engine lockhash --partitions 0",
            "--partitions: ",
        ),
        (
            "-l 127.0.0.1 -p 0 --engine cphash --partitions 1025",
            "--partitions: ",
        ),
        ("--check -p 0 --engine cphash --window 8193", "--window: "),
        (
            "--check -p 0 --engine cphash --look-ahead 65",
            "--look-ahead",
        ),
        (
            "--engine cphash --lock anderson",
            "--lock: only for lockhash",
        ),
        (
            "--engine lockhash --lock mutex",
            "possible values: spin, anderson",
        ),
        ("-l 127.0.0.1 -p 0 --engine lockhash -m 1 -I 1m", "-I: "),
    ] {
        let output = serve(line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(complaint), "{line}: {said}");
    }
}

/// Of a flag that is said twice, the last counts, as for `nuthatch`.
#[test]
fn the_last_word_counts() {
    let line = "-l 127.0.0.1 -p 0 -t 3 -t 1 --engine chained --engine lockhash -m 32 -m 48";
    let running = Running::start_in_lab(line);
    let says = "engine lockhash, 48 MiB, 1 threads";
    assert!(running.says.contains(says), "{}", running.says);
}

/// The same file as for `nuthatch`, with the keys of the laboratory; SIGHUP reads it again.
#[test]
fn a_file_says_the_same_as_flags_and_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nuthatch.toml");
    let text = "listen = \"127.0.0.1\"\nport = 0\nthreads = 1\nengine = \"cphash\"\npartitions = 8\n\
                cpserver = \"127.0.0.1:0\"\n";
    let write = |more: &str| fs::write(&file, format!("{text}{more}")).unwrap();
    write("");
    let line = format!("--config {}", file.display());
    let checked = serve(&format!("{line} --check"));
    assert_eq!(checked.stdout, b"the settings are fine\n", "{checked:?}");
    let running = Running::start_in_lab(&line);
    assert!(running.says.contains("engine cphash,"), "{}", running.says);
    assert_eq!(running.stat("settings", "partitions"), "8");
    let before = running.stat("settings", "verbosity");
    write("verbose = 1\nserver-threads = 1\npin = 0\n");
    running.signal(Signal::SIGHUP);
    while running.stat("settings", "verbosity") == before {
        std::thread::yield_now();
    }
    let (code, log) = running.end(Signal::SIGTERM);
    assert_eq!(code, Some(0));
    assert!(log.contains("SIGHUP: applied: verbose = 1"), "{log}");
    let waiting = "SIGHUP: needs a restart: pin, server-threads";
    assert!(log.contains(waiting), "{log}");
    write("engine = 1\n");
    let output = serve(&line);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(":7: "), "{said}");
}

/// Items outlive a change from one program to the other, by a restart's file, by a copy and by a handover.
#[test]
fn both_programs_read_what_the_other_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (items, copy, control) = (place("items"), place("copy"), place("control"));
    let got = "VALUE k 5 3\r\nabc\r\nEND\r\n";
    let ask = |running: &Running| running.ask("get k\r\nquit\r\n");
    let base = "-l 127.0.0.1 -p 0 -t 1";
    let paper = "--engine cphash --partitions 8";
    for (flags, next) in [
        (format!("-e {items}"), format!("-e {items}")),
        (format!("--save {copy}"), format!("--load {copy}")),
    ] {
        let first = Running::start(&format!("{base} {flags}"));
        assert_eq!(first.ask(SET_AND_GET), SET_AND_GOT);
        assert_eq!(first.end(Signal::SIGTERM).0, Some(0));
        let flags = format!("{flags} {next}");
        let second = Running::start_in_lab(&format!("{base} {paper} {flags}"));
        assert_eq!(ask(&second), got, "{flags}");
        assert_eq!(second.end(Signal::SIGTERM).0, Some(0));
        let third = Running::start(&format!("{base} {next}"));
        assert_eq!(ask(&third), got, "{flags}");
    }
    let first = Running::start(&format!("{base} --handover {control}"));
    assert_eq!(first.ask(SET_AND_GET), SET_AND_GOT);
    let second = Running::start_in_lab(&format!("{base} {paper} --handover {control}"));
    assert_eq!(ask(&second), got);
    let third = Running::start(&format!("{base} --handover {control}"));
    assert_eq!(ask(&third), got);
}

#[test]
fn every_engine_serves() {
    for engine in EngineName::value_variants() {
        let engine = engine.name();
        let running = Running::start_in_lab(&format!("--engine {engine} -p 0 -l 127.0.0.1 -t 1"));
        assert!(running.says.contains(&format!("engine {engine},")));
        assert_eq!(running.ask(SET_AND_GET), SET_AND_GOT);
    }
}

#[test]
fn what_the_engine_is_built_from_is_shown_and_felt() {
    for (line, shown) in [
        (
            "--engine cphash --partitions 3 --server-threads 2 --pin 0 --eviction random --window 512 --look-ahead false",
            &[
                "batch_max 1000",
                "partitions 3",
                "window 512",
                "look_ahead false",
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
            "--engine lockhash --partitions 8 --batch 77 --lock anderson",
            &[
                "batch_max 77",
                "partitions 8",
                "eviction lru",
                "lock anderson",
            ],
        ),
    ] {
        let running = Running::start_in_lab(&format!("-p 0 -l 127.0.0.1 -t 1 -m 64 {line}"));
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
    let running = Running::start_in_lab("-p 0 -l 127.0.0.1 -t 1 --engine lockhash -f 1.5");
    assert!(
        running
            .warnings
            .concat()
            .contains("-f: this engine has no size classes")
    );
}

#[test]
fn cpservers_clients_are_served_beside_memcacheds() {
    let running = Running::start_in_lab("-p 0 -l 127.0.0.1 -t 2 --cpserver 127.0.0.1:0");
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
}

#[test]
fn a_megabyte_is_enough_for_every_engine() {
    for engine in EngineName::value_variants() {
        let engine = engine.name();
        // Where each request is a message to a thread, many requests take long on a busy machine.
        let limits = match engine.starts_with("cphash") {
            true => &[1][..],
            false => &[1, 3, 8],
        };
        for &megabytes in limits {
            let line = format!("-l 127.0.0.1 -p 0 -t 1 -m {megabytes} --engine {engine}");
            let running = Running::start_in_lab(&line);
            let limit: u64 = megabytes << 20;
            let before = running.status("VmRSS:");
            // Twice as much as there is room for, of sizes that need several classes.
            let mut request = String::new();
            for number in 0..megabytes * 2000 {
                let size = 100 + number as usize * 7 % 1900;
                let value = "v".repeat(size);
                request += &format!("set k{number} 0 0 {size} noreply\r\n{value}\r\n");
            }
            let large = "x".repeat(100_000);
            request += &format!("set large 0 0 100000\r\n{large}\r\nget large\r\nquit\r\n");
            let got = running.ask(&request);
            let (stored, value) = got.split_once("\r\n").unwrap();
            assert_eq!(stored, "STORED", "{line}");
            assert!(value.contains(&large), "{line}: {} bytes", value.len());
            let number = |name: &str| -> u64 { running.stat("", name).parse().unwrap() };
            assert_eq!(number("limit_maxbytes"), limit);
            let (items, bytes) = (number("curr_items"), number("bytes"));
            // A mean item has 1050 bytes and some; not less than a third of the memory is used.
            assert!(bytes <= limit && bytes > limit / 3, "{line}: {bytes} bytes");
            assert!(items > megabytes * 300, "{line}: {items} items");
            assert!(number("evictions") > 0);
            // In kilobytes: resident memory grows by the limit, and by the pages and buffers around it.
            let grown = running.status("VmRSS:").saturating_sub(before);
            assert!(grown < (limit >> 10) + (16 << 10), "{line}: {grown} KiB");
            assert_eq!(running.end(Signal::SIGTERM).0, Some(0), "{line}");
        }
    }
}

#[test]
fn requests_of_cpservers_clients_are_logged() {
    let running = Running::start_in_lab("-l 127.0.0.1 -p 0 -t 1 -vvv --cpserver 127.0.0.1:0");
    let settings = running.ask("get a b\r\nstats settings\r\nquit\r\n");
    assert!(settings.contains("STAT verbosity 3\r\n"));
    let mut client = TcpStream::connect(running.cpserver_address()).unwrap();
    let insert = [&[1, 0, 0, 0, 4, 0, 0, 0], &9_u64.to_le_bytes()[..], b"seed"].concat();
    let lookup = [&[0; 8], &9_u64.to_le_bytes()[..]].concat();
    client.write_all(&[insert, lookup].concat()).unwrap();
    client.read_exact(&mut [0; 8]).unwrap();
    let (_, log) = running.end(Signal::SIGTERM);
    for line in [
        "a batch of 2 requests from 1 connections",
        " STAT verbosity 3",
        " INSERT 9 4",
        " LOOKUP 9",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
}
