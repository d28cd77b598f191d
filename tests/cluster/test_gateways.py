"""The distributed store under a launcher: what one gateway stores, the other finds."""

import os
import pathlib
import re
import signal
import subprocess
import threading

import pytest
from jobs import NUTHATCH_PE, ROOT, Job, children
from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheServerError, MemcacheUnexpectedCloseError

@pytest.fixture(scope="module", params=["dedicated", "co-located"])
def job(request):
    running = Job(request.param, "-I", "2m")
    yield running
    assert running.end() == 0


@pytest.fixture
def pair(job):
    clients = job.clients()
    clients[0].flush_all()
    yield clients
    for client in clients:
        client.close()


def test_one_sets_the_other_gets(pair):
    one, other = pair
    assert one.set("k", b"value")
    assert other.get("k") == b"value"
    assert other.set("k", b"another")
    assert one.get("k") == b"another"
    assert one.delete("k")
    assert other.get("k") is None


def test_values_of_a_megabyte(pair):
    one, other = pair
    values = {f"large{number}": os.urandom(1 << 20) for number in range(4)}
    for key, value in values.items():
        assert one.set(key, value)
    assert other.get_many(list(values)) == values


def test_a_value_over_the_largest_block_is_refused(pair):
    one, other = pair
    with pytest.raises(MemcacheServerError, match="too large"):
        one.set("k", bytes(3 << 20))
    assert other.get("k") is None


def test_a_thousand_keys(pair):
    one, other = pair
    values = {f"key{number}": str(number).encode() for number in range(1000)}
    assert one.set_many(values) == []
    assert other.get_many(list(values)) == values
    # What a flush left behind counts until it is swept, as with memcached.
    assert other.stats()[b"curr_items"] >= 1000


def test_flush_all_is_for_everybody(pair):
    one, other = pair
    one.set("k", b"v")
    assert other.get("k") == b"v"
    assert one.flush_all()
    assert other.get("k") is None and one.get("k") is None


def test_increments_by_both_at_once(pair):
    pair[0].set("n", b"0")
    adders = [
        threading.Thread(daemon=True, target=lambda client=client: [client.incr("n", 1) for _ in range(300)])
        for client in pair
    ]
    for adder in adders:
        adder.start()
    for adder in adders:
        adder.join()
    assert [client.get("n") for client in pair] == [b"600", b"600"]


def test_cas_is_won_by_one(pair):
    one, other = pair
    one.set("k", b"v")
    _, unique = one.gets("k")
    assert other.gets("k") == (b"v", unique)
    assert other.cas("k", b"other", unique) is True
    assert one.cas("k", b"one", unique) is False
    assert one.get("k") == b"other"


def test_what_one_pe_cannot_do_ends_all():
    command = ["oshrun", "--oversubscribe", "-n"]
    flags = [NUTHATCH_PE, "--servers", "1", "-m", "64", "-l"]
    for words in (
        # The third gateway would have port 65536.
        ["4", *flags, "127.0.0.1:65534"],
        # A name that one PE alone cannot resolve: the others have begun.
        ["2", *flags, "127.0.0.1", "-p", "0", ":", "-n", "1", *flags, "no-such-name.invalid", "-p", "0"],
    ):
        # A bound for a job that hangs.
        ended = subprocess.run([*command, *words], capture_output=True, text=True, timeout=120)
        assert ended.returncode != 0
        assert "65536" in ended.stderr or "-l no-such-name.invalid: " in ended.stderr, ended.stderr


def test_sigterm_to_any_pe_ends_all_in_order():
    job = Job("dedicated")
    # The first are servers and the last are gateways: each hears of it by the store's own memory.
    os.kill(max(job.pes()), signal.SIGTERM)
    assert job.process.wait() == 0


def test_a_pe_that_is_killed_ends_the_job_with_an_error():
    job = Job("dedicated")
    one, other = job.clients()
    one.set("k", b"v")
    os.kill(max(job.pes()), signal.SIGKILL)
    assert job.process.wait() != 0
    # Clients see closed connections.
    for client in (one, other):
        with pytest.raises((OSError, MemcacheUnexpectedCloseError)):
            client.get("k")


