#!/bin/sh
# The words for cargo that have it compile what is not compiled by default: the library's and the client's features, and what needs OpenSHMEM
# where that is. Checks that build with the same features, and do not choose packages by -p, share one build.
features=nuthatch/async,nuthatch/bytes,nuthatch/serde,nuthatch/metrics,nuthatch/tracing
features=$features,nuthatch-client/tokio,nuthatch-client/tls,nuthatch-client/near,nuthatch-client/shm
# For these a library is not compiled twice: for tests, which ask for them, and for programs.
features=$features,nuthatch-local/tests
if command -v oshcc >/dev/null && command -v oshrun >/dev/null; then
    features=$features,nuthatch-cluster-lab/openshmem,nuthatch-pe/openshmem,nuthatch-shmem-c/openshmem
fi
echo "--features $features"
