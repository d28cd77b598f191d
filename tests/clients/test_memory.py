"""A machine that gives no memory: what needs much of it gets an error or loses its connection, and the server lives."""

import itertools
import pathlib
import re
import resource
import selectors
import socket
import time

import pytest
from conftest import TRIES_ALL, said

# The buffers of all connections may take 40 MiB with this much memory: more than any of the margins.
FLAGS = ("--redis-port", "0", "-t", "2", "-m", "1024", "-I", "64m", "-c", "2000")
# What the system still gives, in MiB.
MARGINS = (0, 24) if TRIES_ALL else (0,)
CONNECTIONS = 300


def writable(pid):
    """Bytes of memory that the process may write, as RLIMIT_DATA counts them."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmData:\s+(\d+) kB", status)[1]) << 10


class Peer:
    """A connection that sends without end what it is told, and reads only if it is told to."""

    def __init__(self, address, pieces, reads=True):
        self.socket = socket.create_connection(address)
        self.socket.setblocking(False)
        self.pieces, self.reads = iter(pieces), reads
        self.left, self.heard = memoryview(b""), b""

    def go_on(self, events):
        """False when it has nothing more to send, or was closed."""
        try:
            if events & selectors.EVENT_READ and self.reads:
                came = self.socket.recv(1 << 16)
                self.heard = (self.heard + came)[-4096:]
                if not came:
                    return False
            if events & selectors.EVENT_WRITE:
                self.left = self.left or memoryview(next(self.pieces))
                self.left = self.left[self.socket.send(self.left) :]
        except (BlockingIOError, InterruptedError):
            pass
        except (OSError, StopIteration):
            return False
        return True


def command(*words):
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"*%d\r\n" % len(words) + b"".join(parts)


def large_value(number):
    """A value that is longer than what is awaited in a buffer, and its set, of which the last bytes never come."""
    return [b"set big%d 0 0 1000000\r\n" % number + b"b" * 999_000]


# What a connection sends, whose port it is for, and whether it reads the answers.
ATTACKS = {
    "half a value": lambda n: ([b"set half 0 0 16000\r\n" + b"h" * 15_000], "memcached", True),
    "half of a large value": lambda n: (large_value(n), "memcached", True),
    "half a command": lambda n: ([b"*3\r\n$3\r\nSET\r\n$200\r\n" + b"h" * 199], "redis", True),
    "answers that nobody takes": lambda n: (itertools.repeat(b"get key0 key1 key2\r\n" * 1000), "memcached", False),
    "the same of Redis": lambda n: (itertools.repeat(command(b"MGET", b"key0", b"key1") * 1000), "redis", False),
    "a queue": lambda n: (
        itertools.chain([command(b"MULTI")], itertools.repeat(command(b"SET", b"q", b"q" * 10_000) * 10, 100)),
        "redis",
        True,
    ),
    "a queue of short ones": lambda n: (
        itertools.chain([command(b"MULTI")], itertools.repeat(command(b"PING") * 10_000, 10), [command(b"EXEC")]),
        "redis",
        True,
    ),
    "names and their list": lambda n: (
        itertools.chain([command(b"CLIENT", b"SETNAME", b"n" * 10_000)], itertools.repeat(command(b"CLIENT", b"LIST"), 50)),
        "redis",
        False,
    ),
    "keys": lambda n: (itertools.repeat(command(b"KEYS", b"*") * 10, 50), "redis", False),
    "statistics": lambda n: (itertools.repeat(b"stats\r\nstats settings\r\nstats conns\r\n" * 10, 20), "memcached", False),
    "watches": lambda n: ([b"watch fetchers mutations evictions connevents\r\n"], "memcached", False),
    "changes in place": lambda n: (
        [command(b"SETRANGE", b"range%d" % n, b"4000000", b"x") * 3, command(b"APPEND", b"range%d" % n, b"x" * 2_000_000)],
        "redis",
        True,
    ),
    "watched keys": lambda n: (itertools.repeat(b"".join(command(b"WATCH", b"w%d" % k) for k in range(500)), 20), "redis", True),
}
# An engine has a part where values are stored; else it is the connections' buffers.
if not TRIES_ALL:
    ATTACKS = {name: ATTACKS[name] for name in ("half of a large value", "a queue", "changes in place")}


def attack(addresses, pieces_of):
    """Lets many connections do this at once, for some seconds or until nothing goes on. Returns them, still open."""
    peers, watched = [], selectors.DefaultSelector()
    for number in range(CONNECTIONS):
        pieces, port, reads = pieces_of(number)
        try:
            peer = Peer(addresses[port], pieces, reads)
        except OSError:
            continue
        peers.append(peer)
        watched.register(peer.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)
    end = time.monotonic() + 3
    calm = 0
    while watched.get_map() and time.monotonic() < end and calm < 20:
        progress = False
        for key, events in watched.select(0.05):
            before = len(key.data.left)
            if not key.data.go_on(events):
                watched.unregister(key.data.socket)
            progress |= len(key.data.left) != before or bool(events & selectors.EVENT_READ)
        calm = 0 if progress else calm + 1
    return peers


def ask(address, request, end):
    """One answer on a connection of its own. The server may close it or answer that it has no memory: then again."""
    last, until = b"", time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with socket.create_connection(address, timeout=30) as one:
                one.sendall(request)
                last = b""
                while not last.endswith(end):
                    came = one.recv(1 << 16)
                    if not came:
                        break
                    last += came
                if last.endswith(end):
                    return last
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"no answer: {last[:200]!r}")


@pytest.mark.parametrize("margin", MARGINS)
def test_a_server_without_memory_serves_on(start, tmp_path, margin):
    log = tmp_path / "log"
    server = start(*FLAGS, "--log", str(log), "-v")
    addresses = {"memcached": server.address, "redis": (server.host, server.told["REDIS INET"])}
    values = {b"key%d" % number: b"%d" % number * 1000 for number in range(100)}
    for key, value in values.items():
        ask(server.address, b"set %b 0 0 %d\r\n%b\r\n" % (key, len(value), value), b"STORED\r\n")
    pid = server.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_DATA)
    resource.prlimit(pid, resource.RLIMIT_DATA, (writable(pid) + (margin << 20), before[1]))
    for name, connection in ATTACKS.items():
        peers = attack(addresses, connection)
        assert server.process.poll() is None, f"{name}: {log.read_text()}"
        for peer in peers:
            peer.socket.close()
        for key, value in values.items():
            answer = ask(server.address, b"get %b\r\n" % key, b"END\r\n")
            assert answer == b"VALUE %b 0 %d\r\n%b\r\nEND\r\n" % (key, len(value), value), name
    assert "the system gives no more memory" in log.read_text(), "the attacks took too little"
    resource.prlimit(pid, resource.RLIMIT_DATA, before)
    said(log, "the system gives memory again")
    assert server.end() == 0
