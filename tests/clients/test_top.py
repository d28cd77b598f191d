"""`nuthatch top`, as text and in a terminal."""

import os
import pty
import select
import subprocess

import conftest
from judge import converse


def test_it_says_what_happens(server):
    converse(server.address, b"set a 0 0 1\r\nx\r\nget a\r\n")
    command = [conftest.NUTHATCH, "top", f"{server.host}:{server.port}", "--print", "2", "--every", "0.1"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.count("nuthatch top") == 2 and "gets/s" in said and "of 128.0 MiB" in said
    assert all(len(line) <= 80 for line in said.splitlines())


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
