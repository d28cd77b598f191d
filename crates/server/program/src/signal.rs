//! Signals that this process ignores from its beginning on.

use std::fs;

/// True if who started this process has it ignore a signal, as `nohup` does with SIGHUP: then it is not to be handled
/// either. False where the system does not tell.
pub fn is_ignored(signal: i32) -> bool {
    // Signals count from 1 on.
    let bit = u32::try_from(signal - 1).ok();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = bit.and_then(|bit| ignored(&status)?.checked_shr(bit));
    mask.is_some_and(|mask| mask & 1 == 1)
}

/// The signals that are ignored, a bit for each.
fn ignored(status: &str) -> Option<u64> {
    let bits = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(bits.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_known() {
        let status = "SigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored(status), Some(0x1001));
        assert_eq!(ignored("SigIgn:\tx\n"), None);
        // SIGKILL can never be ignored, and Rust's programs ignore SIGPIPE.
        assert!(!is_ignored(9) && is_ignored(13));
        assert!(!is_ignored(0) && !is_ignored(i32::MIN + 1) && !is_ignored(1000));
    }
}
