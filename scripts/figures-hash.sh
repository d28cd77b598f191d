#!/bin/sh
# Draws the figures of docs/hashing.md and prints its tables as Markdown. Options are passed on:
# scripts/figures-hash.sh --root /srv --output figures
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet --bin nuthatch-lab
exec "${CARGO_TARGET_DIR:-target}/release/nuthatch-lab" hash figures "$@"
