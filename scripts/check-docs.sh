#!/bin/sh
# The documentation builds without broken links.
set -eu
cd "$(dirname "$0")/.."
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
