#!/bin/sh
# The tests with several threads under ThreadSanitizer: locks, all engines, shared flow caches, and the server
# over sockets. A data race that it sees fails the test program it is in.
#
# The standard library is built with it, too, from its sources, which are a component of the nightly toolchain: else
# ThreadSanitizer would not see what the library's locks, channels, joins and reference counts order.
#
# ThreadSanitizer knows what an Acquire sees of a Release, but not what fences order. That is enough here: what
# only fences order is loaded and stored atomically (`crates/core/base/src/sync/stripes.rs`), and all else passes
# from thread to thread by Release and Acquire. The models (scripts/loom.sh) judge the fences.
#
#     scripts/tsan.sh [name of a test]
set -eu
cd "$(dirname "$0")/.."
skip() {
    echo "tsan: skipped: $1"
    echo "counts: 0 passed, 0 failed, 1 skipped"
    exit 0
}
host=$(rustc +nightly -vV 2>/dev/null | sed -n 's/^host: //p')
[ -n "$host" ] || skip "no nightly compiler"
sources=$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock
[ -e "$sources" ] || rustup component add rust-src --toolchain nightly || skip "no sources of the standard library"
# `--cfg tsan`: atomics instead of `asm!`, which ThreadSanitizer does not look into.
export RUSTFLAGS="-Zsanitizer=thread --cfg tsan ${RUSTFLAGS:-}"
# A build of its own, so that the usual one is not thrown away.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/tsan"
# Everything takes several times as long, so a part of the random checks.
export NUTHATCH_SOAK="${NUTHATCH_SOAK:-1/4}"
# A failure hides no other. The tests not named here have one thread, or ask how much memory a process takes,
# of which ThreadSanitizer takes most, or put the oracle behind the server, which is slow and all one lock.
cargo +nightly test -Zbuild-std --target "$host" --no-fail-fast \
    -p nuthatch-base -p nuthatch-engine -p nuthatch-store -p nuthatch-cuckoo -p nuthatch-chained -p nuthatch-memc3 \
    -p nuthatch-partition -p nuthatch-cphash -p nuthatch -p nuthatch-flow -p nuthatch-check \
    -p nuthatch-settings -p nuthatch-state -p nuthatch-commands -p nuthatch-server --lib \
    --test cache --test shared --test cuckoo --test cphash --test lockhash --test chained --test memc3 \
    -- "$@"
