"""Metrics: as Prometheus reads them, beside what `stats` says."""

import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time

import conftest
import pytest
from conftest import ENGINE, NUTHATCH, ROOT
from judge import converse
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus
from test_restart import NAMED
from test_security import certificates, tls_flags  # noqa: F401 (a fixture)

OPENMETRICS = "application/openmetrics-text; version=1.0.0,text/plain;q=0.5"


@pytest.fixture
def scraped(start, tmp_path):
    server = start("--metrics", "127.0.0.1:0", "--log", str(tmp_path / "log"), "-v")
    address = conftest.said(tmp_path / "log", r"metrics at http://127.0.0.1:(\d+)/metrics")
    return server, ("127.0.0.1", int(address[1]))


def get(address, path, accept="*/*", method="GET"):
    connection = http.client.HTTPConnection(*address, timeout=60)
    connection.request(method, path, headers={"Accept": accept})
    answer = connection.getresponse()
    return answer.status, answer.getheader("content-type"), answer.read().decode()


def samples(families):
    return {(one.name, *sorted(one.labels.items())): one.value for family in families for one in family.samples}


def scrape(address):
    """What both formats say, without what changes from moment to moment."""
    status, kind, text = get(address, "/metrics")
    assert status == 200 and kind.startswith("text/plain; version=0.0.4")
    plain = samples(prometheus(text))
    status, kind, text = get(address, "/metrics", OPENMETRICS)
    assert status == 200 and kind.startswith("application/openmetrics-text")
    families = list(openmetrics(text))
    assert all(family.documentation for family in families)
    return {key: plain[key] for key in plain if "cpu" not in key[0] and "resident" not in key[0]}, samples(families)


def latencies_of_gets(found):
    """How many there were, by their size."""
    return {key[-1][1]: found[key] for key in found if key[:2] == ("nuthatch_request_duration_seconds_count", ("command", "get"))}


def test_both_formats_say_what_stats_says(scraped):
    server, address = scraped
    converse(server.address, b"set a 0 0 1\r\nx\r\nget a\r\nget b\r\ndelete b\r\nincr a 1\r\n")
    # A worker notes the time of what it has answered, and that a client left, a moment later.
    while True:
        plain, found = scrape(address)
        if latencies_of_gets(found) and sum(latencies_of_gets(found).values()) == 2 and scrape(address)[0] == plain:
            break
    assert plain.keys() <= found.keys() and all(plain[key] == found[key] for key in plain)
    stats = dict(line.split()[1:] for line in converse(server.address, b"stats\r\n").decode().splitlines()[:-1])
    hit = ("nuthatch_commands_total", ("command", "get"), ("result", "hit"))
    assert found[hit] == int(stats["get_hits"]) == 1
    assert found[("nuthatch_items",)] == int(stats["curr_items"]) == 1
    assert found[("nuthatch_memory_limit_bytes",)] == 64 << 20
    counts = latencies_of_gets(found)
    assert counts["64B"] == counts["none"] == 1


def get_when_served(address, path):
    """Whoever is displaced by others asks again."""
    end = time.monotonic() + 120
    while True:
        try:
            return get(address, path)
        except OSError:
            assert time.monotonic() < end, "nobody is served"
            time.sleep(0.05)


def test_what_is_no_scrape(scraped):
    _, address = scraped
    assert get(address, "/healthz")[::2] == (200, "ok\n")
    assert get(address, "/metrics", method="HEAD")[::2] == (200, "")
    assert get(address, "/")[0] == 404
    assert get(address, "/metrics", method="POST")[0] == 405
    for odd in [b"get a\r\n\r\n", b"\0" * 100, b"GET /" + b"x" * 9000]:
        with socket.create_connection(address) as connection:
            connection.sendall(odd)
            assert connection.recv(1000).startswith(b"HTTP/1.1 400")
    # Those who say nothing keep nobody from scraping.
    silent = [socket.create_connection(address) for _ in range(5)]
    assert get_when_served(address, "/metrics")[0] == 200
    assert len(silent) == 5


