"""Statistics: every name that memcached 1.6.45 has is there, once, and numbers are numbers."""

import fnmatch
import json
import os
import pathlib
import re
import socket
import subprocess
import time

import pytest
from conftest import ENGINE, ROOT, SERVER, Server
from judge import MEMCACHED, converse, needs_right
from ports import free_port
from test_security import certificates, context, converse_tls, tls_flags  # noqa: F401 (a fixture)

NAMES = pathlib.Path(__file__).with_name("statistics-1.6.45.json")
# The same with TLS and its sessions, and UDP, which memcached takes by two servers: it has no -Z with -U.
MORE_NAMES = {"tls": pathlib.Path(__file__).with_name("statistics-1.6.45-tls.json"),
              "udp": pathlib.Path(__file__).with_name("statistics-1.6.45-udp.json")}
TOPICS = ["", "settings", "items", "slabs", "sizes", "conns"]


def lines(server, topic):
    said = converse(server.address, b"stats %b\r\n" % topic.encode()).decode().splitlines()
    assert said[-1] == "END"
    return [line.split(maxsplit=2)[1:] for line in said[:-1]]


def names(server, topic):
    """Without the numbers of classes and connections."""
    return {re.sub(r"(^|:)\d+:", r"\1N:", line[0]) for line in lines(server, topic)}


def all_names(server):
    converse(server.address, b"set a 0 0 1\r\nx\r\nget a\r\n")
    return {topic: sorted(names(server, topic)) for topic in TOPICS}


@needs_right
def test_memcached_has_these_names(pair):
    found = all_names(pair[0])
    if not NAMES.exists():
        NAMES.write_text(json.dumps(found, indent=0) + "\n")
    assert found == json.loads(NAMES.read_text()), MEMCACHED


def test_the_page_tells_what_each_setting_means():
    page = (ROOT / "docs/statistics.md").read_text().split("## `stats settings`")[1].split("\n## ")[0]
    told = re.findall("`([^`]+)`", page)
    settings = json.loads(NAMES.read_text())["settings"]
    assert [name for name in settings if not any(fnmatch.fnmatch(name, one) for one in told)] == []


@pytest.mark.parametrize("topic", TOPICS)
def test_all_of_memcacheds_names_are_here_once(server, topic):
    converse(server.address, b"set a 0 0 1\r\nx\r\nget a\r\n")
    expected = set(json.loads(NAMES.read_text())[topic])
    assert expected - names(server, topic) == set()
    found = [line[0] for line in lines(server, topic)]
    assert len(found) == len(set(found))


def names_tls(server, folder, topic):
    said = converse_tls(server, folder, b"stats %b\r\nquit\r\n" % topic.encode()).decode().splitlines()
    return {re.sub(r"(^|:)\d+:", r"\1N:", line.split()[1]) for line in said if line.startswith("STAT")}


def more_names(folder, certificates, kind, program):  # noqa: F811
    """Of a server with TLS, or with UDP."""
    folder.mkdir()
    if kind == "udp":
        server = Server(folder, "-m", "64", "-U", str(free_port(socket.SOCK_DGRAM)), program=program)
        found = all_names(server)
    else:
        server = Server(folder, "-m", "64", *tls_flags(certificates, "server", "ssl_session_cache"), program=program)
        converse_tls(server, certificates, b"set a 0 0 1\r\nx\r\nget a\r\nquit\r\n")
        found = {topic: sorted(names_tls(server, certificates, topic)) for topic in TOPICS}
    server.end()
    return found


@needs_right
@pytest.mark.parametrize("kind", MORE_NAMES)
def test_memcached_has_these_names_with_tls_and_udp(tmp_path, certificates, kind):  # noqa: F811
    if kind == "tls" and b"enable-ssl" not in subprocess.run([*MEMCACHED, "-h"], capture_output=True, check=True).stdout:
        pytest.skip("this memcached has no TLS")
    found = more_names(tmp_path / "memcached", certificates, kind, MEMCACHED)
    if not MORE_NAMES[kind].exists():
        MORE_NAMES[kind].write_text(json.dumps(found, indent=0) + "\n")
    assert found == json.loads(MORE_NAMES[kind].read_text()), MEMCACHED


