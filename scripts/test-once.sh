#!/bin/sh
# test-once.sh FILE... -- COMMAND WORD... runs a check that does not run again while nothing has changed since it passed: the
# command's own file if it is a program, the other files here, its words, and all files of the project but Rust's sources
# (CHECKED_FILES of scripts/check-env.sh), as `go test` does. What it said comes from target/passed then. With AGAIN=1 it runs
# in any case.
set -eu
folder=$(cd "$(dirname "$0")/.." && pwd)/target/passed
files=
while [ "$1" != -- ]; do
    files="$files $(sha256sum <"$1")"
    shift
done
shift
mkdir -p "$folder"
program=$(sha256sum <"$(command -v "$1")")
# All that it depends on.
same=$(echo "$program $files" "$@" "${CHECKED_FILES:-} ${MEMCACHED:-} ${NUTHATCH_ENGINE:-}" \
    "${LOOM_MAX_PREEMPTIONS:-} ${NUTHATCH_SOAK:-} ${NUTHATCH_SEED:-}" | sha256sum | cut -d ' ' -f 1)
same=$folder/$same
[ -z "${AGAIN:-}" ] || rm -f "$same"
if [ -e "$same" ]; then
    echo "as it said when it ran last, unchanged since:"
    cat "$same"
    exit
fi
unfinished=$(mktemp "$folder/XXXXXX")
# One that hangs and is ended has said at what.
trap 'cat "$unfinished"; rm "$unfinished"; exit 143' TERM
status=0
"$@" >"$unfinished" 2>&1 || status=$?
trap - TERM
cat "$unfinished"
if [ $status = 0 ]; then mv "$unfinished" "$same"; else rm "$unfinished"; fi
exit $status
