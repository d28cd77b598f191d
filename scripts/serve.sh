#!/bin/sh
# Builds and starts a server on 127.0.0.1:11211; more words go to it: scripts/serve.sh -m 1024
set -eu
cd "$(dirname "$0")/.."
# By its package: else it is built with what the laboratory asks of crates that both use.
cargo build --release -p nuthatch-cli
exec "${CARGO_TARGET_DIR:-target}/release/nuthatch" -l 127.0.0.1 -p 11211 "$@"
