# Sourced by the checks of scripts/test-*.sh: how they build, and what a check that has passed depends on.

# Everything is built once: what would make a second build of it faster is not worth its time.
export CARGO_INCREMENTAL=0
# Lints and documentation need no build of their own (scripts/compile.rs), and the programs of all checks come from one.
if command -v clippy-driver >/dev/null; then
    RUSTC_WORKSPACE_WRAPPER=$PWD/target/compile
    if ! [ "$RUSTC_WORKSPACE_WRAPPER" -nt scripts/compile.rs ]; then
        mkdir -p target
        # Others may be at it, too.
        rustc --edition 2024 -o "$RUSTC_WORKSPACE_WRAPPER.$$" scripts/compile.rs
        mv "$RUSTC_WORKSPACE_WRAPPER.$$" "$RUSTC_WORKSPACE_WRAPPER"
    fi
    export RUSTC_WORKSPACE_WRAPPER
fi

# For scripts/test-once.sh: all files of the project but Rust's sources, which are in the programs.
if ! git rev-parse --git-dir >/dev/null 2>&1; then
    # Nothing says which these are.
    export AGAIN=1
elif [ -z "${CHECKED_FILES:-}" ]; then
    CHECKED_FILES=$(git ls-files -z --cached --others --exclude-standard ':!:*.rs' | xargs -0 sha256sum 2>/dev/null |
        sha256sum | cut -d ' ' -f 1)
    export CHECKED_FILES
fi
