//! Running in the background: the parent exits with 0 when its child serves clients, or with the child's code.
//!
//! ```text
//!  parent      fork --- waits for a byte ----------------+--- exits with 0
//!                \                                       |
//!  child          setsid, start: binds, writes files --- sends it --- serves
//! ```
//!
//! Until then the child has the parent's standard streams, so that the user sees errors and warnings of the start.

use std::fs::OpenOptions;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::process::exit;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, fork, setsid};
use nuthatch_program::output::note;

/// The child's end of the pipe. If it is dropped without [`Launch::done`], the start has failed.
pub struct Launch(PipeWriter);

/// Forks, and returns only in the child. Must run before any thread is started.
#[allow(unsafe_code)]
pub fn launch() -> Result<Launch, String> {
    let failed = |error: io::Error| format!("-d: {error}");
    let (reader, writer) = io::pipe().map_err(failed)?;
    // SAFETY: the process has one thread, so the child is not left with a lock that a thread which does not
    // exist there would have to release.
    match unsafe { fork() }.map_err(|error| failed(error.into()))? {
        ForkResult::Parent { child } => {
            drop(writer);
            wait(reader, child)
        }
        ForkResult::Child => {
            drop(reader);
            setsid().map_err(|error| failed(error.into()))?;
            // A daemon must not keep a file system from being unmounted.
            chdir("/").map_err(|error| failed(error.into()))?;
            Ok(Launch(writer))
        }
    }
}

/// Exits with the outcome of the child's start.
fn wait(mut serves: PipeReader, child: Pid) -> ! {
    if matches!(serves.read(&mut [0]), Ok(1)) {
        exit(0);
    }
    // The child has printed why.
    exit(match waitpid(child, None) {
        Ok(WaitStatus::Exited(_, code)) => code,
        Ok(WaitStatus::Signaled(_, signal, _)) => {
            note(&format!("-d: the server was ended by {signal}"));
            1
        }
        _ => 1,
    })
}

impl Launch {
    /// The start is over: the parent may exit. Closes the standard streams; standard error stays open if the
    /// log goes there.
    pub fn done(mut self, keeps_stderr: bool) -> io::Result<()> {
        let null = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        dup2_stdin(&null)?;
        dup2_stdout(&null)?;
        if !keeps_stderr {
            dup2_stderr(&null)?;
        }
        self.0.write_all(&[1])
    }
}
