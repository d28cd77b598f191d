#!/bin/sh
# Installs what tests/deploy has use for and does without: helm, kubeconform and the schemas of Kubernetes, and the reader of
# Nix. The first two are compiled, which takes minutes, and the schemas have 100 MB: `make test` does not ask for them. Needs
# root or sudo, and go.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh
as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo"
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends nix-bin
.venv/bin/pip install -q --disable-pip-version-check kubernetes-validate==1.37.0
GOBIN=$PWD/.venv/bin go install helm.sh/helm/v3/cmd/helm@v3.18.6
GOBIN=$PWD/.venv/bin go install github.com/yannh/kubeconform/cmd/kubeconform@v0.6.7
