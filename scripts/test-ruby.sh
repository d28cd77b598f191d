#!/bin/sh
# The Ruby gem against the installed C library, which Ruby finds by its soname, the server, and memcached where it is installed.
# NUTHATCH=PROGRAM is tried instead of the build of the other tests, and NUTHATCH_CLIENT_LIBRARY=FILE instead of an installation.
# Words go to each file of tests.
set -eu
cd "$(dirname "$0")/.."
. scripts/check-env.sh
if ! ruby -e 'exit RUBY_VERSION.to_f >= 3.0; require "fiddle"; require "minitest"' 2>/dev/null; then
    echo "ruby: no Ruby 3.0 with fiddle and minitest is installed; not tested"
    echo "counts: 0 passed, 0 failed, 1 skipped"
    exit
fi
out=$PWD/target/ruby
choose_server
choose_client_library "$out"
if scripts/setup-ruby.sh; then
    export ACTIVESUPPORT_TESTS="$PWD/.venv/rails/activesupport/test"
else
    echo "ruby: ActiveSupport's own tests are not to be had; not tested"
fi
# The gem as it is installed, without a network: no file of it is missing.
gem build --quiet --output "$out/nuthatch.gem" -C clients/ruby nuthatch.gemspec
gem install --quiet --local --ignore-dependencies --no-document --install-dir "$out/gems" "$out/nuthatch.gem" >/dev/null
library=$(echo "$out"/gems/gems/nuthatch-*/lib)
for test in clients/ruby/test/*_test.rb; do
    echo "ruby: $test"
    ruby -w -I "$library" "$test" "$@" || echo "ruby: $test: failed"
done 2>&1 | tee "$out/log"
# One that crashed has no counts.
awk '
    /^[0-9]+ runs, / { runs += $1; failed += $5 + $7; skipped += $9 }
    /^ruby: .*: failed$/ { broken++ }
    END {
        if (failed < broken) { runs += broken - failed; failed = broken }
        printf "counts: %d passed, %d failed, %d skipped\n", runs - failed - skipped, failed, skipped
        exit failed > 0
    }
' "$out/log"
