#!/bin/sh
# C programs against an installed flow cache, found by pkg-config as a stranger would: the example
# and the test of examples/c with the shared library, with the static one, under the address and
# undefined-behaviour sanitizers, and under valgrind if it is there; the header in C++ if there is a
# compiler. Then what was installed is removed, and nothing stays.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/target/c
rm -rf "$out"
mkdir -p "$out"

# As the other tests are built: with checked arithmetic and assertions.
export PROFILE=dev
# Put somewhere else than where it will be looked for, as who makes a package does.
export PREFIX=/usr DESTDIR="$out/root"
scripts/install.sh
root=$DESTDIR$PREFIX
export PKG_CONFIG_SYSROOT_DIR="$DESTDIR" PKG_CONFIG_PATH="$root/lib/pkgconfig"
export LD_LIBRARY_PATH="$root/lib"
pkg-config --print-errors --exists nuthatch-flow
"$root/bin/nuthatch" --version
[ "$(pkg-config --modversion nuthatch-flow)" = "$("$root/bin/nuthatch" --version | cut -d' ' -f2)" ]

compile="${CC:-cc} -std=c11 -g -Wall -Wextra -Wpedantic -Werror -pthread"
passed=0
# pkg-config leaves the system's own directories out, which these seem to be.
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
# build PROGRAM SOURCE KIND FLAGS...: KIND is shared or static.
build() {
    program=$1 source=$2 kind=$3
    shift 3
    case $kind in
        shared) libs=$(pkg-config --libs nuthatch-flow) ;;
        # By its file's name, because the linker prefers the shared one.
        static) libs=$(pkg-config --static --libs nuthatch-flow |
            sed 's/-lnuthatch_flow/-l:libnuthatch_flow.a/') ;;
    esac
    # Flags are words.
    # shellcheck disable=SC2086,SC2046
    $compile "$@" "examples/c/$source" $(pkg-config --cflags nuthatch-flow) $libs -o "$out/$program"
}
# Runs a program; those of test_flow.c count for themselves.
run() {
    echo "c: $*"
    "$@"
}

for kind in shared static; do
    build firewall-$kind firewall.c $kind -O2
    build test-$kind test_flow.c $kind -O2
    run "$out/firewall-$kind"
    passed=$((passed + 1))
    run "$out/test-$kind"
done
# Programs find the library by its soname, and the static one is whole.
readelf -d "$out/test-shared" | grep -q "NEEDED.*\[$(. scripts/installed.sh && echo "$soname")\]"
if readelf -d "$out/test-static" | grep -q "NEEDED.*nuthatch"; then
    echo "c: the static program needs the shared library" >&2
    exit 1
fi
build test-sanitized test_flow.c static -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
run "$out/test-sanitized"
skipped=0
if command -v valgrind >/dev/null; then
    run valgrind -q --error-exitcode=1 --leak-check=full "$out/test-static"
else
    echo "c: valgrind is not there: skipped"
    skipped=1
fi

if command -v c++ >/dev/null; then
    echo '#include <nuthatch_flow.h>' >"$out/header.cc"
    # Flags are words.
    # shellcheck disable=SC2046
    c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$out/header.cc" \
        $(pkg-config --cflags nuthatch-flow)
    passed=$((passed + 1))
else
    echo "c: there is no C++ compiler: skipped"
    skipped=$((skipped + 1))
fi

scripts/uninstall.sh
left=$(find "$DESTDIR" ! -type d)
if [ -n "$left" ]; then
    echo "c: uninstall leaves: $left" >&2
    exit 1
fi
passed=$((passed + 1))
echo "counts: $passed passed, 0 failed, $skipped skipped"
