#!/bin/sh
# Clippy has nothing to say.
set -eu
cd "$(dirname "$0")/.."
# What only OpenSHMEM compiles counts too, where it is.
features=
if command -v oshcc >/dev/null; then
    features="--features nuthatch-fabric-lab/openshmem,nuthatch-pe/openshmem,nuthatch-cluster-lab/openshmem,nuthatch-shmem-c/openshmem"
fi
# Two words.
# shellcheck disable=SC2086
cargo clippy --workspace --all-targets $features -- -D warnings
