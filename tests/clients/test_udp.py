"""Datagrams: the same to memcached and to ours, and what only we say."""

import pathlib
import socket
import struct
import subprocess

import pytest
from conftest import NUTHATCH, Server
from judge import MEMCACHED, converse, needs_right
from ports import free_port


HEADER = struct.Struct(">HHHH")


class Both(Server):
    """A server with both kinds of ports."""

    def __init__(self, folder, *flags, **program):
        super().__init__(folder, "-U", "-1", *flags, **program)
        lines = pathlib.Path(folder / "ports").read_text().splitlines()
        self.udp = int(dict(line.split(": ") for line in lines)["UDP INET"])


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    running = Both(tmp_path_factory.mktemp("ours"), "-m", "64", "-t", "2")
    yield running
    assert running.end() == 0


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    # It takes no port of its own choice.
    port = free_port(socket.SOCK_DGRAM)
    folder = tmp_path_factory.mktemp("memcached")
    running = Server(folder, "-m", "64", "-t", "2", "-U", str(port), program=MEMCACHED)
    running.udp = port
    yield running
    assert running.end() == 0


@pytest.fixture
def client():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(60)
        yield client


def send(client, server, text, request=7, number=0, of=1, rest=0):
    client.sendto(HEADER.pack(request, number, of, rest) + text, ("127.0.0.1", server.udp))


def answer(client, request=7):
    """The answer's text, put together."""
    parts, of = {}, None
    while of is None or len(parts) < of:
        frame = client.recv(65536)
        assert len(frame) <= 1400
        found, number, total, rest = HEADER.unpack(frame[:8])
        assert (found, rest) == (request, 0) and of in (None, total) and number < total
        assert len(frame) == 1400 or number == total - 1
        of = total
        parts[number] = frame[8:]
    return b"".join(parts[number] for number in range(of))


def ask(client, server, text, **head):
    send(client, server, text, **head)
    return answer(client, head.get("request", 7))


def statistics(server):
    lines = converse(server.address, b"stats\r\n").decode().split("\r\n")
    return {line.split()[1]: line.split()[2] for line in lines if line.startswith("STAT ") and len(line.split()) == 3}


def test_an_answer_is_not_answered(ours, client):
    """Else two servers would answer each other for ever, once somebody sends one a datagram with the other's address."""
    before = int(statistics(ours)["udp_dropped"])
    answers = [b"ERROR\r\n", b"END\r\n", b"CLIENT_ERROR bad\r\n", b"VALUE k 0 1\r\nx\r\nEND\r\n", b"HD\r\n", b"5\r\n",
               b"STAT pid 1\r\nEND\r\n", b"\x81" + bytes(23)]
    for text in answers:
        send(client, ours, text)
    # All of this client's come to one worker, in their order.
    assert ask(client, ours, b"mn\r\n") == b"MN\r\n"
    assert int(statistics(ours)["udp_dropped"]) == before + len(answers)


REQUESTS = [
    b"set a 5 0 3\r\nabc\r\n",
    b"get a\r\n",
    b"get none\r\n",
    b"gat 100 a\r\n",
    b"touch none 1\r\n",
    b"mg a v f t\r\n",
    b"mg none v\r\n",
    b"ms b 3\r\nxyz\r\n",
    b"mn\r\n",
    b"add n 0 0 1\r\n1\r\n",
    b"incr n 41\r\n",
    b"delete a\r\n",
    b"nonsense\r\n",
    b"set large 0 0 5000\r\n" + b"x" * 5000 + b"\r\n",
    b"get large\r\n",
    b"set exact 0 0 1363\r\n" + b"x" * 1363 + b"\r\n",
    b"get exact\r\n",
    b"\x80\x0a" + bytes(22),
    b"\x80\x00\x00\x05" + bytes(4) + b"\x00\x00\x00\x05" + bytes(12) + b"large",
]


@needs_right
def test_answers_are_memcacheds(ours, theirs, client):
    for number, text in enumerate(REQUESTS):
        said = [ask(client, server, text, request=number) for server in (ours, theirs)]
        # Binary answers have a cas of their own.
        if text[:1] == b"\x80":
            said = [one[:16] + one[24:] for one in said]
        assert said[0] == said[1], text


def test_no_answer_is_wanted(ours, client):
    send(client, ours, b"set quiet 0 0 1 noreply\r\nx\r\n")
    send(client, ours, b"mg none v q\r\n")
    assert ask(client, ours, b"get quiet\r\n", request=9) == b"VALUE quiet 0 1\r\nx\r\nEND\r\n"


def test_several_requests_have_one_answer(ours, client):
    """memcached sends an answer for each key, all under one id, and none says how many there are."""
    text = b"set a 0 0 1\r\nx\r\nget a\r\nmg a v\r\nmn\r\n"
    assert ask(client, ours, b"set b 0 0 1\r\ny\r\nget b none b\r\n").count(b"VALUE b") == 2
    assert ask(client, ours, text) == b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\nVA 1\r\nx\r\nMN\r\n"


def test_what_is_cut_or_lies_is_dropped_and_counted(ours, client):
    before = statistics(ours)
    to = ("127.0.0.1", ours.udp)
    for bad in [b"", b"x", b"\0" * 7, b"get a\r\n"]:
        client.sendto(bad, to)
    for head in [{"number": 1}, {"of": 0}, {"of": 2}, {"of": 65535}]:
        send(client, ours, b"get a\r\n", **head)
    for text in [b"", b"get a", b"set a 0 0 10\r\nabc", b"set a 0 0 1000000\r\n" + b"x" * 60_000, b"\x80\x00\x00\x05"]:
        send(client, ours, text)
    # What was begun is forgotten: this is not a part of a value.
    assert ask(client, ours, b"get none\r\n", request=99) == b"END\r\n"
    while int(statistics(ours)["udp_dropped"]) - int(before["udp_dropped"]) < 12:
        pass
    assert int(statistics(ours)["udp_datagrams"]) - int(before["udp_datagrams"]) == 14


