"""Ports for servers that must be told one."""

import pathlib
import random
import socket

# The kernel gives those from here on to whoever connects, or asks for any: a test beside this one would soon have it.
GIVEN = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
OFFERED = range(GIVEN // 2, GIVEN)


def free_port(kind=socket.SOCK_STREAM):
    """A port of 127.0.0.1 that nobody has, and nobody is given by chance."""
    while True:
        port = random.choice(OFFERED)
        with socket.socket(socket.AF_INET, kind) as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
