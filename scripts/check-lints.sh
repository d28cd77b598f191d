#!/bin/sh
# Clippy has nothing to say, and no link of the documentation is broken. Both were asked when the tests were compiled
# (scripts/compile.rs), and cargo repeats what they said.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
if [ -z "${RUSTC_WORKSPACE_WRAPPER:-}" ]; then
    echo "lints: there is no clippy-driver here; rustup component add clippy"
    exit 1
fi
said=$(mktemp)
trap 'rm "$said"' EXIT
# Libraries that have no tests in Rust, of the packages for Python and Node.js, come with the second. Several words.
# shellcheck disable=SC2046
if ! { cargo test --workspace --no-run $(scripts/features.sh) && cargo build --workspace --lib $(scripts/features.sh); } >"$said" 2>&1 ||
    grep -q '^warning' "$said"; then
    grep -v '^  Executable' "$said"
    exit 1
fi
