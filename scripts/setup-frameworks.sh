#!/bin/sh
# Installs the frameworks and libraries that tests/frameworks tries, and their own tests' source packages, in .venv/frameworks.
# What is not to be had is told, and its tests are skipped. Nothing is installed for the whole machine.
set -eu
cd "$(dirname "$0")/.."
here=$PWD/tests/frameworks
to=$PWD/.venv/frameworks
mkdir -p "$to"

# changed FILE...: these are not as they were when they were installed last. Their copies are kept by `installed`.
changed() {
    for file in "$@"; do
        cmp -s "$here/$file" "$to/stamps/$file" || return 0
    done
    return 1
}
installed() {
    for file in "$@"; do
        mkdir -p "$to/stamps/$(dirname "$file")"
        cp "$here/$file" "$to/stamps/$file"
    done
}
missing() {
    echo "frameworks: $1 not to be had; not tested"
}

if changed requirements.txt; then
    echo "frameworks: Python's"
    python3 -m venv "$to"
    "$to/bin/pip" install -q --disable-pip-version-check -r "$here/requirements.txt"
    installed requirements.txt
fi

# A source package has the project's own tests; the installed one does not.
if changed sources.txt; then
    echo "frameworks: source packages"
    mkdir -p "$to/sources"
    while read -r package; do
        "$to/bin/pip" download -q --disable-pip-version-check --no-deps --no-binary "${package%%==*}" -d "$to/sources" "$package" ||
            missing "the source of $package is"
    done <"$here/sources.txt"
    installed sources.txt
fi

if command -v npm >/dev/null && changed node/package.json; then
    echo "frameworks: Node.js'"
    mkdir -p "$to/node"
    cp "$here/node/package.json" "$to/node/"
    if npm install --silent --no-fund --no-audit --prefix "$to/node"; then installed node/package.json; else missing "Node.js' are"; fi
fi

# Its versions are those of go.sum, wherever they come from.
if command -v go >/dev/null && changed go/go.sum go/frameworks_test.go; then
    echo "frameworks: Go's"
    if (cd "$here/go" && go test -mod=readonly -c -o "$to/bin/frameworks.test" .); then
        installed go/go.sum go/frameworks_test.go
    else
        missing "Go's are"
    fi
fi

if changed rust/Cargo.lock rust/Cargo.toml rust/frameworks.rs; then
    echo "frameworks: Rust's"
    if cargo install --quiet --locked --debug --no-track --force --path "$here/rust" --root "$to" --target-dir "$to/rust"; then
        installed rust/Cargo.lock rust/Cargo.toml rust/frameworks.rs
    else
        missing "Rust's are"
    fi
fi

if command -v mvn >/dev/null && changed java/pom.xml; then
    echo "frameworks: Java's"
    if mvn -q -B -f "$here/java/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
        -DoutputDirectory="$to/java"; then
        installed java/pom.xml
    else
        missing "Java's are"
    fi
fi
