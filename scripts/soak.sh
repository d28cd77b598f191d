#!/bin/sh
# Long checks, not part of the tests: soak.sh [MINUTES], 30 if not said, for each of
#   - a server with each engine at its memory limit, under gets and sets of more keys than fit, while
#     clients come and go;
#   - the random checks of the engines and the flow cache, repeated for as long;
#   - the tests with several threads under ThreadSanitizer, their random checks repeated for as long;
#   - the distributed store on OpenSHMEM, all cases and random checks, where it is, and its gateways under load, also
#     while links are cut (soak-cluster.sh);
#   - all fuzz targets together.
set -eu
cd "$(dirname "$0")/.."
minutes=${1:-30}
seconds=$((minutes * 60))
engines="cuckoo cuckoo-paper cphash cphash-single lockhash chained"
each=$((seconds / 6))
cargo build --release --quiet --bin nuthatch --bin nuthatch-lab
built=${CARGO_TARGET_DIR:-target}/release
ports=$(mktemp)
server=
trap '[ -z "$server" ] || kill "$server"; rm -f "$ports"' EXIT

# An engine's server under load in rounds, each with connections of its own. Its memory must stay
# within the limit, 5 % and 32 MiB; lost or wrong answers end the load with an error.
soak_server() {
    engine=$1
    limit=256
    : >"$ports"
    MEMCACHED_PORT_FILENAME=$ports "$built/nuthatch" --engine "$engine" \
        -l 127.0.0.1 -p 0 -m $limit &
    server=$!
    until [ -s "$ports" ]; do
        kill -0 $server
        sleep 0.1
    done
    port=$(sed -n 's/^TCP INET: //p' "$ports")
    for round in 1 2 3 4; do
        echo "soak: $engine, round $round"
        "$built/nuthatch-lab" bench server --target "127.0.0.1:$port" --pid $server --overwrite \
            --keys 4000000 --conns $((25 * round)) --pipeline 10 --get-ratio 0.7 --dist zipf \
            --value-size $((50 * round)) --seconds $((each / 4 + 1))
        resident=$(awk '/VmRSS/ { print int($2 / 1024) }' /proc/$server/status)
        echo "soak: $engine: $resident MiB resident, limit $limit"
        [ "$resident" -le $((limit * 105 / 100 + 32)) ]
    done
    kill $server
    wait $server
    server=
}

for engine in $engines; do
    soak_server "$engine"
done

# Once takes about a minute and a half on two cores. A failure hides no other.
NUTHATCH_SOAK=$((seconds / 90 + 1)) cargo test --quiet --no-fail-fast -p nuthatch-check -p nuthatch-flow

# A quarter of the random checks for every seven and a half minutes.
NUTHATCH_SOAK=$((seconds / 450 + 1))/4 scripts/tsan.sh

NUTHATCH_SOAK=$((seconds / 1800 + 1)) scripts/test-cluster.sh

scripts/soak-cluster.sh $seconds

targets=$(cargo +nightly fuzz list 2>/dev/null | wc -l)
scripts/fuzz.sh $((seconds / (targets > 0 ? targets : 1)))
