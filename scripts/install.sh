#!/bin/sh
# Installs what is named, or all of it: install.sh [server] [lab] [flow] [client] [shmem]
#
#   server  the binary nuthatch, its manual page, completions and the example file
#   lab     the binary nuthatch-lab, its manual page and completions
#   flow    the flow cache for C programs: header, static and shared library, pkg-config file
#   client  the client for C programs: the same of it
#   shmem   the distributed store: the program nuthatch-pe with its manual page and completions; header, libraries and
#           pkg-config file for OpenSHMEM programs in C; of all parts, only where OpenSHMEM is
#
# PREFIX (/usr/local), LIBDIR (PREFIX/lib) and DESTDIR in the environment say where: see
# scripts/installed.sh. PROFILE (release) says how it is built; checks say dev.
set -eu
cd "$(dirname "$0")/.."
. scripts/installed.sh
profile=${PROFILE:-release}
features=
case $profile in
    # With the features of the other checks it is what they have built.
    dev) built=${CARGO_TARGET_DIR:-target}/debug features=$(scripts/features.sh) ;;
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

# program NAME FLAGS...: a binary without what only a debugger reads, its manual page and completions. FLAGS are cargo's.
program() {
    # Several words.
    # shellcheck disable=SC2086
    cargo build --profile "$profile" --bin "$@" $features
    install -D -m 755 "$built/$1" "$binaries/$1"
    strip --strip-debug "$binaries/$1"
    put "$manuals/$1.1" "$built/$1" man
    put "$bash/$1" "$built/$1" completions bash
    put "$zsh/_$1" "$built/$1" completions zsh
    put "$fish/$1.fish" "$built/$1" completions fish
}

server() {
    program nuthatch
    # Its page leads to these.
    for command in $commands; do
        put "$manuals/nuthatch-$command.1" "$built/nuthatch" man "$command"
    done
    install -D -m 644 dist/nuthatch.toml "$example"
}

lab() {
    program nuthatch-lab
}

# library CRATE FEATURES HEADER STATIC SHARED LINKS PKGCONFIG TEMPLATE: a library for C. It is built as the file that
# cargo names after the crate, and installed under the names that the others are.
library() {
    case $profile in
        # What the checks have compiled (scripts/compile.rs): cargo repeats what the compiler said.
        dev)
            # Several words.
            # shellcheck disable=SC2086
            cargo build --workspace --lib --message-format json $features >"$made/messages"
            private=$(grep "#$1@" "$made/messages" | sed -n 's/.*"native-static-libs: \([^"]*\)".*/\1/p' | tail -n 1)
            ;;
        *)
            cargo rustc --profile "$profile" -p "$1" --features "$2" --lib --crate-type cdylib,staticlib -- \
                --print native-static-libs 2>"$made/messages" || { cat "$made/messages" >&2; exit 1; }
            private=$(sed -n 's/^note: native-static-libs: //p' "$made/messages" | tail -n 1)
            ;;
    esac
    # What the static library needs of the system, as the compiler says.
    [ -n "$private" ] || { echo "install.sh: the compiler does not say what $1 is linked with" >&2; exit 1; }
    lib=$built/lib$(echo "$1" | tr - _)
    install -D -m 644 "$3" "$destdir$prefix/include/$(basename "$3")"
    install -D -m 644 "$lib.a" "$4"
    install -D -m 755 "$lib.so" "$5"
    # Of an archive only what debuggers read: the linker needs all of its symbols.
    strip --strip-debug "$4"
    strip --strip-unneeded "$5"
    for link in $6; do
        ln -sf "$(basename "$5")" "$link"
    done
    put "$7" sed -e "s|@prefix@|$prefix|; s|@libdir@|$libdir|" \
        -e "s|@version@|$version|; s|@private@|$private|" "$8"
}

flow() {
    library nuthatch-flow-c "" crates/flow/flow-c/include/nuthatch_flow.h "$static" "$shared" "$links" "$pkgconfig" \
        dist/nuthatch-flow.pc.in
}

client() {
    library nuthatch-client-c "" crates/client/client-c/include/nuthatch_client.h "$client_static" "$client_shared" \
        "$client_links" "$client_pkgconfig" dist/nuthatch-client.pc.in
}

shmem() {
    program nuthatch-pe --features nuthatch-pe/openshmem
    library nuthatch-shmem-c openshmem crates/shmem/shmem-c/include/nuthatch_shmem.h "$shmem_static" "$shmem_shared" \
        "$shmem_links" "$shmem_pkgconfig" dist/nuthatch-shmem.pc.in
}

if [ $# = 0 ]; then
    set -- server lab flow client
    ! command -v oshcc >/dev/null || set -- "$@" shmem
fi
for part in "$@"; do
    case $part in
        server | lab | flow | client | shmem) $part ;;
        *) echo "install.sh: no part is called $part: there are server, lab, flow, client and shmem" >&2; exit 2 ;;
    esac
done
echo "installed in $destdir$prefix"
