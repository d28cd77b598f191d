"""The binary protocol: its clients, and memcached beside ours, byte by byte."""

import re
import shutil
import struct
import subprocess

import bmemcached
import conftest
import judge
import pylibmc
import pytest
from judge import converse, needs_memcached

GET, SET, ADD, REPLACE, DELETE, INCR, DECR, QUIT, FLUSH, GETQ, NOOP, VERSION, GETK, GETKQ = range(14)
APPEND, PREPEND, STAT, SETQ, ADDQ, REPLACEQ, DELETEQ, INCRQ, DECRQ, QUITQ, FLUSHQ, APPENDQ, PREPENDQ = range(14, 27)
TOUCH, GAT, GATQ, GATK, GATKQ = 0x1C, 0x1D, 0x1E, 0x23, 0x24
HEADER = struct.Struct(">BBHBBHIIQ")


def request(opcode, key=b"", extras=b"", value=b"", cas=0, opaque=None):
    body = extras + key + value
    opaque = opcode * 7 if opaque is None else opaque
    return HEADER.pack(0x80, opcode, len(key), len(extras), 0, 0, len(body), opaque, cas) + body


def store(opcode, key, value, flags=0, exptime=0, cas=0):
    return request(opcode, key, struct.pack(">II", flags, exptime), value, cas)


def delta(opcode, key, by=1, initial=0, exptime=0, cas=0):
    return request(opcode, key, struct.pack(">QQI", by, initial, exptime), b"", cas)


def seconds(opcode, key, exptime):
    return request(opcode, key, struct.pack(">I", exptime))


def answers(data):
    """Each answer; a cas by its order of appearance, and a version without what only one server knows. Engines of
    partitions number each partition's items by themselves, so that items of two keys may have the same cas."""
    names = {0: 0}
    found = []
    of_partitions = conftest.ENGINE in ("cphash", "lockhash")
    while data:
        magic, opcode, key, extras, _, status, length, opaque, cas = HEADER.unpack(data[:24])
        body, data = data[24 : 24 + length], data[24 + length :]
        assert magic == 0x81 and len(body) == length
        if opcode == VERSION:
            body = b"VERSION"
        cas = min(cas, 1) if of_partitions else names.setdefault(cas, len(names))
        found.append((opcode, key, extras, status, opaque, cas, body))
    return found


