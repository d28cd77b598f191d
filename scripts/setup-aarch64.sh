#!/bin/sh
# Makes a folder with a small Debian of its own, in which there are a Rust compiler with the standard
# library for aarch64, a linker for it and an emulator: setup-aarch64.sh FOLDER. Needs root and Debian
# on x86-64; takes some minutes and 2 GB, once. Nothing outside of the folder changes but that
# debootstrap is installed.
set -eu
root=$1
[ ! -e "$root/complete" ] || exit 0

if ! command -v debootstrap >/dev/null; then
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends debootstrap
fi
echo "setup: a Debian with a compiler for aarch64 in $root"
# One that was broken off is no use.
rm -rf "$root"
mkdir -p "$root"
debootstrap --variant=minbase --include=ca-certificates trixie "$root" http://deb.debian.org/debian
export DEBIAN_FRONTEND=noninteractive
chroot "$root" dpkg --add-architecture arm64
chroot "$root" apt-get update -q
# The compiler with -web in its name is the newest that this Debian has, kept for browsers.
chroot "$root" apt-get install -q -y --no-install-recommends cargo-web rustc-web \
    libstd-rust-web-dev:arm64 gcc libc6-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
chroot "$root" apt-get clean
touch "$root/complete"
