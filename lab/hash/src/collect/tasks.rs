//! Numbers of processes, threads and users: keys of tables that the paper names and does not visit (section 6).

use std::fs;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;

use super::{Failure, Sink};

/// Where processes are listed, and users.
const PROCESSES: &str = "/proc";
const USERS: &str = "/etc/passwd";

/// One key for each thread that runs on this machine: a process's first has its number.
pub fn threads(sink: Sink<'_, u64>) -> Result<(), Failure> {
    for process in numbers(Path::new(PROCESSES))? {
        // A process may end meanwhile: it has no threads then.
        for thread in numbers(&Path::new(PROCESSES).join(process.to_string()).join("task"))? {
            if sink(thread)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// One key for each user of this machine.
pub fn users(sink: Sink<'_, u64>) -> Result<(), Failure> {
    let text = fs::read_to_string(USERS).map_err(|error| failed(Path::new(USERS), &error))?;
    for number in text.lines().filter_map(user) {
        if let ControlFlow::Break(()) = sink(number)? {
            return Ok(());
        }
    }
    Ok(())
}

/// The number of the user of a line: the third field.
fn user(line: &str) -> Option<u64> {
    line.split(':').nth(2)?.parse().ok()
}

/// The names in a directory that are numbers, in their order.
fn numbers(path: &Path) -> Result<Vec<u64>, Failure> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound && path != Path::new(PROCESSES) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(failed(path, &error)),
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let mut numbers: Vec<u64> = entries.flatten().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::run(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_among_them() {
        let mut found = Vec::new();
        threads(&mut |number| {
            found.push(number);
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        assert!(found.contains(&u64::from(std::process::id())));
    }

    #[test]
    fn a_user_is_the_third_field() {
        assert_eq!(user("games:x:5:60:games:/usr/games:/sbin/nologin"), Some(5));
        assert_eq!(user("# no user"), None);
        assert_eq!(user("a:b:c:d"), None);
    }
}
