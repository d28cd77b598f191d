#!/bin/sh
# Real clients against the server on each engine, nuthatch or nuthatch-lab serve: pymemcache, pylibmc, memccapable; and its answers beside
# memcached's own. Its build is the one of the other tests, which checks its arithmetic and assertions;
# NUTHATCH=PROGRAM is tried instead of it, with the nuthatch-lab beside it. More words go to pytest: scripts/test-clients.sh -k cas;
# ENGINES=lockhash chooses engines.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
choose_server --bin nuthatch-lab
engines=${ENGINES:-cuckoo cphash lockhash chained}
said=$(mktemp -d)
trap 'rm -r "$said"' EXIT
# Side by side: most of their time goes by in waiting for items to expire.
for engine in $engines; do
    {
        NUTHATCH_ENGINE=$engine scripts/test-once.sh "$NUTHATCH" "$(dirname "$NUTHATCH")/nuthatch-lab" -- \
            .venv/bin/python -m pytest -q -p no:cacheprovider tests/clients "$@" \
            >"$said/$engine" 2>&1 || echo "clients: not all of them work on $engine" >>"$said/failed"
    } &
done
tell() {
    for engine in $engines; do
        echo "clients: engine $engine"
        cat "$said/$engine"
    done
}
# Ended because it hangs: what was said so far.
trap 'tell; exit 143' TERM
wait
tell
[ ! -e "$said/failed" ] || { cat "$said/failed" && false; }
