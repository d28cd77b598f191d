"""A server for each test module, on a free port, ended by its process."""

import os
import pathlib
import re
import socket
import subprocess
import time

import pytest
from judge import MEMCACHED

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUTHATCH = os.environ.get("NUTHATCH", str(ROOT / "target/release/nuthatch"))
# The same server on any engine, with CPServer's protocol: beside it, if not said.
LAB = os.environ.get("NUTHATCH_LAB", str(pathlib.Path(NUTHATCH).with_name("nuthatch-lab")))
ENGINE = os.environ.get("NUTHATCH_ENGINE", "cuckoo")
IN_LAB = (LAB, "serve", "--engine", ENGINE)
# The longest key of a Redis client: engines that are partitions take no longer ones than memcached's.
LONGEST_KEY = 250 if ENGINE in ("cphash", "cphash-single", "lockhash") else 64 << 10
# The default engine is tried in the program that has it alone.
SERVER = (NUTHATCH,) if ENGINE == "cuckoo" else IN_LAB

# In what these try, no engine has a part: the program that people have is enough.
WITHOUT_ENGINES = "clock confined descriptors guesses odd_lines ping prometheus readme security sysevents top udp upstream watch".split()
collect_ignore = [] if ENGINE == "cuckoo" else [f"test_{name}.py" for name in WITHOUT_ENGINES]
# Whether what hardly concerns engines is tried on this one: a soak does so on each.
TRIES_ALL = ENGINE == "cuckoo" or "NUTHATCH_SOAK" in os.environ
# These are of files, processes, and other languages' clients, which send what others send: `each_engine` marks the tests that ask
# what an engine keeps.
HARDLY_WITH_ENGINES = ["test_handover", "test_languages", "test_restart"]


def pytest_collection_modifyitems(config, items):
    if TRIES_ALL:
        return
    left_out = [
        item for item in items if item.module.__name__ in HARDLY_WITH_ENGINES and not item.get_closest_marker("each_engine")
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def said(log, pattern):
    """Waits until the log says so, which a thread of its own writes; returns the match."""
    while not (found := re.search(pattern, log.read_text())):
        time.sleep(0.01)
    return found


class Server:
    """A running server: ours, or another program that takes memcached's flags."""

    def __init__(self, folder, *flags, program=SERVER):
        ports = folder / "ports"
        command = [*program, "-l", "127.0.0.1", "-p", "-1", *flags]
        environment = {**os.environ, "MEMCACHED_PORT_FILENAME": str(ports)}
        self.process = subprocess.Popen(command, env=environment)
        # Ready when it has written where it listens: bounded by the process's life, not by a clock.
        while not (ports.exists() and ports.read_text().endswith("\n")):
            assert self.process.poll() is None, "the server ended at once"
            time.sleep(0.01)
        self.host = "127.0.0.1"
        told = [line.split(": ") for line in ports.read_text().splitlines()]
        # By kind, the last one of each.
        self.told = {kind: int(port) for kind, port in told}
        # Of several, the last one at 127.0.0.1.
        tcp = [port for kind, port in told if kind.startswith("TCP")]
        self.port = int([port for kind, port in told if kind == "TCP INET"][-1] if "TCP INET" in self.told else tcp[-1])
        socket.create_connection((self.host, self.port)).close()

    @property
    def address(self):
        return self.host, self.port

    def end(self):
        """Stops it as a system would, and returns its exit code."""
        self.process.terminate()
        return self.process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("server"), "-m", "128", "-t", "2", "-I", "8m")
    yield running
    assert running.end() == 0


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """memcached and ours, with the same flags."""
    flags = ("-m", "64", "-t", "2")
    servers = [
        Server(tmp_path_factory.mktemp("memcached"), *flags, program=MEMCACHED),
        Server(tmp_path_factory.mktemp("ours"), *flags),
    ]
    yield servers
    assert [server.end() for server in servers] == [0, 0]


@pytest.fixture
def start(tmp_path):
    """Starts servers with flags of their own."""
    running = []

    def start_with(*flags, program=SERVER):
        folder = tmp_path / str(len(running))
        folder.mkdir()
        running.append(Server(folder, *flags, program=program))
        return running[-1]

    yield start_with
    for one in running:
        one.end()
