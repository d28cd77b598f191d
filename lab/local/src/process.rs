//! A client's process, as the bench sees it.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::client::{CANNOT, Operation, READY};
use crate::found::Found;
use crate::ways::{By, Way};

/// Bytes of an answer at most.
const ANSWER_MAX: u64 = 16 << 20;

/// What each client of a round does.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// What is measured.
    pub operation: Operation,
    /// Items that there are.
    pub keys: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// How long.
    pub seconds: f64,
    /// Tasks or threads of the process.
    pub callers: usize,
}

/// A client's process.
pub struct Process {
    name: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// Why a way is not measured.
#[derive(Debug)]
pub enum NotRun {
    /// It cannot be had here: a library that is not installed, an address that this client does not know.
    Cannot(String),
    /// It went wrong.
    Failed(String),
}

impl Process {
    /// Starts the client with this number.
    pub fn start(way: &Way, task: &Task, number: u32) -> Result<Self, NotRun> {
        let failed = |why: String| NotRun::Failed(format!("{}: {why}", way.name));
        let mut command = match &way.by {
            By::This(means) => {
                let this = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
                let mut command = Command::new(this);
                let means = clap::ValueEnum::to_possible_value(means);
                let means = means.ok_or_else(|| failed("no name".to_owned()))?;
                command.args(["bench", "local-client", "--means", means.get_name()]);
                command.args(["--callers", &task.callers.to_string()]);
                command
            }
            By::Python {
                interpreter,
                script,
                client,
            } => {
                let mut command = Command::new(interpreter);
                command.arg(script).args(["client", "--means", client]);
                command
            }
        };
        command
            .args([
                "--target",
                &way.target,
                "--operation",
                task.operation.name(),
            ])
            .args(["--keys", &task.keys.to_string()])
            .args(["--value-size", &task.value_size.to_string()])
            .args(["--seconds", &task.seconds.to_string()])
            .args(["--seed", &(number + 1).to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self {
                name: way.name.clone(),
                child,
                input,
                output: BufReader::new(output),
            }),
            _ => Err(failed("no pipes".to_owned())),
        }
    }

    /// Waits until it has connected.
    pub fn wait_until_ready(&mut self) -> Result<(), NotRun> {
        let line = self.line().map_err(NotRun::Failed)?;
        match line.strip_prefix(CANNOT) {
            Some(why) => Err(NotRun::Cannot(why.to_owned())),
            None if line == READY => Ok(()),
            None => Err(NotRun::Failed(format!("{}: {line:?}", self.name))),
        }
    }

    /// Tells it to begin.
    pub fn begin(&mut self) -> Result<(), String> {
        let told = self
            .input
            .write_all(b"go\n")
            .and_then(|()| self.input.flush());
        told.map_err(|error| format!("{}: {error}", self.name))
    }

    /// What it found.
    pub fn found(&mut self) -> Result<Found, String> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| format!("{}: {error}: {line:?}", self.name))
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.output.by_ref().take(ANSWER_MAX).read_line(&mut line) {
            Ok(1..) => Ok(line.trim_end().to_owned()),
            Ok(0) => Err(format!("{}: its process ended", self.name)),
            Err(error) => Err(format!("{}: {error}", self.name)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has nothing to lose. Errors mean that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
