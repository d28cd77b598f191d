#!/bin/sh
# The library on other systems than Linux with glibc: that it compiles for each of them, and that its tests pass on what it
# takes there from the system (crates/core/base/src/sys). That of Windows and that of macOS and FreeBSD run here, on Linux;
# under Wine, where it and a linker are (Debian: wine64, gcc-mingw-w64-x86-64-win32), Windows' programs do. The server
# compiles for macOS.
#
# From nothing it takes three minutes of processors, a third of them for Wine. What cannot be had is skipped.
# `test-portable.sh long` also compiles the server for FreeBSD, runs it without the system's C library, and its tests as on
# macOS and FreeBSD: four minutes more.
set -eu
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0
library="-p nuthatch-base -p nuthatch-engine -p nuthatch-store -p nuthatch-cuckoo -p nuthatch-snapshot -p nuthatch"
is_long=${1:-}
passed=0 failed=0 skipped=0
skip() {
    echo "portable: skipped: $1"
    skipped=$((skipped + 1))
}
judge() {
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

has() {
    [ -n "$(find "$(rustc --print target-libdir --target "$1")" -name 'libstd-*.rlib' 2>/dev/null)" ] ||
        { command -v rustup && rustup target add "$1"; } >/dev/null 2>&1
}

# Built beside all else: what runs in a build, and most libraries, the other checks have compiled.
built=${CARGO_TARGET_DIR:-target}
mkdir -p "$built"
built=$(cd "$built" && pwd)
for target in x86_64-unknown-linux-musl aarch64-apple-darwin x86_64-unknown-freebsd x86_64-pc-windows-msvc; do
    if has $target; then
        # Several words.
        # shellcheck disable=SC2086
        judge cargo check --quiet --target $target $library
    else
        skip "no standard library for $target"
    fi
done

# Some of the server is C (the ciphers, a switch of stacks), whose compiler for these systems is seldom there. A check links
# nothing, so a stand-in for it makes empty files: Rust alone is checked.
compiler=$built/no-compiler
cat >"$compiler" <<'END'
#!/bin/sh
case $1 in
    # Which compiler it is.
    -E) exec echo '"clang"' ;;
    '-?') exit 1 ;;
esac
while [ $# -gt 0 ]; do
    [ "$1" != -o ] || : >"$2"
    shift
done
END
chmod +x "$compiler"
for target in aarch64-apple-darwin ${is_long:+x86_64-unknown-freebsd}; do
    if has $target; then
        # Nor is there a folder of Apple's headers.
        judge env TARGET_CC="$compiler" SDKROOT=/ \
            cargo check --quiet --target $target -p nuthatch-cli
    else
        skip "the server: no standard library for $target"
    fi
done

# The server without the system's C library: one file, which a real client asks. A linker is in Debian's musl-tools.
static() {
    cargo build --quiet --target x86_64-unknown-linux-musl -p nuthatch-cli &&
        NUTHATCH=$built/x86_64-unknown-linux-musl/debug/nuthatch NUTHATCH_ENGINE=cuckoo \
            .venv/bin/python -m pytest -q -p no:cacheprovider tests/clients/test_pymemcache.py tests/clients/test_ping.py
}
if [ -n "$is_long" ]; then
    if has x86_64-unknown-linux-musl && command -v musl-gcc >/dev/null && [ -x .venv/bin/python ]; then
        judge static
    else
        skip "a static server: no musl (rustup, musl-tools), or no clients (scripts/setup.sh)"
    fi
fi

# as_if CFG WORD...: the tests that the words choose, on what another system has. Our crates alone are compiled with it, by a
# wrapper, which cargo also asks what holds in a manifest: flags for all would compile the libraries again. A failure hides no
# other.
as_if() {
    wrapper=$built/as-if-$1
    # One of another time would be another compiler.
    if ! [ -x "$wrapper" ]; then
        printf '#!/bin/sh\nexec "$@" --cfg %s\n' "$1" >"$wrapper"
        chmod +x "$wrapper"
    fi
    shift
    RUSTC_WORKSPACE_WRAPPER=$wrapper cargo test --no-fail-fast "$@" \
        --config "target.'cfg(all())'.runner = ['$PWD/scripts/test-once.sh', '--']"
}
# shellcheck disable=SC2086
judge as_if nuthatch_portable $library --lib --test cache --test limits --test lifetimes --test hostile --test roundtrip
# What differs from the other lies in the base alone, and shows in what gives memory back.
judge as_if nuthatch_unix -p nuthatch-base -p nuthatch-store --lib
# The server as on macOS and FreeBSD, but for its waiting by kqueue and their own calls.
if [ -n "$is_long" ]; then
    judge as_if nuthatch_unix -p nuthatch-state -p nuthatch-log -p nuthatch-server -p nuthatch-cli --lib
    judge as_if nuthatch_unix -p nuthatch-server --test cuckoo
fi

wine=$(command -v wine64 || echo /usr/lib/wine/wine64)
under_wine() {
    WINEPREFIX=$(mktemp -d)
    # Without a display, and without a word of what it lacks.
    export WINEPREFIX WINEDEBUG=-all DISPLAY=
    "$wine" wineboot -i >/dev/null 2>&1 &&
        # Wine 8 has no bcryptprimitives.dll, of which the standard library takes its random numbers.
        echo '#include <windows.h>
            #include <ntsecapi.h>
            __declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T bytes) { return RtlGenRandom(to, bytes); }' |
        x86_64-w64-mingw32-gcc -shared -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll" -x c - -ladvapi32 &&
        CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$wine cargo test --no-fail-fast --target x86_64-pc-windows-gnu \
            -p nuthatch-base -p nuthatch-engine -p nuthatch-store -p nuthatch-snapshot -p nuthatch \
            --lib --test cache --test limits --test lifetimes
    status=$?
    # Its services end, too.
    "$wine" wineboot --kill >/dev/null 2>&1 || :
    rm -rf "$WINEPREFIX"
    return $status
}
if [ -x "$wine" ] && command -v x86_64-w64-mingw32-gcc >/dev/null && has x86_64-pc-windows-gnu; then
    judge under_wine
else
    skip "no Wine, or no linker for Windows"
fi
echo "counts: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
