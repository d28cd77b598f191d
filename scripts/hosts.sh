#!/bin/sh
# Several hosts on one machine: network namespaces on a bridge, each with its address and a link of its own, so that
# TCP goes between them as it does between machines. Needs root.
#
#   scripts/hosts.sh up 3                   hosts 10.77.0.1 to 10.77.0.3
#   scripts/hosts.sh run 3 PROGRAM WORDS... an OpenSHMEM job with one PE on each
#   scripts/hosts.sh on 2 PROGRAM WORDS...  any program on one of them
#   scripts/hosts.sh cut 2, mend 2          the link of the second
#   scripts/hosts.sh cut 2 4, mend 2 4      the way between two, each of which reaches all others
#   scripts/hosts.sh down                   away with all of it
#
# HOSTS_SET=N, 1 to 254, has hosts of its own, at 10.77.N.1 and so on. With real hosts it is `run` alone, less what is
# said there to be for namespaces.
set -eu
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
set=${HOSTS_SET:-0}
net=10.77.$set
of_set="" bridge=nuthatch-hosts
[ "$set" = 0 ] || of_set=$set- bridge=nuthatch-b$set

# One namespace a host. Nothing else has names like these.
namespace() { echo "nuthatch-host$of_set$1"; }
# The bridge's end of its link; names of links have at most 15 letters.
link() { echo "nuthatch-h$of_set$1"; }

up() {
    # Others may be using this set.
    if ip link show $bridge >/dev/null 2>&1; then
        echo "hosts are up already, perhaps for another run; if not: scripts/hosts.sh down" >&2
        exit 1
    fi
    trap down EXIT
    ip link add $bridge type bridge
    ip addr add $net.254/24 dev $bridge
    ip link set $bridge up
    for host in $(seq "$1"); do
        space=$(namespace "$host") end=$(link "$host")
        ip netns add "$space"
        ip link add "$end" type veth peer name eth0 netns "$space"
        ip link set "$end" master $bridge up
        ip -n "$space" addr add "$net.$host/24" dev eth0
        ip -n "$space" link set eth0 up
        ip -n "$space" link set lo up
    done
    trap - EXIT
}

down() {
    for space in $(ip netns list | sed -n "s/^\(nuthatch-host$of_set[0-9]*\)\( .*\)\{0,1\}\$/\1/p"); do
        ip netns del "$space"
    done
    # A job that was killed may have left a process there, which keeps its namespace's end.
    for end in $(ip -o link show type veth | sed -n "s/^[0-9]*: \(nuthatch-h$of_set[0-9]*\)@.*/\1/p"); do
        ip link del "$end" 2>/dev/null || :
    done
    ! ip link show $bridge >/dev/null 2>&1 || ip link del $bridge
}

# agent HOST COMMAND...: in place of ssh. A host of its own name, because two PEs of one name would share memory.
agent() {
    host=${1##*.}
    shift
    space=$(namespace "$host")
    exec ip netns exec "$space" unshare --uts sh -c "hostname $space && $*"
}

on() {
    space=$(namespace "$1")
    shift
    exec ip netns exec "$space" "$@"
}

# The launcher tells its daemons by TCP, and UCX copies by TCP: each is told which network.
run() {
    hosts=""
    for host in $(seq "$1"); do
        hosts="$hosts${hosts:+,}$net.$host:1"
    done
    pes=$1
    shift
    # Root, and ssh's place, are for the namespaces.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export UCX_TLS=tcp,self UCX_NET_DEVICES=eth0
    exec "${OSHRUN:-oshrun}" --mca plm_rsh_agent "$self agent" --host "$hosts" --mca oob_tcp_if_include $net.0/24 \
        --mca btl_tcp_if_include $net.0/24 -x UCX_TLS -x UCX_NET_DEVICES -n "$pes" "$@"
}

# Ports of a bridge that are isolated reach all others, but not each other.
isolate() {
    for host in "$1" "$2"; do
        bridge link set dev "$(link "$host")" isolated "$3"
    done
}

cut() {
    case $# in
        1) ip link set "$(link "$1")" down ;;
        *) isolate "$1" "$2" on ;;
    esac
}

mend() {
    case $# in
        1) ip link set "$(link "$1")" up ;;
        *) isolate "$1" "$2" off ;;
    esac
}

command=${1:-}
[ $# = 0 ] || shift
case $command in
    up | run | on | agent | cut | mend) "$command" "$@" ;;
    down) down ;;
    *)
        sed -n 's/^#   //p' "$0" >&2
        exit 64
        ;;
esac
