#!/bin/sh
# Frameworks and libraries that use Redis as a cache, as their users set them up, and some projects' own tests: tests/frameworks,
# against the server. NUTHATCH=PROGRAM is tried instead of the build of the other tests. With FRAMEWORKS_AGAINST=redis they run
# against redis-server, or REDIS_SERVER=PROGRAM, which tells whose fault a failure is. More words go to pytest.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
scripts/setup-frameworks.sh
choose_server
# What has been skipped is not skipped any more when it has come. Most of their time they wait for items to expire: side by side.
set -- -- .venv/frameworks/bin/python -m pytest -q -rs -n 6 -p no:cacheprovider tests/frameworks "$@"
for installed in .venv/frameworks/stamps/*/* .venv/frameworks/stamps/*.txt; do
    [ ! -e "$installed" ] || set -- "$installed" "$@"
done
[ "${FRAMEWORKS_AGAINST:-}" != redis ] || export AGAIN=1
exec scripts/test-once.sh "$NUTHATCH" "$@"
