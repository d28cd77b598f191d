#!/bin/sh
# Explores the models of the version stripes, of messages, waiting and leases, of the distributed store's sessions and
# servers, of the engines, of shared flow caches, of threads that share a client's connection, and of a near cache of other
# servers: all interleavings and all values that relaxed loads may return, of two or three threads.
#
# Cost on two cores: half a minute to build (once), and a minute to run, unless all of it passed before and nothing has
# changed since (scripts/test-once.sh). Models of whole operations are bounded to 1 to 3 preemptions each (the number
# stands in the model, and NUTHATCH_SOAK=1 gives the long ones one more); LOOM_MAX_PREEMPTIONS=n sets another bound for all
# of them, and each step multiplies the time by about ten.
#
#     scripts/loom.sh [name of a test]
set -eu
cd "$(dirname "$0")/.."
export RUSTFLAGS="--cfg loom ${RUSTFLAGS:-}"
# A build of its own, so that the usual one is not thrown away.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
# A failure hides no other.
cargo test --profile loom --no-fail-fast -p nuthatch-base -p nuthatch-models -p nuthatch-flow -p nuthatch-cluster -p nuthatch-client -p nuthatch-upstream --test 'loom*' \
    --config "target.'cfg(all())'.runner = ['$PWD/scripts/test-once.sh', '--']" -- "$@"
