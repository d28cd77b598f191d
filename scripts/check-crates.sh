#!/bin/sh
# What is published is packaged without a warning, with nothing in it that is not the crate's; and what runs in
# production depends on nothing of the laboratory.
set -eu
cd "$(dirname "$0")/.."

# The crates that are published: all that do not say otherwise.
set --
for manifest in $(grep -L '^publish = false' crates/*/Cargo.toml lab/*/Cargo.toml); do
    set -- "$@" -p "$(sed -n 's/^name = "\(.*\)"/\1/p' "$manifest" | head -n 1)"
done
found=$(cargo package --no-verify --allow-dirty --offline "$@" 2>&1) || { echo "$found"; exit 1; }
echo "$found"
if echo "$found" | grep -q '^warning'; then
    echo "check-crates: cargo package warns" >&2
    exit 1
fi

# Paths of the workspace's own crates stand in brackets behind their names.
for package in nuthatch nuthatch-flow nuthatch-server nuthatch-cli nuthatch-pe; do
    if cargo tree --offline --edges normal,build --prefix none -p "$package" | grep "$PWD/lab/"; then
        echo "check-crates: $package depends on the laboratory" >&2
        exit 1
    fi
done
