#!/usr/bin/env python3
"""Measures how long a get waits behind one peer that sends the most expensive requests, one kind after the other.

    longest-wait.py NUTHATCH [FLAG...]

The flags go to the server, as in `-I 128m -m 512`. Each line is a kind of request, and the longest and the median of the
gets of another client of the same worker (the server has one) while the peer's requests are executed.
"""

import socket
import statistics
import subprocess
import sys
import threading
import time


# Bytes of the longest argument of a script.
ARGUMENT_MAX = 4 << 20


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connect(port):
    for _ in range(500):
        try:
            return socket.create_connection(("127.0.0.1", port), 120)
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise SystemExit("the server does not listen")


def resp(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def read_until(peer, end):
    """Reads up to an answer that ends like this, and returns its last bytes."""
    tail = b""
    while not tail.endswith(end):
        more = peer.recv(1 << 20)
        if not more:
            raise SystemExit("the server closed the connection")
        tail = (tail + more)[-16384:]
    return tail


def waits(other, port, request, end):
    """The times of another client's gets, in milliseconds, while a peer's request is executed. `end`: a request that
    shows its end, and the answer."""
    peer = connect(port)
    done = threading.Event()

    failed = []

    def ask():
        try:
            # One after the other: while this program joins them, it asks nothing.
            peer.sendall(request)
            peer.sendall(end[0])
            read_until(peer, end[1])
        except (OSError, SystemExit) as error:
            failed.append(error)
        done.set()

    thread = threading.Thread(target=ask)
    times = []
    thread.start()
    while not times or not done.is_set():
        begun = time.perf_counter()
        other.sendall(b"get none\r\n")
        read_until(other, b"END\r\n")
        times.append(1e3 * (time.perf_counter() - begun))
    thread.join()
    if failed:
        raise SystemExit(f"the peer's requests failed: {failed[0]}")
    return times


def fill(peer):
    """Fills the cache: the first use of memory costs more than the next."""
    peer.sendall(b"stats\r\n")
    stats = read_until(peer, b"END\r\n")
    memory = int(stats.split(b"limit_maxbytes ")[1].split()[0])
    for number in range(memory * 5 // 4 // 100_000):
        peer.sendall(b"set fill%d 0 0 100000 noreply\r\n%s\r\n" % (number, b"x" * 100_000))
    peer.sendall(b"mn\r\n")
    read_until(peer, b"MN\r\n")


def main():
    port, redis = free_port(), free_port()
    binary, *flags = sys.argv[1:]
    server = subprocess.Popen([binary, "-p", str(port), "--redis-port", str(redis), "-l", "127.0.0.1", "-t", "1", *flags])
    try:
        other, peer = connect(port), connect(redis)
        peer.sendall(resp("CONFIG", "GET", "proto-max-bulk-len") + resp("ECHO", "x"))
        answer = b""
        while not answer.endswith(b"$1\r\nx\r\n"):
            answer += peer.recv(4096)
        longest = int(answer.split(b"\r\n")[4])
        fill(other)
        peer.sendall(resp("SETRANGE", "k", longest - 5000, "y"))
        read_until(peer, b"\r\n")
        change = resp("SETRANGE", "k", 0, "y") * 10
        words = {"looks": "v==w", "copies": "v"}
        evals = {name: f"local v=redis.call('get',KEYS[1]) local w=ARGV[1] return {{{','.join([word] * 190)}}}" for name, word in words.items()}
        # An argument is held by its connection, which may hold a part of the memory only.
        compared = min(longest - 5001, ARGUMENT_MAX)
        same = bytes(compared) + b"y"
        many = "local n=redis.call('exists',KEYS[1]) " + "n=n+1 " * 600 + "return n"
        kinds = {
            "10 SETRANGE of the longest value": change,
            "the same in an EXEC with WATCH": resp("WATCH", "w") + resp("MULTI") + change + resp("EXEC"),
            "10 APPEND to a value of half the length": resp("SETRANGE", "h", longest // 2, "y")
            + resp("APPEND", "h", "y") * 10,
            "10 of memcached's append to the same": b"append h 0 0 1 noreply\r\ny\r\n" * 10,
            "10 APPEND of 20,000 bytes to the longest": resp("SETRANGE", "l", longest - 210_000, "y")
            + resp("APPEND", "l", bytes(20_000)) * 10,
            "1000 CLIENT LIST without answers": resp("CLIENT", "REPLY", "OFF")
            + resp("CLIENT", "LIST") * 1000
            + resp("CLIENT", "REPLY", "ON"),
            "an EXEC of 100,000 PING": resp("MULTI") + resp("PING") * 100_000 + resp("EXEC"),
            "300 EVAL of 600 additions": resp("EVAL", many, 1, "k") * 300,
            "300 EVAL that compare a long value": resp("SETRANGE", "e", compared, "y")
            + resp("EVAL", evals["looks"], 1, "e", same) * 300,
            "300 EVAL that answer the longest value": resp("EVAL", evals["copies"], 1, "k", "x") * 300,
            "1000 DBSIZE, 1000 RANDOMKEY": resp("DBSIZE") * 1000 + resp("RANDOMKEY") * 1000,
        }
        for kind, request in kinds.items():
            # Under a real-time priority the kernel lets a program run for less than a second in a row.
            time.sleep(1)
            is_text = request.startswith(b"append")
            end = (b"mn\r\n", b"MN\r\n") if is_text else (resp("ECHO", "the-end"), b"the-end\r\n")
            times = waits(other, port if is_text else redis, request, end)
            print(f"{kind:42} longest {max(times):8.1f} ms, median {statistics.median(times):6.2f} ms")
    finally:
        server.terminate()
        server.wait(30)


main()
