#!/bin/sh
# Each fuzz target for a second, from the inputs that are committed for it (scripts/fuzz.sh); again only if one of their
# programs or one of the inputs has changed.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
# The nightly compiler may have no clippy.
unset RUSTC_WORKSPACE_WRAPPER
programs=$(scripts/fuzz-build.sh dev)
built=
[ -z "$programs" ] || built=$(find "$programs" -maxdepth 1 -type f -executable)
# Several files.
# shellcheck disable=SC2086
exec scripts/test-once.sh $built -- scripts/fuzz.sh 1
