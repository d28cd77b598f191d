//! The workspace's README shows only Rust that is compiled: examples of the library's README, which are doc tests there.

/// The contents of the fenced blocks of Rust.
fn examples(text: &str) -> Vec<&str> {
    let blocks = text.split("```rust\n").skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_workspaces_readme_shows_what_is_compiled() {
    let compiled = examples(include_str!("../../../crates/core/nuthatch/README.md"));
    let shown = examples(include_str!("../../../README.md"));
    assert!(!shown.is_empty());
    for example in shown {
        assert!(
            compiled.contains(&example),
            "not in crates/core/nuthatch/README.md:\n{example}"
        );
    }
}
