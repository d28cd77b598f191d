"""A server that is out of descriptors: it says so, goes on, and does not fill a disk with it."""

import resource
import socket
import subprocess
import time

import conftest
from judge import converse


def test_a_rest_of_accepting_is_told_a_few_times(tmp_path):
    log, ports = tmp_path / "log", tmp_path / "ports"
    command = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1", "-t", "1", "-c", "1000", "--log", str(log)]
    server = subprocess.Popen(command, env={"MEMCACHED_PORT_FILENAME": str(ports)})
    while not ports.exists():
        assert server.poll() is None
        time.sleep(0.01)
    address = ("127.0.0.1", int(ports.read_text().split()[-1]))
    # Later than the start, which takes no more connections than it has descriptors for.
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (64, 64))
    many = [socket.create_connection(address) for _ in range(100)]

    def rests():
        """Of statistics, asked by one that was accepted."""
        many[0].sendall(b"stats\r\n")
        said = b""
        while not said.endswith(b"END\r\n"):
            said += many[0].recv(65536)
        return int(said.split(b"STAT listen_disabled_num ")[1].split()[0])

    while rests() < 40:
        time.sleep(0.1)
    conftest.said(log, "accepting rests")
    lines = [line for line in log.read_text().splitlines() if "accepting rests" in line]
    assert 1 <= len(lines) <= 20, len(lines)
    for client in many:
        client.close()
    assert converse(address, b"mn\r\n") == b"MN\r\n"
    server.terminate()
    assert server.wait() == 0
