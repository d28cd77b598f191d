"""Made-up conversations with odd lines are answered as memcached 1.6.45 answers them.

They stand with its answers in the file CONVERSED, so that no memcached of that version is needed. Where there is one,
it is asked, and with RECORD=1 new conversations are made up and its answers are written down.
"""

import gzip
import json
import os
import pathlib
import random
import re

import pytest
from conftest import ENGINE, Server
from judge import answers_to, needs_right
from test_memcached import odd_commands

CONVERSED = pathlib.Path(__file__).with_name("conversations-1.6.45.json.gz")
COUNT = 30


def recorded(number):
    """What was asked, and what was answered."""
    text, answers = json.loads(gzip.decompress(CONVERSED.read_bytes()))[number]
    return text.encode("latin-1"), answers


def said(server, text):
    return answers_to(server, text).decode("latin-1")


def alike(answers):
    """Where items of several partitions may have the same cas, no cas is compared with another's."""
    return re.sub(r"#\d+", "#", answers) if ENGINE in ("cphash", "lockhash") else answers


def says_what_is_recorded(server, number):
    text, answers = recorded(number)
    # Twice: a second may have begun in between.
    if alike(said(server, text)) != alike(answers):
        assert alike(said(server, text)) == alike(answers)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("ours"), "-m", "64", "-t", "2")
    yield server
    assert server.end() == 0


@pytest.fixture(scope="module")
def memcached(pair):
    if os.environ.get("RECORD") == "1":
        texts = [b"".join(odd_commands(random.Random(seed), seed % 2 == 0)) for seed in range(COUNT)]
        conversations = [(text.decode("latin-1"), said(pair[0], text)) for text in texts]
        # Without the time, so that the same answers make the same file.
        CONVERSED.write_bytes(gzip.compress(json.dumps(conversations, indent=0).encode(), mtime=0))
    return pair[0]


@needs_right
@pytest.mark.parametrize("number", range(COUNT))
def test_memcached_says_what_is_recorded(memcached, number):
    says_what_is_recorded(memcached, number)


@pytest.mark.parametrize("number", range(COUNT))
def test_ours_says_what_is_recorded(ours, number):
    says_what_is_recorded(ours, number)
