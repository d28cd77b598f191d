#!/bin/sh
# The distributed store's gateways under load for so many seconds: soak-cluster.sh SECONDS. A part of scripts/soak.sh; says
# that it is skipped where there is no OpenSHMEM, or no namespaces are to be had.
#   - two servers and two gateways on this machine, more keys than fit, gets and sets through both gateways at once;
#   - the same on four hosts, which are network namespaces: the way between a server and a gateway is cut while the other
#     gateway goes on, then a server's link for five seconds while both are at work.
# Answers that are lost, of another key or of another length end a load with an error. (Versions of one key are judged by the
# histories of test-cluster.sh.) No PE may take more memory of its own than is said here.
set -eu
cd "$(dirname "$0")/.."
seconds=$1
if ! command -v oshcc >/dev/null || ! command -v oshrun >/dev/null; then
    echo "soak: gateways: skipped: no OpenSHMEM (oshcc, oshrun) here"
    exit 0
fi
cargo build --release --quiet --bin nuthatch-lab
cargo build --release --quiet -p nuthatch-pe --features openshmem
built=$(realpath "${CARGO_TARGET_DIR:-target}")/release
limit=128 keys=1000000
# Of each server; the rest of a PE's memory is its own: buffers, directories, lists of blocks.
own=128
said=$(mktemp)
job=
hosts=
finish() {
    [ -z "$job" ] || kill "$job" || :
    [ -z "$hosts" ] || scripts/hosts.sh down
    rm -f "$said"
}
trap finish EXIT

# Containers run as root; there are more PEs than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# await: until both gateways listen; their ports are in $ports then.
await() {
    until [ "$(grep -c 'gateway at' "$said")" = 2 ]; do
        kill -0 "$job" || {
            cat "$said"
            exit 1
        }
        sleep 0.1
    done
    ports=$(sed -n 's/.*gateway at .*:\([0-9]*\)$/\1/p' "$said" | sort -n)
}

# load PLACE SECONDS VALUE: gets and sets of more keys than fit.
load() {
    echo "soak: gateway at $1, values of $3 bytes"
    "$built/nuthatch-lab" bench server --target "$1" --overwrite --keys $keys --conns 10 --pipeline 10 \
        --get-ratio 0.7 --dist zipf --value-size "$3" --seconds "$2" --json
}

# both PLACE PLACE SECONDS VALUE: at two gateways at once.
both() {
    load "$1" "$3" "$4" &
    second=$!
    load "$2" "$3" "$4"
    wait $second
}

# The job's PEs: the launcher's children, or what runs on the hosts.
pes() {
    if [ -z "$hosts" ]; then
        pgrep -P "$job"
    else
        for host in 1 2 3 4; do
            ip netns pids nuthatch-host$host
        done
    fi | while read -r process; do
        case $(readlink "/proc/$process/exe") in
            */nuthatch-pe) echo "$process" ;;
        esac
    done
}

# Symmetric memory is shared and of a fixed size; what else a PE takes is bounded.
check_memory() {
    for pe in $(pes); do
        mebibytes=$(awk '/RssAnon/ { print int($2 / 1024) }' "/proc/$pe/status")
        echo "soak: PE $pe: $mebibytes MiB of its own, at most $own"
        [ "$mebibytes" -le $own ]
    done
}

# One PE is told, and tells the others.
end() {
    kill "$(pes | head -n 1)"
    wait "$job"
    job=
}

oshrun --oversubscribe -n 4 "$built/nuthatch-pe" --servers 2 -l 127.0.0.1 -p 0 -m $limit -t 2 2>"$said" &
job=$!
await
# Two words.
# shellcheck disable=SC2086
set -- $ports
for value in 50 400 3000; do
    both "127.0.0.1:$1" "127.0.0.1:$2" $((seconds / 6 + 1)) $value
    check_memory
done
end

if ! scripts/hosts.sh up 4 >"$said" 2>&1; then
    echo "soak: gateways on hosts: skipped: no namespaces here: $(tail -n 1 "$said")"
    exit 0
fi
hosts=up
: >"$said"
scripts/hosts.sh run 4 "$built/nuthatch-pe" --servers 2 -l 0.0.0.0 -p 11211 -m $limit -t 2 2>"$said" &
job=$!
await
one=10.77.0.3:11211 other=10.77.0.4:11212
# Where nothing is shared a server's memory is its own, too.
own=$((own + limit))
# Each load stores its keys first, and over TCP that takes long.
keys=100000
both $one $other $((seconds / 8 + 1)) 400
echo "soak: the way between the second server and the second gateway is cut"
scripts/hosts.sh cut 2 4
load $one $((seconds / 8 + 1)) 400
scripts/hosts.sh mend 2 4
# Not for so long that a load gives an answer up, which it does after ten seconds.
echo "soak: the second server's link is cut"
both $one $other $((seconds / 8 + 11)) 400 &
loads=$!
sleep 5
scripts/hosts.sh cut 2
sleep 5
scripts/hosts.sh mend 2
wait $loads
check_memory
both $one $other $((seconds / 8 + 1)) 3000
end
echo "soak: gateways: no answer was of another key or another length"
