#!/bin/sh
# The figures of docs/engines.md, and its part that shows them: figures-engines.sh [OPTIONS of `figure`], as in --quick.
# MEMCACHED is the memcached to compare with, that on the PATH if not said: 1.6.35 or newer, or pipelines say little.
# What was found is in target/figures. Needs about 6 GiB. Nothing else should run on the machine.
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet --bin nuthatch --bin nuthatch-lab
target=${CARGO_TARGET_DIR:-target}
found=$target/figures
"$target/release/nuthatch-lab" figure engines cphash/5 cphash/8 cphash/13 --output "$found" "$@"
"$target/release/nuthatch-lab" report --from "$found" --output "$found/report.html" --into docs/engines.md
