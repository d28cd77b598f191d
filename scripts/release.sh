#!/bin/sh
# A release, up to what leaves the machine, which a person does: docs/releasing.md has the whole list.
#
#   release.sh cut VERSION    the version in manifests and lock files, the changelog cut at it; nothing is committed
#   release.sh make [FOLDER]  checks each published crate as crates.io would, and makes for this machine's processor a
#                             tarball, packages for Debian and Fedora, an image, packages for Python and Node.js, what the
#                             program is made of (SBOM), for all the source, the chart for Kubernetes, the formula for
#                             Homebrew and the notes, and the checksums of all; in target/release-files if not said
#   release.sh sign FOLDER [KEY]  signs the checksums by GnuPG, with this key or the default one
#   release.sh notes          what the changelog says of this version
#
# `make` takes what is committed: it refuses other files, and a version that the changelog does not have, unless DRY=1
# says that it is only tried.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
# SBOMs by the tool of CycloneDX's authors.
cyclonedx=0.5.9
# Where the project is, and so the files of a release. Only a trial does without.
repository=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)
# Files beside Cargo.toml that have the version in them. (A test looks whether they all agree: tests/deploy.)
versioned="dist/helm/nuthatch/Chart.yaml dist/kubernetes/nuthatch.yaml dist/container/compose.yml"

fail() {
    echo "release: $1" >&2
    exit 1
}

# The changelog's entries of a version: all from its heading to the next.
entries() {
    awk -v heading="## [$1]" 'index($0, "## [") == 1 { found = index($0, heading) == 1; next } found' CHANGELOG.md
}

cut_release() {
    new=$1
    echo "$new" | grep -Eq '^[0-9]+\.[0-9]+\.[0-9]+$' || fail "a version is three numbers: $new"
    [ "$new" != "$version" ] || fail "the version is $version already"
    entries Unreleased | grep -q '^- ' || fail "the changelog has nothing that is not released"
    [ -z "$(entries "$new")" ] || fail "the changelog has $new already"
    # The workspace's own, and what its crates ask of each other.
    escaped=$(echo "$version" | sed 's/\./\\./g')
    sed -i -e "s/^version = \"$escaped\"\$/version = \"$new\"/" \
        -e "/path = /s/version = \"$escaped\"/version = \"$new\"/" Cargo.toml
    # Several words.
    # shellcheck disable=SC2086
    sed -i "s/\([-:\" ]\)$escaped\b/\1$new/g" $versioned
    sed -i "s/^## \[Unreleased\]\$/&\n\n## [$new] - $(date +%F)/" CHANGELOG.md
    for manifest in Cargo.toml fuzz/Cargo.toml; do
        cargo update --quiet --workspace --offline --manifest-path "$manifest"
    done
    git diff --stat
    echo "release: now look at it, commit it as \"Release $new\", and tag it v$new"
}

check_state() {
    [ -n "${DRY:-}" ] || [ -z "$(git status --porcelain)" ] || fail "there are files that are not committed"
    [ -n "${DRY:-}" ] || [ -n "$(entries "$version")" ] || fail "the changelog has no $version: release.sh cut"
    [ -n "${DRY:-}" ] || [ "$(git describe --exact-match 2>/dev/null)" = "v$version" ] ||
        fail "this commit is not tagged v$version"
    [ -n "${DRY:-}" ] || [ -n "$repository" ] ||
        fail "Cargo.toml says no repository, where the formula and cargo binstall look for files"
}

# Each published crate as crates.io would take it: packaged, and built from the package, after those that it needs. All
# others say `publish = false`.
check_crates() {
    scripts/check-crates.sh
    # Several words.
    # shellcheck disable=SC2086
    cargo publish --workspace --dry-run --locked ${DRY:+--allow-dirty}
}

