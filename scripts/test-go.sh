#!/bin/sh
# The Go client: its form, its tests with the race detector against the server and memcached, once as it is and once with direct
# reads through an installed C client, which it finds by pkg-config; its example; its bench. NUTHATCH=PROGRAM is tried instead of
# the build of the other tests.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
needed=$(sed -n 's/^go //p' clients/go/go.mod)
found=$(go env GOVERSION 2>/dev/null | sed 's/^go//') || true
if [ -z "$found" ] || [ "$(printf '%s\n' "$needed" "$found" | sort -V | head -n 1)" != "$needed" ]; then
    echo "go: ${found:-none} is installed, and $needed is needed: skipped"
    echo "counts: 0 passed, 0 failed, 1 skipped"
    exit
fi
out=$PWD/target/go
# The build of the other tests: with checked arithmetic and assertions.
export PROFILE=dev
export PREFIX=/usr DESTDIR="$out/root"
if [ "${1:-}" != installed ]; then
    rm -rf "$out"
    mkdir -p "$out"
    scripts/install.sh client
    choose_server
    exec scripts/test-once.sh "$DESTDIR$PREFIX/lib/libnuthatch_client.so" "$NUTHATCH" "$(command -v go)" -- \
        "scripts/$(basename "$0")" installed
fi
# pkg-config leaves out the system's own directories, and takes these for such.
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
export PKG_CONFIG_SYSROOT_DIR="$DESTDIR" PKG_CONFIG_PATH="$DESTDIR$PREFIX/lib/pkgconfig" LD_LIBRARY_PATH="$DESTDIR$PREFIX/lib"
passed=0 skipped=0

unformatted=$(gofmt -l clients/go examples/go)
if [ -n "$unformatted" ]; then
    echo "go: gofmt changes $unformatted" >&2
    exit 1
fi
passed=$((passed + 1))

# try FOLDER FLAGS...: lints and tests a module. The tests are counted by their lines.
try() {
    folder=$1
    shift
    echo "go: $folder $*"
    (cd "$folder" && go vet "$@" ./... && go test -race -count 1 -v "$@" ./...) >"$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }
    grep -e '^ *--- SKIP' -e 'skipped: ' "$out/log" || true
    passed=$((passed + $(grep -c '^ *--- PASS' "$out/log")))
    skipped=$((skipped + $(grep -c '^ *--- SKIP' "$out/log" || true)))
}
try clients/go
try clients/go -tags nuthatch_direct
try examples/go

# The bench has dependencies, which may not be to be had.
if (cd clients/go/bench && go mod download) 2>"$out/log"; then
    (cd clients/go/bench && go vet -tags nuthatch_direct . && go run -tags nuthatch_direct . -rounds 1 -seconds 0.2 "$NUTHATCH")
    passed=$((passed + 1))
else
    echo "go: the other clients of the bench are not to be had: skipped"
    skipped=$((skipped + 1))
fi
echo "counts: $passed passed, 0 failed, $skipped skipped"
