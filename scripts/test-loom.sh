#!/bin/sh
# The models of the lock-free parts: every interleaving that loom finds within its bounds.
# Models stand in tests/loom*.rs of a crate, or in modules named loom. A minute or two on 2 cores.
set -eu
cd "$(dirname "$0")/.."
# A directory of its own: --cfg loom would throw away what the other tests built.
export RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom
for crate in sync cache; do
    manifest=crates/$crate/Cargo.toml
    cargo test --release --manifest-path $manifest --lib -- loom
    if ls crates/$crate/tests/loom*.rs >/dev/null 2>&1; then
        cargo test --release --manifest-path $manifest --test 'loom*'
    fi
done
