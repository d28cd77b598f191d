"""redis-server itself as the judge: the same bytes go to it and to us, and the answers are compared.

REDIS_SERVER in the environment names the judge, by default the redis-server on the PATH.
"""

import os
import re
import shutil
import socket
import subprocess
import time

import pytest
from ports import free_port

REDIS = os.environ.get("REDIS_SERVER", "redis-server")
needs_redis = pytest.mark.skipif(not shutil.which(REDIS), reason=f"{REDIS} is not installed")


def version():
    """The judge's, as numbers: (8, 0, 6). An empty tuple, if there is no judge."""
    if not shutil.which(REDIS):
        return ()
    told = subprocess.run([REDIS, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, re.search(r"v=([\d.]+)", told)[1].split(".")))


# Redis 7.0 answers these otherwise than Redis 8, and we as Redis 8: an older judge is not asked.
SINCE_8 = {
    *("HELLO 3", "SCAN -1", "SCAN -1x", "SCAN -1 COUNT 0", "SCAN -1 foo", "SCAN -18446744073709551616"),
    *("CLIENT KILL MAXAGE 100000", "CLIENT NO-TOUCH", "CLIENT NO-TOUCH x", "CLIENT NO-TOUCH on", "CLIENT NO-TOUCH OFF"),
}
# Redis 8 leaves a wrong password without an answer if there are answers that it has not sent. We answer each request.
UNTIL_8 = {"AUTH foo bar"}


def asked(conversation):
    """Of requests with a | between them those that this judge answers as we do."""
    others = UNTIL_8 if version() >= (8,) else SINCE_8
    return [words for words in conversation.strip().replace("\n", "|").split("|") if words not in others]


# What is asked last: an open transaction is over then, and behind its answer nothing follows.
END = b"*1\r\n$7\r\nDISCARD\r\n*2\r\n$4\r\nECHO\r\n$15\r\nthat was it all\r\n"
ENDED = b"$15\r\nthat was it all\r\n"


def is_up(process, port):
    """Waits until somebody answers: bounded by the process's life, not by a clock."""
    while True:
        assert process.poll() is None, "the server ended at once"
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.01)


class Redis:
    """redis-server, without files."""

    def __init__(self, folder, *flags):
        self.port = free_port()
        command = [REDIS, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        command += ["--dir", str(folder), "--loglevel", "warning", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        is_up(self.process, self.port)

    def end(self):
        self.process.terminate()
        return self.process.wait()


def request(*words):
    """A request as clients send it."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def line(text):
    """A request of words with one space between two of them."""
    return request(*text.split(" "))


def converse(port, text, piece=1 << 16):
    """All that is answered to a text, up to the end of the connection or of the text."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(120)
        said = text + END
        answers = b""
        try:
            for start in range(0, len(said), piece):
                connection.sendall(said[start : start + piece])
        except OSError:
            pass  # The server closed first: its answers tell.
        try:
            while not answers.endswith(ENDED):
                more = connection.recv(1 << 16)
                if not more:
                    break
                answers += more
        except ConnectionResetError:
            pass
    return answers.removesuffix(ENDED)


def answers_to(server, requests):
    """The answers of an empty server."""
    converse(server.port, line("FLUSHALL"))
    return converse(server.port, b"".join(requests))


def differ(pair, requests):
    redis, ours = (answers_to(server, requests) for server in pair)
    return redis != ours


def least(pair, requests):
    """Requests that cannot be spared to see the difference."""
    size = len(requests)
    while size := size // 2:
        start = 0
        while start < len(requests):
            fewer = requests[:start] + requests[start + size :]
            if differ(pair, fewer):
                requests = fewer
            else:
                start += size
    return requests


def judge(pair, requests):
    if differ(pair, requests):
        # Moments in seconds differ if one begins in between, or half of one: Redis rounds them. So again, early in a second, and
        # several times: a busy machine takes long.
        for _ in range(10):
            time.sleep(1.1 - time.time() % 1)
            if not differ(pair, requests):
                return
        requests = least(pair, requests)
        redis, ours = (answers_to(server, requests) for server in pair)
        assert ours == redis, requests
