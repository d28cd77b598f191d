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
# In this order they are run: the engines' checks take longest.
case $PWD in
    */lab/check) order=1 ;;
    *) order=2 ;;
esac
{
    export -p
    printf "cd '%s'\necho '     Running %s'\nexec" "$PWD" "$*"
    printf " '%s'" "$@"
    echo
} >"$folder/$order-$(basename "$1").run"
