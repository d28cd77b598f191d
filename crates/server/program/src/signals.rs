//! The signals that ask a program to end.

use std::fs;

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// The signals that ask this program to end: Ctrl-C's, that of `kill`, and that of a terminal which goes. The last only if
/// it was not ignored when the program began, as `nohup` has it.
pub fn ending() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut signals = vec![SIGINT, SIGTERM];
    if !is_ignored(&status, SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// Whether the text of `/proc/self/status` says that a signal is ignored.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_told_by_their_bits() {
        let status = "SigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, SIGHUP));
        assert!(is_ignored(status, 13));
        assert!(!is_ignored(status, SIGINT));
        assert!(!is_ignored("", SIGHUP));
    }
}
