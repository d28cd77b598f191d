#!/bin/sh
# Every check, one after the other; ends with the sum of their counts. What a check printed stays in
# target/checks/NAME.log.
set -u
cd "$(dirname "$0")/.."
logs=target/checks
mkdir -p $logs
passed=0 failed=0 skipped=0

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

# check NAME COMMAND...: a check without result lines of its own counts as one.
check() {
    name=$1
    shift
    echo "==> $name"
    started=$(date +%s)
    { "$@"; echo $? >$logs/$name.status; } 2>&1 | tee $logs/$name.log
    status=$(cat $logs/$name.status)
    set -- $(count $logs/$name.log)
    [ $# = 3 ] || if [ "$status" = 0 ]; then set -- 1 0 0; else set -- 0 1 0; fi
    # It ended badly without saying which: a build that failed, say.
    if [ "$status" != 0 ] && [ "$2" = 0 ]; then
        set -- "$1" 1 "$3"
    fi
    echo "==> $name: $1 passed, $2 failed, $3 skipped, $(($(date +%s) - started)) s"
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

check setup scripts/setup.sh
check format scripts/check-format.sh
check lints scripts/check-lints.sh
check docs scripts/check-docs.sh
check rust scripts/test-rust.sh
check clients scripts/test-clients.sh
check c scripts/test-c.sh
check dpdk scripts/test-dpdk.sh
check loom scripts/loom.sh
check fuzz scripts/fuzz.sh 5

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