@pytest.mark.parametrize("kind", MORE_NAMES)
def test_memcacheds_names_are_here_with_tls_and_udp(tmp_path, certificates, kind):  # noqa: F811
    expected = json.loads(MORE_NAMES[kind].read_text())
    found = more_names(tmp_path / "ours", certificates, kind, SERVER)
    for topic in TOPICS:
        assert set(expected[topic]) - set(found[topic]) == set(), topic


def test_items_are_counted_and_not_their_pieces(start):
    """Nor the lines of the engines that have partitions."""
    server = start("-m", "64", "-I", "8m")
    lengths = [10, 5_000, 100_000, 700_000]
    converse(server.address, b"".join(b"set k%d:%d 0 0 %d\r\n%s\r\n" % (length, n, length, b"v" * length) for length in lengths for n in range(5)))
    def number():
        return sum(one["number"] for one in by_class(server, "items").values())
    assert number() == 5 * len(lengths)
    converse(server.address, b"".join(b"delete k%d:1\r\nset k%d:2 0 0 1\r\nx\r\n" % (length, length) for length in lengths))
    assert number() == 4 * len(lengths)


def test_sessions_and_what_is_wrong_behind_a_handshake(start, certificates):  # noqa: F811
    server = start(*tls_flags(certificates, "server", "ssl_session_cache"))
    converse_tls(server, certificates, b"mn\r\nquit\r\n")
    with socket.create_connection(server.address) as plain:
        secured = context(certificates).wrap_socket(plain, server_hostname="localhost", do_handshake_on_connect=True)
        secured.sendall(b"mn\r\n")
        assert secured.recv(100) == b"MN\r\n"
        # A record that nobody encrypted.
        os.write(secured.fileno(), b"\x17\x03\x03\x00\x20" + b"x" * 32)
        while os.read(secured.fileno(), 1000):
            pass
        secured.detach()
    said = converse_tls(server, certificates, b"stats\r\nquit\r\n").decode()
    stats = dict(line.split(maxsplit=2)[1:] for line in said.splitlines() if line.startswith("STAT"))
    assert stats["ssl_proto_errors"] == "1" and stats["ssl_handshake_errors"] == "0" and stats["ssl_new_sessions"] == "3"


def test_numbers_are_what_happened(start):
    server = start("-m", "64")
    text = b"".join(b"set k%d 0 0 3\r\nabc\r\n" % n for n in range(10)) + b"get k1 k2 none\r\ndelete k3\r\ndelete k3\r\ntouch k4 9\r\n"
    converse(server.address, text)
    found = dict(lines(server, ""))
    for name, value in [("cmd_set", 10), ("get_hits", 2), ("get_misses", 1), ("delete_hits", 1), ("delete_misses", 1),
                        ("touch_hits", 1), ("curr_items", 9), ("total_items", 10), ("threads", 4)]:
        assert int(found[name]) == value, name


def by_class(server, topic):
    """The lines of each class that has items."""
    classes = {}
    for name, value in lines(server, topic):
        found = re.fullmatch(r"(?:items:)?(\d+):(\w+)", name)
        if found:
            classes.setdefault(int(found[1]), {})[found[2]] = int(value)
    return classes


in_classes = pytest.mark.skipif(ENGINE in ("cphash", "lockhash"), reason="no size classes")


