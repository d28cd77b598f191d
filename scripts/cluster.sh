#!/bin/sh
# Builds the distributed store and keeps one running on this machine: cluster.sh [WORDS of nuthatch-pe...]
#
#   SERVERS (2)     PEs that serve; GATEWAYS (2): PEs that memcached's clients talk to. With --co-located all are both
#   NUTHATCH_PE     the program, if it is not to be built
#
# No OpenSHMEM survives the death of a PE: the launcher ends the job. Then it is started again, empty, after a pause that
# grows with each job that did not live long. Ctrl-C or SIGTERM ends it in order, and so does the end of a job without an
# error (`shutdown` by a client, with -A). Flags that cannot be (exit code 2) end it, too.
set -eu
cd "$(dirname "$0")/.."
if ! command -v oshcc >/dev/null || ! command -v oshrun >/dev/null; then
    echo "cluster: no OpenSHMEM (oshcc, oshrun) here; on Debian: apt-get install openmpi-bin libopenmpi-dev" >&2
    exit 69
fi
if [ -z "${NUTHATCH_PE:-}" ]; then
    cargo build --release -p nuthatch-pe --features openshmem
    NUTHATCH_PE=${CARGO_TARGET_DIR:-target}/release/nuthatch-pe
fi
servers=${SERVERS:-2} gateways=${GATEWAYS:-2}
# What the words do not say themselves: places add up, and PEs that are both have no number of servers.
listen="-l 127.0.0.1" who="--servers $servers"
for word in "$@"; do
    case $word in
        -l* | --listen*) listen="" ;;
        --co-located) who="" ;;
    esac
done
given="$who $listen"

# What a job shares on this machine goes into a directory of its own, so that what a killed one leaves is known: Open MPI's
# segments and session, and UCX's. (The symmetric heap has no name: the system frees it with the last PE.)
own=$(mktemp -d /dev/shm/nuthatch-cluster.XXXXXX)
export OMPI_MCA_btl_vader_backing_directory="$own" OMPI_MCA_orte_tmpdir_base="$own" UCX_POSIX_DIR="$own"
# In a container the user is root; a small machine has fewer cores than PEs.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# A supervisor that is killed takes the job with it, where the system can tell the launcher.
ends_with_parent="setpriv --pdeathsig TERM"
$ends_with_parent true 2>/dev/null || ends_with_parent=""

job=""
stopped=""
# The PEs of the job on this machine are the launcher's children. One that is told tells the others.
stop() {
    stopped=yes
    [ -z "$job" ] || pkill -TERM -P "$job" || true
}
trap stop INT TERM
# A second signal, or the same one to a terminal's whole group, is not to end that.
trap 'trap "" INT TERM; rm -rf "$own"' EXIT

# Until it has ended: a signal ends a wait, not the job.
await() {
    status=0
    wait "$job" || status=$?
    while kill -0 "$job" 2>/dev/null; do
        status=0
        wait "$job" || status=$?
    done
}

# Backslashes are for who types it.
printf '%s\n' "cluster: once gateways say where they are, try (with the first one's port): bash -c 'exec 3<>/dev/tcp/127.0.0.1/11211; \
printf \"set seed 0 0 5\r\nacorn\r\nget seed\r\nquit\r\n\" >&3; cat <&3'   (Ctrl-C ends the job)"

pause=1
while [ -z "$stopped" ]; do
    started=$(date +%s)
    # Out of the terminal's reach: Ctrl-C is for this script, which ends the job in order.
    # Several words or none.
    # shellcheck disable=SC2086
    setsid $ends_with_parent oshrun --oversubscribe -n $((servers + gateways)) "$NUTHATCH_PE" $given "$@" &
    job=$!
    # It was told before there was a job to tell.
    [ -z "$stopped" ] || stop
    await
    job=""
    find "$own" -mindepth 1 -delete
    if [ "$status" = 0 ]; then
        echo "cluster: the job has ended in order"
        exit 0
    fi
    [ -z "$stopped" ] || break
    if [ "$status" = 2 ]; then
        echo "cluster: these flags cannot be, and the next job would have the same" >&2
        exit 2
    fi
    # After a minute of life the pause begins anew.
    [ $(($(date +%s) - started)) -lt 60 ] || pause=1
    echo "cluster: the job has ended with $status, and what it held is gone; another one in $pause s" >&2
    sleep $pause &
    wait $! || true
    pause=$((pause < 32 ? pause * 2 : 60))
done
# Asked to stop, and the job ended otherwise than in order.
echo "cluster: stopped" >&2
exit "${status:-0}"
