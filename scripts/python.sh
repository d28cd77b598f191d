#!/bin/sh
# Wheels of the Python package, in target/python/wheels if no folder is said: one for all versions of Python from 3.9 on.
#
#   python.sh [FOLDER]
#
# PROFILE=dev builds what the tests run, in the folder of the other tests' build. TARGET=aarch64-unknown-linux-gnu is for another
# processor: Zig compiles what is C, and links. Rust's target must be installed (rustup target add).
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/python/wheels}
case $out in /*) ;; *) out=$PWD/$out ;; esac
scripts/setup-python.sh
profile=${PROFILE:-release}
set -- --locked --profile "$profile" --out "$out" --target-dir "${CARGO_TARGET_DIR:-$PWD/target}"
if [ -n "${TARGET:-}" ]; then
    .venv/python/bin/pip install -q --disable-pip-version-check ziglang==0.15.2
    set -- "$@" --target "$TARGET" --zig
fi
# It finds Zig by the Python in front.
export PATH="$PWD/.venv/python/bin:$PATH"
exec maturin build --manifest-path crates/client/python/Cargo.toml "$@"
