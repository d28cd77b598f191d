#!/bin/sh
# A Debian package of the server: package-deb.sh [FOLDER], target/package if not said. Prints the file's name.
#
# It has the binary, its manual pages and completions, systemd's units, a user of its own and settings that listen on
# 127.0.0.1; in its folder of documents also what Prometheus and Grafana need. PROFILE (release) says how the binary is built; checks say dev.
set -eu
cd "$(dirname "$0")/.."
out=${1:-target/package}
mkdir -p "$out"
tree=$(mktemp -d)
trap 'rm -r "$tree"' EXIT
chmod 755 "$tree"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
architecture=$(dpkg --print-architecture)
scripts/package-files.sh "$tree" /lib/systemd/system
mkdir "$tree/DEBIAN"
# What the binary needs of the system.
mkdir -p "$tree/debian"
printf 'Source: nuthatch\n' >"$tree/debian/control"
depends=$(cd "$tree" && dpkg-shlibdeps -O usr/bin/nuthatch 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
rm -r "$tree/debian"
cat >"$tree/DEBIAN/control" <<END
Package: nuthatch
Version: $version
Architecture: $architecture
Maintainer: The Nuthatch team <nuthatch@localhost>
Installed-Size: $(du -sk "$tree" | cut -f1)
Depends: ${depends:-libc6}, adduser, init-system-helpers
Section: database
Priority: optional
Description: in-memory cache for clients of memcached and redis
 A cache server for memcached's text, meta and binary clients, and for those of Redis: plain values, transactions and
 short scripts. With passwords, TLS, metrics for Prometheus and items that outlive a restart. More hits from the same
 memory than memcached on most traces: see its documentation.
END
echo /etc/nuthatch/nuthatch.toml >"$tree/DEBIAN/conffiles"
cat >"$tree/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
# As debhelper has it: what the administrator has enabled, disabled or masked stays so, and policy-rc.d is asked.
if [ "$1" = configure ]; then
    adduser --system --group --quiet --home /var/lib/nuthatch --no-create-home nuthatch
    install -d -o nuthatch -g nuthatch -m 700 /var/lib/nuthatch
    deb-systemd-helper unmask nuthatch.service >/dev/null || true
    if deb-systemd-helper --quiet was-enabled nuthatch.service; then
        deb-systemd-helper enable nuthatch.service >/dev/null || true
    else
        deb-systemd-helper update-state nuthatch.service >/dev/null || true
    fi
    if [ -d /run/systemd/system ]; then
        systemctl --system daemon-reload >/dev/null || true
        # One that is stopped stays so on an upgrade.
        action=start
        if [ -n "${2:-}" ]; then
            action=restart
            systemctl --quiet is-active nuthatch.service || action=
        fi
        # A package that is installed is not made a broken one by a port that another cache has.
        if [ -n "$action" ] && ! deb-systemd-invoke "$action" nuthatch.service >/dev/null; then
            echo "nuthatch is installed, but its service did not start: is memcached running on port 11211?" >&2
            echo "Set another port or address in /etc/nuthatch/nuthatch.toml, then: systemctl start nuthatch" >&2
        fi
    fi
fi
END
cat >"$tree/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    for unit in nuthatch.socket nuthatch-redis.socket nuthatch-metrics.socket nuthatch-udp.socket nuthatch.service; do
        deb-systemd-invoke stop "$unit" >/dev/null || true
    done
fi
END
cat >"$tree/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ "$1" = purge ]; then
    if command -v deb-systemd-helper >/dev/null; then
        for unit in nuthatch.socket nuthatch-redis.socket nuthatch-metrics.socket nuthatch-udp.socket nuthatch.service; do
            deb-systemd-helper purge "$unit" >/dev/null || true
            deb-systemd-helper unmask "$unit" >/dev/null || true
        done
    fi
    rm -rf /var/lib/nuthatch
fi
if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload >/dev/null || true
fi
END
chmod 755 "$tree/DEBIAN/postinst" "$tree/DEBIAN/prerm" "$tree/DEBIAN/postrm"
package=$out/nuthatch_${version}_$architecture.deb
# A package that is only tried need not be small.
level=6
[ "${PROFILE:-release}" = release ] || level=1
dpkg-deb --root-owner-group -Zxz -z$level --build "$tree" "$package" >&2
echo "$package"
