#!/bin/sh
# Puts ActiveSupport's own tests, of the version that Debian has, in .venv/rails/activesupport/test: its source package has them, and
# the installed one does not. Fails where it is not to be had. Nothing is installed for the whole machine.
set -eu
cd "$(dirname "$0")/.."
to=$PWD/.venv/rails
version=$(dpkg-query -W -f '${source:Version}' ruby-activesupport 2>/dev/null)
if [ "$(cat "$to/version" 2>/dev/null)" = "$version" ]; then exit; fi
echo "ruby: the source of ActiveSupport in $to" >&2
fetched=$(mktemp -d)
trap 'rm -r "$fetched"' EXIT
# The machine's own sources of packages, asked for sources, with lists of their own.
mkdir -p "$fetched/sources" "$fetched/lists/partial"
for file in /etc/apt/sources.list.d/*.sources; do
    [ ! -e "$file" ] || sed 's/^Types: *deb *$/Types: deb-src/' "$file" >"$fetched/sources/$(basename "$file")"
done
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -e "$file" ] || sed 's/^deb /deb-src /' "$file" >"$fetched/sources/$(basename "$file" .list).list"
done
apt() {
    apt-get -qq -o APT::Sandbox::User="$(id -un)" -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$fetched/sources" \
        -o Dir::State::Lists="$fetched/lists" "$@"
}
(cd "$fetched" && apt update && apt source --download-only --tar-only "rails=$version") >"$fetched/log" 2>&1 || true
archive=$(ls "$fetched"/rails_*.orig.tar.* 2>/dev/null) || { cat "$fetched/log" >&2; exit 1; }
rm -rf "$to"
mkdir -p "$to"
tar -x -f "$archive" -C "$to" --strip-components=1 --wildcards '*/activesupport/test'
echo "$version" >"$to/version"
