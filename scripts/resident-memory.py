#!/usr/bin/env python3
"""Measures the resident memory of a full cache whose clients fill all buffers on purpose, one kind after the other.

    resident-memory.py NUTHATCH [MEGABYTES [FLAG...]]

MEGABYTES is the server's -m, 256 by default. Each line is a kind of client: the most that was resident meanwhile, what was
promised (1.05 times -m plus 32 MiB), and what was resident a second after all of them had closed. Exit code 1: a promise
does not hold.
"""

import socket
import subprocess
import sys
import time

CLIENTS = 12


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connect(port):
    for _ in range(500):
        peer = socket.socket()
        # It does not read, so that the answers stay with the server.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        peer.settimeout(2)
        try:
            peer.connect(("127.0.0.1", port))
            return peer
        except ConnectionRefusedError:
            peer.close()
            time.sleep(0.02)
    raise SystemExit("the server does not listen")


def resp(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def send(peer, request, times, answer_len=0):
    """Sends as much of this as the server takes, and reads the answers if their length is given."""
    at_once = max(1, 60_000 // len(request))
    try:
        while times > 0:
            part = min(at_once, times)
            peer.sendall(request * part)
            left = part * answer_len
            while left > 0:
                more = len(peer.recv(min(left, 1 << 18)))
                if not more:
                    return
                left -= more
            times -= part
    except OSError:
        # The server has closed it for what it holds, refused its transaction, or reads no more before it does.
        pass


def transactions(peer, number):
    send(peer, resp("MULTI"), 1, len("+OK\r\n"))
    send(peer, resp("PING"), 1 << 20, len("+QUEUED\r\n"))
    send(peer, resp("EXEC"), 1)


def transactions_of_long_requests(peer, number):
    send(peer, resp("MULTI"), 1, len("+OK\r\n"))
    send(peer, resp("MGET", *["none%d" % key for key in range(5000)]), 1000, len("+QUEUED\r\n"))
    send(peer, resp("EXEC"), 1)


def lists(peer, number):
    send(peer, resp("CLIENT", "SETNAME", "x" * 256), 1, len("+OK\r\n"))
    send(peer, resp("CLIENT", "LIST"), 10_000)


def unfinished_requests(peer, number):
    send(peer, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000\r\n" + b"x" * 16_000, 1)
    send(peer, b"*1000\r\n" + resp("MGET")[4:] + b"$60000\r\n" + b"x" * 59_000, 1)


def copies(peer, number):
    key = "small%d" % number
    send(peer, resp("SET", key, "x" * 8000), 1, len("+OK\r\n"))
    for request in [("GETRANGE", key, 0, -1), ("SET", key, "y" * 8000, "GET"), ("GETEX", key)]:
        send(peer, resp(*request), 3000)


def large_values(peer, number):
    send(peer, resp("SETRANGE", "large%d" % number, 900_000, "x"), 1, len(":900001\r\n"))
    send(peer, resp("GETRANGE", "large%d" % number, 0, -1), 1000)
    send(peer, resp("GETDEL", "large%d" % number), 1)


KINDS = [transactions, transactions_of_long_requests, lists, unfinished_requests, copies, large_values]


class Server:
    def __init__(self, binary, megabytes, flags):
        self.port, self.redis = free_port(), free_port()
        ports = ["-p", str(self.port), "--redis-port", str(self.redis), "-l", "127.0.0.1"]
        self.process = subprocess.Popen([binary, "-m", str(megabytes), *ports, *flags], stderr=subprocess.DEVNULL)

    def resident(self, name):
        with open(f"/proc/{self.process.pid}/status") as status:
            line = next(line for line in status if line.startswith(name + ":"))
        return int(line.split()[1]) / 1024

    def forget_most(self):
        """The most from now on counts."""
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as refs:
            refs.write("5")

    def fill(self, megabytes):
        value = b"x" * 100_000
        peer = connect(self.port)
        for number in range(megabytes * 13):
            peer.sendall(b"set fill%d 0 0 %d\r\n%s\r\n" % (number, len(value), value))
            if not peer.recv(64):
                raise SystemExit("the server closed the connection")


def main():
    binary = sys.argv[1]
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 256
    promised = 1.05 * megabytes + 32
    server = Server(binary, megabytes, sys.argv[3:])
    broken = False
    try:
        server.fill(megabytes)
        print(f"{'full':30} {server.resident('VmRSS'):8.1f} MiB, promised {promised:8.1f}")
        for kind in KINDS:
            server.forget_most()
            peers = []
            for number in range(CLIENTS):
                peers.append(connect(server.redis))
                kind(peers[-1], number)
            most = server.resident("VmHWM")
            for peer in peers:
                peer.close()
            time.sleep(1)
            after = server.resident("VmRSS")
            name = kind.__name__.replace("_", " ")
            print(f"{name:30} {most:8.1f} MiB, promised {promised:8.1f}, afterwards {after:8.1f}", flush=True)
            broken |= most > promised
    finally:
        server.process.terminate()
        server.process.wait(30)
    raise SystemExit(broken)


main()