LONG = b"k" * 250
CONVERSATIONS = {
    "stores": [store(SET, b"a", b"1", 5), request(GET, b"a"), store(ADD, b"a", b"2"), store(ADD, b"b", b"2"),
               store(REPLACE, b"c", b"3"), store(REPLACE, b"b", b"33"), request(GETK, b"b"), request(GETK, b"c"),
               request(GET, b"c"), request(DELETE, b"a"), request(DELETE, b"a")],
    "quiet": [store(SETQ, b"a", b"1"), store(ADDQ, b"a", b"2"), store(ADDQ, b"b", b"2"), store(REPLACEQ, b"c", b"3"),
              request(GETQ, b"a"), request(GETQ, b"none"), request(GETKQ, b"b"), request(GETKQ, b"none"),
              request(NOOP), request(NOOP, opaque=9), request(DELETEQ, b"a"), request(DELETEQ, b"a"), request(NOOP)],
    "counters": [delta(INCR, b"n", 1, 10, 0xFFFFFFFF), delta(INCR, b"n", 1, 10), delta(INCR, b"n", 5),
                 delta(DECR, b"n", 3), request(GET, b"n"), delta(DECR, b"n", 100), store(SET, b"w", b"word"),
                 delta(INCR, b"w"), delta(INCR, b"big", 1, 2**64 - 1), delta(INCR, b"big"), delta(DECRQ, b"n"),
                 delta(INCRQ, b"n", 4), delta(INCR, b"n"), delta(DECR, b"m", 1, 7, 100), delta(INCRQ, b"no", 1, 1, 0xFFFFFFFF)],
    "appends": [request(APPEND, b"a", value=b"x"), store(SET, b"a", b"1"), request(APPEND, b"a", value=b"2"),
                request(PREPEND, b"a", value=b"0"), request(GET, b"a"), request(APPENDQ, b"a", value=b"3"),
                request(PREPENDQ, b"none", value=b"3"), request(GET, b"a"), request(APPEND, b"a", value=b"2", cas=1)],
    "cas": [store(SET, b"a", b"1", cas=77), store(SET, b"a", b"1"), store(SET, b"a", b"2", cas=12345678901),
            request(DELETE, b"a", cas=12345678901), delta(INCR, b"a", cas=12345678901), store(ADD, b"z", b"1", cas=3),
            store(REPLACE, b"a", b"1", cas=12345678901), request(GET, b"a")],
    "touches": [seconds(TOUCH, b"a", 10), store(SET, b"a", b"1", 7), seconds(TOUCH, b"a", 10), seconds(GAT, b"a", 10),
                seconds(GATK, b"a", 10), seconds(GATQ, b"a", 10), seconds(GATKQ, b"a", 10), seconds(GATQ, b"z", 10),
                seconds(GATKQ, b"z", 10), seconds(GATK, b"z", 10), seconds(GAT, b"z", 10), request(NOOP)],
    "expiry": [store(SET, b"a", b"1", 0, 1_000_000_000), request(GET, b"a"), store(SET, b"b", b"1", 0, 0xFFFFFFFF),
               request(GET, b"b"), store(SET, b"c", b"1", 0, 0x80000000), request(GET, b"c"),
               seconds(TOUCH, b"b", 1_000_000_000), request(GET, b"b")],
    "keys": [store(SET, b"sp ace\r\n\0", b"1"), request(GETK, b"sp ace\r\n\0"), store(SET, LONG, b"1"), request(GETK, LONG),
             store(SET, b"empty", b""), request(GETK, b"empty")],
    "flush": [store(SET, b"a", b"1"), request(FLUSH), request(GET, b"a"), request(FLUSHQ), request(FLUSH, extras=bytes(4)),
              request(NOOP)],
    "large": [store(SET, b"a", b"v" * 300_000), request(GET, b"a"), store(SET, b"a", b"v" * 2_000_000), request(GET, b"a"),
              store(ADD, b"b", b"v" * 2_000_000), request(NOOP), store(ADDQ, b"d", b"v" * 100_000), request(GETK, b"d"),
              store(SET, b"e", b"e" * 500_000), request(APPEND, b"e", value=b"f" * 400_000), request(GET, b"e")],
    "quit": [request(NOOP), request(QUIT), request(NOOP)],
    "quiet quit": [request(NOOP), request(QUITQ), request(NOOP)],
    "unknown": [request(0x77), request(0x1B), request(0x20), request(NOOP)],
    "stat of nothing": [request(STAT, b"no such topic"), request(NOOP)],
    "stat reset": [request(STAT, b"reset"), request(NOOP)],
}
# Each ends its connection.
MALFORMED = {
    "get without a key": request(GET),
    "get with a value": request(GET, b"a", b"", b"v"),
    "get with extras": request(GET, b"a", b"1234"),
    "set without extras": request(SET, b"a", b"", b"v"),
    "set without a key": request(SET, b"", bytes(8), b"v"),
    "key too long": request(GET, b"k" * 251),
    "lengths that lie": HEADER.pack(0x80, GET, 9, 0, 0, 0, 3, 1, 0) + b"key",
    "extras that lie": HEADER.pack(0x80, SET, 1, 9, 0, 0, 3, 1, 0) + b"key",
    "noop with a body": request(NOOP, b"a"),
    "version with a body": request(VERSION, b"", b"", b"v"),
    "flush with much": request(FLUSH, b"", bytes(8)),
    "incr without numbers": request(INCR, b"a", bytes(12)),
    "touch without seconds": request(TOUCH, b"a"),
    "a body of 3 GiB": HEADER.pack(0x80, SET, 1, 8, 0, 0, 3 << 30, 1, 0) + bytes(8) + b"k",
}


def flushed(server):
    return converse(server.address, request(FLUSH))


@needs_memcached
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_our_answers_are_memcacheds(pair, name):
    said = []
    for server in pair:
        flushed(server)
        said.append(answers(converse(server.address, b"".join(CONVERSATIONS[name]))))
    assert said[0] == said[1]


@needs_memcached
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_requests_end_as_memcacheds_do(pair, name):
    if name == "a body of 3 GiB" and judge.VERSION < judge.RIGHT:
        pytest.skip("older versions wait for it")
    text = request(NOOP) + MALFORMED[name] + request(NOOP)
    said = [answers(converse(server.address, text)) for server in pair]
    assert said[0] == said[1]


def test_a_stream_cut_at_every_byte_says_a_beginning_of_what_the_whole_says(server):
    text = b"".join(CONVERSATIONS["quiet"])
    flushed(server)
    whole = answers(converse(server.address, text))
    for end in range(0, len(text), 3):
        flushed(server)
        part = answers(converse(server.address, text[:end]))
        assert part == whole[: len(part)]


def test_the_body_of_an_unknown_request_is_dropped(server):
    # memcached takes it for the next request, and closes.
    text = request(0x77, b"key", bytes(4), b"value" * 20_000) + request(NOOP)
    assert [entry[3] for entry in answers(converse(server.address, text))] == [0x81, 0]


def test_statistics_come_one_by_one(server):
    found = answers(converse(server.address, request(STAT)))
    stats = {entry[6][: entry[1]]: entry[6][entry[1] :] for entry in found}
    assert found[-1][6] == b"" and int(stats[b"pid"]) == server.process.pid
    settings = answers(converse(server.address, request(STAT, b"settings")))
    assert any(entry[6].startswith(b"binding_protocolauto-negotiate") for entry in settings)


@pytest.mark.parametrize("topic", [b"sizes", b"nonsense", b"cachedump", b"cachedump 1 1"])
def test_topics_of_statistics(pair, topic):
    """By the text protocol `sizes` counts all items; here it is switched off, as memcached's is."""
    asked = request(STAT, topic) + request(NOOP)
    theirs, ours = (answers(converse(one.address, asked)) for one in pair)
    assert ours == theirs
    assert topic != b"sizes" or ours[0][6] == b"sizes_statusdisabled"


