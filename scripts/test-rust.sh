#!/bin/sh
# Every test of the workspace, doc tests and examples included.
#
# Cargo runs one test program after the other, and many of them mostly wait: for items to expire, for a server to close.
# So it only builds them here and notes how each is run (scripts/test-later.sh), and then two run at a time. What a
# program prints comes when it is through.
#
# Why not cargo-nextest, which runs tests side by side, too: it starts a process for each of 2,130 tests, which took 449 s
# of processors where 126 programs took 417 (version 0.9.148, one build, one after the other on two busy cores). What
# passed before and has not changed runs again, where scripts/test-once.sh leaves `make test` at 50 s. Documentation's tests
# need cargo beside it. And it cannot ask test programs with a `main` of their own what they contain.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
later=$(mktemp -d)
trap 'rm -r "$later"' EXIT
# A failure hides no other. Several words.
# shellcheck disable=SC2046
cargo test --workspace --no-fail-fast $(scripts/features.sh) \
    --config "target.'cfg(all())'.runner = ['$PWD/scripts/test-later.sh', '$later']" || : >"$later/failed"
# A program that has not ended after so many seconds hangs, on any machine: it is ended, so that the others' results show.
# (124: by TERM. 137: by KILL, because it ignores that.)
hangs=1200
ls "$later"/*.run | xargs -P 2 -I TEST sh -c 'timeout -k 60 "$1" sh TEST >TEST.log 2>&1 || {
    case $? in 124 | 137) echo "has not ended after $1 s" >>TEST.log ;; esac
    : >"$0/failed"
}
cat TEST.log' "$later" $hangs
[ ! -e "$later/failed" ]
