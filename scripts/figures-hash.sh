#!/bin/sh
# Draws the figures of docs/hashing.md and prints its tables as Markdown; more words go to the command:
# scripts/figures-hash.sh --root /srv --output figures
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet --bin nuthatch
exec target/release/nuthatch hash figures "$@"
