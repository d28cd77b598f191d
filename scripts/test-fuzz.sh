#!/bin/sh
# Each fuzz target for a second, from the inputs that are committed for it (scripts/fuzz.sh); again only if one of their
# programs or one of the inputs has changed.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
# The nightly compiler may have no clippy.
unset RUSTC_WORKSPACE_WRAPPER
built=
if cargo +nightly fuzz --version >/dev/null 2>&1; then
    cargo +nightly fuzz build --dev
    built=$(find fuzz/target/*/debug -maxdepth 1 -type f -executable)
fi
# Several files.
# shellcheck disable=SC2086
exec scripts/test-once.sh $built -- scripts/fuzz.sh 1
