#!/bin/sh
# The figures of the README, in its order: bench.sh [SECONDS a measurement], 10 if not said.
# Needs memcached (scripts/setup.sh) and about 4 GiB.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-10}
cargo build --release --quiet --bin nuthatch
nuthatch=target/release/nuthatch
rival='memcached -l 127.0.0.1 -p {port} -t 1 -m 1024 -U 0 -u nobody'

run() {
    echo "\$ nuthatch $*"
    "$nuthatch" "$@"
}

run bench engine --batch 32 --rivals --seconds "$seconds"
run bench engine --batch 1 --rivals --seconds "$seconds"
run bench engine --batch 32 --threads 2 --seconds "$seconds"
run bench engine --engine cuckoo-paper --batch 32 --seconds "$seconds"
run bench engine --grow 1000000:16000000
run bench fill --memory 64M
round=$(awk "BEGIN { print $seconds / 5 }")
for load in "--pipeline 100" "--multiget 100" "--pipeline 1" "--pipeline 100 --get-ratio 0"; do
    # Words of a load are options, to be split.
    # shellcheck disable=SC2086
    run bench versus --rival "$rival" --rounds 5 --seconds "$round" $load
done
