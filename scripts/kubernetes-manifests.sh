#!/bin/sh
# Writes what the chart makes of its default values: kubernetes-manifests.sh [FILE], dist/kubernetes/nuthatch.yaml if not said.
# Needs helm (scripts/setup-deploy.sh).
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:$PWD/.venv/bin
made=$(mktemp)
trap 'rm "$made"' EXIT
helm template nuthatch dist/helm/nuthatch --namespace default --kube-version 1.33 --skip-tests >"$made"
{
    echo "# A cache for memcached's and Redis' clients: kubectl apply -f nuthatch.yaml"
    echo "#"
    echo "# Written by scripts/kubernetes-manifests.sh from the chart dist/helm/nuthatch, which has values for all that one may"
    echo "# want to change. To change by hand: the image's name, if it was pushed elsewhere."
    # What only helm reads is left out.
    grep -v -e '^# Source: ' -e 'helm.sh/chart: ' -e 'app.kubernetes.io/managed-by: ' "$made"
} >"${1:-dist/kubernetes/nuthatch.yaml}"
