//! Costs of one-sided operations as a fabric was measured: what `nuthatch-fabric latency --json` printed.

use std::path::Path;

use nuthatch_program::Failure;
use serde::Deserialize;

use crate::{Options, PAIR};

/// A measured operation, as far as the model has a use for it.
#[derive(Clone, Debug, Deserialize)]
struct Measured {
    operation: String,
    bytes: usize,
    mean_ns: f64,
}

impl Options {
    /// The same with the costs of the file that `--costs` names, if it names one.
    ///
    /// # Errors
    /// The file cannot be read, or lacks an operation.
    pub(crate) fn with_costs(&self) -> Result<Self, Failure> {
        match &self.costs {
            Some(file) => self.with_costs_of(file),
            None => Ok(self.clone()),
        }
    }

    fn with_costs_of(&self, file: &Path) -> Result<Self, Failure> {
        let named = |error: String| Failure::Usage(format!("--costs {}: {error}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
        let found: Vec<Measured> =
            serde_json::from_str(&text).map_err(|error| named(error.to_string()))?;
        // The mean without a clock in between: some operations are as short as a look at the clock.
        let micros = |operation: &str, bytes: usize| {
            let mut sizes = found.iter().filter(|one| one.operation == operation);
            let fitting = sizes.clone().find(|one| one.bytes >= bytes);
            let one = fitting.or_else(|| sizes.next_back());
            one.map(|one| one.mean_ns / 1000.0)
                .ok_or_else(|| named(format!("no {operation} in it")))
        };
        Ok(Self {
            get: micros("get", self.value + PAIR)?,
            // Half of it: until it has arrived, and not until this PE knows.
            put: micros("put_quiet", self.value + PAIR)? / 2.0,
            cas: micros("compare_swap", 8)?,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::tests::Line;

    #[test]
    fn measured_costs_are_taken_by_the_size_of_a_pair() {
        let file = std::env::temp_dir().join(format!("nuthatch-costs-{}.json", std::process::id()));
        let one = |operation: &str, bytes: usize, nanos: usize| {
            format!(
                "{{\"operation\": \"{operation}\", \"bytes\": {bytes}, \"mean_ns\": {nanos}, \"p50_ns\": 1}}"
            )
        };
        let all = [
            one("get", 64, 100),
            one("get", 4096, 400),
            one("put_quiet", 512, 300),
            one("compare_swap", 8, 50),
        ];
        std::fs::write(&file, format!("[{}]", all.join(", "))).unwrap();
        let path = file.to_str().unwrap();
        let with = |words: &[&str]| {
            let line = Line::parse_from(["scale", "--costs", path].iter().chain(words));
            line.options.with_costs()
        };
        let options = with(&["--value", "32"]).unwrap();
        assert_eq!((options.get, options.put, options.cas), (0.4, 0.15, 0.05));
        // Longer ones than were measured cost as much as the longest.
        assert_eq!(with(&["--value", "9000"]).unwrap().put, 0.15);
        std::fs::write(&file, format!("[{}]", one("get", 64, 100))).unwrap();
        assert!(matches!(with(&[]), Err(Failure::Usage(words)) if words.contains("no put_quiet")));
        std::fs::remove_file(&file).unwrap();
        assert!(with(&[]).is_err());
    }
}
