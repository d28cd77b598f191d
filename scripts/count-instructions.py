#!/usr/bin/env python3
"""Counts a server's instructions for one request, with valgrind's callgrind.

    count-instructions.py [--detail] [--tls] [--key-bytes N] [--kind get|multiget|single|set] NUTHATCH [FLAG...]

The figure is the difference of two runs of the whole server, divided by the requests that the longer one has more: so
the start and the end do not count. Pipelines have 100 requests, multigets 100 keys, single gets wait for each other;
there are 100 keys with values of 100 bytes, and all gets hit. Unlike times, the figure does not depend on what else the
machine does; it repeats to about one instruction in a thousand. The flags go to the server, as in `-C`.
"""

import argparse
import os
import re
import socket
import ssl
import subprocess
import tempfile
import time

KEYS = 100
VALUE = b"x" * 100
ROUNDS = 200, 1200  # of each of the two runs


def requests(kind, key_bytes):
    """What is sent in a round, one after the other: the bytes, and how many bytes answer them."""
    keys = [b"k%0*d" % (key_bytes - 1, number) for number in range(KEYS)]
    line = len("VALUE  0 100\r\n\r\n") + key_bytes + len(VALUE)
    end = len("END\r\n")
    match kind:
        case "get":
            return [(b"".join(b"get %s\r\n" % key for key in keys), KEYS * (line + end))]
        case "multiget":
            return [(b"get %s\r\n" % b" ".join(keys), KEYS * line + end)]
        case "single":
            return [(b"get %s\r\n" % key, line + end) for key in keys]
        case "set":
            sets = (b"set %s 0 0 %d\r\n%s\r\n" % (key, len(VALUE), VALUE) for key in keys)
            return [(b"".join(sets), KEYS * len("STORED\r\n"))]


def certificate(folder):
    """The files of a new key and its certificate."""
    files = [os.path.join(folder, name) for name in ("key.pem", "certificate.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=localhost", "-keyout", files[0], "-out", files[1]]
    subprocess.run(command, check=True, capture_output=True)
    return files


def run(options, rounds, folder):
    """The instructions of a server from its start to its end, with so many rounds of requests."""
    ports = os.path.join(folder, f"ports-{rounds}")
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", options.nuthatch]
    command += ["-l", "127.0.0.1", "-p", "-1", "-t", "1", "-m", "8", *options.flags]
    environment = {**os.environ, "MEMCACHED_PORT_FILENAME": ports}
    secure = ssl.create_default_context()
    if options.tls:
        key, chain = certificate(folder)
        command += ["-Z", "-o", f"ssl_chain_cert={chain},ssl_key={key}"]
        secure.load_verify_locations(chain)
    server = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    while not os.path.exists(ports):
        if server.poll() is not None:
            raise SystemExit(server.stderr.read())
        time.sleep(0.1)
    with open(ports) as file:
        port = int(file.read().split()[-1])
    with socket.create_connection(("127.0.0.1", port)) as client:
        # A small record would wait for the acknowledgement of the one before.
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if options.tls:
            client = secure.wrap_socket(client, server_hostname="localhost")

        def ask(request, answer):
            client.sendall(request)
            while answer > 0:
                answer -= len(client.recv(1 << 20))

        if options.detail:
            ask(b"stats detail on\r\n", len("OK\r\n"))
        for request, answer in requests("set", options.key_bytes):
            ask(request, answer)
        for request, answer in requests(options.kind, options.key_bytes) * rounds:
            ask(request, answer)
    server.terminate()
    return int(re.search(r"Collected : (\d+)", server.communicate()[1])[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--detail", action="store_true", help="with `stats detail on`")
    parser.add_argument("--tls", action="store_true", help="the client encrypts")
    parser.add_argument("--key-bytes", type=int, default=10, metavar="N")
    parser.add_argument("--kind", choices=["get", "multiget", "single", "set"], default="get")
    parser.add_argument("nuthatch")
    parser.add_argument("flags", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        few, many = (run(options, rounds, folder) for rounds in ROUNDS)
    print(round((many - few) / ((ROUNDS[1] - ROUNDS[0]) * KEYS), 1))


if __name__ == "__main__":
    main()
