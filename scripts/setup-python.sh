#!/bin/sh
# Installs what builds and tests the Python package, in .venv/python: maturin, pytest, the frameworks whose backends it has, the
# clients beside which it is measured, and pymemcache's own tests.
set -eu
cd "$(dirname "$0")/.."
asked=crates/client/python/tests/requirements.txt
# The stamp holds the requirements that were installed, so that a change of them is noticed.
stamp=.venv/python/requirements.txt
if ! cmp -s $asked $stamp; then
    echo "python: tools in .venv/python" >&2
    python3 -m venv .venv/python
    .venv/python/bin/pip install -q --disable-pip-version-check -r $asked
    cp $asked $stamp
fi
# Django's own tests are in its source package.
if ! cmp -s crates/client/python/tests/sources.txt .venv/python/sources.txt; then
    if .venv/python/bin/pip download -q --disable-pip-version-check --no-deps --no-binary Django \
        -d .venv/python/sources -r crates/client/python/tests/sources.txt; then
        cp crates/client/python/tests/sources.txt .venv/python/sources.txt
    else
        echo "python: the source of Django is not to be had; its tests are not run" >&2
    fi
fi
