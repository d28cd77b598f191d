#!/bin/sh
# Installs what the tests need, where it is missing: Debian packages, and clients in .venv. Needs root or sudo only for
# the packages.
set -eu
cd "$(dirname "$0")/.."

scripts/setup-packages.sh

# The stamp holds the requirements that were installed, so that a change of them is noticed.
stamp=.venv/requirements.txt
if ! cmp -s tests/clients/requirements.txt "$stamp"; then
    echo "setup: Python clients in .venv"
    python3 -m venv .venv
    .venv/bin/pip install -q --disable-pip-version-check -r tests/clients/requirements.txt
    cp tests/clients/requirements.txt "$stamp"
fi

# Prometheus judges the rules and reads a server: its two programs alone (19 MB), because the package would start a service on all
# addresses. memcached_exporter looks for all it knows of memcached.
if command -v dpkg-deb >/dev/null && ! [ -e .venv/bin/promtool ] && ! command -v promtool >/dev/null; then
    echo "setup: prometheus and promtool in .venv/bin"
    fetched=$(mktemp -d)
    if (cd "$fetched" && apt-get download -q prometheus >/dev/null 2>&1); then
        dpkg-deb --fsys-tarfile "$fetched"/prometheus_*.deb |
            tar -x -C .venv/bin --strip-components=3 ./usr/bin/prometheus ./usr/bin/promtool
    else
        echo "setup: prometheus is not to be had; the tests with it are skipped"
    fi
    rm -r "$fetched"
fi
if command -v go >/dev/null && ! [ -e .venv/bin/memcached_exporter ]; then
    echo "setup: memcached_exporter in .venv/bin"
    GOBIN=$PWD/.venv/bin go install github.com/prometheus/memcached_exporter/cmd/memcached_exporter@v0.14.4 ||
        echo "setup: memcached_exporter is not to be had; it is not tested"
fi

# memjs speaks the binary protocol, ioredis that of Redis.
if command -v npm >/dev/null && ! [ -e .venv/node/node_modules/memjs ]; then
    echo "setup: JavaScript clients in .venv/node"
    npm install --silent --no-fund --no-audit --prefix .venv/node ioredis@5.8.2 memjs@1.3.2 ||
        echo "setup: ioredis and memjs are not to be had; they are not tested"
fi
