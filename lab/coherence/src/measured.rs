//! The same operations measured on this machine, beside the model: its error.

use std::process::{Command, Stdio};

use nuthatch_program::Failure;
use nuthatch_program::child::{Bounds, Group, Running};
use serde_json::Value;

use crate::recording::Recording;

/// Million operations a second of the recorded engine with so many threads, as `bench engine` measures them.
pub fn mops(recording: &Recording, insert_ratio: f64, threads: usize) -> Result<f64, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["bench", "engine", "--engine", &recording.engine])
        .args(["--threads", &threads.to_string()])
        .args(["--working-set", &recording.working_set.to_string()])
        .args(["--insert-ratio", &insert_ratio.to_string()])
        .args(["--batch", &recording.batch.to_string()])
        .args(["--partitions", &recording.partitions.to_string()])
        .args(["--seconds", "3", "--rounds", "5", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let output = Running::start(&mut command, Group::Shared)?.output(Bounds::default())?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("bench engine: {}", words.trim_end()).into());
    }
    median(&output.stdout).ok_or_else(|| Failure::run("bench engine: no throughput in its output"))
}

/// The first engine's throughput in the bench's output.
fn median(text: &[u8]) -> Option<f64> {
    let found: Value = serde_json::from_slice(text).ok()?;
    found
        .pointer("/working_sets/0/engines/0/mops_spread/median")?
        .as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_found_or_not() {
        let text = br#"{"working_sets":[{"engines":[{"mops_spread":{"median":2.5}}]}]}"#;
        assert_eq!(median(text), Some(2.5));
        assert_eq!(median(b"{}"), None);
        assert_eq!(median(b"no json"), None);
    }
}
