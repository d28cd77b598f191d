#!/bin/sh
# Long checks, not part of the tests: fuzzing and a mixed load for MINUTES each: soak.sh [MINUTES].
set -eu
cd "$(dirname "$0")/.."
minutes=${1:-30}
seconds=$((minutes * 60))
cargo build --release --quiet --bin nuthatch

# A server at its memory limit, with more keys than fit, under gets and sets whose answers are
# checked; then its memory is shown.
ports=$(mktemp)
MEMCACHED_PORT_FILENAME=$ports target/release/nuthatch -l 127.0.0.1 -p 0 -m 256 &
server=$!
trap 'kill $server; rm -f "$ports"' EXIT
until [ -s "$ports" ]; do
    kill -0 $server
    sleep 0.1
done
port=$(sed -n 's/^TCP INET: //p' "$ports")
target/release/nuthatch bench server --target "127.0.0.1:$port" --pid $server --keys 4000000 \
    --conns 100 --pipeline 10 --get-ratio 0.7 --dist zipf --value-size 100 --seconds "$seconds"
grep VmRSS /proc/$server/status

scripts/fuzz.sh "$seconds"
