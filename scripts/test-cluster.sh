#!/bin/sh
# The distributed store on OpenSHMEM: the checks of every engine, over shared memory, TCP and three hosts, which are network
# namespaces; a memcached client at the gateways of nuthatch-pe; a C program with the installed library. Says that it is
# skipped where there is no OpenSHMEM, or no namespaces are to be had. With NUTHATCH_SOAK=n (scripts/soak.sh) all cases of
# conformance and all random checks run, too, and a job may take n times as long.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
if ! command -v oshcc >/dev/null || ! command -v oshrun >/dev/null; then
    echo "cluster: skipped: no OpenSHMEM (oshcc, oshrun) here"
    echo "counts: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
build_shared --bin nuthatch-pe --bin nuthatch-cluster --example cache
built=$(realpath "${CARGO_TARGET_DIR:-target}")/debug
[ "${1:-}" = built ] ||
    exec scripts/test-once.sh "$built/nuthatch-pe" "$built/nuthatch-cluster" "$built/examples/cache" -- "scripts/$(basename "$0")" built

passed=0 failed=0 skipped=0
# A job that hangs, on any machine, is ended. (The one that fills memory took 516 s beside the other checks on a slow one.)
hangs=$((1800 * ${NUTHATCH_SOAK:-1}))
out=$PWD/target/cluster
rm -rf "$out"
mkdir -p "$out"
log=$out/log
# printed PATTERN: as often as COUNT says.
printed() {
    times=$(grep -c "$1" "$log")
    case ${COUNT:-1} in
        any) [ "$times" -gt 0 ] ;;
        *) [ "$times" = "${COUNT:-1}" ] ;;
    esac
}
# tried COMMAND...: how it ends. Once more if Open MPI 4.1 crashed in shmem_init, before anything of ours ran: in this
# function of its own it does now and then, where PEs are on several hosts.
tried() {
    timeout -k 10 $hangs "$@" >"$log" 2>&1 && return
    grep -q "liboshmem.*mca_memheap_modex_recv_all" "$log" || return
    echo "cluster: Open MPI crashed in shmem_init: once more"
    timeout -k 10 $hangs "$@" >"$log" 2>&1
}
# expect WHAT PATTERN COMMAND...: it ends without an error and prints the pattern, so many times as COUNT says (default
# 1; "any": once or more).
expect() {
    what=$1 pattern=$2
    shift 2
    began=$(date +%s)
    if tried "$@" && printed "$pattern"; then
        echo "cluster: $what: $(grep -m 1 "$pattern" "$log"), $(($(date +%s) - began)) s"
        passed=$((passed + 1))
    else
        echo "cluster: $what: failed"
        cat "$log"
        failed=$((failed + 1))
    fi
}

# Containers run as root; tests have more PEs than the machine has cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# A PE that waits leaves the core to others, which may be those that it waits for.
export OMPI_MCA_mpi_yield_when_idle=1
job="oshrun --oversubscribe -n"
check=$built/nuthatch-cluster
# Conformance, all but one case, in three jobs.
most=store_,delta,flush,batch
# Memory is filled by two hundred thousand messages: half a minute where each PE has a core. (How hits keep large values takes
# ten times as many: the soak's.)
memory=memory_full,memory_sizes,memory_limit,memory_recent_hits
rest=read,remove,reserve,visit,stats,expiry,size_,engine
# What takes few messages, so that it also runs where a message takes long.
few=store_,delta,read,batch,reserve,flush
ends="cases and . checks passed"
# shellcheck disable=SC2086
{
    expect "shared memory, 2 PEs" "$ends" $job 2 "$check" --cases $most --part 0
    expect "shared memory, memory" "$ends" $job 2 "$check" --cases $memory --part 0
    expect "shared memory, 4 PEs" "$ends" $job 4 "$check" --servers 2 --operations direct --cases delta \
        --checks growth --part 300
    expect "shared memory, 4 PEs, the rest" "$ends" $job 4 "$check" --servers 2 --cases $rest --part 0
    if [ -n "${NUTHATCH_SOAK:-}" ]; then
        expect "TCP, 4 PEs, all" "cases and .* checks passed" env UCX_TLS=tcp,self $job 4 "$check" --servers 2 \
            --part $((20 / NUTHATCH_SOAK + 1))
        expect "shared memory, 2 PEs, the other half" "$ends" $job 2 "$check" --cases $rest --part 0
        for how in chosen direct active; do
            expect "shared memory, 4 PEs, all, $how" "cases and .* checks passed" $job 4 "$check" --servers 2 \
                --operations $how --part $((20 / NUTHATCH_SOAK + 1))
        done
    fi
    # Several ask at once: one line for ample memory, one for tight. Those of the soak are other ones each time.
    seed=1
    [ -z "${NUTHATCH_SOAK:-}" ] || seed=$(date +%s)
    echo "cluster: histories begin from seed $seed"
    more=${NUTHATCH_SOAK:-1}
    seen="clients at once.*Seen"
    for how in direct active; do
        COUNT=2 expect "histories of 3 PEs at once" "$seen" $job 5 "$check" --servers 2 --operations $how \
            --histories $((200 * more)) --seed $seed
    done
    COUNT=2 expect "histories over TCP" "$seen" env UCX_TLS=tcp,self $job 4 "$check" --servers 2 \
        --operations direct --histories $((40 * more)) --seed $seed
    expect "TCP, 2 PEs" "$ends" env UCX_TLS=tcp,self $job 2 "$check" --cases $few --part 0
    expect "TCP, 4 PEs" "$ends" env UCX_TLS=tcp,self $job 4 "$check" --servers 2 --cases flush --part 0
}
# cut END HOST...: the link of each for ten seconds, one after the other, each time once others are at work: another case has its
# store then. END is there when all is mended.
cut() {
    end=$1
    shift
    for host in "$@"; do
        made=$(grep -c "cluster: store" "$log") || :
        until [ "$(grep -c "cluster: store" "$log")" -gt "$made" ]; do
            sleep 0.1
        done
        scripts/hosts.sh cut "$host"
        sleep 10
        scripts/hosts.sh mend "$host"
    done
    touch "$end"
}
if scripts/hosts.sh up 3 >"$log" 2>&1; then
    expect "three hosts" "$ends" scripts/hosts.sh run 3 "$check" --servers 2 --cases flush --part 0
    COUNT=2 expect "histories on three hosts" "clients at once.*Seen" scripts/hosts.sh run 3 "$check" --operations direct \
        --histories $((30 * more)) --seed $seed
    if [ -n "${NUTHATCH_SOAK:-}" ]; then
        expect "three hosts, all" "cases and .* checks passed" scripts/hosts.sh run 3 "$check" --servers 2 \
            --part $((20 / NUTHATCH_SOAK + 1))
    fi
    # The link of a server, and of the PE that asks: all wait, and go on until it is mended; nothing is wrong.
    end=$out/mended
    : >"$log"
    cut "$end" 2 3 &
    cutter=$!
    COUNT=any expect "three hosts, links cut for ten seconds" "$ends" scripts/hosts.sh run 3 "$check" --servers 2 \
        --cases store_,delta --part 0 --until "$end"
    # A job that failed leaves it waiting, or a link down.
    kill $cutter 2>/dev/null || :
    wait $cutter || :
    for host in 2 3; do
        scripts/hosts.sh mend $host
    done
    scripts/hosts.sh down
