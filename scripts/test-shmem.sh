#!/bin/sh
# The fabric over OpenSHMEM does what a fabric must: over shared memory, over TCP, and between three hosts, which are
# network namespaces. Says that it is skipped where there is no OpenSHMEM, or no namespaces are to be had.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
if ! command -v oshcc >/dev/null || ! command -v oshrun >/dev/null; then
    echo "shmem: skipped: no OpenSHMEM (oshcc, oshrun) here"
    echo "counts: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
build_shared --bin nuthatch-fabric
program=${CARGO_TARGET_DIR:-target}/debug/nuthatch-fabric
[ "${1:-}" = built ] || exec scripts/test-once.sh "$program" -- "scripts/$(basename "$0")" built

passed=0 failed=0 skipped=0
# A job that hangs, on any machine, is ended.
hangs=600
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# expect WHAT PATTERN STATUS COMMAND...: it ends so (0, or "bad" for anything else), and prints the pattern.
expect() {
    what=$1 pattern=$2 status=$3
    shift 3
    ended=0
    timeout -k 10 $hangs "$@" >"$log" 2>&1 || ended=bad
    if [ $ended = "$status" ] && grep -q "$pattern" "$log"; then
        echo "shmem: $what: $(grep -m 1 "$pattern" "$log")"
        passed=$((passed + 1))
    else
        echo "shmem: $what: failed"
        cat "$log"
        failed=$((failed + 1))
    fi
}

# Containers run as root; tests have more PEs than the machine has cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# A PE that waits leaves the core to others, which may be those that it waits for.
export OMPI_MCA_mpi_yield_when_idle=1
job="oshrun --oversubscribe -n"
check="$program check --rounds 30"
# Words are to be split.
# shellcheck disable=SC2086
{
    for pes in 1 2 4; do
        expect "shared memory" "^fabric: $pes PEs, threads Multiple" 0 $job $pes $check
    done
    expect "calls take turns" "threads Serialized" 0 $job 2 $check --serialized
    for pes in 2 4; do
        expect "TCP" "^fabric: $pes PEs.*by calls" 0 env UCX_TLS=tcp,self $job $pes $check
    done
    expect "TCP, calls take turns" "threads Serialized" 0 env UCX_TLS=tcp,self $job 2 $check --serialized
    expect "a heap that is too small" "SHMEM_SYMMETRIC_SIZE" bad \
        env SHMEM_SYMMETRIC_SIZE=1M $job 2 "$program" check --rounds 1000000
    expect "a heap that is larger than the machine" "SHMEM_SYMMETRIC_SIZE" bad \
        env SHMEM_SYMMETRIC_SIZE=1000T $job 2 $check
    # Asked five times a second it has less than half of a core.
    expect "an idle server rests" '^ *200000 .* [1-4]\{0,1\}[0-9]\.[0-9] %$' 0 $job 2 "$program" idle --count 1000
    # A store for each line, all in one job.
    expect "throughput" '^store *100 % *100 *1 *16384 ' 0 $job 2 "$program" throughput --rounds 64
    expect "throughput of chosen requests" '"value": 4096' 0 $job 3 "$program" throughput --rounds 64 --keys 1000 \
        --value 32,4096 --gets 50 --batch 1,8 --json
    # What the session chose by what it measured: blocks where a set is a store, messages where many travel together.
    sets="$program throughput --keys 100 --gets 0 --json"
    expect "single sets go to blocks over shared memory" '"messages": 0\.0' 0 $job 2 $sets --rounds 20000
    # Most of them: where others use the cores, a wave of direct sets may take one turn of the scheduler, as messages do,
    # and looks as cheap until messages are tried again, 512 waves later. So there are 1,500 waves.
    expect "sets of a batch are messages over TCP" '"messages": 0\.[6-9]' 0 \
        env UCX_TLS=tcp,self $job 2 $sets --rounds 100000 --batch 64
    expect "latencies" '"operation": "compare_swap"' 0 $job 2 "$program" latency --count 100 --json
}
if scripts/hosts.sh up 3 >"$log" 2>&1; then
    expect "three hosts" "^fabric: 3 PEs.*by calls" 0 scripts/hosts.sh run 3 $check
    scripts/hosts.sh down
else
    echo "shmem: three hosts: skipped: no namespaces here: $(tail -n 1 "$log")"
    skipped=$((skipped + 1))
fi
echo "counts: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
