#!/bin/sh
# Clippy has nothing to say.
set -eu
cd "$(dirname "$0")/.."
# Several words.
# shellcheck disable=SC2046
cargo clippy --workspace --all-targets $(scripts/features.sh) -- -D warnings
