"""`nuthatch top`, as text and in a terminal."""

import os
import pty
import re
import select
import signal
import subprocess
import time

import conftest
import pytest
from judge import converse
from pymemcache.client.base import Client
from test_security import certificate, tls_flags


def test_it_says_what_happens(server):
    converse(server.address, b"set a 0 0 1\r\nx\r\nget a\r\n")
    command = [conftest.NUTHATCH, "top", f"{server.host}:{server.port}", "--print", "2", "--every", "0.1"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "get:" in converse(server.address, b"stats latency_buckets\r\n").decode()
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
    assert "hot-key's" in subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert b"looked_at 0\r\n" in converse(server.address, b"stats reset\r\nstats hotkeys\r\n")


def test_keys_are_not_named_where_dumps_are_forbidden(start):
    server = start("-X")
    assert converse(server.address, b"stats hotkeys\r\n") == b"CLIENT_ERROR stats hotkeys not allowed\r\n"


class Terminal:
    """`nuthatch top` in a terminal of 80 by 24."""

    def __init__(self, *words, every="0.1"):
        self.process, self.file = pty.fork()
        if self.process == 0:
            os.environ |= {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
            os.execv(conftest.NUTHATCH, [conftest.NUTHATCH, "top", "--every", every, *words])
        self.seen = b""

    def until(self, *words):
        """Reads on until all of them have been shown; what was seen is forgotten then."""
        while not all(word in self.seen for word in words):
            assert select.select([self.file], [], [], 60)[0]
            self.seen += os.read(self.file, 4096)
        seen, self.seen = self.seen, b""
        return seen

    def press(self, keys):
        os.write(self.file, keys)

    def close(self):
        """As who closes the window does."""
        os.close(self.file)

    def await_end(self):
        """It must not stay behind, whatever its exit code: nobody can end it by a key any more."""
        for _ in range(6000):
            if os.waitpid(self.process, os.WNOHANG)[0]:
                return
            time.sleep(0.01)
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        raise AssertionError("it goes on without a terminal")

    def ended(self):
        """Its exit code, and what it wrote last."""
        while True:
            try:
                if not (more := os.read(self.file, 4096)):
                    break
            except OSError:
                break
            self.seen += more
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1]), self.seen


def test_in_a_terminal_until_q(server):
    top = Terminal(f"{server.host}:{server.port}")
    top.until(b"connections", b"q quit")
    top.press(b"dgnq")
    code, seen = top.ended()
    # The terminal is as it was.
    assert code == 0 and seen.rstrip().endswith(b"\x1b[?1049l")


def counts_prefixes(server):
    return b"STAT detail_enabled yes\r\n" in converse(server.address, b"stats settings\r\n")


@pytest.mark.parametrize("end", ["q", "d, then q", "SIGTERM", "SIGHUP", "the terminal is closed"])
def test_the_server_counts_by_prefix_as_before_when_it_has_ended(start, end):
    server = start("-m", "16")
    for before in [False, True]:
        converse(server.address, b"set user:1 0 0 1\r\nx\r\nstats detail %b\r\n" % (b"on" if before else b"off"))
        top = Terminal(f"{server.host}:{server.port}")
        top.until(b"q quit")
        top.press(b"d")
        while not counts_prefixes(server):
            top.until(b"connections")
        converse(server.address, b"get user:1\r\n")
        top.until(b"prefix ", b"user ")
        if end == "the terminal is closed":
            top.close()
            top.await_end()
            while counts_prefixes(server) != before:
                time.sleep(0.01)
            continue
        if end.startswith("SIG"):
            os.kill(top.process, signal.Signals[end])
        else:
            top.press(end.replace(", then ", "").encode())
        assert top.ended()[0] == 0 and counts_prefixes(server) == before


def test_it_waits_for_a_server_that_is_started_again(start, tmp_path):
    socket = tmp_path / "socket"
    flags = ("-t", "1", "-m", "16")
    def serve():
        running = subprocess.Popen([conftest.NUTHATCH, *flags, "-s", str(socket)])
        while not socket.exists():
            assert running.poll() is None, "the server ended at once"
            time.sleep(0.01)
        return running
    first = serve()
    top = Terminal(str(socket))
    top.until(b"q quit   p pause")
    top.press(b"d")
    top.until(b"connections")
    first.terminate()
    first.wait()
    top.until(b"trying again")
    second = serve()
    top.until(b"connections", b"q quit   p pause")
    top.press(b"q")
    assert top.ended()[0] == 0
    second.terminate()
    assert second.wait() == 0


