#!/bin/sh
# All that `make install` puts anywhere, elsewhere: the programs run, and uninstalling leaves nothing.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
out=$PWD/target/install
rm -rf "$out"
# The build of the other tests.
export PROFILE=dev PREFIX=/usr DESTDIR="$out"
scripts/install.sh server lab
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
for program in nuthatch nuthatch-lab; do
    [ "$("$out/usr/bin/$program" --version)" = "$program $version" ]
    grep -q "^.TH $program 1" "$out/usr/share/man/man1/$program.1"
    [ -s "$out/usr/share/bash-completion/completions/$program" ]
done
# A page leads to those of the commands.
for page in $(sed -n 's/^\(nuthatch\\-[a-z]*\)(1)$/\1/p' "$out/usr/share/man/man1/nuthatch.1" | tr -d '\\'); do
    grep -q "^.TH $page 1" "$out/usr/share/man/man1/$page.1"
done
# What only a debugger reads is left out.
if readelf -S "$out/usr/bin/nuthatch" | grep -q '\.debug_info'; then
    echo "install: the binary has debug information" >&2
    exit 1
fi
scripts/uninstall.sh
left=$(find "$out" ! -type d)
if [ -n "$left" ]; then
    echo "install: uninstall leaves: $left" >&2
    exit 1
fi
echo "counts: 1 passed, 0 failed, 0 skipped"
