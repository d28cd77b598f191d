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
binaries=
if [ -e src/main.rs ] || grep -q '^\[\[bin\]\]' Cargo.toml; then
    built=$(dirname "$(dirname "$1")")
    binaries=$(find "$built/nuthatch" "$built/nuthatch-lab" "$built/nuthatch-pe" -maxdepth 0 2>/dev/null) || :
fi
{
    export -p
    printf "cd '%s'\necho '     Running %s'\nexec '%s/test-once.sh'" "$PWD" "$program" "$scripts"
    # Several files.
    # shellcheck disable=SC2086
    printf " '%s'" $binaries -- "$@"
    echo
} >"$folder/$order-$(basename "$program").run"
