#!/bin/sh
# The figures of SHMEMCache, from the distributed store over OpenSHMEM: figures-cluster.sh [OPTIONS of `figure`], as in
# --quick --output FOLDER. Without OpenSHMEM and memcached what needs them is left out. Nothing else should run on the
# machine.
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet --bin nuthatch-lab
if command -v oshcc >/dev/null && command -v oshrun >/dev/null; then
    cargo build --release --quiet --bin nuthatch-fabric --features nuthatch-cluster-lab/openshmem
fi
exec "${CARGO_TARGET_DIR:-target}/release/nuthatch-lab" figure shmemcache "$@"
