#!/bin/sh
# The words for cargo that have it compile what needs OpenSHMEM, too, where that is. Checks that build with the same
# features, and do not choose packages by -p, share one build.
if command -v oshcc >/dev/null && command -v oshrun >/dev/null; then
    echo "--features nuthatch-cluster-lab/openshmem,nuthatch-pe/openshmem,nuthatch-cluster-lab/openshmem,nuthatch-shmem-c/openshmem"
fi
