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
# The tests of programs start these.
programs=
if [ -e src/main.rs ] || grep -q '^\[\[bin\]\]' Cargo.toml; then
    programs="nuthatch nuthatch-lab nuthatch-pe"
fi
built=$(dirname "$(dirname "$1")")
{
    export -p
    # Its engines' threads look for messages all the time: two at a time on two cores take three times as long.
    case $program in */lab/check/cphash-*) echo "export RUST_TEST_THREADS=1" ;; esac
    # It reads all of the project's Rust sources, which scripts/test-once.sh takes to be in the programs.
    case $program in */lab/tidy/*) echo "export AGAIN=1" ;; esac
    printf "cd '%s'\necho '     Running %s'\nexec '%s/test-once.sh'" "$PWD" "$program" "$scripts"
    for name in $programs; do
        [ ! -e "$built/$name" ] || printf " '%s'" "$built/$name"
    done
    printf " '%s'" -- "$@"
    echo
} >"$folder/$order-$(basename "$program").run"
