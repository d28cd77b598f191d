#!/bin/sh
# All that an image of the server has: image-root.sh BINARY FOLDER puts it there. The binary without what only a debugger
# reads, the C library that it needs, a user, a folder for items, and nothing else: no shell.
# For Containerfile and scripts/package-oci.sh.
set -eu
binary=$1
root=$2
install -D -m 755 "$binary" "$root/usr/bin/nuthatch"
strip --strip-debug "$root/usr/bin/nuthatch"
# The loader and the libraries that it would load, at the places where it looks.
ldd "$root/usr/bin/nuthatch" | grep -o '/[^ ]*' | while read -r library; do
    install -D -m 755 "$library" "$root$library"
done
mkdir -p "$root/etc" "$root/data"
echo 'nuthatch:x:65532:65532::/data:/usr/bin/nuthatch' >"$root/etc/passwd"
echo 'nuthatch:x:65532:' >"$root/etc/group"
