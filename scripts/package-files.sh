#!/bin/sh
# The files that packages of systems have in common: package-files.sh FOLDER UNITS puts them under FOLDER, and systemd's
# units into its folder UNITS. The binary, its manual pages and completions, settings that listen on 127.0.0.1, documents,
# and among these what Prometheus and Grafana need. PROFILE (release) says how the binary is built; checks say dev.
set -eu
cd "$(dirname "$0")/.."
tree=$1
units=$2
PREFIX=/usr DESTDIR="$tree" scripts/install.sh server >&2
document=$tree/usr/share/doc/nuthatch
install -D -m 644 dist/nuthatch.toml "$document/nuthatch.toml"
install -D -m 644 LICENSE "$document/copyright"
# Several words.
# shellcheck disable=SC2046
install -m 644 -t "$document" README.md CHANGELOG.md $(cat scripts/package-docs)
install -D -m 644 -t "$document/prometheus" dist/prometheus/*
install -D -m 644 -t "$document/grafana" dist/grafana/*
gzip -9n "$document/CHANGELOG.md"
install -D -m 644 dist/debian/nuthatch.toml "$tree/etc/nuthatch/nuthatch.toml"
install -D -m 644 -t "$tree$units" dist/systemd/*.service dist/systemd/*.socket
gzip -9n "$tree"/usr/share/man/man1/*.1
