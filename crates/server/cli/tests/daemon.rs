//! Running in the background: the parent's exit code and messages tell whether the daemon serves.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

mod running;

use running::*;

/// A daemon, ended by the process id that it has written.
struct Daemon(Pid);

impl Daemon {
    /// Starts one that writes its process id there. When this returns its parent has exited.
    fn start(line: &str, pid: &Path) -> (Self, String) {
        let output = run(&format!("-d -P {} {line}", pid.display()));
        assert!(output.status.success(), "{output:?}");
        let id = fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        (
            Self(Pid::from_raw(id)),
            String::from_utf8(output.stderr).unwrap(),
        )
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGTERM);
        wait_until("the end of a daemon", || {
            (kill(self.0, None) == Err(Errno::ESRCH) || is_dead(self.0)).then_some(())
        });
    }
}

/// True for a process that has ended and whose parent has not waited for it.
fn is_dead(id: Pid) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
fn when_the_parent_has_gone_the_child_serves() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, pid) = (folder.path().join("socket"), folder.path().join("pid"));
    let line = format!("-t 1 -o no_such=1 -s {}", socket.display());
    let (daemon, said) = Daemon::start(&line, &pid);
    assert!(
        said.contains("no_such=1"),
        "warnings of the start are seen: {said}"
    );
    // No second try: it listens.
    let stream = UnixStream::connect(&socket).unwrap();
    assert_eq!(talk(stream, SET_AND_GET), SET_AND_GOT);
    // A session of its own, and no directory kept.
    assert_eq!(nix::unistd::getsid(Some(daemon.0)).unwrap(), daemon.0);
    let directory = fs::read_link(format!("/proc/{}/cwd", daemon.0)).unwrap();
    assert_eq!(directory, Path::new("/"));
    for stream in 0..3 {
        let file = fs::read_link(format!("/proc/{}/fd/{stream}", daemon.0)).unwrap();
        assert_eq!(file, Path::new("/dev/null"));
    }
    drop(daemon);
    assert!(!pid.exists() && !socket.exists());
}

#[test]
fn a_start_that_fails_is_told_with_its_code() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, pid) = (folder.path().join("socket"), folder.path().join("pid"));
    let running = Running::start("-l 127.0.0.1 -p 0 -t 1");
    for (line, code, complaint) in [
        (format!("-l {}", running.address()), 1, "cannot listen at"),
        (
            format!("-s {} -P /no/such/folder/pid", socket.display()),
            2,
            "-P /no/such/folder/pid",
        ),
        (
            "-l 127.0.0.1 -p 0 --log /no/such/folder/log".to_owned(),
            2,
            "--log ",
        ),
        (
            "-l 127.0.0.1 -p 0 -I 1m -m 1".to_owned(),
            2,
            "half of the memory",
        ),
        ("-l 127.0.0.1 -p 0 -t 0".to_owned(), 2, "-t: 1 to"),
    ] {
        let output = run(&format!("-d -P {} {line}", pid.display()));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        assert!(said.contains(complaint), "{line}: {said}");
        assert!(!pid.exists() && !socket.exists(), "{line}");
    }
}

#[test]
fn later_warnings_are_in_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let [pid, log, config] = ["pid", "log", "config"].map(|name| folder.path().join(name));
    fs::write(&config, "listen = \"127.0.0.1\"\nport = 0\nthreads = 1\n").unwrap();
    let line = format!("--config {} --log {}", config.display(), log.display());
    let (daemon, _) = Daemon::start(&line, &pid);
    fs::write(&config, "no = 1\n").unwrap();
    kill(daemon.0, Signal::SIGHUP).unwrap();
    wait_until("the warning", || {
        let log = fs::read_to_string(&log).unwrap();
        log.contains("unknown field `no`").then_some(())
    });
}
