#!/bin/sh
# Takes what long runs of scripts/fuzz.sh found into what is committed: fuzz-corpus.sh [TARGET...], all if not
# said. Of all inputs of a target, in fuzz/corpus and in target/fuzz/corpus, it keeps few that reach everything
# that all of them reach. (How often each place is reached does not count, or there would be thousands.)
set -eu
cd "$(dirname "$0")/.."
[ $# != 0 ] || set -- $(basename -s .rs fuzz/fuzz_targets/*.rs)
programs=$(scripts/fuzz-build.sh release)
[ -n "$programs" ] || { echo "fuzz-corpus: no nightly compiler" >&2; exit 1; }
for target; do
    kept=target/fuzz/kept/$target known=fuzz/corpus/$target found=target/fuzz/corpus/$target
    rm -rf "$kept"
    mkdir -p "$kept" "$known" "$found"
    "$programs/$target" "$kept" "$known" "$found" -artifact_prefix="fuzz/artifacts/$target/" \
        -set_cover_merge=1 -use_counters=0 -verbosity=0 >"target/fuzz/$target.merge.log" 2>&1
    rm -rf "$known"
    mv "$kept" "$known"
    echo "fuzz: $target: $(find "$known" -type f | wc -l) inputs, $(du -bs "$known" | cut -f 1) bytes"
done
