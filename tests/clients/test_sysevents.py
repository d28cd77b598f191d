"""`watch sysevents`: what the server itself does, told to watchers over a socket, a line of each type."""

import re
import select
import signal
import socket

from judge import converse
from redis_judge import request as redis
from test_binary import FLUSH, FLUSHQ, request
from test_security import certificates, tls_flags  # noqa: F401 (a fixture)
from test_watch import Watcher

LINE = re.compile(r"ts=\d+\.\d{6} gid=(\d+) (type=\S+.*)")


def said(watcher, mark):
    """The events up to the first with a mark, without their times. Numbers rise from line to line."""
    lines = [LINE.fullmatch(line) for line in watcher.until(mark)]
    assert all(lines)
    numbers = [int(line[1]) for line in lines]
    assert numbers == sorted(set(numbers))
    return [line[2] for line in lines]


def test_flushes_of_every_protocol(start):
    server = start("-B", "any")
    watcher = Watcher(server, ["sysevents"])
    converse(server.address, b"flush_all\r\nflush_all 100 noreply\r\n")
    now, later = said(watcher, "delay=") + said(watcher, "delay=")
    assert now == "type=flush_all delay=0"
    # A moment in memcached's form is a whole second.
    assert later in ("type=flush_all delay=100", "type=flush_all delay=99")
    converse(server.address, request(FLUSH) + request(FLUSHQ))
    assert said(watcher, "delay=") + said(watcher, "delay=") == [now] * 2
    with socket.create_connection(server.address) as client:
        client.sendall(redis(b"FLUSHALL") + redis(b"FLUSHDB"))
        assert client.makefile("rb").read(10) == b"+OK\r\n+OK\r\n"
    assert said(watcher, "delay=") + said(watcher, "delay=") == [now] * 2


def test_memory_limits(start):
    server = start("-m", "64", "-B", "any")
    watcher = Watcher(server, ["sysevents"])
    assert converse(server.address, b"cache_memlimit 100\r\n") == b"OK\r\n"
    assert said(watcher, "bytes=") == [f"type=memory_limit bytes={100 << 20}"]
    with socket.create_connection(server.address) as client:
        client.sendall(redis(b"CONFIG", b"SET", b"maxmemory", b"80mb"))
        assert client.makefile("rb").readline() == b"+OK\r\n"
    assert said(watcher, "bytes=") == [f"type=memory_limit bytes={80 << 20}"]


def test_settings_that_are_read_again(start, tmp_path):
    path = tmp_path / "nuthatch.toml"
    path.write_text("memory-limit = 64\n")
    server = start("--config", str(path))
    watcher = Watcher(server, ["sysevents"])
    path.write_text("memory-limit = 96\nconn-limit = 500\nmax-reqs-per-event = 5\n")
    server.process.send_signal(signal.SIGHUP)
    lines = said(watcher, "type=settings") + said(watcher, "type=settings") + said(watcher, "type=memory_limit")
    # A line for each setting.
    assert lines == ["type=settings state=applied"] * 2 + [f"type=memory_limit bytes={96 << 20}"]


def test_copies(start, tmp_path):
    folder = tmp_path / "copies"
    folder.mkdir()
    server = start("--save", str(folder / "copy"), "--save-every", "1")
    assert converse(server.address, b"set a 0 0 1\r\nx\r\nset b 0 0 1\r\ny\r\n") == b"STORED\r\n" * 2
    watcher = Watcher(server, ["sysevents"])
    # One may have begun before the items came.
    for line in said(watcher, "type=save") + said(watcher, "type=save"):
        assert re.fullmatch(r"type=save state=done items=\d bytes=\d+ elapsed_ms=\d+", line), line
    assert " items=2 " in line
    folder.rename(tmp_path / "elsewhere")
    assert re.fullmatch(r"type=save state=failed elapsed_ms=\d+", said(watcher, "state=failed")[-1])
    (tmp_path / "elsewhere").rename(folder)
    assert re.fullmatch(r"type=save state=done items=2 bytes=\d+ elapsed_ms=\d+", said(watcher, "state=done")[-1])


def test_certificates(start, certificates, tmp_path):  # noqa: F811
    for name in ["pem", "key"]:
        (tmp_path / f"server.{name}").write_bytes((certificates / f"server.{name}").read_bytes())
    # The last port is the one without TLS.
    server = start(*tls_flags(tmp_path), "-l", "notls:127.0.0.1:0")
    watcher = Watcher(server, ["sysevents"])
    assert converse(server.address, b"refresh_certs\r\n") == b"OK\r\n"
    assert said(watcher, "type=certificates") == ["type=certificates state=ok"]
    (tmp_path / "server.pem").write_text("nothing")
    server.process.send_signal(signal.SIGHUP)
    assert "type=certificates state=failed" in said(watcher, "type=certificates")


def test_an_index_that_grows(start):
    server = start("-o", "hashpower=12")
    watcher = Watcher(server, ["sysevents"])
    stored = 0
    # How it grows is told by a thread that looks now and then: it may see it amidst that, or afterwards.
    while not select.select([watcher.socket], [], [], 0)[0]:
        batch = range(stored, stored + 10_000)
        text = b"".join(b"set key:%07d 0 0 1 noreply\r\nx\r\n" % number for number in batch)
        assert converse(server.address, text + b"mn\r\n") == b"MN\r\n"
        stored += len(batch)
        assert stored < 1_000_000, "the index has not grown"
    for line in said(watcher, "type=index state=steady"):
        found = re.fullmatch(r"type=index state=(growing|steady) slots=(\d+)", line)
        assert found and int(found[2]) >= 1 << 12, line
    assert int(found[2]) > 1 << 12


def test_who_watches_other_things_is_told_none_of_it(server):
    others = Watcher(server, ["fetchers", "connevents"])
    system = Watcher(server, ["sysevents"])
    converse(server.address, b"flush_all\r\nget end\r\n")
    assert said(system, "flush_all") == ["type=flush_all delay=0"]
    assert not any("flush_all" in line for line in others.until("key=end"))
