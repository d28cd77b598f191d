"""Counters: what clients of each protocol asked for, several at a time, is what `stats` and the metrics add up to."""

import contextlib
import shutil
import socket
import ssl
import struct
import subprocess
import threading

import conftest
import pytest
from judge import converse
from test_binary import DELETE, GET, INCR, SET, TOUCH, delta, request, seconds, store
from test_metrics import OPENMETRICS, get, openmetrics, samples
from test_security import certificates, tls_flags  # noqa: F401 (a fixture)

CLIENTS, ROUNDS = 4, 60


def resp(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


# What one client sends in a round, and how many bytes of answers there are. Keys are a client's own.
TEXT = b"".join(
    b"%b\r\n" % line
    for line in [
        b"set n%(me)d 0 0 1", b"5", b"get n%(me)d none", b"gets n%(me)d", b"gat 0 n%(me)d none", b"touch n%(me)d 0", b"touch none 0",
        b"incr n%(me)d 1", b"incr none 1", b"decr n%(me)d 1", b"decr none 1", b"cas none 0 0 1 1", b"5", b"cas n%(me)d 0 0 1 1", b"5",
        b"delete none", b"delete n%(me)d",
    ]
)
META = b"ms n%(me)d 1\r\n5\r\nmg n%(me)d v\r\nmg none v\r\nma n%(me)d\r\nma none\r\nma n%(me)d MD\r\nmd none\r\nmd n%(me)d\r\n"


def binary(me):
    key = b"n%d" % me
    return [store(SET, key, b"5"), request(GET, key), request(GET, b"none"), seconds(TOUCH, key, 0), seconds(TOUCH, b"none", 0),
            delta(INCR, key), delta(INCR, b"none", exptime=0xFFFFFFFF), request(DELETE, b"none"), request(DELETE, key)]


def redis(me):
    key = b"n%d" % me
    return [resp(b"SET", key, b"5"), resp(b"GET", key), resp(b"MGET", key, b"none"), resp(b"INCR", key),
            resp(b"DECR", key), resp(b"DEL", b"none"), resp(b"DEL", key), resp(b"EXISTS", b"none")]


COUNTED = {
    # A gat is a touch, as memcached counts it.
    "text": {"get_hits": 2, "get_misses": 1, "cmd_set": 3, "touch_hits": 2, "touch_misses": 2, "cmd_touch": 4, "incr_hits": 1,
             "incr_misses": 1, "decr_hits": 1, "decr_misses": 1, "cas_misses": 1, "cas_badval": 1, "delete_hits": 1, "delete_misses": 1},
    "meta": {"get_hits": 1, "get_misses": 1, "cmd_set": 1, "incr_hits": 1, "incr_misses": 1, "decr_hits": 1, "delete_hits": 1,
             "delete_misses": 1, "cmd_meta": 8},
    "binary": {"get_hits": 1, "get_misses": 1, "cmd_set": 1, "touch_hits": 1, "touch_misses": 1, "cmd_touch": 2, "incr_hits": 1,
               "incr_misses": 1, "delete_hits": 1, "delete_misses": 1},
    "redis": {"get_hits": 2, "get_misses": 1, "cmd_set": 1, "incr_hits": 1, "decr_hits": 1, "delete_hits": 1, "delete_misses": 1,
              "look_misses": 1, "redis_commands": 8},
}
COUNTED["udp"] = COUNTED["tls"] = COUNTED["text"]

# Names of the metric's labels, beside those of `stats`.
RESULTS = {"hits": "hit", "misses": "miss", "badval": "badval"}


def until(file, last):
    """Reads lines to this one."""
    while (line := file.readline()) != last:
        assert line, "the server has closed the connection"


def talk(server, protocol, me, folder):
    """One client's rounds; each waits for its last answer, which is that of the last command."""
    if protocol == "udp":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(60)
            for number in range(ROUNDS):
                client.sendto(struct.pack(">HHHH", number, 0, 1, 0) + TEXT % {b"me": me}, ("127.0.0.1", server.told["UDP INET"]))
                assert client.recv(2000).endswith(b"NOT_FOUND\r\nDELETED\r\n")
        return
    port = server.told["REDIS INET"] if protocol == "redis" else server.port
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        client.settimeout(60)
        if protocol == "tls":
            trusting = ssl.create_default_context(cafile=str(folder / "ca.pem"))
            client = stack.enter_context(trusting.wrap_socket(client, server_hostname="localhost"))
        file = client.makefile("rb")
        for _ in range(ROUNDS):
            if protocol in ("text", "tls", "meta"):
                client.sendall((META if protocol == "meta" else TEXT) % {b"me": me} + b"mn\r\n")
                until(file, b"MN\r\n")
            elif protocol == "binary":
                asked = binary(me)
                client.sendall(b"".join(asked))
                for _ in asked:
                    file.read(int.from_bytes(file.read(24)[8:12], "big"))
            else:
                asked = redis(me)
                client.sendall(b"".join(asked) + resp(b"ECHO", b"end of this round"))
                until(file, b"end of this round\r\n")


def stats(server, folder, protocol):
    if protocol != "tls":
        told = converse(server.address, b"stats\r\n")
    else:
        trusting = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        with socket.create_connection(server.address) as plain, trusting.wrap_socket(plain, server_hostname="localhost") as client:
            client.sendall(b"stats\r\nquit\r\n")
            told = client.makefile("rb").read()
    return dict(line.split(" ", 2)[1:] for line in told.decode().splitlines() if line.startswith("STAT"))


@pytest.mark.parametrize("protocol", ["text", "meta", "binary", "redis", "udp", "tls"])
def test_sums_are_exact_under_a_scrape(start, certificates, tmp_path, protocol):  # noqa: F811
    log = tmp_path / "log"
    more = {"redis": ["--redis-port", "0"], "udp": ["-U", "-1"], "tls": tls_flags(certificates)}.get(protocol, [])
    server = start("-m", "16", "-t", "2", "--metrics", "127.0.0.1:0", "--log", str(log), "-v", *more)
    address = conftest.said(log, r"metrics at http://127.0.0.1:(\d+)/metrics")
    address = ("127.0.0.1", int(address[1]))
    failed, done = [], threading.Event()

    def client(me):
        try:
            talk(server, protocol, me, certificates)
        except BaseException as error:  # noqa: BLE001 (told below, whatever it is)
            failed.append(error)

    pages = []

    def scrape():
        while not done.is_set():
            pages.append(get(address, "/metrics")[2])
            samples(openmetrics(get(address, "/metrics", OPENMETRICS)[2]))

    scraping = threading.Thread(daemon=True, target=scrape)
    clients = [threading.Thread(daemon=True, target=client, args=(me,)) for me in range(CLIENTS)]
    for thread in [scraping, *clients]:
        thread.start()
    for thread in clients:
        thread.join()
    done.set()
    scraping.join()
    assert not failed and len(pages) > 0
    # A page that was made amidst all that is as it should be, too.
    if shutil.which("promtool"):
        for page in [pages[0], pages[-1]]:
            checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False)
            assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")

    times = CLIENTS * ROUNDS
    # `mn` is a meta command as well.
    extra = {"cmd_meta": times} if protocol in ("text", "tls", "meta") else {}
    extra |= {"redis_commands": times} if protocol == "redis" else {}
    names = {name for counted in COUNTED.values() for name in counted}
    wanted = {name: COUNTED[protocol].get(name, 0) * times + extra.get(name, 0) for name in names}
    wanted["cmd_get"] = wanted["get_hits"] + wanted["get_misses"]
    told = stats(server, certificates, protocol)
    assert {name: int(told[name]) for name in wanted} == wanted
    assert int(told["curr_items"]) == 0 and int(told["total_items"]) >= wanted["cmd_set"] // 3
    found = samples(openmetrics(get(address, "/metrics", OPENMETRICS)[2]))
    commands = {key: count for key, count in found.items() if key[0] == "nuthatch_commands_total"}
    assert commands, found.keys()

    def counted(command, result):
        return sum(count for key, count in commands.items() if ("command", command) in key and ("result", result) in key)

    for command in ["get", "delete", "incr", "decr", "touch"]:
        for ending, result in [("hits", "hit"), ("misses", "miss")]:
            assert counted(command, result) == wanted[f"{command}_{ending}"], (command, result, commands)