def test_who_does_not_read_keeps_nobody_from_scraping():
    """A byte now and then keeps a client's time going, and the page is longer than what the kernel takes for it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        # Its connections have that, too.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        words = ["metrics", str(listening.fileno()), NUTHATCH, "-l", "127.0.0.1", "-p", "0"]
        server = subprocess.Popen([sys.executable, "-c", NAMED, *words], pass_fds=[listening.fileno()], stderr=subprocess.DEVNULL)
        assert get_when_served(address, "/healthz")[0] == 200
        slow, stop = [], threading.Event()
        for _ in range(70):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.connect(address)
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            # Its answer has begun.
            assert client.recv(1) == b"H"
            slow.append(client)

        def trickle():
            while not stop.wait(0.5):
                for client in slow:
                    with contextlib.suppress(OSError):
                        client.recv(500, socket.MSG_DONTWAIT)

        trickling = threading.Thread(daemon=True, target=trickle)
        trickling.start()
        try:
            # The thread of the first one may not have ended yet: within ten looks it has.
            answers = []
            for _ in range(10):
                with contextlib.suppress(OSError):
                    answers.append(get(address, "/metrics")[0])
                time.sleep(0.2)
            assert 200 in answers
        finally:
            stop.set()
            trickling.join()
            for client in slow:
                client.close()
            server.terminate()
            server.wait()


def test_an_address_that_is_taken_is_told(scraped):
    _, address = scraped
    command = [NUTHATCH, "-l", "127.0.0.1", "-p", "-1", "--metrics", f"127.0.0.1:{address[1]}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1 and "--metrics: cannot listen" in ended.stderr


def test_latencies(scraped):
    server, _ = scraped
    converse(server.address, b"set a 0 0 1\r\nx\r\n" * 50 + b"get a\r\n" * 100)
    # The worker notes them when they have been answered.
    found = {}
    while (found.get("get_count"), found.get("set_count"), found.get("other_count")) != ("100", "50", "0"):
        said = converse(server.address, b"stats latency\r\n").decode().splitlines()
        found = dict(line.split()[1:] for line in said[:-1])
    assert 0 < float(found["get_p50_us"]) <= float(found["get_p999_us"])
    assert found["get_64B_count"] == "100" and "get_4KiB_count" not in found and found["get_miss_count"] == "0"


def test_clients_that_ask_slowly_do_not_keep_others_out(scraped):
    """Each sends a byte now and then, and as many as are served at a time."""
    _, address = scraped
    slow = [socket.create_connection(address) for _ in range(70)]
    served = False
    # Ends when they have been given up: this many bytes are not a request.
    for _ in range(100):
        for client in slow:
            with contextlib.suppress(OSError):
                client.sendall(b"G")
        time.sleep(0.2)
        with contextlib.suppress(OSError, http.client.HTTPException):
            served = get(address, "/healthz")[0] == 200
        if served:
            break
    for client in slow:
        client.close()
    assert served


def test_silent_connections_turn_nobody_away(scraped):
    _, address = scraped
    silent = [socket.create_connection(address) for _ in range(70)]
    for _ in range(20):
        assert get(address, "/healthz")[::2] == (200, "ok\n")
    # Those that had been silent for longest had to go.
    assert not silent[0].recv(1000).startswith(b"HTTP/1.1 200")
    for client in silent:
        client.close()


def test_clients_that_do_not_close_behind_their_answer_turn_nobody_away(scraped):
    _, address = scraped
    # More than there are places: one that has its answer gives its place to the next.
    answered = []
    for _ in range(70):
        client = socket.create_connection(address)
        client.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        while client.recv(1000):
            pass
        answered.append(client)
    for _ in range(20):
        assert get(address, "/healthz")[::2] == (200, "ok\n")
    for client in answered:
        client.close()


def exported(start, tmp_path, *flags):
    """The names of all families of a server with such flags, and of their labels."""
    log = tmp_path / f"log{len(flags)}"
    start("--metrics", "127.0.0.1:0", "--log", str(log), "-v", *flags)
    address = conftest.said(log, r"metrics at http://127.0.0.1:(\d+)/metrics")
    families = list(openmetrics(get(("127.0.0.1", int(address[1])), "/metrics", OPENMETRICS)[2]))
    return {family.name: {label for one in family.samples for label in one.labels} for family in families}


def test_the_dashboard_shows_every_metric(start, certificates, tmp_path):  # noqa: F811
    dashboard = json.loads((ROOT / "dist/grafana/nuthatch.json").read_text())
    panels = dashboard["panels"]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    shown = {re.sub("_(total|bucket)$", "", name) for query in queries for name in re.findall(r"nuthatch_\w+", query)}
    found = exported(start, tmp_path, "--save", str(tmp_path / "saved"), "-U", "-1")
    found |= exported(start, tmp_path, *tls_flags(certificates))
    assert set(found) - shown == set()
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (place["x"] + x, place["y"] + y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(set(cells)) == len(cells), "two panels are in the same place"
    # Other engines have no log, and some do not tell what their memory is used for.
    if ENGINE != "cuckoo":
        return
    assert shown - set(found) == set()
    labels = set().union(*found.values()) | {"instance"}
    for query in queries:
        grouped = ",".join(re.findall(r"(?:by|ignoring|without) \(([^)]*)\)", query))
        used = set(re.findall(r"(\w+)=~?\"|(\w+)!~?\"", query)) | {(name.strip(), "") for name in grouped.split(",")}
        assert {one or other for one, other in used} - {""} <= labels, query
