#!/bin/sh
# The code is formatted as rustfmt does.
set -eu
cd "$(dirname "$0")/.."
cargo fmt --all --check
cargo fmt --check --manifest-path examples/rust/Cargo.toml
rustfmt --edition 2024 --check scripts/compile.rs
