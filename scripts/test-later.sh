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
# Its engines' threads look for messages all the time. On one core, the last of those that are allowed, each lets the next one run:
# beside other checks it takes 65 s there, and 200 to 400 on two.
on=
case $program in
    */lab/check/cphash-*) ! command -v taskset >/dev/null || on="taskset -c $(taskset -cp $$ | sed 's/.*[^0-9]//') " ;;
esac
built=$(dirname "$(dirname "$1")")
{
    export -p
    # It reads all of the project's Rust sources, which scripts/test-once.sh takes to be in the programs.
    case $program in */lab/tidy/*) echo "export AGAIN=1" ;; esac
    printf "cd '%s'\necho '     Running %s'\nexec %s'%s/test-once.sh'" "$PWD" "$program" "$on" "$scripts"
    for name in $programs; do
        [ ! -e "$built/$name" ] || printf " '%s'" "$built/$name"
    done
    printf " '%s'" -- "$@"
    echo
} >"$folder/$order-$(basename "$program").run"
