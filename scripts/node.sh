#!/bin/sh
# The package for Node.js, in target/node/package if no folder is said: a file for `npm install`, with the part that is compiled for
# this machine's processor. It works in all versions of Node.js from 18 on.
#
#   node.sh [FOLDER]
#
# PROFILE=dev builds what the tests run, in the folder of the other tests' build.
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/node/package}
profile=${PROFILE:-release}
built=${CARGO_TARGET_DIR:-target}
case $profile in
    dev)
        built=$built/debug
        # In the build of all checks. Several words.
        # shellcheck disable=SC2046
        cargo build --quiet --locked --workspace --lib $(scripts/features.sh)
        ;;
    *)
        built=$built/$profile
        cargo build --quiet --locked --profile "$profile" -p nuthatch-node
        ;;
esac
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
processor=$(node -p process.arch)
library=$(node -p 'process.report.getReport().header.glibcVersionRuntime ? "glibc" : "musl"')

staged=$(mktemp -d)
trap 'rm -r "$staged"' EXIT
cp -R crates/client/node/package/. LICENSE "$staged"
cp "$built/libnuthatch_node.so" "$staged/index.node"
(
    cd "$staged"
    # The file in the repository has no version, no processor and no C library.
    npm pkg set version="$version" "cpu[0]=$processor" "libc[0]=$library"
    npm pack --silent >/dev/null
)
mkdir -p "$out"
# Its name has the processor, because npm's own has not.
mv "$staged/nuthatch-$version.tgz" "$out/nuthatch-node-$version-$processor.tgz"
echo "$out/nuthatch-node-$version-$processor.tgz"
