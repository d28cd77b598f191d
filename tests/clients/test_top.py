"""`nuthatch top`, as text and in a terminal."""

import os
import pty
import select
import subprocess

import conftest
from judge import converse
from pymemcache.client.base import Client


def test_it_says_what_happens(server):
    converse(server.address, b"set a 0 0 1\r\nx\r\nget a\r\n")
    command = [conftest.NUTHATCH, "top", f"{server.host}:{server.port}", "--print", "2", "--every", "0.1"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.count("nuthatch top") == 2 and "gets/s" in said and "of 128.0 MiB" in said
    assert all(len(line) <= 80 for line in said.splitlines())


def test_a_hot_key_is_named(start):
    server = start("-m", "16")
    client = Client(server.address)
    # One of 256 is looked at: a key is named that was seen four times.
    for number in range(160):
        client.get_many([f"cold:{number}:{other}" for other in range(50)])
        for _ in range(50):
            client.get("hot-key's")
    lines = converse(server.address, b"stats hotkeys\r\n").decode().split("\r\n")
    told = dict(line.split()[1:] for line in lines if line.startswith("STAT"))
    assert told["key:1"] == "hot-key%27s" and 25 < float(told["key:1:percent"]) <= float(told["key:1:percent_max"]) < 75
    assert told["prefix:1"] == "cold" and int(told["looked_at"]) > 30
    command = [conftest.NUTHATCH, "top", f"{server.host}:{server.port}", "--print", "1", "--every", "0.1"]
    assert "hot-key%27s" in subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert b"looked_at 0\r\n" in converse(server.address, b"stats reset\r\nstats hotkeys\r\n")


def test_keys_are_not_named_where_dumps_are_forbidden(start):
    server = start("-X")
    assert converse(server.address, b"stats hotkeys\r\n") == b"CLIENT_ERROR stats hotkeys not allowed\r\n"


def test_in_a_terminal_until_q(server):
    process, terminal = pty.fork()
    if process == 0:
        os.environ |= {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
        os.execv(conftest.NUTHATCH, [conftest.NUTHATCH, "top", f"{server.host}:{server.port}", "--every", "0.1"])
    seen = b""
    while b"connections" not in seen or b"q quit" not in seen:
        assert select.select([terminal], [], [], 60)[0]
        seen += os.read(terminal, 4096)
    os.write(terminal, b"dgnq")
    while True:
        try:
            if not (more := os.read(terminal, 4096)):
                break
        except OSError:
            break
        seen += more
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    # The terminal is as it was.
    assert seen.rstrip().endswith(b"\x1b[?1049l")


def test_what_cannot_be_looked_at():
    def top(*words):
        return subprocess.run([conftest.NUTHATCH, "top", *words], capture_output=True, text=True, check=False, timeout=60)

    assert top("127.0.0.1:1").returncode == 1
    assert top("--every", "0").returncode == 2
    assert "needs a terminal" in top().stderr or top().returncode == 1
    checked = subprocess.run([conftest.NUTHATCH, "--check", "-t", "0"], capture_output=True, text=True, check=False)
    assert checked.returncode == 2 and "-t" in checked.stderr
