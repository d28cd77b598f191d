#!/bin/sh
# The example programs in Rust, started and asked by many connections at once: test-examples.sh [WORD...]. The words go to
# cargo. `--features actix` adds the one with actix-web, which takes as long to build as all the rest.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
# They are a workspace of their own, of which no lints are asked.
unset RUSTC_WORKSPACE_WRAPPER
exec cargo test --locked --manifest-path examples/rust/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/examples" "$@"
