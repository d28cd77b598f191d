//! The cases, and the roles that their processes play.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use crate::server::Stores;
use crate::{databases, hostile, reader, ring, server, stepped};

/// Gets of a reader that ends by itself.
const GETS: u64 = 300_000;

pub fn main() {
    let mut arguments = env::args().skip(1);
    let (role, path) = (arguments.next(), arguments.next().map(PathBuf::from));
    match (role.as_deref(), path.as_deref()) {
        (Some("serve nothing"), Some(path)) => server::serve(path, Stores::Nothing),
        (Some("serve once"), Some(path)) => server::serve(path, Stores::Once),
        (Some("serve always"), Some(path)) => server::serve(path, Stores::Always),
        (Some("serve inherited"), Some(path)) => server::serve(path, Stores::Inherited),
        (Some("read"), Some(path)) => reader::read(path, GETS),
        (Some("read until the end"), Some(path)) => reader::read(path, u64::MAX),
        (Some("intrude"), Some(path)) => println!("{}", server::intrude(path)),
        (Some("fork"), Some(path)) => reader::fork(path),
        (Some("stranger"), Some(path)) => reader::stranger(path),
        (Some("guest"), Some(path)) => reader::guest(path),
        (Some("outlive"), Some(path)) => reader::outlive(path),
        (Some("databases"), Some(path)) => databases::change(path),
        (Some("ring"), Some(path)) => ring::commands(path),
        (Some("write by the ring"), Some(path)) => ring::write_on(path),
        (Some("take a round"), Some(path)) => stepped::round(path),
        (Some("lie in the ring"), Some(path)) => ring::lie(path, turns()),
        _ => all(),
    }
}

/// Turns of hostile clients: a few, or many in a long run.
fn turns() -> usize {
    match env::var_os("NUTHATCH_SOAK") {
        Some(_) => 20_000,
        None => 300,
    }
}

fn all() {
    let cases: [(&str, fn()); 17] = [
        (
            "readers_find_whole_values_while_the_server_changes_all",
            churn,
        ),
        (
            "a_killed_server_is_noticed_and_nothing_wrong_is_read",
            killed,
        ),
        ("a_server_that_ends_is_noticed", ended),
        ("a_stopped_server_does_not_stop_its_readers", stopped),
        ("the_next_server_is_read_after_a_restart", restarted),
        ("the_next_server_is_read_after_a_handover", handed_over),
        ("a_second_server_is_refused_the_socket", intruded),
        ("a_child_has_no_connection", forked),
        ("strangers_are_refused_and_guests_cannot_write", strangers),
        ("hostile_readers_do_no_harm", hostile_readers),
        ("database_0_is_read_whichever_namespace_it_has", changing),
        ("all_commands_go_by_the_ring", commands),
        ("who_leaves_the_socket_keeps_the_ring", left),
        (
            "clients_killed_while_they_write_by_the_ring_do_no_harm",
            writers_killed,
        ),
        (
            "a_client_killed_at_any_of_its_instructions_does_no_harm",
            stepped_and_killed,
        ),
        ("a_killed_server_is_noticed_at_the_ring", ring_of_the_dead),
        ("hostile_clients_of_the_ring_do_no_harm", hostile_rings),
    ];
    for (name, case) in cases {
        case();
        println!("test {name} ... ok");
    }
}

/// A process in a role.
struct Process {
    child: Child,
    says: BufReader<ChildStdout>,
    hears: Option<ChildStdin>,
}

