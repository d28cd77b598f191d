#!/bin/sh
# A package of the server for Fedora, RHEL and their like: package-rpm.sh [FOLDER], target/package if not said. Prints the
# file's name. Needs rpmbuild, which Debian has, too (apt install rpm). It has what the Debian package has
# (scripts/package-files.sh). PROFILE (release) says how the binary is built; checks say dev.
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/package}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
mkdir -m 755 "$work/tree"
scripts/package-files.sh "$work/tree" /usr/lib/systemd/system
# A package that is only tried need not be small.
level=9
[ "${PROFILE:-release}" = release ] || level=1
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
rpmbuild -bb --quiet --define "_topdir $work/made" --define "_rpmdir $work/out" --define "_buildhost localhost" \
    --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
    --define "_binary_payload w$level.gzdio" --define "version_of_release $version" --define "tree $work/tree" \
    dist/rpm/nuthatch.spec >&2
package=nuthatch-$version-1.$(uname -m).rpm
mv "$work/out/$(uname -m)/$package" "$out/$package"
echo "$out/$package"
