#!/bin/sh
# Flow caches in a packet program, on DPDK, without a network card: dpdk.sh [quick]
#
# Builds examples/dpdk, makes a capture, and replays it at memory speed to each cache in turn; ends
# with a table. `quick` is small enough for a test. In the environment: ENTRIES of each cache, FLOWS
# and PACKETS of the capture, THETA for how skewed they are, RULES behind the caches, and ROUNDS.
# Takes huge pages from the system if it may, and gives them back.
set -eu
cd "$(dirname "$0")/.."
scripts/setup-dpdk.sh
case ${1:-} in
    "")
        # The flows are a quarter more than the entries, and a little skewed.
        : "${ENTRIES:=131072}" "${FLOWS:=163840}" "${THETA:=0.6}" "${RULES:=512}"
        : "${PACKETS:=1048576}" "${ROUNDS:=15}"
        ;;
    quick)
        : "${ENTRIES:=4096}" "${FLOWS:=5120}" "${THETA:=0.6}" "${RULES:=128}"
        : "${PACKETS:=65536}" "${ROUNDS:=5}"
        ;;
    *) echo "usage: dpdk.sh [quick]" >&2; exit 2 ;;
esac

out=$PWD/target/dpdk
PREFIX=$out/prefix scripts/install.sh flow
export PKG_CONFIG_PATH="$out/prefix/lib/pkgconfig"
make --no-print-directory -s -C examples/dpdk OUT="$out"
capture=$out/capture.pcap
"$out/make-capture" "$capture" "$PACKETS" "$FLOWS" "$THETA" "$RULES"

# A buffer and its part of the pool are half a KiB; the tables are small beside them.
mebibytes=$((PACKETS / 2048 + 192))
pages=/proc/sys/vm/nr_hugepages
had=$(cat $pages 2>/dev/null || echo 0)
give_back() {
    rm -f "$capture"
    [ -z "${took:-}" ] || echo "$had" >$pages
}
trap give_back EXIT
trap 'exit 1' INT TERM
memory="--no-huge --no-shconf -m $mebibytes"
if [ -w $pages ]; then
    took=yes
    echo $((had + mebibytes / 2)) >$pages
    free=$(sed -n 's/^HugePages_Free: *//p' /proc/meminfo)
    [ "$free" -lt $((mebibytes / 2)) ] || memory=--in-memory
fi
[ "$memory" = --in-memory ] || echo "dpdk: no huge pages to be had; figures are worse without"

echo "$PACKETS packets of $FLOWS flows, skew $THETA, replayed at memory speed"
core=$(sed -n 's/^Cpus_allowed_list:.*[^0-9]\([0-9]*\)$/\1/p' /proc/self/status)
# Words for DPDK are words.
# shellcheck disable=SC2086
LD_LIBRARY_PATH=$out/prefix/lib "$out/flow-packets" $memory -l "$core" \
    --no-pci --no-telemetry --log-level='*:error' \
    --vdev "net_pcap0,rx_pcap=$capture,infinite_rx=1" -- \
    --entries "$ENTRIES" --rules "$RULES" --packets "$PACKETS" --rounds "$ROUNDS"
