#!/bin/sh
# Builds the fuzz targets and prints the folder with their programs: fuzz-build.sh dev|release. Prints nothing where there is no
# nightly compiler, which this needs.
#
# It has the compiler count which places are reached, and watch comparisons and memory. These are the words that cargo-fuzz
# uses; a machine takes longer to install that than to build the targets.
set -eu
cd "$(dirname "$0")/.."
cargo +nightly --version >/dev/null 2>&1 || exit 0
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
    -Cllvm-args=-sanitizer-coverage-stack-depth -Cllvm-args=-simplifycfg-branch-fold-threshold=0"
if [ "$1" = dev ]; then
    # The fuzzer's own C++ is a quarter of the build: a short run takes the packaged one, where that is.
    for library in /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-"${host%%-*}".a; do
        [ ! -e "$library" ] || export CUSTOM_LIBFUZZER_PATH="$library"
    done
fi
export CARGO_INCREMENTAL=0 RUSTFLAGS="--cfg fuzzing -Zsanitizer=address $coverage ${RUSTFLAGS:-}"
# With a target, these are not for build scripts.
cargo +nightly build --quiet --manifest-path fuzz/Cargo.toml --bins --profile "$1" --target "$host" >&2
case $1 in
    dev) echo "fuzz/target/$host/debug" ;;
    *) echo "fuzz/target/$host/$1" ;;
esac
