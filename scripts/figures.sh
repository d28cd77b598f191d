#!/bin/sh
# Runs the laboratory's figures, and shows all that were run on one page: figures.sh [FIGURE...] [OPTIONS of `figure`], all
# figures if none is named. Results and report.html are in target/figures, or the folder that RESULTS names: a run does not
# replace a larger one there. WRITE=1 also writes what was found into docs/.
# What a machine lacks (OpenSHMEM, valgrind, memory) leaves out what needs it. Nothing else should run on the machine.
# MEMCACHED names the memcached to compare with, if not that on the PATH: 1.6.35 or newer, or pipelines say little.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
results=${RESULTS:-$target/figures}
cargo build --release --quiet --bin nuthatch --bin nuthatch-lab
if command -v oshcc >/dev/null && command -v oshrun >/dev/null; then
    cargo build --release --quiet --bin nuthatch-fabric --features nuthatch-cluster-lab/openshmem
fi
case " $*" in
*" "[!-]*) ;;
*) set -- --all "$@" ;;
esac
failed=
"$target/release/nuthatch-lab" figure --output "$results" "$@" || failed=yes
set -- --from "$results" --output "$results/report.html"
if [ "${WRITE:-}" = 1 ]; then
    set -- "$@" --into docs/papers.md --into docs/engines.md
fi
"$target/release/nuthatch-lab" report "$@"
[ -z "$failed" ]
