#!/bin/sh
# Clippy has nothing to say.
set -eu
cd "$(dirname "$0")/.."
cargo clippy --workspace --all-targets -- -D warnings
