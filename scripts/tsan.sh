#!/bin/sh
# The tests with several threads under ThreadSanitizer: locks, all engines, shared flow caches, and the server
# over sockets. A data race that it sees fails the test program it is in. Then the library as it is on other systems, under
# AddressSanitizer as well.
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
# Everything takes several times as long, so a part of the random checks.
export NUTHATCH_SOAK="${NUTHATCH_SOAK:-1/4}"
target=${CARGO_TARGET_DIR:-target}
status=0
# sanitized BUILD FLAGS WORD...: the tests that the words choose, with these flags of the compiler. A build of its own, so that
# no other is thrown away. A failure hides no other.
sanitized() {
    build=$1 flags=$2
    shift 2
    RUSTFLAGS="$flags ${RUSTFLAGS:-}" cargo +nightly test --target "$host" --target-dir "$target/$build" --no-fail-fast "$@" ||
        status=1
}
# `--cfg tsan`: atomics instead of `asm!`, which ThreadSanitizer does not look into.
threads="-Zsanitizer=thread --cfg tsan"
# The tests not named here have one thread, or ask how much memory a process takes,
# of which ThreadSanitizer takes most, or put the oracle behind the server, which is slow and all one lock.
sanitized tsan "$threads" -Zbuild-std \
    -p nuthatch-base -p nuthatch-engine -p nuthatch-store -p nuthatch-cuckoo -p nuthatch-chained -p nuthatch-memc3 \
    -p nuthatch-partition -p nuthatch-cphash -p nuthatch -p nuthatch-flow -p nuthatch-check \
    -p nuthatch-client -p nuthatch-settings -p nuthatch-ring -p nuthatch-channels -p nuthatch-lua -p nuthatch-state -p nuthatch-commands \
    -p nuthatch-redis \
    -p nuthatch-server --lib \
    --test cache --test shared --test cuckoo --test cphash --test lockhash --test chained --test memc3 \
    -- "$@"

# The library on what it takes from other systems (crates/core/base/src/sys), under AddressSanitizer too, which sees what is
# read outside of its place or after it was given back. It needs no standard library of its own. Two tests leave memory behind
# on purpose, as a process that is killed does.
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
library="-p nuthatch-base -p nuthatch-store -p nuthatch-cuckoo -p nuthatch --lib --test cache --test limits --test lifetimes"
for system in portable unix; do
    # Several words.
    # shellcheck disable=SC2086
    sanitized tsan-$system "$threads --cfg nuthatch_$system" -Zbuild-std $library -- "$@"
    # shellcheck disable=SC2086
    sanitized asan-$system "-Zsanitizer=address --cfg nuthatch_$system" $library -- "$@"
done
exit $status
