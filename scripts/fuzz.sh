#!/bin/sh
# Runs fuzz targets: fuzz.sh [SECONDS [JOBS [TARGET...]]], 5 seconds each, one at a time, and all of them if
# not said. Needs a nightly compiler; says that it is skipped without one.
#
# Each begins with what is committed for it in fuzz/corpus. What a long run finds besides stays in
# target/fuzz/corpus, from where the next one goes on and scripts/fuzz-corpus.sh takes it; a short run begins
# with no more than what is committed, and leaves nothing. An input that fails stays in fuzz/artifacts.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-5} jobs=${2:-1}
shift $(($# < 2 ? $# : 2))
mkdir -p target
work=target/fuzz
profile=release
# A short run does not earn back what optimising costs.
if [ "$seconds" -lt 30 ]; then
    profile=dev
    work=$(mktemp -d target/fuzz-XXXXXX)
    trap 'rm -rf "$work"' EXIT
fi
programs=$(scripts/fuzz-build.sh $profile)
if [ -z "$programs" ]; then
    echo "fuzz: skipped: no nightly compiler"
    echo "counts: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
[ $# != 0 ] || set -- $(basename -s .rs fuzz/fuzz_targets/*.rs)
printf '%s\n' "$@" | xargs -P "$jobs" -I TARGET scripts/fuzz-target.sh "$programs/TARGET" "$seconds" "$work" || true
passed=0 failed=0
for target; do
    if [ -e "$work/$target.passed" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
echo "counts: $passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
