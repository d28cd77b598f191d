#!/usr/bin/env python3
"""memcached and ours, turn by turn, under the binary protocol and under TLS: the server's processor time an operation (of
/proc/PID/stat), at pipelines of 1, 10 and 100.

    scripts/versus-binary.py MEMCACHED [SECONDS [ROUNDS]]

MEMCACHED is a memcached 1.6.45 that was built with TLS. Both have one thread that serves, `-R 1024` and the same memory; 16
connections take turns. A pipeline of the binary protocol is quiet gets and a noop; under TLS it is text gets. The medians
of the rounds are told, with the least and the greatest ratio.
"""

import os
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import tempfile
import time

NUTHATCH = os.environ.get("NUTHATCH", "target/release/nuthatch")
MEMCACHED = sys.argv[1]
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 3
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
CONNECTIONS = 16
KEYS = 10_000
VALUE = b"v" * 64
TICK = os.sysconf("SC_CLK_TCK")


def processor_seconds(process):
    with open(f"/proc/{process.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def frame(opcode, key=b"", extras=b"", value=b""):
    lengths = len(key), len(extras), len(extras) + len(key) + len(value)
    return struct.pack(">BBHBBHIIQ", 0x80, opcode, lengths[0], lengths[1], 0, 0, lengths[2], 7, 0) + extras + key + value


def key(number):
    return b"key:%08d" % (number * 7919 % KEYS)


class Kind:
    """What clients send, and how many bytes they are answered."""

    def __init__(self, name, pipeline):
        self.pipeline = pipeline
        self.requests = []
        for begin in range(0, 2000, pipeline):
            keys = [key(number) for number in range(begin, begin + pipeline)]
            if name == "binary":
                gets = [frame(0x0D, one) for one in keys]
                # One alone is loud, and needs no end.
                self.requests.append(frame(0x0C, keys[0]) if pipeline == 1 else b"".join(gets) + frame(0x0A))
            else:
                self.requests.append(b"".join(b"get %b\r\n" % one for one in keys))
        if name == "binary":
            self.answer = pipeline * (24 + 4 + 12 + len(VALUE)) + (24 if pipeline > 1 else 0)
        else:
            self.answer = pipeline * (len(b"VALUE key:00000000 0 64\r\n") + len(VALUE) + len(b"\r\nEND\r\n"))


def start(program, folder, tls):
    ports = os.path.join(folder, "ports")
    if os.path.exists(ports):
        os.remove(ports)
    command = [program, "-u", "root", "-l", "127.0.0.1", "-p", "-1", "-t", "1", "-m", "256", "-R", "1024"]
    if program == MEMCACHED:
        command += ["-U", "0"]
    if tls:
        command += ["-Z", "-o", f"ssl_chain_cert={folder}/cert,ssl_key={folder}/key"]
    process = subprocess.Popen(command, env={**os.environ, "MEMCACHED_PORT_FILENAME": ports}, stderr=subprocess.DEVNULL)
    while not (os.path.exists(ports) and open(ports).read().endswith("\n")):
        assert process.poll() is None, f"{program} ended"
        time.sleep(0.01)
    return process, int(open(ports).read().split()[-1])


def connect(port, tls):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = context.wrap_socket(connection)
    return connection


def read(connection, length):
    while length > 0:
        length -= len(connection.recv(min(length, 1 << 16)))


def measure(process, port, kind, tls):
    connections = [connect(port, tls) for _ in range(CONNECTIONS)]
    before, operations, end = processor_seconds(process), 0, time.time() + SECONDS
    turn = 0
    while time.time() < end:
        request = kind.requests[turn % len(kind.requests)]
        turn += 1
        for connection in connections:
            connection.sendall(request)
        for connection in connections:
            read(connection, kind.answer)
        operations += kind.pipeline * CONNECTIONS
    spent = processor_seconds(process) - before
    for connection in connections:
        connection.close()
    return spent / operations * 1e9


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                        "/CN=bench", "-keyout", f"{folder}/key", "-out", f"{folder}/cert"], check=True, capture_output=True)
        print("kind    pipeline  memcached ns  ours ns  ratio (least to greatest)")
        for name, tls in [("binary", False), ("tls", True)]:
            servers = []
            try:
                for program in (MEMCACHED, NUTHATCH):
                    servers.append(start(program, folder, tls))
                    filled = connect(servers[-1][1], tls)
                    for number in range(KEYS):
                        filled.sendall(b"set %b 0 0 %d noreply\r\n%b\r\n" % (key(number), len(VALUE), VALUE))
                    filled.sendall(b"mn\r\n")
                    read(filled, 4)
                for pipeline in (1, 10, 100):
                    kind = Kind(name, pipeline)
                    rounds = [[measure(*server, kind, tls) for server in servers] for _ in range(ROUNDS)]
                    theirs, ours = (statistics.median(column) for column in zip(*rounds))
                    ratios = sorted(our / their for their, our in rounds)
                    print(f"{name:6} {pipeline:8} {theirs:12.0f} {ours:9.0f} {statistics.median(ratios):7.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)
            finally:
                for process, _ in servers:
                    process.terminate()
                    process.wait()


main()
