#!/bin/sh
# Every test of the workspace, doc tests and examples included.
set -eu
cd "$(dirname "$0")/.."
cargo test --workspace
