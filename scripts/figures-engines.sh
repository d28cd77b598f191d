#!/bin/sh
# The figures of docs/engines.md: figures-engines.sh [SECONDS a measurement], 10 if not said.
# MEMCACHED is the memcached to compare with, that on the PATH if not said: 1.6.35 or newer, or pipelines say little.
# Needs about 8 GiB. Nothing else should run on the machine.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-10}
cargo build --release --quiet --bin nuthatch-lab
built=${CARGO_TARGET_DIR:-target}/release
round=$(awk "BEGIN { print $seconds / 5 }")

run() {
    echo "\$ nuthatch-lab $*"
    "$built/nuthatch-lab" "$@"
}

# In process: the paper's benchmark, first as it is, then with random eviction, then with a table that
# holds a quarter of its keys.
engines=cphash,lockhash,chained,cuckoo
sets=64K,256K,1M,4M,16M,64M,256M,1G
run bench engine --engine $engines --threads 2 --working-set $sets --seconds "$seconds"
run bench engine --engine cphash,lockhash --threads 2 --working-set 1M,64M --eviction random \
    --seconds "$seconds"
run bench engine --engine $engines --threads 2 --working-set 128M --capacity 32M --seconds "$seconds"
run bench engine --engine cphash,cphash-single --threads 2 --working-set 64K,1M --seconds "$seconds"

# How many items 64 MiB hold.
for engine in cuckoo lockhash cphash chained chained-clock; do
    run bench fill --engine $engine --memory 64M
done

# The server on each engine, against memcached.
rival="${MEMCACHED:-memcached} -l 127.0.0.1 -p {port} -t 1 -m 1024 -U 0 -u nobody -R 1024"
for engine in cuckoo lockhash cphash chained; do
    for load in "--pipeline 100" "--multiget 100" "--pipeline 1" "--pipeline 100 --get-ratio 0.7"; do
        # Words of a load are options, to be split.
        # shellcheck disable=SC2086
        run bench versus --rival "$rival" --lab --ours "-l 127.0.0.1 -p {port} -t 1 -m 1024 --engine $engine" \
            --rounds 5 --seconds "$round" $load
    done
done

# CPServer beside LockServer, as in the paper's section 7, and beside the default engine behind the same protocol.
cpserver='-l 127.0.0.1 -p 0 -t 1 -m 1024 --cpserver 127.0.0.1:{port} --engine'
for engine in lockhash cuckoo; do
    run bench versus --protocol cpserver --lab --ours "$cpserver cphash" \
        --rival "$built/nuthatch-lab serve $cpserver $engine" \
        --pipeline 100 --get-ratio 0.7 --value-size 8 --rounds 5 --seconds "$round"
done
