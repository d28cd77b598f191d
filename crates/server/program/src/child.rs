//! Commands that a program starts and waits for, and that end with it.
//!
//! ```text
//!  a signal asks the program to end   SIGTERM to each command: it may keep what it has; or SIGKILL, and the program ends
//!  a second one                       SIGKILL to each: one may ignore the first
//!  a command ends                     SIGKILL to what it left behind, if it has a group of its own
//! ```

use std::io::{self, ErrorKind, Read};
use std::mem;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::signals;

/// The commands that run, and how often the program was asked to end. Signals are the process's, so this is, too.
static ALL: Mutex<All> = Mutex::new(All {
    signals: 0,
    running: Vec::new(),
});

struct All {
    signals: usize,
    /// Those that were not yet waited for: no other process has their numbers.
    running: Vec<Process>,
}

impl All {
    fn send(&self, signal: Signal) {
        self.running.iter().for_each(|process| process.send(signal));
    }
}

fn all() -> MutexGuard<'static, All> {
    locked(&ALL)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whom a signal reaches that a command is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The command and all that it starts: they are in a group of processes of their own. A terminal's signals do not
    /// reach them, only those that this program sends.
    Own,
    /// The command alone. It stays in this program's group, so what ends all of that ends the command.
    Shared,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Process {
    id: Pid,
    group: Group,
}

impl Process {
    fn send(self, signal: Signal) {
        // An error means that it has just ended.
        let _ = match self.group {
            Group::Own => killpg(self.id, signal),
            Group::Shared => kill(self.id, signal),
        };
    }

    /// Ends it, unless it has ended and another process may have its number.
    fn end(self) {
        let all = all();
        if all.running.contains(&self) {
            self.send(Signal::SIGKILL);
        }
    }
}

/// From now on a signal that asks the program to end ends its commands, and no other begins. Returns what is set by it.
///
/// # Errors
/// Those of the system.
pub fn end_on_signals() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    let ending = signals::ending();
    // First: once a command was sent a signal, this is set.
    for &signal in &ending {
        flag::register(signal, Arc::clone(&asked))?;
    }
    on_signals(&ending, |_| pass_on())?;
    Ok(asked)
}

/// From now on a signal that asks the program to end ends it as ever, and its commands with it.
///
/// # Errors
/// Those of the system.
pub fn die_on_signals() -> io::Result<()> {
    on_signals(&signals::ending(), |signal| {
        // Held to the end: no command begins between the two.
        let all = all();
        all.send(Signal::SIGKILL);
        // It does not return from a signal that asks for the end.
        let _ = low_level::emulate_default_handler(signal);
    })
}

fn on_signals(ending: &[i32], act: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(ending)?;
    let thread = thread::Builder::new().name("signals".to_owned());
    thread
        .spawn(move || signals.forever().for_each(act))
        .map(drop)
}

/// The program was asked to end: so are its commands.
fn pass_on() {
    let mut all = all();
    all.signals += 1;
    match all.signals {
        1 => all.send(Signal::SIGTERM),
        _ => all.send(Signal::SIGKILL),
    }
}

/// A command that runs. Dropped, it is ended.
pub struct Running {
    child: Child,
    process: Process,
    status: Option<ExitStatus>,
}

/// How often a command that has a bound is looked at.
const LOOK: Duration = Duration::from_millis(5);

impl Running {
    /// Starts a command.
    ///
    /// # Errors
    /// Those of the system; and none begins once the program was asked to end.
    pub fn start(command: &mut Command, group: Group) -> io::Result<Self> {
        if group == Group::Own {
            command.process_group(0);
        }
        // Held until it is in the list: a signal finds it there, or comes first.
        let mut all = all();
        if all.signals > 0 {
            return Err(io::Error::other("interrupted"));
        }
        let child = command.spawn()?;
        let id = Pid::from_raw(child.id().cast_signed());
        let process = Process { id, group };
        all.running.push(process);
        Ok(Self {
            child,
            process,
            status: None,
        })
    }

    /// Its standard output, if that is a pipe and was not taken before.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its standard error, in the same way.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Waits until it has ended. What it left in its own group is ended then.
    ///
    /// # Errors
    /// Those of the system.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        match self.status {
            Some(status) => Ok(status),
            None => {
                self.has_ended(WaitPidFlag::empty())?;
                self.reap()
            }
        }
    }

    /// The same, but not longer than this; nothing if it still runs then.
    ///
    /// # Errors
    /// Those of the system.
    pub fn wait_within(&mut self, bound: Duration) -> io::Result<Option<ExitStatus>> {
        let begin = Instant::now();
        while self.status.is_none() && !self.has_ended(WaitPidFlag::WNOHANG)? {
            if begin.elapsed() >= bound {
                return Ok(None);
            }
            thread::sleep(LOOK);
        }
        self.wait().map(Some)
    }

    /// Waits until it has ended, within these bounds, and keeps what it wrote into its pipes: of standard error the last
    /// bytes.
    ///
    /// # Errors
    /// Those of the system; and it went beyond a bound. Then it is ended.
    pub fn output(mut self, bounds: Bounds) -> io::Result<Output> {
        let most = bounds.bytes.unwrap_or(usize::MAX);
        let process = self.process;
        let stdout = self.stdout().map(|pipe| {
            Reading::begin(pipe, move |kept| {
                if kept.len() > most {
                    kept.truncate(most.saturating_add(1));
                    process.end();
                }
            })
        });
        let stderr = self.stderr().map(|pipe| Reading::begin(pipe, keep_last));
        let status = match bounds.time {
            None => self.wait()?,
            Some(time) => self.wait_within(time)?.ok_or_else(|| {
                let words = format!("it did not end within {} s", time.as_secs());
                io::Error::new(ErrorKind::TimedOut, words)
            })?,
        };
        let stdout = stdout.map(Reading::end).unwrap_or_default();
        if stdout.len() > most {
            let words = format!("it printed more than {} MiB, and was ended", most >> 20);
            return Err(io::Error::other(words));
        }
        Ok(Output {
            status,
            stdout,
            stderr: stderr.map(Reading::end).unwrap_or_default(),
        })
    }

    /// Whether it has ended. It keeps its number: it is not reaped.
    fn has_ended(&self, how: WaitPidFlag) -> io::Result<bool> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | how;
        loop {
            match waitid(Id::Pid(self.process.id), flags) {
                Ok(status) => return Ok(status != WaitStatus::StillAlive),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Ends what it left behind, and gives its number back. It has ended.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        let mut all = all();
        if self.process.group == Group::Own {
            self.process.send(Signal::SIGKILL);
        }
        all.running.retain(|process| *process != self.process);
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }
}

