//! What a figure was measured with and on: the program with its commit, the machine and its system.

use std::collections::BTreeMap;

use nuthatch_bench::host::Host;

/// Each by its name.
pub fn machine() -> BTreeMap<String, String> {
    let mut named = Host::ask().named();
    for (name, value) in [
        ("commit", env!("COMMIT").to_owned()),
        ("rivals in process", env!("RIVALS").to_owned()),
    ] {
        named.insert(name.to_owned(), value);
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_and_rivals_are_named() {
        let machine = machine();
        assert!(!machine["commit"].is_empty());
        let rivals = &machine["rivals in process"];
        assert!(
            rivals.contains("moka 0.") && !rivals.contains('?'),
            "{rivals}"
        );
    }
}
