#!/bin/sh
# Every check; ends with the sum of their counts. What a check printed stays in target/checks/NAME.log.
#
# Three lines of checks run side by side, so that both cores have work to the end, and what the second and the third print
# comes when they are through. Cargo lets one build at a time into a folder: while the first line builds the Rust tests, the
# second builds models and fuzz targets, which have folders of their own. The third has the checks of the distributed store, which
# mostly wait, and those of the packages for other languages: they need what the first has built by then.
#
# What has passed and has not changed since does not run again (scripts/test-once.sh), unless AGAIN=1 says so.
set -u
cd "$(dirname "$0")/.."
logs=target/checks
mkdir -p $logs
rm -f $logs/*.status
passed=0 failed=0 skipped=0
failures=

# Sums the result lines of cargo test, pytest and our own scripts: "PASSED FAILED SKIPPED"; nothing
# if there is no such line.
count() {
    sed 's/\x1b\[[0-9;]*m//g' "$1" | awk '
        /^test result: / || /^counts: / || /^[0-9]+ (passed|failed|skipped|errors?).* in [0-9.]+s/ {
            lines++
            gsub(/[,;.]/, " ")
            for (i = 2; i <= NF; i++) {
                if ($i == "passed") p += $(i - 1)
                if ($i == "failed" || $i == "error" || $i == "errors") f += $(i - 1)
                if ($i == "ignored" || $i == "skipped") s += $(i - 1)
            }
        }
        END { if (lines) print p + 0, f + 0, s + 0 }'
}

# Seconds after which a check hangs, on any machine: it is ended, so that its log tells what it was at.
hangs=3600

# run NAME COMMAND...: what it prints and how it ends stay in the logs, how long it took, and the processors' time. A
# shell of its own, so that this is the command's alone.
run() (
    name=$1
    shift
    started=$(date +%s)
    # It ends all that the command has started, but is itself out of the terminal's reach.
    timeout -k 60 $hangs "$@" 2>&1 &
    job=$!
    trap 'kill $job; exit 1' INT TERM
    wait $job
    status=$?
    [ $status != 124 ] || echo "$name: has not ended after $hangs s"
    echo $status >$logs/$name.status
    echo $(($(date +%s) - started)) >$logs/$name.seconds
    # In a pipe it would be the times of the pipe's shell.
    times >$logs/$name.times
    awk 'NR == 2 { gsub(/[ms]/, " "); printf "%d\n", $1 * 60 + $2 + $3 * 60 + $4 }' $logs/$name.times >$logs/$name.processor
)

# tally NAME: adds what a check that has run counted. One without result lines of its own counts as one.
tally() {
    name=$1
    status=$(cat $logs/$name.status)
    set -- $(count $logs/$name.log)
    [ $# = 3 ] || if [ "$status" = 0 ]; then set -- 1 0 0; else set -- 0 1 0; fi
    # It ended badly without saying which: a build that failed, say.
    if [ "$status" != 0 ] && [ "$2" = 0 ]; then
        set -- "$1" 1 "$3"
    fi
    echo "==> $name: $1 passed, $2 failed, $3 skipped, $(cat $logs/$name.seconds) s ($(cat $logs/$name.processor) s of processors)"
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
    [ "$status" = 0 ] || failures="$failures $name"
}

# why NAME: the tests that failed and what they said last, or the last lines of a check that names none. Short: it is the end
# of a log of which often only the end is kept. The names come first, and of what was said the end: a test of what panics has
# said more before.
why() {
    plain=$logs/$1.plain
    sed 's/\x1b\[[0-9;]*m//g' $logs/$1.log >$plain
    {
        grep -E '^(test .* FAILED|FAILED |ERROR |error(\[E[0-9]+\])?: |cluster: .*: failed|.*has not ended after )' $plain |
            head -n 8
        grep -E -A 2 "^thread '.*panicked at" $plain | grep -v -e '^note: ' -e '^stack backtrace' -e '^--' | tail -n 6
    } >$plain.why
    [ -s $plain.why ] || grep -v '^counts: ' $plain | tail -n 3 >$plain.why
    cut -c 1-160 $plain.why | sed "s/^/$1: /"
}

# check NAME COMMAND...: runs it and shows what it prints.
check() {
    echo "==> $1"
    run "$@" | tee $logs/$1.log
    tally "$1"
}

# after CHECK: waits for its end.
after() {
    until [ -e $logs/$1.status ]; do
        sleep 1
    done
}

{
    # They need a linker, and nothing else that is installed. One model at a time: where two threads run, the system stops both
    # when one gives a stack back.
    command -v cc >/dev/null || after system
    run loom env RUST_TEST_THREADS=1 scripts/loom.sh >$logs/loom.log
    after system
    run setup scripts/setup.sh >$logs/setup.log
    run format scripts/check-format.sh >$logs/format.log
    run fuzz scripts/test-fuzz.sh >$logs/fuzz.log
    run crates scripts/check-crates.sh >$logs/crates.log
    run portable scripts/test-portable.sh >$logs/portable.log
    run dependencies scripts/check-dependencies.sh >$logs/dependencies.log
    run examples scripts/test-examples.sh >$logs/examples.log
    run clients scripts/test-clients.sh >$logs/clients.log
    run frameworks scripts/test-frameworks.sh >$logs/frameworks.log
    run deploy scripts/test-deploy.sh >$logs/deploy.log
    run dpdk scripts/test-dpdk.sh >$logs/dpdk.log
} &
beside=$!
trap 'kill $beside 2>/dev/null' EXIT
trap 'exit 130' INT TERM
check system scripts/setup-packages.sh
# Compiles all that the others run.
check lints scripts/check-lints.sh
# Where all is built already, the tools may still be on their way.
after setup
{
    # These two have one set of hosts.
    run shmem scripts/test-shmem.sh >$logs/shmem.log
    run cluster scripts/test-cluster.sh >$logs/cluster.log
    run python scripts/test-python.sh >$logs/python.log
    run node scripts/test-node.sh >$logs/node.log
    run php scripts/test-php.sh >$logs/php.log
    run ruby scripts/test-ruby.sh >$logs/ruby.log
    run go scripts/test-go.sh >$logs/go.log
} &
third=$!
trap 'kill $beside $third 2>/dev/null' EXIT
check rust scripts/test-rust.sh
check install scripts/test-install.sh
check packages scripts/test-packages.sh
check c scripts/test-c.sh
check c-client scripts/test-c-client.sh
wait $beside $third
trap - EXIT
for name in loom setup format fuzz crates portable dependencies examples clients frameworks deploy dpdk shmem cluster \
    python node php ruby go; do
    echo "==> $name"
    cat $logs/$name.log
    tally $name
done

for name in $failures; do
    why $name
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