# sbom FOLDER: what the server's binary is made of, crate by crate, with versions, licences and checksums.
sbom() {
    tool=target/release-tools
    [ -x $tool/bin/cargo-cyclonedx ] ||
        cargo install --quiet --locked --root $tool cargo-cyclonedx@$cyclonedx
    manifest=$(cargo metadata --no-deps --offline --format-version 1 |
        python3 -c 'import json, sys
packages = json.load(sys.stdin)["packages"]
print(*(p["manifest_path"] for p in packages if any(t["name"] == "nuthatch" and "bin" in t["kind"] for t in p["targets"])))')
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) $tool/bin/cargo-cyclonedx cyclonedx --quiet --manifest-path "$manifest" \
        --format json --spec-version 1.5 --describe binaries --no-build-deps
    # It writes one beside the manifest of each package with a program or a library for C.
    mv "$(dirname "$manifest")/nuthatch_bin.cdx.json" target/sbom.json
    git ls-files --others --exclude-standard -- '*.cdx.json' | xargs -r rm
    mv target/sbom.json "$1/nuthatch-$version-$(uname -m).cdx.json"
}

# source_file FOLDER: all that is committed, as one file that has the same bytes on each machine.
source_file() {
    git archive --format tar --prefix "nuthatch-$version/" HEAD | gzip -9n >"$1/nuthatch-$version-source.tar.gz"
}

# chart FOLDER: as `helm package` has it, with the same bytes on each machine.
chart() {
    tar -C dist/helm --owner=0 --group=0 --sort=name --mtime=@0 --mode=u=rwX,go=rX -cf - nuthatch | gzip -9n \
        >"$1/nuthatch-chart-$version.tgz"
}

# formula FOLDER: for Homebrew, with the checksum of the source.
formula() {
    homepage=${repository:-https://nuthatch.invalid}
    sum=$(sha256sum "$1/nuthatch-$version-source.tar.gz" | cut -d ' ' -f 1)
    sed -e "s|@version@|$version|g; s|@homepage@|$homepage|g; s|@sha256@|$sum|g" \
        -e "s|@downloads@|$homepage/releases/download/v$version|g" dist/homebrew/nuthatch.rb.in >"$1/nuthatch.rb"
}

make_release() {
    out=$1
    check_state
    [ ! -e "$out" ] || [ -z "$(ls "$out")" ] || fail "$out is not empty"
    mkdir -p "$out"
    check_crates
    scripts/package-tar.sh "$out"
    scripts/package-oci.sh "$out"
    if command -v dpkg-deb >/dev/null; then scripts/package-deb.sh "$out"; fi
    if command -v rpmbuild >/dev/null; then scripts/package-rpm.sh "$out"; else echo "release: no rpmbuild, so no rpm" >&2; fi
    scripts/python.sh "$out"
    if command -v npm >/dev/null; then scripts/node.sh "$out"; else echo "release: no npm, so no package for Node.js" >&2; fi
    sbom "$out"
    source_file "$out"
    chart "$out"
    formula "$out"
    notes >"$out/notes.md"
    (cd "$out" && sha256sum -- * >"SHA256SUMS-$(uname -m)")
    ls -l "$out"
}

sign() {
    for sums in "$1"/SHA256SUMS-*; do
        case $sums in *.asc) continue ;; esac
        [ -f "$sums" ] || fail "$1 has no checksums"
        (cd "$1" && sha256sum --check --quiet "$(basename "$sums")") || fail "$sums does not belong to the files"
        gpg --batch --yes --armor --detach-sign ${2:+--local-user "$2"} "$sums"
        echo "$sums.asc"
    done
}

notes() {
    heading=$version
    [ -n "$(entries "$heading")" ] || heading=Unreleased
    entries "$heading"
}

case ${1:-}:$# in
    cut:2) cut_release "$2" ;;
    make:1) make_release target/release-files ;;
    make:2) make_release "$2" ;;
    sign:2 | sign:3) sign "$2" "${3:-}" ;;
    notes:1) notes ;;
    *)
        sed -n 's/^#   \(release.sh.*\)/\1/p' "$0" >&2
        exit 64
        ;;
esac
