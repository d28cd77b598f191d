#!/bin/sh
# test-once.sh FOLDER PROGRAM WORD... runs a test program that says the same each time, because it looks at every
# interleaving or draws from seeds that are its own. One that has passed and is the same file since, with the same words,
# is not run again, and what it said comes from FOLDER.
#
# Cargo's runner in scripts/loom.sh; scripts/test-later.sh says for which others it is.
set -eu
folder=$1
shift
mkdir -p "$folder"
# All that its run depends on.
inputs() {
    sha256sum <"$1"
    echo "$@" "${LOOM_MAX_PREEMPTIONS:-} ${NUTHATCH_SOAK:-} ${NUTHATCH_SEED:-}"
}
same=$folder/$(inputs "$@" | sha256sum | cut -d ' ' -f 1)
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
