#!/bin/sh
# Wheels of the Python package, in target/python/wheels if no folder is said: one for all versions of Python from 3.9 on.
#
#   python.sh [FOLDER]
#
# PROFILE=dev builds what the tests run, in the folder of the other tests' build. TARGET=aarch64-unknown-linux-gnu is for another
# processor, by cargo-zigbuild's compiler, if Rust's target is installed.
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/python/wheels}
case $out in /*) ;; *) out=$PWD/$out ;; esac
scripts/setup-python.sh
profile=${PROFILE:-release}
set -- --locked --profile "$profile" --out "$out" --target-dir "${CARGO_TARGET_DIR:-$PWD/target}"
[ -z "${TARGET:-}" ] || set -- "$@" --target "$TARGET" --zig
exec .venv/python/bin/maturin build --manifest-path crates/client/python/Cargo.toml "$@"
