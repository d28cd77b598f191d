#!/bin/sh
# Runs on aarch64 what can be run of it by an emulator: the tests of the crates that processors make a
# difference to, every check of the engines, and the release binary, in its own bench and as a server of real
# clients.
#
# A compiler with the standard library for aarch64 is used where it is (rustup target add
# aarch64-unknown-linux-gnu); else root on Debian gets one in target/aarch64/root, see setup-aarch64.sh.
#
# What this cannot show is a missing barrier: on x86-64 the emulated program's loads and stores keep the order
# of x86-64, which is stronger than what aarch64 promises. Orders rest on the models: scripts/loom.sh.
set -eu
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
here=$PWD/target/aarch64

skip() {
    echo "aarch64: skipped: $1"
    echo "counts: 0 passed, 0 failed, 1 skipped"
    exit 0
}

# Where the compiler and the emulator are: in a folder, or, if this is empty, in this system.
root=
if ls "$(rustc --print target-libdir --target $target)"/libstd-*.rlib >/dev/null 2>&1; then
    if ! { command -v aarch64-linux-gnu-gcc && command -v qemu-aarch64; } >/dev/null; then
        command -v apt-get >/dev/null || skip "no aarch64-linux-gnu-gcc or no qemu-aarch64"
        as_root=""
        [ "$(id -u)" = 0 ] || as_root="sudo"
        $as_root apt-get update -q
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
            gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
    fi
elif [ "$(id -u)" = 0 ] && [ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ]; then
    root=$here/root
    scripts/setup-aarch64.sh "$root"
else
    skip "no standard library for aarch64 (rustup target add $target), and only root on Debian gets another"
fi

# Runs a command where the compiler is. If that is a folder, the command sees this one and cargo's in it, at
# their own paths, by mounts that are its own and end with it.
inside() {
    if [ -z "$root" ]; then
        "$@"
        return
    fi
    unshare --mount sh -euc '
        root=$1
        shift
        for folder in "$PWD" "$CARGO_HOME/registry" /proc /dev; do
            mkdir -p "$root$folder"
            mount --rbind "$folder" "$root$folder"
        done
        exec chroot "$root" env -C "$PWD" "$@"' sh "$root" "$@"
}

emulator="qemu-aarch64 -L /usr/aarch64-linux-gnu"
export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}"
export CARGO_TARGET_DIR="$here/build" CARGO_BUILD_TARGET=$target
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$emulator"
mkdir -p "$CARGO_HOME/registry"

# An emulated instruction takes some twenty, so a part of the random checks.
export NUTHATCH_SOAK="${NUTHATCH_SOAK:-1/4}"
# A failure hides no other.
inside cargo test --no-fail-fast -p nuthatch-base -p nuthatch-engine -p nuthatch-store \
    -p nuthatch-cuckoo -p nuthatch-chained -p nuthatch-memc3 -p nuthatch-partition -p nuthatch-cphash -p nuthatch \
    -p nuthatch-ring -p nuthatch-protocol -p nuthatch-resp -p nuthatch-channels -p nuthatch-lua -p nuthatch-flow -p nuthatch-check
# Its other tests want servers.
inside cargo test --no-fail-fast --lib -p nuthatch-client

echo "aarch64: the binary"
inside cargo build --release --bin nuthatch --bin nuthatch-lab
# What runs them from outside of the folder.
for program in nuthatch nuthatch-lab; do
    cat >"$here/$program" <<END
#!/bin/sh
exec "${root:+$root/usr/bin/}qemu-aarch64" -L "$root/usr/aarch64-linux-gnu" \
    "$CARGO_TARGET_DIR/$target/release/$program" "\$@"
END
    chmod +x "$here/$program"
done
"$here/nuthatch-lab" bench engine --items 10000 --seconds 1
NUTHATCH=$here/nuthatch scripts/test-clients.sh
