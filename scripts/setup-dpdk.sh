#!/bin/sh
# Installs what the DPDK example needs, where it is missing: DPDK and the drivers that it loads when
# it runs. Needs root or sudo for that. Fails, with the reason, where it is not to be had.
set -eu

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    pkg-config --exists libdpdk && exit 0
    echo "setup: not a Debian machine, and pkg-config finds no libdpdk"
    exit 1
fi

# The packages; the number in drivers' names is that of the DPDK this system has.
packages() {
    abi=$(apt-cache depends libdpdk-dev 2>/dev/null | sed -n 's/.* librte-eal\([0-9]*\)$/\1/p')
    echo libdpdk-dev gcc make pkg-config
    for driver in net-pcap mempool-ring bus-vdev; do
        echo "librte-$driver$abi"
    done
}
installed() {
    for package in $(packages); do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$state" = installed ] || return 1
    done
}

installed && exit 0
echo "setup: installing DPDK"
as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo -n"
$as_root apt-get update -q
# Packages are words.
# shellcheck disable=SC2046
$as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends $(packages)
