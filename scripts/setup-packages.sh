#!/bin/sh
# Installs the Debian packages that the tests need, where they are missing. Needs root or sudo.
set -eu
cd "$(dirname "$0")/.."

# memcached: the rival of the benches, and the judge of the protocol. The tools have memccapable. Up to
# gcc, the rest builds pylibmc; C programs find the flow cache by pkg-config, and valgrind watches them. Open MPI has
# the OpenSHMEM that the distributed store runs on, and iproute2 makes several hosts of one. redis-server judges Redis'
# protocol, and the tools have redis-cli and redis-benchmark. libclang-rt-dev has libFuzzer. buildah builds an image,
# rpm a package of Fedora's, and musl-tools links a server in one file. Then come Laravel's components and Symfony's
# (tests/frameworks). The last lines have clients of PHP, Ruby and Java, which need their languages, PHPUnit with
# PSR-16's own tests, and a web server of Ruby's.
packages="memcached libmemcached-tools libmemcached-dev zlib1g-dev python3-venv python3-dev gcc
    pkg-config valgrind openssl openmpi-bin libopenmpi-dev iproute2 redis-server redis-tools libclang-rt-dev
    buildah rpm musl-tools
    php-illuminate-cache php-illuminate-config php-illuminate-container php-illuminate-events php-illuminate-redis
    php-illuminate-session php-symfony-cache php-symfony-http-foundation php-symfony-lock php-symfony-rate-limiter
    php-cli php-memcached php-redis phpunit php-cache-integration-tests ruby-dalli ruby-redis ruby-activesupport
    ruby-rack puma libspymemcached-java"

missing=""
if command -v dpkg-query >/dev/null; then
    for package in $packages; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$state" = installed ] || missing="$missing $package"
    done
else
    echo "setup: not a Debian machine; see that these are there: $packages"
fi
if [ -n "$missing" ]; then
    echo "setup: installing$missing"
    as_root=""
    [ "$(id -u)" = 0 ] || as_root="sudo"
    $as_root apt-get update -q
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends $missing
fi
