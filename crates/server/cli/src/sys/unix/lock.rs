//! A lock on a whole file, until it is closed.

use std::fs::{File, TryLockError};
use std::thread;
use std::time::Duration;

/// How often it is tried, and how long it rests between.
const TRIES: (u32, Duration) = (100, Duration::from_millis(10));

/// Waits for the lock of flock(2), for a second: a script may hold the file by it for the server's whole life. A file
/// system without locks does without.
pub fn wait(file: &File) {
    let (tries, rest) = TRIES;
    for _ in 0..tries {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(rest),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_it_for_ever_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let open = || File::create(folder.path().join("pid")).unwrap();
        let (holder, waiter) = (open(), open());
        wait(&holder);
        assert!(waiter.try_lock().is_err());
        wait(&waiter);
        drop(holder);
        wait(&waiter);
        assert!(open().try_lock().is_err(), "the waiter has it now");
    }
}
