//! The size of the symmetric heap. OpenSHMEM allocates the heap when it starts, by a variable of the environment.
//!
//! A heap that is larger than the available memory must be noticed before that: Open MPI touches all of it, and the
//! kernel then kills any process that it chooses.

use crate::NoMemory;

/// The standard's name.
pub const STANDARD: &str = "SHMEM_SYMMETRIC_SIZE";

/// The name that Open MPI 4 looks at instead.
pub const OPEN_MPI: &str = "SHMEM_SYMMETRIC_HEAP_SIZE";

/// Bytes of a heap for `words` words. What the library's allocator takes besides is not documented, and little.
pub fn bytes_for(words: usize) -> u64 {
    // No machine has so much, and sums of it do not overflow.
    let bytes = (words as u64).min(1 << 57) * 8;
    (bytes + bytes / 64 + (8 << 20)).next_multiple_of(1 << 20)
}

/// Reads a size that the user has set: a number with K, M, G or T behind it, or without.
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" => 10,
        "m" | "mb" => 20,
        "g" | "gb" => 30,
        "t" | "tb" => 40,
        _ => return None,
    };
    let number: f64 = digits.parse().ok()?;
    (number >= 0.0).then_some((number * (1_u64 << shift) as f64) as u64)
}

/// Checks that the heaps of all PEs of this machine fit into its memory.
pub fn check(bytes: u64) -> Result<(), NoMemory> {
    let Some(available) = available() else {
        return Ok(());
    };
    // The launcher may tell how many PEs are on this machine; otherwise one is assumed.
    let here = std::env::var("OMPI_COMM_WORLD_LOCAL_SIZE").ok();
    let here: u64 = here.and_then(|pes| pes.parse().ok()).unwrap_or(1);
    match bytes.saturating_mul(here) <= available {
        true => Ok(()),
        false => Err(NoMemory {
            words: bytes.div_ceil(8) as usize,
            advice: format!(
                "{here} PEs of this machine ask for as much each, and {} MiB are available: ask for less, or set \
                 {STANDARD} to less",
                available >> 20
            ),
        }),
    }
}

/// What to do if the heap is too small.
pub fn advice() -> String {
    format!(
        "set {STANDARD} (Open MPI 4: {OPEN_MPI}) to more in all PEs' environment, as in {OPEN_MPI}=2G; a heap in \
         /dev/shm must find room there"
    )
}

/// Bytes that are available: on the machine, without swapping, and in the control groups of this process.
fn available() -> Option<u64> {
    let both = [of_machine(), nuthatch_base::memory::group::available()];
    both.into_iter().flatten().min()
}

/// Bytes that the machine has without swapping.
fn of_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse("4096"), Some(4096));
        assert_eq!(parse("64k"), Some(65_536));
        assert_eq!(parse("1.5G"), Some(3 << 29));
        assert_eq!(parse(" 2TB "), Some(2 << 40));
        assert_eq!(parse("many"), None);
        assert_eq!(parse("1X"), None);
    }

    #[test]
    fn more_words_than_bytes_have_numbers_are_many() {
        assert!(bytes_for(usize::MAX / 8 + 1) >= 1 << 60);
        assert!(check(bytes_for(usize::MAX)).is_err());
    }

    #[test]
    fn no_machine_has_an_exbibyte() {
        let refused = check(1 << 60).expect_err("too much");
        assert!(refused.advice.contains(STANDARD));
        assert!(check(4096).is_ok());
    }
}
