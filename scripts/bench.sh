#!/bin/sh
# The table of README.md and all figures of docs/measured.md, from one run: bench.sh [SECONDS a measurement], 10 if not said,
# and what each row says (`nuthatch-lab bench row`) for those in process.
# Prints the tables; with WRITE=1 also puts them into the two files. MEMCACHED is the memcached to compare with,
# that on the PATH if not said: 1.6.35 or newer, or pipelines say little. MEMCACHED_OLD is another, shown beside it;
# REDIS the redis-server.
# Needs about 12 GiB and 45 minutes; nothing else should run on the machine meanwhile. A trial: TRIAL=1 bench.sh 1
set -eu
cd "$(dirname "$0")/.."
said=${1:-}
seconds=${said:-10}
target=${CARGO_TARGET_DIR:-target}
cargo build --release --quiet --bin nuthatch --bin nuthatch-lab
lab=$target/release/nuthatch-lab
found=$target/bench/found.jsonl
mkdir -p "$target/bench"
: > "$found"

# Our engines ask for huge pages themselves; with this the heap has them too, where rivals keep their items.
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1

run() {
    echo "\$ nuthatch-lab $*" >&2
    "$lab" "$@" --json >> "$found"
}

# -R: as many requests of a connection at a time as memcached allows; by default it goes to the next after 20.
flags='-l 127.0.0.1 -p {port} -t 1 -U 0 -u nobody -R 1024'
memcached=${MEMCACHED:-memcached}
echo "rival: $("$memcached" -V)" >&2
set -- --rival "$memcached $flags -m 1024"
[ -z "${MEMCACHED_OLD:-}" ] || set -- "$@" --rival "$MEMCACHED_OLD $flags -m 1024"
round=$(awk "BEGIN { print $seconds / 5 }")
for load in "--pipeline 100" "--multiget 100" "--pipeline 10" "--pipeline 1" "--pipeline 100 --get-ratio 0"; do
    # Words of a load are options, to be split.
    # shellcheck disable=SC2086
    run bench versus "$@" --rounds 5 --seconds "$round" $load
done
# The other protocols: memcached's binary one, Redis' where there is a redis-server, and TLS where memcached and openssl are.
binary="$memcached $flags -m 1024"
for load in "--pipeline 100" "--pipeline 10" "--pipeline 1" "--pipeline 100 --get-ratio 0"; do
    # shellcheck disable=SC2086
    run bench versus --rival "$binary" --rounds 5 --seconds "$round" --protocol binary $load
done
redis=${REDIS:-redis-server}
if command -v "$redis" >/dev/null; then
    rival="$redis --port {port} --bind 127.0.0.1 --save --appendonly no --maxmemory 1gb --maxmemory-policy allkeys-lru --dir /tmp"
    for load in "--pipeline 100" "--pipeline 10" "--pipeline 1" "--pipeline 100 --get-ratio 0"; do
        # shellcheck disable=SC2086
        run bench versus --rival "$rival" --ours '-l 127.0.0.1 -p -1 --redis-port {port} -t 1 -m 1024' \
            --rounds 5 --seconds "$round" --protocol redis $load
    done
fi
certificate=$(cd "$target/bench" && pwd)
if "$memcached" -h | grep -q ssl_chain_cert && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -subj /CN=bench -keyout "$certificate/key.pem" -out "$certificate/cert.pem" 2>/dev/null; then
    tls="-Z -o ssl_chain_cert=$certificate/cert.pem,ssl_key=$certificate/key.pem"
    # The key is read by the user that memcached becomes.
    chmod 644 "$certificate/key.pem"
    for pipeline in 100 10 1; do
        run bench versus --rival "$binary $tls" --ours "-l 127.0.0.1 -p {port} -t 1 -m 1024 $tls" \
            --rounds 5 --seconds "$round" --tls --pipeline "$pipeline"
    done
fi
run bench fill --memory 64M --rival "$memcached $flags -m 64"

# All that runs in process. Each row says how long; a number of seconds for all counts where there is such an option.
tab=$(printf '\t')
"$lab" bench row | while IFS=$tab read -r name times words; do
    set -- "$name"
    case $words in engine*) [ -z "$said" ] || set -- "$@" --seconds "$said" ;; esac
    [ "${TRIAL:-}" != 1 ] || set -- --trial "$name"
    for _ in $(seq "$times"); do
        run bench row "$@"
    done
done

commit=$(git describe --always --dirty 2>/dev/null || true)
"$lab" bench tables --from "$found" --commit "$commit" > "$target/bench/summary.md"
"$lab" bench tables --from "$found" --commit "$commit" --detail > "$target/bench/detail.md"
cat "$target/bench/summary.md" "$target/bench/detail.md"

# Replaces what is between the two marks in a file by another file.
put() {
    awk -v table="$2" '
        /^<!-- bench: begin/ { print; print ""; while ((getline line < table) > 0) print line; print ""; inside = 1; found = 1 }
        /^<!-- bench: end/ { inside = 0 }
        !inside { print }
        END { exit !found || inside }
    ' "$1" > "$target/bench/put.md" || { echo "bench: $1: no marks to write between" >&2; exit 1; }
    cat "$target/bench/put.md" > "$1"
}
if [ "${WRITE:-}" = 1 ]; then
    put README.md "$target/bench/summary.md"
    put docs/measured.md "$target/bench/detail.md"
    echo "written: README.md and docs/measured.md" >&2
fi
