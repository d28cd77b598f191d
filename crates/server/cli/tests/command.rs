//! The binary from outside: what it prints, how it serves, how it ends.

use std::fs;
use std::io::{BufRead, Read};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;

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

/// The flags that the laboratory's server has, and this one has not.
const OF_LAB: [&str; 6] = [
    "engine",
    "eviction",
    "partitions",
    "server-threads",
    "pin",
    "cpserver",
];

#[test]
fn what_only_a_paper_needs_is_not_offered() {
    for line in [
        "--help",
        "-h",
        "serve --help",
        "completions bash",
        "completions zsh",
        "completions fish",
        "man",
        "man serve",
    ] {
        // A manual page has a backslash in front of each hyphen.
        let said = stdout(line).replace('\\', "");
        for flag in OF_LAB {
            assert!(!said.contains(&format!("--{flag}")), "{line}: {flag}");
            assert!(!said.contains(&format!("-l {flag} ")), "{line}: {flag}");
        }
        for word in ["cphash", "lockhash", "chained", "CPServer"] {
            assert!(!said.contains(word), "{line}: {word}");
        }
    }
}

/// Class of bug: a command line or a file that was valid, refused as if it were misspelled.
#[test]
fn a_setting_of_the_laboratory_says_where_it_went() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nuthatch.toml");
    let refused = |line: &str, begin: String| {
        let output = run(line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(&begin), "{line}: {said}");
        assert!(said.contains("`nuthatch-lab serve`"), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{line}: {said}");
    };
    for flag in OF_LAB {
        for line in [
            format!("-p 0 --{flag} 1"),
            format!("-p 0 --{flag}=1 --check"),
            format!("serve --{flag} 1"),
        ] {
            refused(&line, format!("--{flag}: "));
        }
        fs::write(&file, format!("port = 0\n{flag} = 1\n")).unwrap();
        let begin = format!("{}:2: {flag}: ", file.display());
        refused(&format!("--config {}", file.display()), begin);
    }
}

#[test]
fn a_small_stack_is_enough() {
    // Both limits are set, as a service manager does: nobody but root could raise them again.
    for kib in [64, 256, 8192] {
        for arguments in [
            "-V",
            "-h",
            "--check -l 127.0.0.1 -p 0",
            "serve --no-such-flag",
        ] {
            let program = env!("CARGO_BIN_EXE_nuthatch");
            let line = format!("ulimit -s {kib} && exec {program} {arguments}");
            let ended = Command::new("sh").args(["-c", &line]).output().unwrap();
            let code = if arguments.contains("no-such") { 2 } else { 0 };
            assert_eq!(ended.status.code(), Some(code), "{line}: {ended:?}");
        }
    }
}

