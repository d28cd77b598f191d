#!/bin/sh
# The packages, built and used: the Debian package is installed and its server asked, as far as this machine lets one
# install, and that for Fedora, with the same files, into an empty root; the image's files are all that its server needs; the
# tarball's binary runs from where it was unpacked.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
export PROFILE=dev
out=target/package-test
rm -rf "$out"
mkdir -p "$out"
server=
folder=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
passed=0 skipped=0
# Where a server of another user may write, too.
folder=$(mktemp -d)
chmod 777 "$folder"
ports=$folder/ports

# say PORT TEXT: all that the server answers, its line ends as spaces.
say() {
    python3 -c 'import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as server:
    server.sendall(sys.argv[2].replace("|", "\r\n").encode())
    print(" ".join(server.makefile().read().split()))' "$1" "$2"
}

# asks COMMAND...: starts a server and asks it over its port.
asks() {
    rm -f "$ports"
    MEMCACHED_PORT_FILENAME=$ports "$@" -l 127.0.0.1 -p -1 2>"$out/said" &
    server=$!
    until [ -s "$ports" ]; do
        kill -0 $server || { cat "$out/said"; exit 1; }
        sleep 0.1
    done
    port=$(sed -n 's/^TCP INET: //p' "$ports")
    said=$(say "$port" 'set a 0 0 1|x|get a|quit|')
    [ "$said" = "STORED VALUE a 0 1 x END" ] || { echo "packages: $* said $said" >&2; exit 1; }
    kill $server
    wait $server
    server=
    passed=$((passed + 1))
}

tarball=$(scripts/package-tar.sh "$out")
tar -C "$out" -xzf "$tarball"
# Each document that one of them leads to is beside it.
for document in "$out"/nuthatch-*/*.md; do
    for linked in $(grep -o '](\(docs/\)\?[a-z-]*\.md' "$document" | sed 's,.*[(/],,'); do
        case $document:$linked in
            # The readme also names what only who builds it reads.
            */README.md:* | */CHANGELOG.md:*) continue ;;
        esac
        [ -f "$(dirname "$document")/$linked" ] || { echo "packages: $document leads to $linked" >&2; exit 1; }
    done
done
asks "$out"/nuthatch-*/bin/nuthatch

image=$(scripts/package-oci.sh "$out")
mkdir "$out/image" "$out/root"
tar -C "$out/image" -xf "$image"
python3 - "$out/image" "$out/root" <<'END'
import hashlib, json, sys, tarfile
image, root = sys.argv[1:]
def blob(entry):
    data = open(f"{image}/blobs/sha256/{entry['digest'][7:]}", "rb").read()
    assert hashlib.sha256(data).hexdigest() == entry["digest"][7:] and len(data) == entry["size"]
    return data
(manifest,) = json.load(open(f"{image}/index.json"))["manifests"]
manifest = json.loads(blob(manifest))
config = json.loads(blob(manifest["config"]))
assert config["config"]["User"] == "65532:65532"
import gzip, io
clear = gzip.decompress(blob(manifest["layers"][0]))
assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(clear).hexdigest()]
tarfile.open(fileobj=io.BytesIO(clear)).extractall(root)
END
if [ "$(id -u)" = 0 ]; then
    # Nothing but the image's files, and not root: its port file is a folder that it may write.
    mkdir -m 777 "$out/root/ports"
    MEMCACHED_PORT_FILENAME=/ports/at chroot --userspec=65532:65532 "$out/root" /usr/bin/nuthatch -l 127.0.0.1 -p -1 2>"$out/said" &
    server=$!
    until [ -s "$out/root/ports/at" ]; do
        kill -0 $server || { cat "$out/said"; exit 1; }
        sleep 0.1
    done
    port=$(sed -n 's/^TCP INET: //p' "$out/root/ports/at")
    say "$port" 'version|quit|' | grep -q '^VERSION '
    kill $server
    wait $server
    server=
    passed=$((passed + 1))
else
    skipped=$((skipped + 1))
fi

package=$(scripts/package-deb.sh "$out")
dpkg-deb --info "$package" | grep '^ Package: nuthatch' >"$out/dpkg"
dpkg-deb --field "$package" Description | head -n 1 | grep memcached | grep -q redis
dpkg-deb --contents "$package" >"$out/contents"
for file in lib/systemd/system/nuthatch.service usr/share/man/man1/nuthatch.1.gz usr/share/man/man1/nuthatch-top.1.gz \
    usr/share/doc/nuthatch/statistics.md usr/share/doc/nuthatch/prometheus/nuthatch.rules.yml \
    usr/share/doc/nuthatch/grafana/nuthatch.json; do
    grep " ./$file\$" "$out/contents" >>"$out/dpkg" || { echo "packages: no $file" >&2; exit 1; }
done