def test_a_large_answer_is_refused_in_words(ours, client):
    converse(ours.address, b"set huge 0 0 20000\r\n" + b"x" * 20_000 + b"\r\n")
    refused = b"SERVER_ERROR the answer is too large for UDP\r\n"
    assert ask(client, ours, b"get huge\r\n") == refused
    converse(ours.address, b"set half 0 0 9000\r\n" + b"x" * 9000 + b"\r\n")
    assert len(ask(client, ours, b"get half\r\n")) == 9000 + len("VALUE half 0 9000\r\n\r\nEND\r\n")
    assert ask(client, ours, b"get half half half\r\n") == refused
    assert ask(client, ours, b"get half\r\n" * 1000) == refused
    assert int(statistics(ours)["udp_too_large"]) >= 3


def binary(opcode, key=b"", extras=b""):
    body = extras + key
    return struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0, len(body), 0, 0) + body


def test_nobody_administers_by_datagrams(tmp_path, client):
    """Whose they are, nobody knows; and a dump without an answer would keep a worker for as long as it takes."""
    server = Both(tmp_path, "-A")
    assert converse(server.address, b"set k 0 0 1\r\nx\r\n") == b"STORED\r\n"
    for command in [
        "flush_all",
        "cache_memlimit 8",
        "verbosity 2",
        "shutdown",
        "slabs automove 1",
        "lru tune 10 25 0.1 2.0",
        "lru_crawler metadump all",
        "lru_crawler mgdump all",
        "lru_crawler disable",
        "watch",
        "refresh_certs",
        "stats cachedump 63 0",
        "stats detail on",
        "stats reset",
        "stats conns",
        "stats hash",
        "stats sizes",
    ]:
        refused = ask(client, server, f"{command}\r\nmn\r\n".encode())
        assert refused == b"CLIENT_ERROR not over UDP: this needs a connection\r\nMN\r\n", command
    for request in [binary(0x08), binary(0x10, b"reset"), binary(0x10, b"hash")]:
        assert ask(client, server, request)[6:8] == b"\x00\x20"
    assert converse(server.address, b"get k\r\n") == b"VALUE k 0 1\r\nx\r\nEND\r\n"
    settings = ask(client, server, b"stats settings\r\n")
    assert b"STAT maxbytes 67108864\r\n" in settings and b"STAT verbosity 0\r\n" in settings
    assert b"STAT pid" in ask(client, server, b"stats\r\n")
    assert server.end() == 0


def test_a_datagram_has_a_limit_of_commands(tmp_path, client):
    server = Both(tmp_path, "-R", "20")
    assert ask(client, server, b"mn\r\n" * 20) == b"MN\r\n" * 20
    assert ask(client, server, b"mn\r\n" * 21) == b"SERVER_ERROR too many commands for a datagram\r\n"
    # A get is one, with as many keys as a datagram holds.
    converse(server.address, b"set k 0 0 1\r\nx\r\n")
    assert ask(client, server, b"get" + b" none" * 300 + b" k\r\nmn\r\n") == b"VALUE k 0 1\r\nx\r\nEND\r\nMN\r\n"
    assert server.end() == 0


def test_the_limit_is_an_option(tmp_path, client):
    server = Both(tmp_path, "-o", "udp_reply_max=1200000")
    converse(server.address, b"set huge 0 0 1000000\r\n" + b"x" * 1_000_000 + b"\r\n")
    send(client, server, b"get huge\r\n")
    first = HEADER.unpack(client.recv(1400)[:8])
    assert first == (7, 0, -(-(1_000_000 + len("VALUE huge 0 1000000\r\n\r\nEND\r\n")) // 1392), 0)
    assert server.end() == 0


def test_many_at_once_are_all_answered_and_connections_too(ours):
    clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(20)]
    converse(ours.address, b"set k 0 0 1\r\nx\r\n")
    for round in range(20):
        for number, client in enumerate(clients):
            client.settimeout(60)
            for request in range(10):
                send(client, ours, b"get k\r\n", request=round * 10 + request)
        assert converse(ours.address, b"get k\r\n") == b"VALUE k 0 1\r\nx\r\nEND\r\n"
        for client in clients:
            # Of one client's, in order; across loopback nothing of so little is lost.
            for request in range(10):
                assert answer(client, round * 10 + request) == b"VALUE k 0 1\r\nx\r\nEND\r\n"
    for client in clients:
        client.close()


def test_statistics_tell(ours):
    settings = converse(ours.address, b"stats settings\r\n")
    assert f"STAT udpport {ours.udp}\r\n".encode() in settings
    connections = converse(ours.address, b"stats conns\r\n").decode()
    assert f"udp:127.0.0.1:{ours.udp}" in connections
    # A client of datagrams is none. Those of the streams above are, until the server has heard that they have gone.
    while statistics(ours)["curr_connections"] != "1":
        pass


def test_what_cannot_be_together(ours, tmp_path):
    users = tmp_path / "users"
    users.write_text("ann:secret\n")
    users.chmod(0o600)

    def refused(*flags):
        command = [NUTHATCH, "-l", "127.0.0.1", "-p", "-1", "-U", "-1", *flags]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert ended.returncode != 0
        return ended.stderr

    assert "-U: a datagram has no room for a password" in refused("-Y", str(users))
    assert "-o udp_reply_max: from 64" in refused("-o", "udp_reply_max=1")
    assert "in use" in refused("-U", str(ours.udp))
    assert "-U: -1 to 65535" in refused("-U", "65536")
