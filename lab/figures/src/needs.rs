//! What the machine must have for a command.

use std::fs;
use std::thread::available_parallelism;

use crate::command::{self, Programs};
use crate::figure::{Figure, Needs, Run, Size};

/// Why a command cannot run here, if it cannot: the package that is not there, the cores or the memory that are too few.
pub fn lacking(figure: &Figure, run: &Run, size: Size, programs: &Programs) -> Option<String> {
    [&figure.needs, &run.needs]
        .into_iter()
        .find_map(|needs| one(needs, size, programs))
}

fn one(needs: &Needs, size: Size, programs: &Programs) -> Option<String> {
    if let Some(missing) = needs
        .programs
        .iter()
        .find_map(|name| programs.missing(name))
    {
        return Some(missing);
    }
    let cores = available_parallelism().map_or(1, usize::from);
    if let Some(wanted) = needs.cores.filter(|&wanted| wanted > cores) {
        return Some(format!("needs {wanted} cores, and there are {cores}"));
    }
    if let Some(refused) = needs
        .command
        .as_ref()
        .and_then(|words| refused(words, programs))
    {
        return Some(refused);
    }
    let wanted = needs.memory.as_ref()?.of(size);
    let bytes = match nuthatch_program::size::parse(wanted) {
        Ok(bytes) => bytes as u64,
        Err(error) => return Some(format!("memory = \"{wanted}\": {error}")),
    };
    let free = available_memory()?;
    (bytes > free).then(|| format!("needs {wanted} of memory, and {} MiB are free", free >> 20))
}

/// Why this program does not do what these words ask for, if it does not: the last line that it wrote.
fn refused(words: &str, programs: &Programs) -> Option<String> {
    let mut line = vec![programs.path("lab")?];
    line.extend(words.split_whitespace().map(str::to_owned));
    command::run(&line).err()
}

/// Bytes that programs can still take, as the system says; nothing if it does not.
fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}