def test_keys_are_heeded_while_the_server_hangs(start):
    """It would wait ten seconds for each answer."""
    server = start("-m", "16")
    converse(server.address, b"stats detail on\r\nset bravo:1 0 0 1\r\nx\r\nset alpha:1 0 0 1\r\nx\r\n")
    top = Terminal(f"{server.host}:{server.port}", every="1")
    top.until(b"q quit")
    top.press(b"d")
    both = b"get bravo:1\r\n" * 3 + b"get alpha:1\r\n" + b"set alpha:1 0 0 1\r\nx\r\n" * 3 + b"set bravo:1 0 0 1\r\nx\r\n"

    def next_frame():
        """The last look is drawn again, without an answer. A frame begins at the first row."""
        return next(frame for frame in top.until(b"has not answered").split(b"\x1b[1;1H") if b"has not answered" in frame)

    def stopped_under_load():
        """Whether what the last look saw are these requests: there may have been one more before the server stopped."""
        while not re.search(rb"bravo +[1-9]", top.until(b"d prefixes")):
            converse(server.address, both)
        server.process.send_signal(signal.SIGSTOP)
        return re.search(rb"bravo +[1-9]", next_frame())

    try:
        while not stopped_under_load():
            server.process.send_signal(signal.SIGCONT)
        for key, first, second in [(b"n", b"alpha", b"bravo"), (b"g", b"bravo", b"alpha"), (b"s", b"alpha", b"bravo")]:
            top.press(key)
            while not 0 <= (frame := next_frame()).find(first) < frame.find(second):
                pass
        begun = time.monotonic()
        top.press(b"q")
        code, seen = top.ended()
        assert code == 0 and seen.rstrip().endswith(b"\x1b[?1049l") and time.monotonic() - begun < 5
    finally:
        server.process.send_signal(signal.SIGCONT)


def test_with_a_password_and_under_tls(start, tmp_path):
    for name, ca in [("ca", None), ("server", "ca"), ("stranger", None)]:
        certificate(tmp_path, name, ca=ca)
    (tmp_path / "users").write_text("ann:secret\n")
    (tmp_path / "good").write_text("secret\n")
    (tmp_path / "bad").write_text("guess\n")
    server = start("-Y", str(tmp_path / "users"), *tls_flags(tmp_path), "-m", "16")

    def top(password, ca, *words):
        command = [conftest.NUTHATCH, "top", f"localhost:{server.port}", "--print", "1", "--every", "0.1"]
        login = ["--user", "ann", "--password-file", str(tmp_path / password)] if password else []
        tls = ["--tls", "--ca", str(tmp_path / f"{ca}.pem")] if ca else []
        return subprocess.run([*command, *login, *tls, *words], capture_output=True, text=True, check=False, timeout=60)

    said = top("good", "ca")
    assert said.returncode == 0 and "gets/s" in said.stdout, said.stderr
    for password, ca, words in [
        ("bad", "ca", "does not admit ann"),
        (None, "ca", "wants a password"),
        ("good", "stranger", "certificate"),
        ("good", None, "the server"),
    ]:
        said = top(password, ca)
        assert said.returncode == 1 and words in said.stderr, said.stderr
    assert top(None, None, "--ca", "x").returncode == 2


def test_addresses_of_ipv6(start, tmp_path):
    start("-l", "::1,127.0.0.1", "-m", "16")
    port = re.search("^TCP INET6: (.*)$", (tmp_path / "0" / "ports").read_text(), re.M)[1]
    command = [conftest.NUTHATCH, "top", f"[::1]:{port}", "--print", "1", "--every", "0.1"]
    assert "gets/s" in subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_what_cannot_be_looked_at():
    def top(*words):
        return subprocess.run([conftest.NUTHATCH, "top", *words], capture_output=True, text=True, check=False, timeout=60)

    assert top("127.0.0.1:1").returncode == 1
    assert top("--every", "0").returncode == 2
    assert "needs a terminal" in top().stderr or top().returncode == 1
    checked = subprocess.run([conftest.NUTHATCH, "--check", "-t", "0"], capture_output=True, text=True, check=False)
    assert checked.returncode == 2 and "-t" in checked.stderr
