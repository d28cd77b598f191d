"""Statistics: every name that memcached 1.6.45 has is there, once, and numbers are numbers."""

import json
import pathlib
import re

import pytest
from judge import MEMCACHED, converse, needs_right

NAMES = pathlib.Path(__file__).with_name("statistics-1.6.45.json")
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


@pytest.mark.parametrize("topic", TOPICS)
def test_all_of_memcacheds_names_are_here_once(server, topic):
    converse(server.address, b"set a 0 0 1\r\nx\r\nget a\r\n")
    expected = set(json.loads(NAMES.read_text())[topic])
    assert expected - names(server, topic) == set()
    found = [line[0] for line in lines(server, topic)]
    assert len(found) == len(set(found))


def test_numbers_are_what_happened(start):
    server = start("-m", "64")
    text = b"".join(b"set k%d 0 0 3\r\nabc\r\n" % n for n in range(10)) + b"get k1 k2 none\r\ndelete k3\r\ndelete k3\r\ntouch k4 9\r\n"
    converse(server.address, text)
    found = dict(lines(server, ""))
    for name, value in [("cmd_set", 10), ("get_hits", 2), ("get_misses", 1), ("delete_hits", 1), ("delete_misses", 1),
                        ("touch_hits", 1), ("curr_items", 9), ("total_items", 10), ("threads", 4)]:
        assert int(found[name]) == value, name
