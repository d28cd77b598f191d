#!/bin/sh
# The DPDK example, built and run for some seconds; and that its figures make sense. Says that it is
# skipped where DPDK is not to be had.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
if ! scripts/setup-dpdk.sh; then
    echo "dpdk: skipped: its packages cannot be installed here"
    echo "counts: 0 passed, 0 failed, 1 skipped"
    exit 0
fi
# The rival by itself; its result lines count too. A failure hides no other.
rival=passed
cargo test -p nuthatch-rte-hash --features rte-hash || rival=failed

log=$PWD/target/dpdk.log
# The build of scripts/test-c.sh, with checked arithmetic and assertions; nothing depends on how fast it is.
PROFILE=dev scripts/dpdk.sh quick >"$log" 2>&1 || { cat "$log"; exit 1; }
cat "$log"
passed=0 failed=0
# holds WHAT AWK-CONDITION: over the caches' hit rates, by name.
holds() {
    if awk -F '  +' -v what="$1" '
        NF >= 8 && $2 ~ /^[01]\.[0-9]+$/ { rate[$1] = $2; caches++ }
        END { exit !('"$2"') }' "$log"
    then
        passed=$((passed + 1))
    else
        echo "dpdk: not so: $1"
        failed=$((failed + 1))
    fi
}
holds "15 caches are measured" 'caches == 15'
holds "two buckets hit more than one" 'rate["2-4 BLP, random"] > rate["4-way, random"] + 0.02'
holds "PBLRU hits more than random" 'rate["2-4 BLP, PBLRU"] > rate["2-4 BLP, random"] + 0.005'
holds "rte_hash hits" 'rate["rte_hash, random"] > 0.5 && rate["rte_hash, oldest"] > 0.5'
holds "no cache never hits" 'rate["no cache"] == 0'

# Packets of both versions, whole and cut short.
if LD_LIBRARY_PATH=target/dpdk/prefix/lib target/dpdk/test-packet; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
fi
if awk '/ packets: /{ all = $1 } / of them IPv6$/{ six = $1 } / not IP 0$/{ ip = 1 }
        END { exit !(ip && six > all / 5 && six < all / 3) }' "$log"
then
    passed=$((passed + 1))
else
    echo "dpdk: not so: a quarter of the packets is IPv6, and all are IP"
    failed=$((failed + 1))
fi

# Bad words end with a clear error, before anything is measured.
if LD_LIBRARY_PATH=target/dpdk/prefix/lib target/dpdk/flow-packets --no-huge --no-shconf --no-pci \
    -- --entries none 2>&1 | grep -q "a number from"
then
    passed=$((passed + 1))
else
    echo "dpdk: a bad option is not explained"
    failed=$((failed + 1))
fi
echo "counts: $passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$rival" = passed ]
