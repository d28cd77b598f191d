#!/bin/sh
# Installs what the tests of the package for Node.js have beside it, in .venv/node-package. Fails where npm cannot have it.
set -eu
cd "$(dirname "$0")/.."
asked=crates/client/node/tests/package.json
to=.venv/node-package
# npm writes package.json anew, so the stamp is a copy of what was asked for.
if ! cmp -s $asked $to/asked.json; then
    echo "node: libraries in $to" >&2
    mkdir -p $to
    cp $asked $to/package.json
    npm install --silent --no-fund --no-audit --prefix $to
    cp $asked $to/asked.json
fi
