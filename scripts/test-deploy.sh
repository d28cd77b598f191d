#!/bin/sh
# Images, the chart, and the ways to install from the source: tests/deploy. What needs a tool that is not here is skipped, and
# says which; scripts/setup-deploy.sh installs them. More words go to pytest.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
choose_server --bin nuthatch-lab
# What has been skipped is not skipped any more when its tool has come.
set -- "$NUTHATCH" -- .venv/bin/python -m pytest -q -rs -p no:cacheprovider tests/deploy "$@"
PATH=$PATH:$PWD/.venv/bin
for tool in buildah helm kubeconform nix-instantiate; do
    if found=$(command -v $tool); then set -- "$found" "$@"; fi
done
exec scripts/test-once.sh "$@"
