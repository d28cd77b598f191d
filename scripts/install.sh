#!/bin/sh
# Installs the binary, its manual page, completions and the example file; and for C programs the flow
# cache: header, static and shared library, pkg-config file. PREFIX (/usr/local), LIBDIR (PREFIX/lib)
# and DESTDIR in the environment say where: see scripts/installed.sh.
set -eu
cd "$(dirname "$0")/.."
. scripts/installed.sh

cargo build --release --bin nuthatch
nuthatch=target/release/nuthatch
install -D -m 755 $nuthatch "$binary"
install -D -m 644 dist/nuthatch.toml "$example"
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT
put() {
    # put DESTINATION COMMAND...: installs what a command prints.
    destination=$1
    shift
    "$@" >"$made/file"
    install -D -m 644 "$made/file" "$destination"
}
put "$manual" $nuthatch man
put "$bash" $nuthatch completions bash
put "$zsh" $nuthatch completions zsh
put "$fish" $nuthatch completions fish

cargo build --release -p nuthatch-flow-c
install -D -m 644 crates/flow-c/include/nuthatch_flow.h "$header"
install -D -m 644 target/release/libnuthatch_flow_c.a "$static"
install -D -m 755 target/release/libnuthatch_flow_c.so "$shared"
for link in $links; do
    ln -sf "$(basename "$shared")" "$link"
done
# What the static library needs of the system, as the compiler tells for this target.
private=$(cargo rustc --release --quiet -p nuthatch-flow-c --crate-type staticlib -- \
    --print native-static-libs 2>&1 | sed -n 's/^note: native-static-libs: //p')
put "$pkgconfig" sed -e "s|@prefix@|$prefix|; s|@libdir@|$libdir|" \
    -e "s|@version@|$version|; s|@private@|$private|" dist/nuthatch-flow.pc.in
echo "installed in $destdir$prefix"
