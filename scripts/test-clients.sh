#!/bin/sh
# Real clients against the release binary: pymemcache, pylibmc, memccapable.
# More words go to pytest: scripts/test-clients.sh -k cas
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet --bin nuthatch
NUTHATCH=${NUTHATCH:-$PWD/target/release/nuthatch} .venv/bin/python -m pytest -q tests/clients "$@"