@in_classes
def test_commands_are_counted_by_class(start):
    server = start("-m", "64")
    small, large = b"v" * 10, b"v" * 1000
    text = b"".join(b"set %s%d 0 0 %d\r\n%s\r\n" % (name, n, len(value), value)
                    for name, value in [(b"s", small), (b"l", large)] for n in range(4))
    text += b"get s0 s1 l0\r\nget l0\r\nmg l1 v\r\ngat 100 s0\r\ntouch l1 9\r\ntouch none 9\r\ndelete s3\r\ndelete none\r\n"
    text += b"set n 0 0 1\r\n5\r\nincr n 1\r\ndecr n 2\r\ncas l0 0 0 1000 99999\r\n%s\r\n" % large
    text += b"gets s0\r\n"
    said = converse(server.address, text)
    cas = re.search(rb"VALUE s0 0 10 (\d+)", said)[1]
    converse(server.address, b"cas s0 0 0 10 %s\r\n%s\r\n" % (cas, small))
    classes = by_class(server, "slabs")
    by_size = sorted(classes)
    counted = {number: {name: value for name, value in classes[number].items() if name in (
        "get_hits", "cmd_set", "touch_hits", "delete_hits", "incr_hits", "decr_hits", "cas_hits", "cas_badval")} for number in by_size}
    # All that is small may be one class, or two.
    total = {name: sum(one[name] for one in counted.values()) for name in counted[by_size[0]]}
    assert total == {"get_hits": 6, "cmd_set": 11, "touch_hits": 2, "delete_hits": 1, "incr_hits": 1, "decr_hits": 1,
                     "cas_hits": 1, "cas_badval": 1}
    assert counted[by_size[-1]] == {"get_hits": 3, "cmd_set": 5, "touch_hits": 1, "delete_hits": 0, "incr_hits": 0,
                                    "decr_hits": 0, "cas_hits": 0, "cas_badval": 1}
    stats = dict(lines(server, ""))
    assert all(int(stats[name]) == value for name, value in total.items())


@in_classes
def test_what_was_counted_of_a_class_stays_when_its_items_have_left(start):
    server = start("-m", "64")
    text = b"".join(b"set k%d 0 0 %d\r\n%s\r\nget k%d\r\n" % (n, length, b"v" * length, n) for n, length in enumerate((10, 1000, 20_000)))
    # One is deleted, one is stored again in another size, and nothing is left of the third but what was counted.
    text += b"delete k1\r\nset k2 0 0 10\r\n" + b"v" * 10 + b"\r\ntouch k0 -1\r\nget k0\r\n"
    before = {}
    for more in [text, b"delete k2\r\n", b"get k2\r\n"]:
        converse(server.address, more)
        classes, stats = by_class(server, "slabs"), dict(lines(server, ""))
        for name in ("get_hits", "cmd_set", "touch_hits", "delete_hits"):
            assert sum(one[name] for one in classes.values()) == int(stats[name]), name
        for number, one in before.items():
            assert all(classes[number][name] >= one[name] for name in ("get_hits", "cmd_set", "touch_hits", "delete_hits"))
        before = classes
    assert len(before) == 3
    assert b"RESET" in converse(server.address, b"stats reset\r\n")
    # What is left has items, or pages of its own.
    assert all(one["used_chunks"] > 0 or one["total_pages"] > 0 for one in by_class(server, "slabs").values())


