#!/bin/sh
# Installs the binary, its manual page, completions and the example file: install.sh PREFIX
set -eu
cd "$(dirname "$0")/.."
prefix=${1:-/usr/local}
cargo build --release --bin nuthatch
nuthatch=target/release/nuthatch
share=$prefix/share
install -D -m 755 $nuthatch "$prefix/bin/nuthatch"
install -D -m 644 dist/nuthatch.toml "$share/doc/nuthatch/nuthatch.toml"
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT
put() {
    # put DESTINATION COMMAND...: installs what a command prints.
    destination=$1
    shift
    "$@" >"$made/file"
    install -D -m 644 "$made/file" "$destination"
}
put "$share/man/man1/nuthatch.1" $nuthatch man
put "$share/bash-completion/completions/nuthatch" $nuthatch completions bash
put "$share/zsh/site-functions/_nuthatch" $nuthatch completions zsh
put "$share/fish/vendor_completions.d/nuthatch.fish" $nuthatch completions fish
echo "installed in $prefix"
