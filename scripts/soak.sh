#!/bin/sh
# Long checks, not part of the tests: soak.sh [MINUTES], 30 if not said, for each of
#   - a server with each engine at its memory limit, under gets and sets of more keys than fit, while
#     clients come and go;
#   - the random checks of the engines and the flow cache, repeated for as long;
#   - the tests with several threads under ThreadSanitizer, their random checks repeated for as long;
#   - the models of lock-free code, with more preemptions;
#   - the server's tests on what it takes from macOS and FreeBSD;
#   - the distributed store on OpenSHMEM, all cases and random checks, where it is, and its gateways under load, also
#     while links are cut (soak-cluster.sh);
#   - real clients on each engine, also what hardly concerns engines: restarts, handovers, clients of other languages;
#   - every figure of the laboratory in its quick size;
#   - all fuzz targets together.
set -eu
cd "$(dirname "$0")/.."
minutes=${1:-30}
seconds=$((minutes * 60))
cargo build --release --quiet --bin nuthatch --bin nuthatch-lab

failed=
# part NAME COMMAND...: a failure hides no other part.
part() {
    name=$1
    shift
    "$@" || failed="$failed $name"
    echo "soak: $name: done"
}

for engine in cuckoo cuckoo-paper cphash cphash-single lockhash chained; do
    part "$engine" scripts/soak-server.sh "$engine" $((seconds / 6))
done

# Once takes about a minute and a half on two cores.
part checks env NUTHATCH_SOAK=$((seconds / 90 + 1)) \
    cargo test --quiet --no-fail-fast -p nuthatch-check -p nuthatch-flow

# A million operations on values of all lengths.
part lengths env NUTHATCH_SOAK=100 \
    cargo test --quiet -p nuthatch-check --test log random_operations_on_values_of_all_lengths

# A quarter of the random checks for every seven and a half minutes.
part tsan env NUTHATCH_SOAK=$((seconds / 450 + 1))/4 scripts/tsan.sh

# The models that take long with all their preemptions: a minute.
part loom env NUTHATCH_SOAK=1 scripts/loom.sh

part portable scripts/test-portable.sh long

part clients env NUTHATCH_SOAK=1 scripts/test-clients.sh

part cluster env AGAIN=1 NUTHATCH_SOAK=$((seconds / 1800 + 1)) scripts/test-cluster.sh

part gateways scripts/soak-cluster.sh $seconds

# Every figure in its quick size: some 25 minutes. The numbers are worth nothing beside other work, the commands are.
part figures env RESULTS="${CARGO_TARGET_DIR:-target}/soak-figures" scripts/figures.sh --quick

part fuzz scripts/fuzz.sh $((seconds / $(ls fuzz/fuzz_targets | wc -l)))

[ -z "$failed" ] || echo "soak: failed:$failed"
[ -z "$failed" ]
