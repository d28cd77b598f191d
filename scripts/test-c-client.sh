#!/bin/sh
# A C program against an installed client, which it finds by pkg-config like any user's program: with the shared library and
# with the static one, through a socket and through shared memory. Then what was installed is removed, and nothing must be left.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
out=$PWD/target/c-client
# The build of the other tests: with checked arithmetic and assertions.
export PROFILE=dev
# Installed in another directory than PREFIX, like the files of a package.
export PREFIX=/usr DESTDIR="$out/root"
if [ "${1:-}" != installed ]; then
    rm -rf "$out"
    mkdir -p "$out"
    scripts/install.sh client
    choose_server
    exec scripts/test-once.sh "$DESTDIR$PREFIX/lib/libnuthatch_client.a" "$NUTHATCH" -- "scripts/$(basename "$0")" installed
fi
root=$DESTDIR$PREFIX
export PKG_CONFIG_SYSROOT_DIR="$DESTDIR" PKG_CONFIG_PATH="$root/lib/pkgconfig"
export LD_LIBRARY_PATH="$root/lib"
pkg-config --print-errors --exists nuthatch-client
version=$(. scripts/installed.sh && echo "$version")
[ "$(pkg-config --modversion nuthatch-client)" = "$version" ]
# pkg-config leaves out the system's own directories, and takes these for such.
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
passed=0

# serve PLACE: starts an empty server with its sockets there.
serve() {
    rm -rf "$1"
    mkdir -p "$1"
    "$NUTHATCH" -s "$1/socket" --shared "$1/shared" -t 1 -m 64 2>"$1/log" &
    server=$!
    until [ -S "$1/socket" ] && [ -S "$1/shared" ]; do
        kill -0 $server || { cat "$1/log" >&2; exit 1; }
        sleep 0.1
    done
}
server=
trap '[ -z "$server" ] || kill $server' EXIT

for kind in shared static; do
    case $kind in
        shared) libs=$(pkg-config --libs nuthatch-client) ;;
        # By the name of the file, because the linker prefers the shared library.
        static) libs=$(pkg-config --static --libs nuthatch-client | sed 's/-lnuthatch_client/-l:libnuthatch_client.a/') ;;
    esac
    # Several flags each.
    # shellcheck disable=SC2086,SC2046
    ${CC:-cc} -std=c11 -O2 -g -Wall -Wextra -Wpedantic -Werror -pthread crates/client/client-c/tests/test_client.c \
        $(pkg-config --cflags nuthatch-client) $libs -o "$out/test-$kind"
    for address in "unix://" "shm://"; do
        place=$out/server
        serve "$place"
        case $address in
            unix*) address=unix://$place/socket ;;
            shm*) address=shm://$place/shared ;;
        esac
        echo "c-client: test-$kind $address"
        # The discard port, on which nobody listens.
        [ "$("$out/test-$kind" "$address" tcp://127.0.0.1:9)" = "$version" ]
        kill $server
        wait $server
        server=
        passed=$((passed + 1))
    done
done
# Programs find the shared library by its soname, and do not need it if they have the static one.
readelf -d "$out/test-shared" | grep -q "NEEDED.*\[$(. scripts/installed.sh && echo "$client_soname")\]"
if readelf -d "$out/test-static" | grep -q "NEEDED.*nuthatch"; then
    echo "c-client: the static program needs the shared library" >&2
    exit 1
fi
scripts/uninstall.sh
left=$(find "$DESTDIR" ! -type d)
if [ -n "$left" ]; then
    echo "c-client: uninstall leaves: $left" >&2
    exit 1
fi
passed=$((passed + 2))
echo "counts: $passed passed, 0 failed, 0 skipped"