#[test]
fn the_start_line_names_the_index_and_its_rule() {
    for (flags, says) in [
        (
            "-m 64",
            "index of 32768 slots (room for one item in 4 KiB of memory), ",
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
        ("-U 65536", "-U: -1 to 65535"),
        ("-B udp", "-B: ascii, binary, auto or any"),
        ("-m many", "is not a size"),
        (
            "-m 99999999999999",
            "`99999999999999` is too large a number",
        ),
        ("--batch 0", "--batch: 1 to"),
        ("--config /no/such/file", "/no/such/file"),
        // Whether the name is unknown, or no resolver answers, the machine decides.
        ("serve -l nowhere.invalid", "-l nowhere.invalid: "),
        ("-l [::1", "-l [::1: brackets are as in"),
        ("-Y users -U 11211", "-U: a datagram has no room"),
        ("-l mtls:127.0.0.1", "-l mtls:127.0.0.1: needs TLS (-Z)"),
        ("-o ssl_ciphers=HIGH", "-o ssl_ciphers: there is no `HIGH`"),
        ("-n 0", "-n: at least 1"),
        ("-o slab_automove=9", "-o slab_automove: from 0 to 2"),
        ("bench engine", "unrecognized subcommand"),
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
}

#[test]
fn values_that_are_refused_end_with_2() {
    for line in ["-l 127.0.0.1 -p 0 -m 512k", "-l 127.0.0.1 -p 0 -m 1 -I 1m"] {
        let output = run(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
    }
}

/// The codes and the words of a start and of its check.
#[test]
fn a_check_and_a_start_call_the_same_settings_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    fs::write(place("text"), "no items\n").unwrap();
    let (text, is_folder) = (place("text"), folder.path().display());
    let mut lines = vec![
        "-Y /none/x".to_owned(),
        "-Z -o ssl_chain_cert=/none/x,ssl_key=/none/y".to_owned(),
        "-P /none/x.pid".to_owned(),
        format!("-P {is_folder}"),
        "--log /none/x".to_owned(),
        format!("--log {is_folder}"),
        "--load /none".to_owned(),
        format!("--load {text}"),
        "--save /none/x".to_owned(),
        "-e /none/x".to_owned(),
        format!("-e {is_folder}"),
        format!("-s {is_folder}"),
        format!("-s {text}"),
        format!("--handover {text}"),
        "-l 192.0.2.1".to_owned(),
        "-l 127.0.0.1:7 --metrics 127.0.0.1:7".to_owned(),
        "-o unix_peers=nosuchuser".to_owned(),
        "-l 999.1.1.1".to_owned(),
        "--metrics x:y".to_owned(),
        "-m 1 -I 1m".to_owned(),
    ];
    // It has no effect for another user.
    if nix::unistd::geteuid().is_root() {
        lines.push("-u nosuch".to_owned());
    }
    for line in &lines {
        let [checked, started] = ["--check", ""].map(|check| {
            let output = run(&format!("-l 127.0.0.1 -p 0 -t 1 {line} {check}"));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // A start as root warns of that first.
            let error = said.lines().last().unwrap_or_default().to_owned();
            (output.status.code(), error)
        });
        assert_eq!(checked, started, "{line}");
        assert_eq!(checked.0, Some(2), "{line}: {checked:?}");
    }
    // A limit that this machine has not makes no setting invalid.
    for check in ["--check", ""] {
        let output = run(&format!("-l 127.0.0.1 -p 0 -m 100000g {check}"));
        assert_eq!(output.status.code(), Some(1), "{check}: {output:?}");
    }
}

/// A check reads no more than a start, which goes on without a copy that it replaces, or that is older than its items.
#[test]
fn a_check_lets_pass_what_a_start_does_without() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let fine = |line: &str| {
        let line = format!("-l 127.0.0.1 -p 0 -t 1 {line}");
        assert_eq!(
            stdout(&format!("{line} --check")),
            "the settings are fine\n"
        );
        let running = Running::start(&line);
        assert_eq!(running.end(Signal::SIGTERM).0, Some(0), "{line}");
    };
    fs::write(place("copy"), "no items\n").unwrap();
    fine(&format!("--load {0} --save {0}", place("copy")));
    fine(&format!("-e {}", place("items")));
    fine(&format!("-e {} --load /none/x", place("items")));
    // These are written in place.
    fine("-P /dev/null --log /dev/null");
}

/// What neither root nor this machine can have. The server does with less, and shows that.
#[test]
fn what_the_system_does_not_give_is_a_warning_and_shown_as_it_is() {
    let kernel = |name: &str| -> u64 {
        let text = fs::read_to_string(format!("/proc/{name}")).unwrap();
        text.trim().parse().unwrap()
    };
    let backlog = kernel("sys/net/core/somaxconn");
    let machine = fs::read_to_string("/proc/meminfo").unwrap();
    let machine = machine.split_whitespace().nth(1).unwrap();
    let twice = machine.parse::<u64>().unwrap() / 512;
    let mut line = "-l 127.0.0.1 -p 0 -t 1 -b 4000000000 -c 2000000000".to_owned();
    let mut warned = vec![
        format!("-b 4000000000: the system allows {backlog}"),
        "-c 2000000000: the process may have".to_owned(),
    ];
    // A system that accounts for all memory that is promised gives no more than it has.
    match kernel("sys/vm/overcommit_memory") {
        2 => {
            let refused = run(&format!("-l 127.0.0.1 -p 0 -t 1 -m {twice}"));
            assert_eq!(refused.status.code(), Some(1));
            let said = String::from_utf8_lossy(&refused.stderr);
            assert!(
                said.contains("does not give so much address space"),
                "{said}"
            );
        }
        _ => {
            line += &format!(" -m {twice}");
            warned.push(format!("-m {twice}: a full server"));
        }
    }
    let checked = run(&format!("{line} --check"));
    let checked = String::from_utf8(checked.stderr).unwrap();
    let running = Running::start(&line);
    let started = running.warnings.concat();
    for words in &warned {
        assert!(checked.contains(words), "{words}: {checked}");
        assert!(started.contains(words), "{words}: {started}");
    }
    assert_eq!(running.stat("settings", "tcp_backlog"), backlog.to_string());
    let limits = fs::read_to_string(format!("/proc/{}/limits", running.child.id())).unwrap();
    let files = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let files: u64 = files
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap();
    for (kind, name) in [("", "max_connections"), ("settings", "maxconns")] {
        let shown: u64 = running.stat(kind, name).parse().unwrap();
        assert!(shown < files && shown > 0, "{name}: {shown} of {files}");
    }
    // Nor is there a word where there is enough.
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1 -m 1 -b 1 -c 10");
    let started = running.warnings.concat();
    assert!(
        !started.contains("system allows") && !started.contains("full server"),
        "{started}"
    );
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
        let (code, _) = running.end(signal);
        assert_eq!(code, Some(0));
    }
}

