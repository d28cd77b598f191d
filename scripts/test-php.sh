#!/bin/sh
# The PHP package against the installed C library, which PHP finds by its soname, and the server. NUTHATCH=PROGRAM is tried instead
# of the build of the other tests, and NUTHATCH_CLIENT_LIBRARY=FILE instead of an installation. Words go to phpunit.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
for needed in php phpunit; do
    if ! command -v $needed >/dev/null; then
        echo "php: $needed is not installed; not tested"
        echo "counts: 0 passed, 0 failed, 1 skipped"
        exit
    fi
done
if ! php -r 'exit(extension_loaded("ffi") && extension_loaded("pcntl") && extension_loaded("posix") ? 0 : 1);'; then
    echo "php: an extension is missing of ffi, pcntl and posix; not tested"
    echo "counts: 0 passed, 0 failed, 1 skipped"
    exit
fi
out=$PWD/target/php
choose_server
choose_client_library "$out"
export NUTHATCH_TEST_LIBRARY="$out/lib/$soname"
find clients/php examples/php -name '*.php' -exec php -l {} \; | { ! grep -v '^No syntax errors'; }
! command -v composer >/dev/null || COMPOSER_ALLOW_SUPERUSER=1 composer validate --quiet --no-check-publish clients/php/composer.json
phpunit --no-configuration --do-not-cache-result --fail-on-warning --bootstrap clients/php/tests/bootstrap.php \
    --log-junit "$out/junit.xml" clients/php/tests "$@" && status=0 || status=$?
# Assertions are counted in it, too; errors are failures here.
php -r '
    $suite = simplexml_load_file($argv[1])->testsuite;
    [$failed, $skipped] = [$suite["failures"] + $suite["errors"], (int) $suite["skipped"]];
    $passed = $suite["tests"] - $failed - $skipped;
    echo "counts: $passed passed, $failed failed, $skipped skipped\n";
' "$out/junit.xml"
exit $status
