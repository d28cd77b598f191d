#!/bin/sh
# The documentation builds without broken links; that of private items too, for readers of the code.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
# Nothing is compiled here that is not linted elsewhere.
unset RUSTC_WORKSPACE_WRAPPER
RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --workspace --no-deps --document-private-items --quiet
