#!/bin/sh
# Runs one fuzz target, for scripts/fuzz.sh: fuzz-target.sh PROGRAM SECONDS WORK. Tells in one line what it came to, and
# all that it printed only if it failed. In the folder WORK are its log, the inputs that it found, and TARGET.passed if
# it passed.
set -eu
program=$1 seconds=$2 work=$3
target=$(basename "$program")
dictionary=fuzz/dictionaries/$target.dict
[ -f "$dictionary" ] || dictionary=fuzz/dictionaries/memcached.dict
found=$work/corpus/$target known=fuzz/corpus/$target log=$work/$target.log
mkdir -p "$found" "$known" "fuzz/artifacts/$target"
rm -f "$work/$target.passed"
# New inputs go to the first folder.
if "$program" "$found" "$known" -artifact_prefix="fuzz/artifacts/$target/" -dict="$dictionary" \
    -max_total_time="$seconds" -verbosity=0 -print_final_stats=1 >"$log" 2>&1
then
    touch "$work/$target.passed"
else
    cat "$log"
fi
executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
count() { find "$1" -type f | wc -l; }
echo "fuzz: $target: ${executed:-no} executions in $seconds s; $(count "$known") inputs known, $(count "$found") found"
