#!/bin/sh
# The tables and plots of docs/flow-cache.md, in its order: figures-flow.sh [ROUNDS], 5 if not said.
# About five minutes on a machine that does nothing else. Another binary: NUTHATCH=PATH.
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-5}
if [ -z "${NUTHATCH:-}" ]; then
    cargo build --release --quiet --bin nuthatch
    NUTHATCH=target/release/nuthatch
fi
mkdir -p docs/figures

run() {
    echo "\$ nuthatch flow $*"
    "$NUTHATCH" flow "$@"
    echo
}

run theory --svg docs/figures/flow-theory.svg
run bench --entries 64k --layout all --eviction random --oversubscription 0.5,0.8,0.9,0.95,1,1.1,1.25,2 \
    --rounds 1 --svg docs/figures/flow-uniform.svg
run bench --entries 64k --layout cuckoo-lite,blp-2-4 --eviction random,random-second --warm-up 20 --rounds 1
run bench --entries 1m --rivals --rounds "$rounds"
run bench --entries 4m --layout 4-way,blp-2-4 --eviction random,pblru --rounds "$rounds"
run bench --entries 1m --layout 4-way,8-way,cuckoo-lite,blp-2-4 --eviction random --vector all \
    --warm-up 10 --rounds "$rounds"
run bench --entries 64k --dist zipf --theta 0.99 --oversubscription 4 --layout 4-way,cuckoo-lite,blp-2-4 \
    --eviction random,lru,bubble,pblru,pblru:last:0.25,dc-bubble --warm-up 30 --rounds 1 \
    --svg docs/figures/flow-zipf.svg
run replay --generate 72k --dist zipf --theta 0.5 --entries 64k --rounds "$rounds" \
    --svg docs/figures/flow-replay.svg
run replay --generate 72k --dist zipf --theta 0.9 --entries 64k --rounds "$rounds"
run attack --entries 64k --dist zipf --theta 0.5 --rivals --svg docs/figures/flow-attack.svg