#[test]
fn what_it_says_to_type_next_works() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    fs::write(&users, "ann:secret\n").unwrap();
    let (users, socket) = (users.display(), folder.path().join("s"));
    for place in [
        "-l 127.0.0.1 -p 0".to_owned(),
        format!("-s {}", socket.display()),
    ] {
        for passwords in [String::new(), format!("-Y {users}")] {
            let mut running = Running::start(&format!("{place} -t 1 {passwords}"));
            let mut line = String::new();
            running.stderr.read_line(&mut line).unwrap();
            let said = line.strip_prefix("try: ").unwrap();
            let (command, _) = said.rsplit_once("   (Ctrl-C ends the server)").unwrap();
            let command = command.replace("NAME PASSWORD", "ann secret");
            let typed = Command::new("sh").args(["-c", &command]).output().unwrap();
            let answer = String::from_utf8_lossy(&typed.stdout).replace('\r', "");
            assert!(
                answer.ends_with("STORED\nVALUE seed 0 5\nacorn\nEND\n"),
                "{command}: {typed:?}"
            );
        }
    }
    // There is no text command to suggest.
    let mut binary = Running::start("-l 127.0.0.1 -p 0 -t 1 -B binary");
    binary.signal(Signal::SIGTERM);
    let mut rest = String::new();
    binary.stderr.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("try:"), "{rest}");
}

#[test]
fn verbosity_turns_the_log_up_and_down() {
    let running = Running::start("-p 0 -l 127.0.0.1 -t 1");
    let connections = |said: &str| said.matches("connected").count();
    // Requests before, between and after: only the one between is logged.
    running.ask("version\r\nverbosity 2\r\nquit\r\n");
    running.ask("verbosity 0\r\nquit\r\n");
    running.ask("version\r\nquit\r\n");
    let (code, rest) = running.end(Signal::SIGTERM);
    assert_eq!((code, connections(&rest)), (Some(0), 1), "{rest}");
}

#[test]
fn redis_clients_are_served_beside_memcacheds() {
    let running = Running::start("-p 0 -l 127.0.0.1 -t 2 --redis-port -1 -B any");
    let set = "*3\r\n$3\r\nSET\r\n$4\r\nseed\r\n$5\r\nacorn\r\n*1\r\n$4\r\nQUIT\r\n";
    for address in [running.redis_address(), running.address()] {
        let said = talk(TcpStream::connect(address).unwrap(), set);
        assert_eq!(said, "+OK\r\n+OK\r\n");
    }
    let typed = talk(
        TcpStream::connect(running.redis_address()).unwrap(),
        "get seed\r\nquit\r\n",
    );
    assert_eq!(typed, "$5\r\nacorn\r\n+OK\r\n");
    let got = running.ask("get seed\r\nquit\r\n");
    assert_eq!(got, "VALUE seed 0 5\r\nacorn\r\nEND\r\n");
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
    let line = format!("-l 127.0.0.1 -p 0 --redis-port 0 -t 1 -P {}", pid.display());
    let running = Running::start_with(&line, |command| {
        command.env("MEMCACHED_PORT_FILENAME", &ports);
    });
    let port = running.address().rsplit(':').next().unwrap();
    let told = fs::read_to_string(&ports).unwrap();
    let (first, second) = told.split_once('\n').unwrap();
    assert_eq!(first, format!("TCP INET: {port}"));
    let port = second.trim_end().strip_prefix("REDIS INET: ").unwrap();
    assert!(running.says.contains(&format!("Redis at 127.0.0.1:{port}")));
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
        // In kilobytes: memory that is only reserved is not touched.
        assert!(running.status("VmRSS:") < 200_000);
    }
}

/// Who names administrators believes that the others may not administrate.
#[test]
fn administrators_where_everybody_may_administrate_are_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    std::fs::write(&users, "ann:secret\n:admin:ann\n").unwrap();
    let checked = |more: &str| {
        let output = run(&format!("--check -p 0 -Y {} {more}", users.display()));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let warning = ":admin: has no effect without -o disable_admin";
    assert!(checked("").contains(warning));
    assert!(!checked("-o disable_admin=shutdown").contains(warning));
    let output = run("--check -p 0 -o disable_admin=reboot");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("-o disable_admin: `reboot` is none of verbosity:"),
        "{said}"
    );
}
