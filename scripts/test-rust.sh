#!/bin/sh
# Every test of the workspace, doc tests and examples included.
set -eu
cd "$(dirname "$0")/.."
# A failure hides no other.
cargo test --workspace --no-fail-fast
