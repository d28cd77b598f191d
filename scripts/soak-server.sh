#!/bin/sh
# A server with an engine at its memory limit, under load for so many seconds: soak-server.sh ENGINE SECONDS. A part of
# scripts/soak.sh, which has built it.
#
# The load comes in rounds, each with connections of its own and values of another size: memory that was full of one size
# must go to the next. The server's memory must stay within the limit, 5 % and 32 MiB;
# lost or wrong answers end the load with an error.
set -eu
cd "$(dirname "$0")/.."
engine=$1 seconds=$2
built=${CARGO_TARGET_DIR:-target}/release
limit=256
ports=$(mktemp)
server=
trap '[ -z "$server" ] || kill "$server"; rm -f "$ports"' EXIT
MEMCACHED_PORT_FILENAME=$ports "$built/nuthatch-lab" serve --engine "$engine" -l 127.0.0.1 -p 0 -m $limit &
server=$!
until [ -s "$ports" ]; do
    kill -0 $server
    sleep 0.1
done
port=$(sed -n 's/^TCP INET: //p' "$ports")
round=0
for value in 50 1000 20000 200; do
    round=$((round + 1))
    echo "soak: $engine, round $round"
    "$built/nuthatch-lab" bench server --target "127.0.0.1:$port" --pid $server --overwrite \
        --keys 4000000 --conns $((25 * round)) --pipeline 10 --get-ratio 0.7 --dist zipf \
        --value-size $value --seconds $((seconds / 4 + 1))
    resident=$(awk '/VmRSS/ { print int($2 / 1024) }' /proc/$server/status)
    echo "soak: $engine: $resident MiB resident, limit $limit"
    [ "$resident" -le $((limit * 105 / 100 + 32)) ]
done
kill $server
wait $server
server=
