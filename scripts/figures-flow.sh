#!/bin/sh
# Prints the tables and draws the figures of docs/flow-cache.md, in its order: figures-flow.sh [ROUNDS], by default 5.
# Takes about eight minutes. Nothing else should run on the machine. LAB=PATH runs another binary.
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-5}
if [ -z "${LAB:-}" ]; then
    cargo build --release --quiet --bin nuthatch-lab
    LAB=${CARGO_TARGET_DIR:-target}/release/nuthatch-lab
fi
mkdir -p docs/figures

run() {
    echo "\$ nuthatch-lab flow $*"
    "$LAB" flow "$@"
    echo
}

# Hit rates follow from the seed: one round is enough, except where the spread over the rounds is shown.
run theory --oversubscription 0.5,0.8,0.9,0.95,1 --svg docs/figures/flow-theory.svg
run bench --entries 64k --layout all --eviction random --oversubscription 0.5,0.8,0.9,0.95,1,1.1,1.25,2 \
    --rounds 1 --svg docs/figures/flow-uniform.svg
run bench --entries 64k --layout cuckoo-lite,blp-2-4 --eviction random,random-second --warm-up 20 --rounds 1
run bench --entries 1m --rivals --rounds "$rounds"
run bench --entries 64k --dist zipf --theta 0.99 --oversubscription 4 --layout 4-way,cuckoo-lite,blp-2-4 \
    --eviction random,lru,dc-bubble,pblru:second-to-last,pblru:last:0.25,pblru --warm-up 30 --rounds 5 \
    --svg docs/figures/flow-zipf.svg
# Cycles need many short rounds.
lookups="--warm-up 8 --lookups 256k --rounds $((rounds * 5))"
# The variables hold several options, here and below: they are to be split.
# shellcheck disable=SC2086
run bench --entries 1m,4m --layout 4-way,8-way,cuckoo-lite,blp-2-4 \
    --eviction random,pblru,pblru:last:0.25 $lookups --rivals
# shellcheck disable=SC2086
run bench --entries 1m --layout 4-way,8-way,cuckoo-lite,blp-2-4 --eviction random --vector all $lookups
evictions=random,lru,pblru,pblru:second-to-last,pblru:last:0.25
for theta in 0.5 0.9; do
    svg=
    [ $theta = 0.9 ] || svg="--svg docs/figures/flow-replay.svg"
    # shellcheck disable=SC2086
    run replay --generate 72k --dist zipf --theta $theta --entries 64k --packets 128k \
        --rounds $((rounds * 2 - 1)) --layout 4-way,blp-2-4 --eviction random,pblru,pblru:last:0.25 $svg
done
run attack --entries 64k --dist zipf --theta 0.5 --rivals --svg docs/figures/flow-attack.svg
run attack --entries 64k --dist zipf --theta 0.5 --layout blp-2-4 --eviction $evictions
for churn in 0 0.01 0.05; do
    run replay --generate 256k --dist zipf --theta 0.99 --entries 64k --churn $churn --packets 1m \
        --rounds 1 --layout blp-2-4 --eviction $evictions
done
run replay --generate 72k --dist zipf --theta 0.5 --entries 64k --churn 0.02 --packets 1m \
    --rounds 1 --layout blp-2-4 --eviction $evictions
