#!/bin/sh
# Cargo's runner in scripts/loom.sh: test-once.sh FOLDER PROGRAM WORD... runs a test program that looks at every
# interleaving, and so says the same each time: one that has passed and is the same file since is not run again, and what
# it said comes from FOLDER.
set -eu
folder=$1
shift
mkdir -p "$folder"
same=$folder/$({ sha256sum <"$1"; echo "$@" "${LOOM_MAX_PREEMPTIONS:-}"; } | sha256sum | cut -d ' ' -f 1)
if [ -e "$same" ]; then
    echo "as it said when it ran last, unchanged since:"
    cat "$same"
    exit
fi
unfinished=$(mktemp "$folder/XXXXXX")
status=0
"$@" >"$unfinished" 2>&1 || status=$?
cat "$unfinished"
if [ $status = 0 ]; then mv "$unfinished" "$same"; else rm "$unfinished"; fi
exit $status
