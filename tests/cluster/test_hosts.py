"""Gateways on hosts of their own, which are network namespaces: a way between two of them is cut."""

import os
import pathlib
import re
import subprocess
import threading

import pytest
from pymemcache.client.base import Client

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUTHATCH_PE = os.environ["NUTHATCH_PE"]
HOSTS = str(ROOT / "scripts" / "hosts.sh")


def hosts(*words):
    return subprocess.run([HOSTS, *words], capture_output=True, text=True)


class Job:
    """Servers on the first two hosts, gateways on the others."""

    def __init__(self):
        words = ["--servers", "2", "-l", "0.0.0.0", "-m", "64", "-t", "2", "-A"]
        self.process = subprocess.Popen([HOSTS, "run", "4", NUTHATCH_PE, *words], stderr=subprocess.PIPE, text=True)
        said, ports = [], {}
        while len(ports) < 2:
            line = self.process.stderr.readline()
            assert line, said
            said.append(line)
            ports |= {int(pe): int(port) for pe, port in re.findall(r"nuthatch-pe (\d+): gateway at \S+:(\d+)", line)}
        self.places = {pe: (f"10.77.0.{pe + 1}", port) for pe, port in ports.items()}
        # Nobody may wait for a reader.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def client(self, pe):
        return Client(self.places[pe], default_noreply=False)

    def end(self):
        """A client ends all of it."""
        self.client(2).shutdown()
        return self.process.wait()


@pytest.fixture
def job():
    up = hosts("up", "4")
    if up.returncode != 0:
        pytest.skip(f"no namespaces here: {up.stderr}")
    running = Job()
    yield running
    # Unless it has ended in order.
    running.process.kill()
    hosts("down")


def test_while_a_way_is_cut_others_go_on(job):
    one, other = job.client(2), job.client(3)
    keys = [f"key{number}" for number in range(40)]
    for key in keys:
        assert one.set(key, b"before")
        assert other.get(key) == b"before"
    # The second server and the second gateway.
    assert hosts("cut", "2", "4").returncode == 0
    found = {}

    def get_all():
        for key in keys:
            found[key] = other.get(key)

    waiting = threading.Thread(target=get_all, daemon=True)
    waiting.start()
    for number in range(1000):
        key = keys[number % len(keys)]
        assert one.set(key, str(number).encode())
        assert one.get(key) == str(number).encode()
    assert waiting.is_alive(), "some of the keys are at the server that cannot be reached"
    # A gateway that is cut off says so to others of its clients: it waits for nobody, and has what was told last.
    asker = job.client(3)
    told = {}
    while told.get(b"silent_pes") != 1:
        told = asker.stats("cluster")
    assert told[b"server:1:state"] == b"silent"
    assert told[b"server:0:state"] == b"answers"
    assert 0 < told[b"server:0:items"] < len(keys)
    assert told[b"server:1:told_seconds_ago"] > 0
    assert hosts("mend", "2", "4").returncode == 0
    waiting.join()
    assert all(value is not None for value in found.values())
    for key in keys:
        assert other.set(key, b"behind")
        assert one.get(key) == b"behind"
    assert job.end() == 0