def test_keys_count_by_prefix_in_both_protocols(pair):
    requests = [
        request(STAT, b"detail on"), store(SET, b"bin:1", b"v"), store(SETQ, b"bin:2", b"v"), request(GET, b"bin:1"),
        request(GETQ, b"bin:none"), request(DELETE, b"bin:2"), request(APPEND, b"bin:1", value=b"w"), seconds(TOUCH, b"bin:1", 0),
        seconds(GAT, b"bin:none", 0), store(SET, b"bin:large", b"v" * 300_000), request(STAT, b"detail dump"),
        request(STAT, b"detail off"), store(SET, b"bin:1", b"v"), request(STAT, b"detail dump"), request(STAT, b"detail"),
        request(STAT, b"detail x"), request(NOOP),
    ]
    told = []
    for server in pair:
        flushed(server)
        converse(server.address, b"stats reset\r\nstats detail off\r\nquit\r\n")
        told.append([(*entry[:4], entry[6]) for entry in answers(converse(server.address, b"".join(requests)))])
        dump = [entry[6] for entry in answers(converse(server.address, request(STAT, b"detail dump")))]
        assert dump == [b"detailedPREFIX bin get 4 hit 2 set 4 del 1\r\nEND\r\n", b""]
        assert converse(server.address, b"stats detail dump\r\nquit\r\n") == dump[0].removeprefix(b"detailed")
        converse(server.address, b"stats reset\r\n")
    theirs, ours = told
    assert ours == theirs


def test_a_prefix_cannot_end_a_line(server):
    converse(server.address, request(STAT, b"detail on") + store(SET, b"x\r\nEND\r\n:1", b"v") + store(SET, b"good:1", b"v"))
    assert converse(server.address, b"stats detail dump\r\nstats detail off\r\nstats reset\r\nquit\r\n") == (
        b"PREFIX good get 0 hit 0 set 1 del 0\r\nEND\r\nOK\r\nRESET\r\n"
    )


def test_text_and_binary_clients_share_items(server):
    converse(server.address, store(SET, b"shared", b"value", 3))
    assert converse(server.address, b"get shared\r\nquit\r\n") == b"VALUE shared 3 5\r\nvalue\r\nEND\r\n"


def test_one_protocol_can_be_asked_for_alone(start):
    text, binary = start("-B", "ascii"), start("-B", "binary")
    (refused,) = answers(converse(text.address, request(NOOP)))
    assert refused[3] == 0x81
    assert converse(binary.address, b"version\r\n") == b""
    assert answers(converse(binary.address, request(NOOP)))[0][3] == 0


def test_bmemcached(server):
    client = bmemcached.Client(f"{server.host}:{server.port}")
    client.flush_all()
    assert client.set("k", "value") and client.get("k") == "value"
    assert client.set_multi({f"m{n}": n for n in range(500)}) == []
    assert client.get_multi([f"m{n}" for n in range(501)]) == {f"m{n}": n for n in range(500)}
    value, cas = client.gets("k")
    assert client.cas("k", "other", cas) and not client.cas("k", "late", cas)
    assert client.add("n", "7") and not client.add("n", "7")
    assert client.incr("count", 2, default=5) == 5 and client.incr("count", 2) == 7 and client.decr("count", 9) == 0
    assert client.delete("k") and client.get("k") is None
    assert client.set("big", "x" * 700_000, compress_level=0) and client.get("big") == "x" * 700_000
    (stats,) = client.stats().values()
    assert int(stats["curr_items"]) > 500
    client.disconnect_all()


def test_pylibmc_in_its_binary_mode(server):
    client = pylibmc.Client([f"{server.host}:{server.port}"], binary=True, behaviors={"cas": True, "tcp_nodelay": True})
    client.flush_all()
    assert client.set("k", [1, "two"]) and client.get("k") == [1, "two"]
    assert client.set_multi({f"m{n}": n for n in range(300)}) == []
    assert client.get_multi([f"m{n}" for n in range(301)]) == {f"m{n}": n for n in range(300)}
    with pytest.raises(pylibmc.NotFound):
        client.replace("none", 1)
    assert client.add("some", b"1") and client.append("some", b"2")
    assert client.get("some") == b"12" and client.delete("some") and not client.delete("some")
    value, cas = client.gets("k")
    assert client.cas("k", 2, cas) and not client.cas("k", 3, cas)
    client.set("n", "10")
    assert client.incr("n", 5) == 15 and client.decr("n", 20) == 0
    assert client.touch("n", 100) and not client.touch("none", 100)
    client.disconnect_all()


@pytest.mark.skipif(not shutil.which("memccapable"), reason="memccapable is not installed")
def test_memccapable(server):
    command = ["memccapable", "-h", server.host, "-p", str(server.port), "-b"]
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    said = output.stdout + output.stderr
    assert not re.search(r"FAIL", said) and "All tests passed" in said, said
