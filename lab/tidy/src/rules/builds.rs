//! The checks share one build: one that chooses programs or features by itself has the server compiled once more.

use crate::{Fault, Tree};

/// What a script includes that builds as all checks do.
const SHARED: &str = "\n. scripts/check-env.sh\n";

/// The builds of checks that are not the shared one. (For measurements there are optimised ones.)
pub fn faults(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.texts_with("sh") {
        if !text.contains(SHARED) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if line.starts_with("cargo build")
                && !line.contains("--release")
                && !line.contains("scripts/features.sh")
            {
                let help =
                    "a build of its own: build_shared or choose_server of scripts/check-env.sh";
                faults.push(Fault::new(path, number + 1, help));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{made, said};

    #[test]
    fn a_build_of_its_own_is_found() {
        let check = "#!/bin/sh\n. scripts/check-env.sh\n";
        let tree = made(&[
            (
                "scripts/test-a.sh",
                &format!("{check}cargo build --quiet --bin a\n"),
            ),
            (
                "scripts/test-b.sh",
                &format!("{check}build_shared --bin a\n    cargo build --release\n"),
            ),
            (
                "scripts/test-c.sh",
                &format!("{check}cargo build --lib $(scripts/features.sh)\n"),
            ),
            ("scripts/serve.sh", "#!/bin/sh\ncargo build --bin a\n"),
        ]);
        assert_eq!(
            said(faults(&tree)),
            [
                "scripts/test-a.sh:3: a build of its own: build_shared or choose_server of scripts/check-env.sh"
            ]
        );
    }
}
