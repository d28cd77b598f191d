#!/bin/sh
# What is published is packaged without a warning, with nothing in it that is not the crate's; and what runs in
# production depends on nothing of the laboratory.
set -eu
cd "$(dirname "$0")/.."

# The crates that are published: all that do not say otherwise.
set --
for manifest in $(grep -L '^publish = false' crates/*/*/Cargo.toml lab/*/Cargo.toml); do
    set -- "$@" -p "$(sed -n 's/^name = "\(.*\)"/\1/p' "$manifest" | head -n 1)"
done
found=$(cargo package --no-verify --allow-dirty --offline "$@" 2>&1) || { echo "$found"; exit 1; }
echo "$found"
if echo "$found" | grep -q '^warning'; then
    echo "check-crates: cargo package warns" >&2
    exit 1
fi

# Each carries its licence, and says what it is found by.
for manifest in $(grep -L '^publish = false' crates/*/*/Cargo.toml lab/*/Cargo.toml); do
    folder=$(dirname "$manifest")
    cmp -s LICENSE "$folder/LICENSE" || { echo "check-crates: $folder has no LICENSE" >&2; exit 1; }
    for field in description documentation keywords categories rust-version; do
        grep -q "^$field" "$manifest" || { echo "check-crates: $manifest has no $field" >&2; exit 1; }
    done
done

# With the oldest compiler that each says it needs, as far as this machine has it.
for manifest in $(grep -L '^publish = false' crates/*/*/Cargo.toml); do
    package=$(sed -n 's/^name = "\(.*\)"/\1/p' "$manifest" | head -n 1)
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$manifest")
    toolchain=$(rustup toolchain list 2>/dev/null | grep -o "^$oldest[.0-9]*-[^ ]*" | head -n 1) || true
    if [ -z "$toolchain" ]; then
        echo "check-crates: $package is not built with Rust $oldest, which is not here"
    else
        CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/oldest \
            cargo "+$toolchain" check --quiet --offline --all-features -p "$package"
    fi
done

# Paths of the workspace's own crates stand in brackets behind their names.
for package in nuthatch nuthatch-flow nuthatch-server nuthatch-cli nuthatch-pe; do
    if cargo tree --offline --edges normal,build --prefix none -p "$package" | grep "$PWD/lab/"; then
        echo "check-crates: $package depends on the laboratory" >&2
        exit 1
    fi
done

# What an operator runs has the default engine alone: those of papers are run by the laboratory.
if cargo tree --offline --edges normal,build --prefix none -p nuthatch-cli | grep "$PWD/crates/papers/"; then
    echo "check-crates: nuthatch-cli depends on the engines of papers" >&2
    exit 1
fi
