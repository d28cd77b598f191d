//! When a file was written, so that a reader can tell how long ago that was.
//!
//! The wall clock alone does not tell: it may have been set since. On the same machine, as long as that has not been
//! started anew, the time since its start tells.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use nuthatch_engine::{Wall, since_boot};

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Since 1970, by the wall clock of then.
    pub unix: Duration,
    /// The start of the machine that was the last one then, all zero if it is not known.
    pub boot: [u8; 16],
    /// The time since that start, with all the time that the machine slept.
    pub uptime: Duration,
}

impl Written {
    /// The present.
    pub fn now(wall: &Wall) -> Self {
        Self {
            unix: wall.unix(),
            boot: boot(),
            uptime: since_boot(),
        }
    }

    /// The time from this moment to `now`. `None` if nothing tells: the wall clock shows an earlier time than it did.
    pub fn until(&self, now: &Self) -> Option<Duration> {
        if self.boot == now.boot && self.boot != [0; 16] {
            return now.uptime.checked_sub(self.uptime);
        }
        now.unix.checked_sub(self.unix)
    }
}

/// The kernel's name of the first time namespace (`PROC_TIME_INIT_INO`).
const FIRST_NAMESPACE: &str = "time:[4026531834]";

/// The kernel's name of this machine's last start, all zero if it does not tell. In a time namespace of its own a process
/// counts from another start, of which nothing tells the next process.
fn boot() -> [u8; 16] {
    static BOOT: OnceLock<[u8; 16]> = OnceLock::new();
    *BOOT.get_or_init(|| {
        // Before 5.6 Linux had no others.
        let namespace = fs::read_link("/proc/self/ns/time");
        if namespace.is_ok_and(|name| name.as_os_str() != FIRST_NAMESPACE) {
            return [0; 16];
        }
        let name = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        name.ok().and_then(|name| parse(&name)).unwrap_or_default()
    })
}

/// The bytes of a name such as `2cd3c752-ebe5-420d-a461-9a6679860d72`.
fn parse(name: &str) -> Option<[u8; 16]> {
    let digits = name.trim().replace('-', "");
    let number = u128::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 32).then(|| number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(unix: u64, boot: u8, uptime: u64) -> Written {
        Written {
            unix: Duration::from_secs(unix),
            boot: [boot; 16],
            uptime: Duration::from_secs(uptime),
        }
    }

    #[test]
    fn the_wall_clock_tells_only_from_one_start_of_the_machine_to_another() {
        let written = at(10_000, 1, 500);
        let ago = |now: Written| written.until(&now).map(|ago| ago.as_secs());
        assert_eq!(ago(at(10_060, 1, 560)), Some(60));
        // The clock was set.
        assert_eq!(ago(at(13_660, 1, 560)), Some(60));
        assert_eq!(ago(at(6_460, 1, 560)), Some(60));
        // Another start, or another machine.
        assert_eq!(ago(at(10_060, 2, 5)), Some(60));
        assert_eq!(ago(at(9_000, 2, 5)), None);
        // A machine that does not tell its start.
        let written = at(10_000, 0, 500);
        let now = at(10_060, 0, 5);
        assert_eq!(written.until(&now), Some(Duration::from_secs(60)));
    }

    #[test]
    fn names_of_starts_have_16_bytes() {
        let name = "2cd3c752-ebe5-420d-a461-9a6679860d72\n";
        assert_eq!(
            parse(name).map(|bytes| bytes[..3].to_vec()),
            Some(vec![0x2c, 0xd3, 0xc7])
        );
        for bad in ["", "2cd3c752", "2cd3c752-ebe5-420d-a461-9a6679860dzz"] {
            assert_eq!(parse(bad), None);
        }
        let namespace = fs::read_link("/proc/self/ns/time");
        let is_apart = namespace.is_ok_and(|name| name.as_os_str() != FIRST_NAMESPACE);
        assert_eq!(boot() == [0; 16], is_apart);
    }
}
