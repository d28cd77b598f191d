#!/bin/sh
# An OCI image of the server: package-oci.sh [FOLDER], target/package if not said. Prints the archive's name, which
# `podman load -i`, `docker load -i` and `skopeo copy oci-archive:` take. Nothing is downloaded.
#
# It holds the binary, the system's C library that it needs, a user, and nothing else: no shell. PROFILE (release) says how
# the binary is built; checks say dev.
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/package}
mkdir -p "$out"
tree=$(mktemp -d)
trap 'rm -r "$tree"' EXIT
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
PREFIX=/usr DESTDIR="$tree/made" scripts/install.sh server >&2
root=$tree/root
scripts/image-root.sh "$tree/made/usr/bin/nuthatch" "$root"
archive=$out/nuthatch-$version-oci-$(uname -m).tar
python3 scripts/oci-archive.py "$root" "$archive" nuthatch:"$version"
echo "$archive"
