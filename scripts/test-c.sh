#!/bin/sh
# C programs against an installed flow cache, which they find by pkg-config like any user's program: the
# examples and the tests of examples/c with the shared library, with the static one, under the address
# and undefined-behaviour sanitizers, and under valgrind if it is there; the header in C++ if there is
# a compiler. Then what was installed is removed, and nothing must be left.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
out=$PWD/target/c
# The build of the other tests: with checked arithmetic and assertions.
export PROFILE=dev
# Installed in another directory than PREFIX, like the files of a package.
export PREFIX=/usr DESTDIR="$out/root"
if [ "${1:-}" != installed ]; then
    rm -rf "$out"
    mkdir -p "$out"
    scripts/install.sh flow
    exec scripts/test-once.sh "$DESTDIR$PREFIX/lib/libnuthatch_flow.a" -- "scripts/$(basename "$0")" installed
fi
root=$DESTDIR$PREFIX
export PKG_CONFIG_SYSROOT_DIR="$DESTDIR" PKG_CONFIG_PATH="$root/lib/pkgconfig"
export LD_LIBRARY_PATH="$root/lib"
pkg-config --print-errors --exists nuthatch-flow
# Both from Cargo.toml: the library says it by itself, which test_flow.c compares.
version=$(. scripts/installed.sh && echo "$version")
[ "$(pkg-config --modversion nuthatch-flow)" = "$version" ]

# The examples must compile without a warning in any program: so also without that of GCC about arrays
# that are filled in up to a variable count.
compile="${CC:-cc} -std=c11 -g -Wall -Wextra -Wpedantic -Wuninitialized -Werror -pthread"
! ${CC:-cc} -Werror -Wmaybe-uninitialized -fsyntax-only -xc /dev/null 2>/dev/null ||
    compile="$compile -Wmaybe-uninitialized"
compile="$compile -DEXPECTED_VERSION=\"$version\""
passed=0
# pkg-config leaves out the system's own directories, and takes these for such.
export PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
# build PROGRAM SOURCE KIND FLAGS...: KIND is shared or static.
build() {
    program=$1 source=$2 kind=$3
    shift 3
    case $kind in
        shared) libs=$(pkg-config --libs nuthatch-flow) ;;
        # By the name of the file, because the linker prefers the shared library.
        static) libs=$(pkg-config --static --libs nuthatch-flow |
            sed 's/-lnuthatch_flow/-l:libnuthatch_flow.a/') ;;
    esac
    # Several flags each.
    # shellcheck disable=SC2086,SC2046
    $compile "$@" "examples/c/$source" $(pkg-config --cflags nuthatch-flow) $libs -o "$out/$program"
}
# Runs a program; those of test_flow.c print their own counts.
run() {
    echo "c: $*"
    "$@"
}

# The ten lines of docs/flow-c.md compile as they are.
{
    echo '#include <nuthatch_flow.h>'
    echo 'uint64_t classify(const void *packet);'
    echo 'int ten_lines(const uint64_t hash[32], const void *packet[32]);'
    echo 'int ten_lines(const uint64_t hash[32], const void *packet[32]) {'
    sed -n '/^```c$/,/^```$/p' docs/flow-c.md | grep -v -e '^```' -e '^#include'
    echo 'return 0; }'
} >"$out/ten_lines.c"
# Several flags.
# shellcheck disable=SC2086,SC2046
$compile -O2 -c "$out/ten_lines.c" $(pkg-config --cflags nuthatch-flow) -o "$out/ten_lines.o"
passed=$((passed + 1))

for kind in shared static; do
    build firewall-$kind firewall.c $kind -O2
    build burst-$kind burst.c $kind -O2
    build test-$kind test_flow.c $kind -O2
    run "$out/firewall-$kind"
    run "$out/burst-$kind"
    run "$out/burst-$kind" cuckoo-lite random
    passed=$((passed + 3))
    run "$out/test-$kind"
done
if "$out/burst-shared" no-such-layout 2>"$out/message"; then
    echo "c: burst takes a layout that does not exist" >&2
    exit 1
fi
grep -q "no-such-layout: no such layout" "$out/message"
passed=$((passed + 1))
# GCC's warnings depend on what it inlines, so on how much it optimises.
for level in -O0 -O1 -O3 -Os -Og; do
    for source in firewall burst test_flow; do
        build warnings $source.c shared $level
    done
    passed=$((passed + 1))
done
# No debug sections in what is installed: they are most of a build's bytes.
for file in "$root/lib/libnuthatch_flow.a" "$root/lib/libnuthatch_flow.so"; do
    if readelf -SW "$file" | grep -q '\.debug_'; then
        echo "c: $file is not stripped" >&2
        exit 1
    fi
    passed=$((passed + 1))
done
# Programs find the shared library by its soname, and do not need it if they have the static one.
readelf -d "$out/test-shared" | grep -q "NEEDED.*\[$(. scripts/installed.sh && echo "$soname")\]"
if readelf -d "$out/test-static" | grep -q "NEEDED.*nuthatch"; then
    echo "c: the static program needs the shared library" >&2
    exit 1
fi
build test-sanitized test_flow.c static -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
run "$out/test-sanitized"
skipped=0
if command -v valgrind >/dev/null; then
    # In turn: else a thread that reads statistics without a pause can keep the lock from the one that it waits for.
    run valgrind -q --fair-sched=try --error-exitcode=1 --leak-check=full "$out/test-static"
else
    echo "c: no valgrind: skipped"
    skipped=1
fi

if command -v c++ >/dev/null; then
    echo '#include <nuthatch_flow.h>' >"$out/header.cc"
    # Several flags.
    # shellcheck disable=SC2046
    c++ -std=c++17 -Wall -Wextra -Wpedantic -Wold-style-cast -Wconversion -Werror -fsyntax-only "$out/header.cc" \
        $(pkg-config --cflags nuthatch-flow)
    passed=$((passed + 1))
else
    echo "c: no C++ compiler: skipped"
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
