#!/bin/sh
# Cargo's runner in scripts/test-rust.sh: test-later.sh FOLDER PROGRAM WORD... leaves a script in FOLDER that runs a
# test program as cargo would, and does so now for one of rustdoc's, which does not last.
set -eu
folder=$1
shift
case $1 in
    */deps/*) ;;
    *) exec "$@" ;;
esac
program=$PWD/$(basename "$1")
scripts=$(cd "$(dirname "$0")" && pwd)
# In this order they are run: what takes longest comes first.
case $program in
    */lab/check/cphash-* | */lab/check/cluster-* | */lab/check/cluster_seeds-*) order=1 ;;
    */lab/check/*) order=2 ;;
    *) order=3 ;;
esac
# Those that draw from seeds of their own alone, ask no clock and read no file say the same each time. (Most checks of
# engines do not: their threads meet as they like, and their sequences and hash functions are new ones in each run.)
case $program in
    */lab/check/cluster_seeds-* | */crates/flow/theory-*) set -- "$scripts/test-once.sh" "$scripts/../target/passed" "$@" ;;
esac
{
    export -p
    printf "cd '%s'\necho '     Running %s'\nexec" "$PWD" "$program"
    printf " '%s'" "$@"
    echo
} >"$folder/$order-$(basename "$program").run"
