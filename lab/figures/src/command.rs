//! Commands: the programs that a figure runs, and what became of one.

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nuthatch_program::child::{Bounds, Group, Running};
use serde_json::Value;

/// A program beside this one: its placeholder, the variable of the environment that names another, the package that
/// has it, and the word that makes it tell its version.
struct Beside {
    name: &'static str,
    variable: &'static str,
    package: &'static str,
    version: &'static str,
}

const fn beside(
    name: &'static str,
    variable: &'static str,
    package: &'static str,
    version: &'static str,
) -> Beside {
    Beside {
        name,
        variable,
        package,
        version,
    }
}

/// The programs that a figure may run beside this one.
const BESIDE: &[Beside] = &[
    beside("memcached", "MEMCACHED", "memcached", "-V"),
    beside("redis-server", "REDIS", "redis-server", "--version"),
    beside("openssl", "OPENSSL", "openssl", "version"),
    beside("valgrind", "VALGRIND", "valgrind", "--version"),
    beside(
        "oshrun",
        "OSHRUN",
        "libopenmpi-dev, openmpi-bin",
        "--version",
    ),
];

/// A folder that only the user can name: its placeholder, the variable of the environment that names it, and what is in it.
struct Folder {
    name: &'static str,
    variable: &'static str,
    has: &'static str,
}

/// The folders that a figure may read.
const FOLDERS: &[Folder] = &[Folder {
    name: "traces",
    variable: "TRACES",
    has: "traces of requests, as docs/hits.md describes them",
}];

/// The script that makes several hosts of one machine, where this runs in the folder of the source.
const HOSTS: &str = "scripts/hosts.sh";

/// Where programs and folders are.
pub struct Programs {
    paths: BTreeMap<&'static str, PathBuf>,
}

impl Programs {
    /// This program, `nuthatch` and the programs for clusters beside it, those of others on the path, and the folders that
    /// the environment names.
    ///
    /// # Errors
    /// In words, if the system does not say where this program is.
    pub fn find() -> Result<Self, String> {
        let this = env::current_exe().map_err(|error| error.to_string())?;
        let mut paths = BTreeMap::new();
        for name in ["nuthatch", "nuthatch-fabric", "nuthatch-cluster"] {
            paths.insert(name, this.with_file_name(name));
        }
        paths.insert("lab", this);
        paths.insert("hosts", HOSTS.into());
        for beside in BESIDE {
            let named = env::var_os(beside.variable).map(PathBuf::from);
            paths.insert(beside.name, named.unwrap_or_else(|| beside.name.into()));
        }
        for folder in FOLDERS {
            // Without it there is still a line to show.
            let named = env::var_os(folder.variable).map(PathBuf::from);
            let named = named.unwrap_or_else(|| format!("${}", folder.variable).into());
            paths.insert(folder.name, named);
        }
        Ok(Self { paths })
    }

    /// The path of a program, by its placeholder.
    pub fn path(&self, name: &str) -> Option<String> {
        Some(self.paths.get(name)?.to_string_lossy().into_owned())
    }

    /// Why a program cannot be run, if it cannot.
    pub fn missing(&self, name: &str) -> Option<String> {
        let Some(path) = self.paths.get(name) else {
            return Some(format!("{name}: no program that figures know"));
        };
        if let Some(Folder { variable, has, .. }) =
            FOLDERS.iter().find(|folder| folder.name == name)
        {
            return (!path.is_dir())
                .then(|| format!("the variable {variable} names no folder with {has}"));
        }
        if is_there(path) {
            return None;
        }
        let beside = BESIDE.iter().find(|beside| beside.name == name);
        Some(match beside {
            Some(beside) => format!(
                "{} is not installed (package {}; {} names another)",
                path.display(),
                beside.package,
                beside.variable
            ),
            None if name == "hosts" => {
                format!("{HOSTS} is not here: run this in the folder of the source")
            }
            None => format!("{} is not there: build it first", path.display()),
        })
    }

    /// Why a program does not have an option, if its help does not name it.
    pub fn lacks(&self, name: &str, option: &str) -> Option<String> {
        let path = self.path(name)?;
        // Some tell it on standard error, or with a failure.
        let told = match finished(Command::new(&path).arg("-h"), Some(ASKED)) {
            Ok(told) => [told.stdout, told.stderr].concat(),
            Err(error) => return Some(format!("{path}: {error}")),
        };
        (!String::from_utf8_lossy(&told).contains(option))
            .then(|| format!("{path} was built without {option}: its -h does not name it"))
    }

    /// The first line that a program of others tells of its version; nothing if it is another program or tells nothing.
    pub fn version(&self, name: &str) -> Option<String> {
        let beside = BESIDE.iter().find(|beside| beside.name == name)?;
        let mut command = Command::new(self.path(name)?);
        let told = finished(command.arg(beside.version), Some(ASKED)).ok()?;
        let told = told.status.success().then_some(told.stdout)?;
        let told = String::from_utf8_lossy(&told);
        let mut lines = told.lines().map(str::trim);
        lines.find(|line| !line.is_empty()).map(str::to_owned)
    }
}

/// True if the path, or a file of this name in a folder of the path, is there.
fn is_there(program: &Path) -> bool {
    if program.components().count() > 1 {
        return program.is_file();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Begins the line behind the reason why a command line of this program is refused.
const HINT: &str = "For more information, try";

/// Bytes that a command may print.
const OUTPUT_MAX: usize = 64 << 20;

/// SIGKILL.
const KILLED: i32 = 9;

/// How long a program may take to tell of itself.
const ASKED: Duration = Duration::from_secs(5);

/// Runs a command, and reads the JSON that it prints: one value, or the values of several lines as an array.
///
/// # Errors
/// In words: it cannot be started, it failed (with the last line that it wrote), or it printed no JSON.
pub fn output(line: &[String]) -> Result<Value, String> {
    let text = run(line)?;
    json(&text).map_err(|error| format!("it printed no JSON: {error}"))
}

/// Runs a command. Returns what it printed.
///
/// # Errors
/// In words: it cannot be started, or it failed (with the last line that it wrote).
pub fn run(line: &[String]) -> Result<String, String> {
    let [program, words @ ..] = line else {
        return Err("no program".to_owned());
    };
    let done = finished(Command::new(program).args(words), None)
        .map_err(|error| format!("{program}: {error}"))?;
    let errors = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        let says = |line: &&str| !line.trim().is_empty() && !line.starts_with(HINT);
        let last = errors.lines().rfind(says);
        let last = match (last, done.status.signal()) {
            // The kernel tells nobody else.
            (_, Some(KILLED)) => "it was killed, as the system does where memory is short",
            (Some(last), _) => last.trim(),
            (None, _) => "it wrote no reason",
        };
        return Err(format!("{}: {last}", done.status));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Runs a command in a group of processes of its own, to its end or at most so long, and keeps what it wrote.
fn finished(command: &mut Command, time: Option<Duration>) -> io::Result<Output> {
    let command = command.stdin(Stdio::null());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::start(command, Group::Own)?.output(Bounds {
        time,
        bytes: Some(OUTPUT_MAX),
    })
}

fn json(text: &str) -> serde_json::Result<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let values: serde_json::Result<Vec<Value>> = lines.map(serde_json::from_str).collect();
    Ok(Value::Array(values?))
}

/// The words as they can be typed into a shell, without the folders of the programs.
pub fn typed(line: &[String]) -> String {
    let mut words = line.to_vec();
    if let Some(name) = words
        .first()
        .and_then(|first| Path::new(first).file_name())
        .map(|name| name.to_string_lossy().into_owned())
    {
        words[0] = name;
    }
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}
