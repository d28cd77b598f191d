#!/bin/sh
# Runs each fuzz target for some seconds: fuzz.sh [SECONDS], 5 if not said. Needs a nightly compiler
# and cargo-fuzz; says that it is skipped without them.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-5}
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "fuzz: skipped: no nightly compiler with cargo-fuzz"
    echo "counts: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
# A short run does not earn back what optimising costs.
mode=--release
[ "$seconds" -ge 30 ] || mode=--dev
# All at once: each has much to link.
cargo +nightly fuzz build $mode
passed=0 failed=0
for target in $(cargo +nightly fuzz list); do
    dictionary=fuzz/dictionaries/$target.dict
    [ -f "$dictionary" ] || dictionary=fuzz/dictionaries/memcached.dict
    echo "fuzz: $target for $seconds s"
    if cargo +nightly fuzz run $mode "$target" -- \
        -dict="$dictionary" -max_total_time="$seconds" -verbosity=0 -print_final_stats=1
    then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
echo "counts: $passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
