//! What the machine must have for a command.

use std::fs;
use std::thread::available_parallelism;

use nuthatch_base::memory::group;

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
    let mut options = needs.options.iter();
    if let Some(lacking) = options.find_map(|(name, option)| programs.lacks(name, option)) {
        return Some(lacking);
    }
    let cores = available_parallelism().map_or(1, usize::from);
    if let Some(wanted) = needs.cores.filter(|&wanted| wanted > cores) {
        return Some(format!("needs {wanted} cores, and there are {cores}"));
    }
    if let Some(refused) = needs.namespaces.then(no_namespaces).flatten() {
        return Some(refused);
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
    let (free, which) = available_memory()?;
    (bytes > free).then(|| {
        format!(
            "needs {wanted} of memory, and {} MiB are {which}",
            free >> 20
        )
    })
}

/// Why no network namespace can be made, if none can: the last line that the system's program wrote.
fn no_namespaces() -> Option<String> {
    let words = ["unshare", "--net", "--uts", "ip", "link", "show", "lo"];
    let tried = command::run(&words.map(str::to_owned));
    let refused = tried.err()?;
    Some(format!("needs network namespaces (as root): {refused}"))
}

/// Why this program does not do what these words ask for, if it does not: the last line that it wrote.
fn refused(words: &str, programs: &Programs) -> Option<String> {
    let mut line = vec![programs.path("lab")?];
    line.extend(words.split_whitespace().map(str::to_owned));
    command::run(&line).err()
}

/// Bytes that a command can still take, and what they are: the least of all limits. Nothing if the system tells none.
fn available_memory() -> Option<(u64, &'static str)> {
    let limits = [
        (in_machine(), "free"),
        (group::available(), "left in the control group"),
        (address_space(), "allowed (ulimit -v)"),
    ];
    let known = limits
        .into_iter()
        .filter_map(|(bytes, which)| Some((bytes?, which)));
    known.min_by_key(|(bytes, _)| *bytes)
}

/// Bytes that programs can still take, as the system says.
fn in_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Bytes of address space that a process may have, if there is a limit.
fn address_space() -> Option<u64> {
    soft_limit(&fs::read_to_string("/proc/self/limits").ok()?)
}

/// The soft limit of the address space in the text of `/proc/self/limits`.
fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_the_address_space_is_read() {
        let line = |soft: &str| {
            format!("Limit  Soft Limit\nMax address space         {soft}  unlimited  bytes\n")
        };
        assert_eq!(soft_limit(&line("1048576")), Some(1 << 20));
        assert_eq!(soft_limit(&line("unlimited")), None);
        assert_eq!(soft_limit(""), None);
    }

    #[test]
    fn this_machine_has_some_memory() {
        assert!(available_memory().is_some_and(|(bytes, _)| bytes > 0));
    }
}