/// What a command may take; nothing stands for no bound.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// Until it ends.
    pub time: Option<Duration>,
    /// That it prints.
    pub bytes: Option<usize>,
}

/// Bytes that are kept of what a command writes on standard error, at least.
const ERRORS_MAX: usize = 64 << 10;

fn keep_last(kept: &mut Vec<u8>) {
    if kept.len() > 2 * ERRORS_MAX {
        kept.drain(..kept.len() - ERRORS_MAX);
    }
}

/// How long the rest of a command's output may take once it has ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// A pipe that is read while its command runs: a full one would stop it.
struct Reading {
    kept: Arc<Mutex<Vec<u8>>>,
    /// Closed at the pipe's end.
    ended: Receiver<()>,
}

impl Reading {
    /// `bound` makes what is kept shorter.
    fn begin(
        mut pipe: impl Read + Send + 'static,
        bound: impl Fn(&mut Vec<u8>) + Send + 'static,
    ) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (open, ended) = mpsc::channel();
        let shared = Arc::clone(&kept);
        thread::spawn(move || {
            let _open: Sender<()> = open;
            let mut buffer = vec![0; 1 << 16];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(length) => {
                        let mut kept = locked(&shared);
                        kept.extend_from_slice(&buffer[..length]);
                        bound(&mut kept);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        });
        Self { kept, ended }
    }

    /// What was kept of a command that has ended. A process that left its group may still have the pipe, and it is not
    /// waited for.
    fn end(self) -> Vec<u8> {
        // An error either way: the end, or too long.
        let _ = self.ended.recv_timeout(PATIENCE);
        mem::take(&mut locked(&self.kept))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.status.is_none() {
            // Not yet waited for, so the number is its own.
            self.process.send(Signal::SIGKILL);
            let _ = self.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::Stdio;

    use super::*;

    fn shell(words: &str) -> Running {
        let mut command = Command::new("sh");
        command.args(["-c", words]).stdout(Stdio::piped());
        Running::start(&mut command, Group::Own).unwrap()
    }

    /// Class of fault: a command's own commands outlive it, and with them the pipe that somebody reads.
    #[test]
    fn what_a_command_leaves_behind_is_ended() {
        let mut running = shell("sleep 100000 & echo a");
        let mut pipe = running.stdout().unwrap();
        assert!(running.wait().unwrap().success());
        assert_eq!(io::read_to_string(&mut pipe).unwrap(), "a\n");
    }

    #[test]
    fn what_a_command_writes_is_kept_within_its_bounds() {
        let output = |words: &str, time: Option<Duration>, bytes: Option<usize>| {
            shell(words).output(Bounds { time, bytes })
        };
        let million = output("head -c 1000000 /dev/zero", None, None);
        assert_eq!(million.unwrap().stdout.len(), 1_000_000);
        let fits = output("echo c", Some(Duration::MAX), Some(2));
        assert_eq!(fits.unwrap().stdout, b"c\n");
        let late = output("sleep 100000", Some(Duration::ZERO), None);
        assert_eq!(late.unwrap_err().kind(), ErrorKind::TimedOut);
        // It does not stop by itself.
        let long = output("trap '' PIPE; yes; sleep 100000", None, Some(1 << 20));
        let words = long.unwrap_err().to_string();
        assert_eq!(words, "it printed more than 1 MiB, and was ended");
    }

    #[test]
    fn of_what_a_command_complains_of_the_end_is_kept() {
        let mut kept = vec![b'a'; 5 * ERRORS_MAX];
        kept.extend_from_slice(b"the reason");
        keep_last(&mut kept);
        assert_eq!(kept.len(), ERRORS_MAX);
        assert!(kept.ends_with(b"the reason"));
    }

    /// It has left the group, so nothing ends it, and it has the pipe.
    #[test]
    fn a_process_that_went_its_own_way_is_not_waited_for() {
        let words = "setsid sleep 10 & echo d";
        let output = shell(words).output(Bounds::default()).unwrap();
        assert_eq!(output.stdout, b"d\n");
    }

    #[test]
    fn a_dropped_command_is_ended_with_its_own() {
        let mut running = shell("trap '' TERM; sleep 100000 & sleep 100000");
        let mut pipe = running.stdout().unwrap();
        drop(running);
        assert_eq!(pipe.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_bound_ends_the_waiting_and_not_the_command() {
        let mut running = shell("sleep 100000");
        assert_eq!(running.wait_within(Duration::ZERO).unwrap(), None);
        drop(running);
        let mut running = shell("exit 3");
        let status = running.wait_within(Duration::MAX).unwrap();
        assert_eq!(status.unwrap().code(), Some(3));
        assert_eq!(running.wait().unwrap().code(), Some(3));
    }
}
