"""Passwords that a peer may guess: so many in a minute, by however many connections, in whichever protocol."""

import http.client
import re
import socket

import conftest
from judge import converse
from redis_judge import request as redis
from test_binary import NOOP, answers, request
from test_security import AUTH, login, passwords  # noqa: F401 (a fixture)

RIGHT = login("ann", "secret")
STORED, FAILURE = b"STORED\r\n", b"CLIENT_ERROR authentication failure\r\n"
ONE, OTHER = "127.0.0.1", "127.0.0.2"


def say(server, text, peer=ONE):
    """What is answered to a client of that address before its connection ends."""
    with socket.create_connection(server.address, source_address=(peer, 0)) as connection:
        connection.settimeout(120)
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        return connection.makefile("rb").read()


def exhaust(server, limit):
    """Guesses until a right password is refused. A minute may be over amidst that, and then it begins again; that does
    not happen a hundred times."""
    for turn in range(100):
        if say(server, RIGHT) == FAILURE:
            return
        for guess in range(limit):
            assert say(server, login("ann", f"guess {turn}.{guess}")) == FAILURE
    raise AssertionError("guesses without end")


def refuses(server, limit, text, refused, admitted):
    """True if who guessed too often is answered so. Were the minute over by then, it would be admitted: again."""
    while True:
        exhaust(server, limit)
        said = say(server, text)
        if said != admitted:
            return said == refused


def others_stats(server):
    """As a client of another address, who logs in."""
    return say(server, RIGHT + b"stats\r\n", OTHER).decode()


def test_who_guessed_too_often_is_refused_and_others_are_not(start, passwords, tmp_path):  # noqa: F811
    log = tmp_path / "log"
    server = start("-Y", str(passwords), "-o", "login_guesses=5", "--log", str(log))
    # The connection ends with the refusal.
    text = RIGHT + b"get a\r\n"
    assert refuses(server, 5, text, FAILURE, STORED + b"END\r\n")
    assert say(server, text, OTHER) == STORED + b"END\r\n"
    limited = int(re.search(r"STAT auth_limited (\d+)", others_stats(server))[1])
    errors = int(re.search(r"STAT auth_errors (\d+)", others_stats(server))[1])
    assert limited >= 2 and errors >= limited + 5
    conftest.said(log, "too many wrong passwords")
    lines = [line for line in log.read_text().splitlines() if "too many wrong passwords" in line]
    assert lines and all("127.0.0.1" in line and "127.0.0.1:" not in line for line in lines), lines
    assert "guess 0.0" not in log.read_text(), "the log has no passwords"


def test_every_protocol_counts_and_refuses(start, passwords):  # noqa: F811
    server = start("-Y", str(passwords), "-B", "any", "-o", "login_guesses=3")
    def sasl(password):
        return request(AUTH, b"PLAIN", b"", b"\0ann\0" + password)
    ways = [
        lambda password: login("ann", password.decode()),
        sasl,
        lambda password: redis(b"AUTH", b"ann", password),
    ]
    for number, way in enumerate(ways):
        peer = f"127.0.0.{10 + number}"
        for turn in range(100):
            for guess in range(3):
                say(server, way(b"guess %d" % (3 * turn + guess)), peer)
            if say(server, RIGHT, peer) == FAILURE:
                break
        assert turn < 99, number
    admitted = say(server, redis(b"AUTH", b"ann", b"secret") + redis(b"GET", b"a"), OTHER)
    assert admitted == b"+OK\r\n$-1\r\n"
    wrong = say(server, redis(b"AUTH", b"ann", b"wrong"), OTHER)
    assert refuses(server, 3, redis(b"AUTH", b"ann", b"secret") + redis(b"GET", b"a"), wrong, admitted)
    wrong, text = say(server, sasl(b"wrong"), OTHER), sasl(b"secret") + request(NOOP)
    assert refuses(server, 3, text, wrong, say(server, text, OTHER))


def test_an_old_password_again_and_again_keeps_nobody_out(start, passwords):  # noqa: F811
    server = start("-Y", str(passwords), "-o", "login_guesses=3")
    for _ in range(50):
        assert say(server, login("ann", "old") + login("bob", "old")) == FAILURE * 2
    assert say(server, RIGHT) == STORED


def test_the_limit_can_be_lifted(start, passwords):  # noqa: F811
    server = start("-Y", str(passwords), "-o", "login_guesses=0")
    for number in range(200):
        assert say(server, login("ann", f"guess {number}")) == FAILURE
    assert say(server, RIGHT) == STORED
    assert "STAT auth_limited 0\r\n" in others_stats(server)


def test_metrics_tell_them_apart(start, passwords, tmp_path):  # noqa: F811
    log = tmp_path / "log"
    server = start("-Y", str(passwords), "-o", "login_guesses=2", "--metrics", "127.0.0.1:0", "--log", str(log), "-v")
    exhaust(server, 2)
    stats = dict(re.findall(r"STAT (auth_\w+) (\d+)", others_stats(server)))
    port = int(conftest.said(log, r"metrics at http://127.0.0.1:(\d+)/")[1])
    scrape = http.client.HTTPConnection("127.0.0.1", port)
    scrape.request("GET", "/metrics")
    found = dict(re.findall(r'nuthatch_logins_total\{result="(\w+)"\} (\d+)', scrape.getresponse().read().decode()))
    counts = {name: int(count) for name, count in found.items()}
    assert counts["limited"] == int(stats["auth_limited"]) >= 1
    assert counts["refused"] == int(stats["auth_errors"]) - counts["limited"] >= 2
    assert counts["admitted"] == int(stats["auth_cmds"]) - int(stats["auth_errors"])
