#!/bin/sh
# The package for Node.js as a user has it: its file, installed in an empty folder, against the server. NUTHATCH=PROGRAM is tried
# instead of the build of the other tests. More words go to `node --test`.
#
#   test-node.sh [WORD...]
#   test-node.sh measure [ROUNDS] [SECONDS]   in place of the tests, how long gets take, with release builds
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
if ! command -v npm >/dev/null || ! scripts/setup-node.sh; then
    echo "node: Node.js or the libraries of its tests are not here; the package is not tested"
    echo "counts: 0 passed, 0 failed, 1 skipped"
    exit
fi
case ${1:-} in measure) profile=release ;; *) profile=dev ;; esac
if [ $profile = dev ]; then
    choose_server
elif [ -z "${NUTHATCH:-}" ]; then
    cargo build --quiet --release --bin nuthatch
    export NUTHATCH="$PWD/target/release/nuthatch"
fi
out=$PWD/target/node
rm -rf "$out"
mkdir -p "$out/fresh"
package=$(PROFILE=$profile scripts/node.sh "$out/package")
# Nothing of the repository is above the tests but what they have beside the package: it lies where it was installed once.
ln -s "$PWD/.venv/node-package/node_modules" "$out/node_modules"
cp crates/client/node/tests/*.*s examples/node/*.mjs "$out/fresh"
cd "$out/fresh"
echo '{"private": true}' >package.json
npm install --silent --no-fund --no-audit --offline "$package"
if [ $profile = release ]; then
    shift
    exec node measure.mjs "$@"
fi
"$out/node_modules/.bin/tsc" --noEmit --strict --module node20 --types node types.mts types.cts
failed=0
node --test --test-reporter spec "$@" *.test.mjs >said 2>&1 || failed=1
cat said
awk '/^ℹ (pass|fail|skipped) / { n[$2] = $3 }
    END { printf "counts: %d passed, %d failed, %d skipped\n", n["pass"], n["fail"], n["skipped"] }' said
exit $failed