# Its scripts do what an administrator wants, as far as systemd's tools are asked: a service that cannot start leaves the
# package installed and says so, and one that is disabled or stopped is left so.
tools=$out/tools
mkdir "$tools" "$tools/running"
dpkg-deb --control "$package" "$out/control"
sed "s,/run/systemd/system,$PWD/$tools/running,g; s,/var/lib/nuthatch,$PWD/$tools/items,g" "$out/control/postinst" >"$tools/postinst"
for tool in adduser install systemctl deb-systemd-helper deb-systemd-invoke; do
    cat >"$tools/$tool" <<END
#!/bin/sh
echo "$tool \$*" >>"$PWD/$tools/asked"
case " \$REFUSED " in *" $tool:\$1 "* | *" $tool:\$2 "*) exit 1 ;; esac
END
    chmod 755 "$tools/$tool"
done
# postinst VERSION-OF-BEFORE REFUSED: what it asks of systemd's tools when one answer is no.
postinst() {
    rm -f "$tools/asked"
    PATH=$PWD/$tools:$PATH REFUSED=${2:-} sh "$tools/postinst" configure "$1" 2>"$tools/said"
    cat "$tools/asked"
}
postinst "" >"$tools/tried"
grep -q '^deb-systemd-invoke start nuthatch.service' "$tools/tried"
grep -q '^deb-systemd-helper enable nuthatch.service' "$tools/tried"
postinst "" deb-systemd-invoke:start >"$tools/tried"
grep -q 'is memcached running on port 11211' "$tools/said"
postinst 0.0.1 >"$tools/tried"
grep -q '^deb-systemd-invoke restart nuthatch.service' "$tools/tried"
postinst 0.0.1 deb-systemd-helper:was-enabled >"$tools/tried"
if grep -q 'helper enable' "$tools/tried"; then echo "packages: a disabled service is enabled" >&2; exit 1; fi
postinst 0.0.1 systemctl:is-active >"$tools/tried"
if grep -q invoke "$tools/tried"; then echo "packages: a stopped service is started" >&2; exit 1; fi
passed=$((passed + 1))

if [ "$(id -u)" = 0 ] && ! dpkg -s nuthatch >/dev/null 2>&1; then
    # systemd's part is left out where there is no systemd.
    dpkg --force-depends -i "$package" >"$out/dpkg" 2>&1 || { cat "$out/dpkg"; exit 1; }
    asks setpriv --reuid nuthatch --regid nuthatch --clear-groups \
        /usr/bin/nuthatch --config /etc/nuthatch/nuthatch.toml --log stderr
    # Settings that somebody changed stay when it is removed, and go when it is purged.
    [ -f /etc/nuthatch/nuthatch.toml ]
    dpkg --purge nuthatch >>"$out/dpkg" 2>&1
    [ ! -e /etc/nuthatch/nuthatch.toml ] && [ ! -e /usr/bin/nuthatch ] && [ ! -e /var/lib/nuthatch ]
    passed=$((passed + 1))
else
    dpkg-deb --extract "$package" "$out/deb"
    asks "$out/deb/usr/bin/nuthatch"
    skipped=$((skipped + 1))
fi
# The same for Fedora and RHEL: into an empty root, with a database of its own, without the scripts, which need a shell there.
if command -v rpmbuild >/dev/null; then
    package=$(scripts/package-rpm.sh "$out")
    rpm -qpi "$package" | grep '^Summary .*memcached and redis' >"$out/rpm"
    rpm -qp --requires "$package" | grep '^libc\.so' >>"$out/rpm"
    rpm -qpc "$package" | grep -x /etc/nuthatch/nuthatch.toml >>"$out/rpm"
    # As in the Debian package, but for the place of systemd's units, and for folders.
    rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "$package" | sed -n 's/^-[^ ]* //p' | sort >"$out/rpm-files"
    sed -n 's,^-.* \./\(.*\),/\1,p' "$out/contents" | sed 's,^/lib/systemd,/usr/lib/systemd,' | sort | cmp - "$out/rpm-files"
    for script in "$(rpm -qp --qf '%{PREIN}' "$package")" "$(rpm -qp --qf '%{POSTIN}' "$package")" \
        "$(rpm -qp --qf '%{PREUN}' "$package")" "$(rpm -qp --qf '%{POSTUN}' "$package")"; do
        echo "$script" | sh -n
    done
    root=$PWD/$out/rpm-root
    mkdir "$root"
    rpm --root "$root" --nodeps --noscripts -i "$package" >>"$out/rpm" 2>&1 || { cat "$out/rpm"; exit 1; }
    rpm --root "$root" --nodeps -V nuthatch
    asks "$root/usr/bin/nuthatch" --config "$root/etc/nuthatch/nuthatch.toml" --log stderr -e=
    rpm --root "$root" --nodeps --noscripts -e nuthatch
    [ ! -e "$root/usr/bin/nuthatch" ] && [ ! -e "$root/etc/nuthatch/nuthatch.toml" ]
else
    echo "packages: no rpmbuild (scripts/setup-packages.sh): the rpm is not built"
    skipped=$((skipped + 1))
fi
echo "counts: $passed passed, 0 failed, $skipped skipped"
