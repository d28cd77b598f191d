#!/bin/sh
# The Python package as a user has it: its wheel, installed in a fresh venv, against the server. NUTHATCH=PROGRAM is tried instead
# of the build of the other tests. More words go to pytest.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
choose_server
out=$PWD/target/python
rm -rf "$out"
mkdir -p "$out"
# maturin chooses one package, so all that it stands on has other features and is compiled again: without lints, which were asked
# when all packages were compiled.
unset RUSTC_WORKSPACE_WRAPPER
PROFILE=dev scripts/python.sh "$out/wheels"
python3 -m venv "$out/fresh"
"$out/fresh/bin/pip" install -q --disable-pip-version-check --no-index --no-deps "$out"/wheels/*.whl
# What the tests need beside it lies where it was installed once.
tools=$(.venv/python/bin/python -c 'import site; print(site.getsitepackages()[0])')
fresh=$("$out/fresh/bin/python" -c 'import site; print(site.getsitepackages()[0])')
echo "$tools" >"$fresh/tools.pth"
cd crates/client/python
exec "$out/fresh/bin/python" -m pytest -q -rs -n 2 -p no:cacheprovider tests "$@"