@in_classes
def test_what_left_is_told_by_class(start):
    server = start("-m", "8", "-t", "1")
    for length in (100, 1000, 4000):
        value = b"v" * length
        for begin in range(0, 8 * 1024 * 1024 // length, 200):
            text = b"".join(b"set k%d:%d 0 %d %d noreply\r\n%s\r\n" % (length, n, 1000 if n % 2 else 0, length, value)
                            for n in range(begin, begin + 200))
            converse(server.address, text + b"mn\r\n")
    items, stats = by_class(server, "items"), dict(lines(server, ""))
    sums = {name: sum(one[name] for one in items.values()) for name in items[min(items)]}
    assert int(stats["evictions"]) > 0
    # A class without items is told no more.
    assert 0 < sums["evicted"] <= int(stats["evictions"])
    assert 0 < sums["evicted_nonzero"] < sums["evicted"]
    assert sums["direct_reclaims"] == sums["evicted"]
    assert sums["number_hot"] + sums["number_warm"] + sums["number_cold"] == sums["number"]
    for name, value in [("moves_to_warm", sums["moves_to_warm"]), ("moves_within_lru", sums["moves_within_lru"])]:
        assert value <= int(stats[name])


def test_dead_items_are_told(start):
    server = start("-m", "64")
    converse(server.address, b"set a 0 -1 1\r\nx\r\nset b 0 0 1\r\nx\r\nget a none\r\nflush_all\r\nget b\r\n")
    stats = dict(lines(server, ""))
    assert int(stats["get_misses"]) == 3
    if ENGINE not in ("cphash", "lockhash"):
        assert (int(stats["get_expired"]), int(stats["get_flushed"])) == (1, 1)


@in_classes
def test_reclaimed_by_class(start):
    server = start("-m", "64")
    values = [(b"s", b"v" * 10), (b"l", b"v" * 1000)]
    converse(server.address, b"".join(b"set %s%d 0 -1 %d\r\n%s\r\n" % (name, n, len(value), value) for name, value in values for n in range(20))
             + b"".join(b"set %s 0 0 %d\r\n%s\r\n" % (name, len(value), value) for name, value in values))
    # The thread behind the scenes sweeps.
    end = time.monotonic() + 120
    while True:
        items = by_class(server, "items")
        assert time.monotonic() < end, items
        if [one["reclaimed"] for one in items.values()] == [20, 20]:
            break
    assert [one["crawler_reclaimed"] for one in items.values()] == [20, 20]
    assert [one["expired_unfetched"] for one in items.values()] == [20, 20]


def test_sizes(start):
    server = start("-m", "64")
    values = [b"v" * length for length in (1, 10, 100, 1000, 10_000, 300_000)]
    converse(server.address, b"".join(b"set k%d 0 0 %d\r\n%s\r\n" % (n, len(value), value) for n, value in enumerate(values)))
    found = lines(server, "sizes")
    assert found[0] == ["sizes_status", "enabled"]
    sizes = [(int(size), int(items)) for size, items in found[1:]]
    assert sum(items for _, items in sizes) == len(values)
    assert all(size % 32 == 0 for size, _ in sizes) and sizes == sorted(sizes)
    assert 300_000 < sizes[-1][0] < 310_000
    # What follows in a pipeline waits for it, and nothing else does.
    said = converse(server.address, b"stats sizes\r\nget k0\r\n")
    assert said.endswith(b"END\r\nVALUE k0 0 1\r\nv\r\nEND\r\n")


def test_redis_commands_are_counted(start):
    server = start("-B", "any")
    requests = [b"SET a 5", b"SETNX a 6", b"SETNX b 6", b"APPEND a 0", b"STRLEN a", b"EXPIRE a 100", b"EXPIRE none 100", b"EXISTS a none",
                b"EXISTS a", b"TTL a", b"TTL none", b"TYPE a", b"INCR a", b"INCR new", b"DECRBY a 2", b"GET a", b"GET none", b"MSET c 1 d 2",
                b"DEL c d none", b"TOUCH a none", b"PERSIST a", b"GETDEL b", b"SET a 7 GET"]
    text = b"".join(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
                    for words in (request.split() for request in requests)) + b"*1\r\n$4\r\nQUIT\r\n"
    with socket.create_connection(server.address) as client:
        client.sendall(text)
        while client.recv(1 << 16):
            pass
    stats = dict(lines(server, ""))
    expected = {"cmd_set": 7, "get_hits": 2, "get_misses": 1, "touch_hits": 3, "touch_misses": 2, "delete_hits": 2, "delete_misses": 1,
                "incr_hits": 1, "incr_misses": 1, "decr_hits": 1, "look_hits": 5, "look_misses": 2, "redis_commands": len(requests) + 1}
    assert {name: int(stats[name]) for name in expected} == expected
    # They are noted when the answers have gone, which another worker's client may not have waited for.
    counts, end = None, time.monotonic() + 120
    while counts != (3, 7, 3):
        assert time.monotonic() < end, counts
        latency = dict(lines(server, "latency"))
        counts = tuple(int(latency[f"{kind}_count"]) for kind in ("get", "set", "incr"))
        assert counts <= (3, 7, 3)
