#!/bin/sh
# A tarball of the server, to be unpacked anywhere: package-tar.sh [FOLDER], target/package if not said. Prints the
# file's name. PROFILE (release) says how the binary is built; checks say dev.
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/package}
mkdir -p "$out"
tree=$(mktemp -d)
trap 'rm -r "$tree"' EXIT
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
name=nuthatch-$version-$(uname -m)
PREFIX=/ DESTDIR="$tree/$name" scripts/install.sh server >&2
# Several words.
# shellcheck disable=SC2046
cp LICENSE README.md CHANGELOG.md $(cat scripts/package-docs) "$tree/$name"
cp -r dist/systemd dist/prometheus dist/grafana "$tree/$name"
tar -C "$tree" --owner=0 --group=0 --sort=name -czf "$out/$name.tar.gz" "$name"
echo "$out/$name.tar.gz"