else
    echo "cluster: three hosts: skipped: no namespaces here: $(tail -n 1 "$log")"
    skipped=$((skipped + 1))
fi

# A program in Rust.
# shellcheck disable=SC2086
{
    COUNT=2 expect "a Rust program, serving beside itself" "hello from one of 2 clients" $job 2 "$built/examples/cache"
    COUNT=2 expect "a Rust program, one PE serves" "hello from one of 2 clients" $job 3 "$built/examples/cache" 1
}

# A C program, with the library where a user has it.
PROFILE=dev PREFIX=/usr DESTDIR="$out/root" scripts/install.sh shmem
root=$out/root/usr
export PKG_CONFIG_SYSROOT_DIR="$out/root" PKG_CONFIG_PATH="$root/lib/pkgconfig" LD_LIBRARY_PATH="$root/lib"
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
# Several flags each.
# shellcheck disable=SC2046,SC2086
{
    oshcc -std=c11 -g -O2 -Wall -Wextra -Werror examples/shmem/solver.c $(pkg-config --cflags --libs nuthatch-shmem) \
        -o "$out/solver"
    # The same sum on every PE that solves.
    COUNT=2 expect "a C program, serving beside itself" "sum 277182223," $job 2 "$out/solver"
    COUNT=3 expect "a C program, one PE serves" "sum 277182223," $job 4 "$out/solver" 1
    # The program says what its status means, and ends all PEs.
    COUNT=any expect "a heap that is too small" "no symmetric memory" \
        sh -c "! SHMEM_SYMMETRIC_HEAP_SIZE=4M $job 2 $out/solver"
    oshcc -std=c11 -g -O2 -Wall -Wextra -Werror crates/shmem/shmem-c/tests/operations.c \
        $(pkg-config --cflags --libs nuthatch-shmem) -o "$out/operations"
    COUNT=2 expect "every operation in C" "operations: PE . is right" $job 2 "$out/operations"
    # By the name of the file, because the linker prefers the shared library.
    libs=$(pkg-config --static --libs nuthatch-shmem | sed 's/-lnuthatch_shmem/-l:libnuthatch_shmem.a/')
    oshcc -std=c11 -g -O2 examples/shmem/solver.c $(pkg-config --cflags nuthatch-shmem) $libs -o "$out/solver-static"
    ! readelf -d "$out/solver-static" | grep -q "NEEDED.*nuthatch"
    COUNT=2 expect "a C program with the static library" "sum 277182223," $job 2 "$out/solver-static"
    COUNT=2 expect "a C program over TCP" "sum 277182223," env UCX_TLS=tcp,self $job 2 "$out/solver"
}
expect "the manual page" "^.TH nuthatch-pe 1" cat "$root/share/man/man1/nuthatch-pe.1"
expect "completions" "_nuthatch__pe()" cat "$root/share/bash-completion/completions/nuthatch-pe"
PREFIX=/usr DESTDIR="$out/root" scripts/uninstall.sh
left=$(find "$out/root" ! -type d)
if [ -n "$left" ]; then
    echo "cluster: uninstall leaves: $left"
    failed=$((failed + 1))
fi

NUTHATCH_PE=$built/nuthatch-pe timeout -k 10 $hangs .venv/bin/python -m pytest -q -p no:cacheprovider tests/cluster ||
    failed=$((failed + 1))
echo "counts: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
