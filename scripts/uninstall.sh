#!/bin/sh
# Removes all that install.sh put there, with the same PREFIX, LIBDIR and DESTDIR; leaves
# directories.
set -eu
cd "$(dirname "$0")/.."
. scripts/installed.sh
# Links are words.
# shellcheck disable=SC2086
rm -f "$binary" "$manual" "$example" "$bash" "$zsh" "$fish" "$header" "$static" "$shared" \
    "$pkgconfig" $links
echo "removed from $destdir$prefix"
