#!/bin/sh
# Removes all that install.sh put there, with the same PREFIX, LIBDIR and DESTDIR; leaves
# directories.
set -eu
cd "$(dirname "$0")/.."
. scripts/installed.sh
for program in $programs; do
    rm -f "$binaries/$program" "$manuals/$program.1" "$bash/$program" "$zsh/_$program" "$fish/$program.fish"
done
for command in $commands; do
    rm -f "$manuals/nuthatch-$command.1"
done
# Links are words.
# shellcheck disable=SC2086
rm -f "$example" "$header" "$static" "$shared" "$pkgconfig" $links \
    "$client_header" "$client_static" "$client_shared" "$client_pkgconfig" $client_links \
    "$shmem_header" "$shmem_static" "$shmem_shared" "$shmem_pkgconfig" $shmem_links
echo "removed from $destdir$prefix"
