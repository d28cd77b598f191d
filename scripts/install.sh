#!/bin/sh
# Installs what is named, or all of it: install.sh [server] [lab] [flow]
#
#   server  the binary nuthatch, its manual page, completions and the example file
#   lab     the binary nuthatch-lab, its manual page and completions
#   flow    the flow cache for C programs: header, static and shared library, pkg-config file
#
# PREFIX (/usr/local), LIBDIR (PREFIX/lib) and DESTDIR in the environment say where: see
# scripts/installed.sh. PROFILE (release) says how it is built; checks say dev.
set -eu
cd "$(dirname "$0")/.."
. scripts/installed.sh
profile=${PROFILE:-release}
case $profile in
    dev) built=${CARGO_TARGET_DIR:-target}/debug ;;
    *) built=${CARGO_TARGET_DIR:-target}/$profile ;;
esac
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT

put() {
    # put DESTINATION COMMAND...: installs what a command prints.
    destination=$1
    shift
    "$@" >"$made/file"
    install -D -m 644 "$made/file" "$destination"
}

# program NAME: a binary without what only a debugger reads, its manual page and completions.
program() {
    cargo build --profile "$profile" --bin "$1"
    install -D -m 755 "$built/$1" "$binaries/$1"
    strip --strip-debug "$binaries/$1"
    put "$manuals/$1.1" "$built/$1" man
    put "$bash/$1" "$built/$1" completions bash
    put "$zsh/_$1" "$built/$1" completions zsh
    put "$fish/$1.fish" "$built/$1" completions fish
}

server() {
    program nuthatch
    install -D -m 644 dist/nuthatch.toml "$example"
}

lab() {
    program nuthatch-lab
}

flow() {
    cargo rustc --profile "$profile" -p nuthatch-flow-c --lib --crate-type cdylib,staticlib -- \
        --print native-static-libs 2>"$made/messages" || { cat "$made/messages" >&2; exit 1; }
    # What the static library needs of the system, as the compiler says.
    private=$(sed -n 's/^note: native-static-libs: //p' "$made/messages" | tail -n 1)
    install -D -m 644 crates/flow-c/include/nuthatch_flow.h "$header"
    install -D -m 644 "$built/libnuthatch_flow_c.a" "$static"
    install -D -m 755 "$built/libnuthatch_flow_c.so" "$shared"
    # Of an archive only what debuggers read: the linker needs all of its symbols.
    strip --strip-debug "$static"
    strip --strip-unneeded "$shared"
    for link in $links; do
        ln -sf "$(basename "$shared")" "$link"
    done
    put "$pkgconfig" sed -e "s|@prefix@|$prefix|; s|@libdir@|$libdir|" \
        -e "s|@version@|$version|; s|@private@|$private|" dist/nuthatch-flow.pc.in
}

[ $# -gt 0 ] || set -- server lab flow
for part in "$@"; do
    case $part in
        server | lab | flow) $part ;;
        *) echo "install.sh: no part is called $part: there are server, lab and flow" >&2; exit 2 ;;
    esac
done
echo "installed in $destdir$prefix"