@pytest.mark.parametrize(("flags", "says"), [(("-m", "32"), "memory 33554432"), (("-t", "2"), "sessions 2"), (("-I", "2m"), "item_size_max")])
def test_other_flags_of_one_pe_end_the_job_and_are_named(flags, says):
    one = [NUTHATCH_PE, "--servers", "1", "-l", "127.0.0.1", "-p", "0", "-m", "64", "-t", "1"]
    # A bound for a job that hangs.
    ended = subprocess.run(
        ["oshrun", "--oversubscribe", "-n", "1", *one, ":", "-n", "1", *one, *flags],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 2
    assert re.search(f"PE 1 has other settings than PE 0.*{says}", ended.stderr), ended.stderr


def supervise(*flags):
    """A supervisor of one server and one gateway, on any free port."""
    return subprocess.Popen(
        [ROOT / "scripts/cluster.sh", "-p", "0", "-m", "16", *flags],
        env={**os.environ, "SERVERS": "1", "GATEWAYS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_gateway(supervisor):
    """A client of the next job that it starts, which is empty."""
    for line in supervisor.stderr:
        if found := re.search(r"gateway at \S+:(\d+)", line):
            client = Client(("127.0.0.1", int(found[1])), default_noreply=False)
            assert client.get("k") is None
            assert client.set("k", b"v")
            return client


def test_the_supervisor_starts_a_killed_job_again_and_leaves_nothing():
    kept = set(pathlib.Path("/dev/shm").glob("nuthatch-cluster.*"))
    supervisor = supervise()
    wait_for_gateway(supervisor).close()
    launcher = children(supervisor.pid)[0]
    os.kill(max(children(launcher)), signal.SIGKILL)
    wait_for_gateway(supervisor).close()
    threading.Thread(target=supervisor.stderr.read, daemon=True).start()
    supervisor.terminate()
    assert supervisor.wait() == 0
    assert set(pathlib.Path("/dev/shm").glob("nuthatch-cluster.*")) <= kept


@pytest.mark.parametrize(
    ("flags", "place"), [((), "127.0.0.1"), (("-l", "0.0.0.0"), "0.0.0.0"), (("--listen=0.0.0.0", "--co-located"), "0.0.0.0")]
)
def test_the_supervisor_passes_on_where_to_listen_and_who_serves(flags, place):
    supervisor = supervise(*flags)
    gateways = 2 if "--co-located" in flags else 1
    said, places = [], []
    while len(places) < gateways and not any("another one" in line for line in said):
        said.append(supervisor.stderr.readline())
        assert said[-1], said
        places += re.findall(r"gateway at (.*):\d+$", said[-1])
    threading.Thread(target=supervisor.stderr.read, daemon=True).start()
    supervisor.terminate()
    assert supervisor.wait() == 0
    assert places == [place] * gateways, said


def test_a_supervisor_that_is_killed_takes_the_job_with_it():
    kept = set(pathlib.Path("/dev/shm").glob("nuthatch-cluster.*"))
    supervisor = supervise()
    client = wait_for_gateway(supervisor)
    supervisor.kill()
    # All that write there have ended then.
    supervisor.stderr.read()
    with pytest.raises((OSError, MemcacheUnexpectedCloseError)):
        client.get("k")
    # Nobody is left to remove its directory, in which there is nothing.
    for directory in set(pathlib.Path("/dev/shm").glob("nuthatch-cluster.*")) - kept:
        directory.rmdir()


def test_the_supervisor_leaves_nothing_when_it_is_told_twice(tmp_path):
    kept = set(pathlib.Path("/dev/shm").glob("nuthatch-cluster.*"))
    # Takes what it is to remove when the second signal has come.
    slow = tmp_path / "rm"
    slow.write_text('#!/bin/sh\necho removes >&2\nread -r _\nexec /bin/rm "$@"\n')
    slow.chmod(0o755)
    supervisor = subprocess.Popen(
        [ROOT / "scripts/cluster.sh"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "NUTHATCH_PE": "/bin/false"},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    for awaited in ("another one in", "removes"):
        assert any(awaited in line for line in supervisor.stderr)
        os.killpg(supervisor.pid, signal.SIGTERM)
    supervisor.communicate("\n")
    assert set(pathlib.Path("/dev/shm").glob("nuthatch-cluster.*")) <= kept


def test_the_supervisor_does_not_start_again_what_cannot_be():
    # A bound for one that would go on.
    ended = subprocess.run(
        [ROOT / "scripts/cluster.sh", "-m", "garbage"],
        env={**os.environ, "SERVERS": "1", "GATEWAYS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 2
    assert "`garbage` is not a size" in ended.stderr


def test_over_tcp_a_gateway_that_stands_still_stops_nobody_else(monkeypatch):
    """Neither the server nor another gateway waits for it, but a flush, which all must have heard of."""
    monkeypatch.setenv("UCX_TLS", "tcp,self")
    job = Job("three gateways", "-I", "2m", gateways=3)
    # Which port is whose is said with it.
    of_pe = {}
    for line in job.said:
        of_pe |= {int(pe): int(port) for pe, port in re.findall(r"nuthatch-pe (\d+): gateway at \S+:(\d+)", line)}
    one, other, third = [Client(("127.0.0.1", of_pe[pe]), default_noreply=False) for pe in (1, 2, 3)]
    still = sorted(job.pes())[3]
    stop = threading.Event()

    def load():
        number = 0
        while not stop.is_set():
            third.add(f"load{number}", b"x")
            number += 1

    # Words to it are under way when it stops.
    loading = threading.Thread(daemon=True, target=load)
    loading.start()
    for number in range(300):
        one.set(f"key{number % 10}", b"before")
    os.kill(still, signal.SIGSTOP)
    for number in range(1000):
        assert one.set(f"key{number % 10}", str(number).encode())
        assert one.get(f"key{number % 10}") == str(number).encode()
    flushing = threading.Thread(daemon=True, target=other.flush_all)
    flushing.start()
    for number in range(1000):
        assert one.set(f"key{number % 10}", str(number).encode())
        assert one.get(f"key{number % 10}") == str(number).encode()
    assert flushing.is_alive(), "not all have heard of it"
    os.kill(still, signal.SIGCONT)
    flushing.join()
    assert one.get("key1") is None
    stop.set()
    loading.join()
    assert job.end() == 0