impl Process {
    fn start(role: &str, path: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .arg(role)
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        let hears = child.stdin.take();
        Self { child, says, hears }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn expect(mut self, words: &str) -> Self {
        assert_eq!(self.line(), words);
        self
    }

    /// Its last line, after which it ends well.
    fn last_line(mut self) -> String {
        let line = self.line();
        assert!(self.child.wait().unwrap().success());
        line
    }

    /// Ends a server in order.
    fn end(mut self) {
        drop(self.hears.take());
        assert!(self.child.wait().unwrap().success());
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // In a case that fails; otherwise it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder, and the path of a socket in it that every user can reach.
fn place() -> (TempDir, PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), all).unwrap();
    let path = folder.path().join("shared");
    (folder, path)
}

/// A server that stores `how`, and its socket.
fn server(how: &str) -> (TempDir, PathBuf, Process) {
    let (folder, path) = place();
    let server = serve(how, &path);
    (folder, path, server)
}

fn serve(how: &str, path: &Path) -> Process {
    Process::start(&format!("serve {how}"), path).expect("ready")
}

fn readers(path: &Path, role: &str) -> [Process; 3] {
    let started = [(); 3].map(|()| Process::start(role, path));
    started.map(|reader| reader.expect("connected"))
}

/// The hits in a reader's last line, which begins with how it ended.
fn hits(line: &str, ended: &str) -> u64 {
    let rest = line.strip_prefix(ended).unwrap_or_else(|| panic!("{line}"));
    let mut words = rest.split_ascii_whitespace();
    assert_eq!(words.next(), Some("hits"), "{line}");
    words.next().unwrap().parse().unwrap()
}

fn churn() {
    let (_folder, path, server) = server("always");
    for reader in readers(&path, "read") {
        assert!(hits(&reader.last_line(), "None") > 100);
    }
    server.end();
}

fn changing() {
    let (_folder, path, server) = server("nothing");
    assert_eq!(Process::start("databases", &path).last_line(), "done");
    server.end();
}

fn killed() {
    for _ in 0..5 {
        let (_folder, path, mut server) = server("always");
        let readers = readers(&path, "read until the end");
        server.signal(libc::SIGKILL);
        server.child.wait().unwrap();
        for reader in readers {
            hits(&reader.last_line(), "Some(Ended)");
        }
    }
}

fn ended() {
    let (_folder, path, server) = server("always");
    let readers = readers(&path, "read until the end");
    server.end();
    for reader in readers {
        hits(&reader.last_line(), "Some(Ended)");
    }
    assert!(!path.exists());
}

fn stopped() {
    let (_folder, path, server) = server("once");
    let readers = readers(&path, "read");
    server.signal(libc::SIGSTOP);
    for reader in readers {
        assert!(hits(&reader.last_line(), "None") > 100);
    }
    server.signal(libc::SIGCONT);
    server.end();
}

fn restarted() {
    let (_folder, path, mut server) = server("once");
    let mut reader = Process::start("outlive", &path).expect("connected");
    server.signal(libc::SIGKILL);
    server.child.wait().unwrap();
    let next = serve("once", &path);
    writeln!(reader.hears.as_ref().unwrap(), "now").unwrap();
    assert_eq!(reader.line(), "done");
    assert!(reader.child.wait().unwrap().success());
    next.end();
}

fn handed_over() {
    let (_folder, path, mut server) = server("once");
    let mut reader = Process::start("outlive", &path).expect("connected");
    let next = serve("inherited", &path);
    assert!(server.child.wait().unwrap().success());
    writeln!(reader.hears.as_ref().unwrap(), "now").unwrap();
    assert_eq!(reader.line(), "done");
    assert!(reader.child.wait().unwrap().success());
    next.end();
}

/// The kind of fault: who starts a second server by mistake takes the readers of the first one.
fn intruded() {
    let (_folder, path, server) = server("once");
    let error = Process::start("intrude", &path).last_line();
    assert!(error.starts_with("--shared"), "{error}");
    assert!(error.ends_with("another server listens there"), "{error}");
    assert!(
        hits(
            &Process::start("read", &path)
                .expect("connected")
                .last_line(),
            "None"
        ) > 100
    );
    server.end();
    assert!(!path.exists());
}

fn forked() {
    let (_folder, path, server) = server("once");
    assert_eq!(Process::start("fork", &path).last_line(), "done");
    server.end();
}

fn strangers() {
    // SAFETY: a call without arguments.
    if unsafe { libc::geteuid() } != 0 {
        println!("only root can become another user: not tried");
        return;
    }
    let (_folder, path, server) = server("once");
    for role in ["stranger", "guest"] {
        assert_eq!(Process::start(role, &path).last_line(), "done", "{role}");
    }
    server.end();
}

fn hostile_readers() {
    let (_folder, path, server) = server("always");
    hostile::talk(&path);
    hostile::attack(&path);
    let reader = Process::start("read", &path).expect("connected");
    assert!(hits(&reader.last_line(), "None") > 100);
    hostile::crowd(&path);
    server.end();
}

fn commands() {
    let (_folder, path, server) = server("once");
    assert_eq!(Process::start("ring", &path).last_line(), "done");
    server.end();
}

/// The kind of fault: a connection that is over already when the server looks at it again takes its ring along.
fn left() {
    let (_folder, path, server) = server("once");
    for _ in 0..10 {
        let mut client = ring::retry(|| ring::Client::of_who_left(&path));
        client.expect(b"set left 0 0 1\r\n0\r\n", b"STORED\r\n");
    }
    server.end();
}

fn writers_killed() {
    let (_folder, path, server) = server("once");
    for turn in 0..30 {
        let mut writer = Process::start("write by the ring", &path).expect("connected");
        std::thread::sleep(std::time::Duration::from_micros(turn * 300));
        writer.signal(libc::SIGKILL);
        writer.child.wait().unwrap();
        // It may have to leave before the next comes in; this one waits for that.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(Process::start("ring", &path).last_line(), "done");
    server.end();
}

/// A sample of the instructions of a round: a few, or many in a long run.
fn stepped_and_killed() {
    let (_folder, path, server) = server("once");
    let mut witness = ring::Client::connect(&path).unwrap();
    let samples = env::var_os("NUTHATCH_SOAK").map_or(6, |_| 100);
    let round = |steps| {
        let mut client = Process::start("take a round", &path).expect("connected");
        let taken = stepped::step(client.child.id(), steps);
        client.signal(libc::SIGKILL);
        let ended = client.child.wait().unwrap();
        assert!(taken == steps || ended.success());
        taken
    };
    // How many instructions a round has: waits make it differ from one to the next.
    let length = round(u64::MAX);
    for sample in 0..samples {
        round(length * sample / samples);
        stepped::another(&mut witness);
    }
    server.end();
}

fn ring_of_the_dead() {
    let (_folder, path, mut server) = server("once");
    let writer = Process::start("write by the ring", &path).expect("connected");
    server.signal(libc::SIGKILL);
    server.child.wait().unwrap();
    assert_eq!(writer.last_line(), "ended");
}

fn hostile_rings() {
    let (_folder, path, server) = server("always");
    let mut reader = Process::start("read", &path).expect("connected");
    assert_eq!(Process::start("lie in the ring", &path).last_line(), "done");
    assert!(hits(&reader.line(), "None") > 100);
    reader.child.wait().unwrap();
    server.end();
}
