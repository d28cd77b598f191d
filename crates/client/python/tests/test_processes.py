"""Clients and processes: forks, signals, ends, copies, and what they leave behind."""

import copy
import os
import pickle
import threading

import pytest
from conftest import python

import nuthatch


@pytest.mark.parametrize("by", ["address", "memory"])
def test_a_child_has_connections_of_its_own(server, by):
    """While a thread of the parent is in a call, and the child calls as a parent's thread might have."""
    client = nuthatch.Client(getattr(server, by))
    client.set("k", "v")
    stop = threading.Event()

    def work():
        while not stop.is_set():
            client.get("k")
            client.touch("k", 600)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    codes = []
    for _ in range(20):
        child = os.fork()
        if child == 0:
            right = all(client.get("k") == b"v" and client.touch("k", 600) for _ in range(10))
            client.close()
            os._exit(0 if right and client.get("k") == b"v" else 1)
        codes.append(os.waitpid(child, 0)[1])
    stop.set()
    for thread in threads:
        thread.join()
    # The parent's connection has seen nothing of it.
    assert codes == [0] * 20 and client.get("k") == b"v"


def test_a_signal_ends_a_wait(silent_port):
    script = """
import signal, sys, time, nuthatch
client = nuthatch.Client(f"127.0.0.1:{sys.argv[1]}", timeout=1)
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    client.get("k")
except KeyboardInterrupt:
    print("interrupted")
"""
    assert python(script, silent_port) == "interrupted\n"


def test_a_signal_ends_a_wait_for_another_process(server):
    """Which may have a lease of any length."""
    script = """
import signal, sys, nuthatch
client = nuthatch.Client(sys.argv[1])
signal.signal(signal.SIGALRM, signal.default_int_handler)
def wait():
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    client.get_or_compute("waited for", lambda: b"both compute", lease=3600)
try:
    client.get_or_compute("waited for", wait, lease=3600)
except KeyboardInterrupt:
    # It has left the place that it had, too.
    print(client.get_or_compute("waited for", lambda: b"the next one", lease=3600))
"""
    assert python(script, server.address) == "b'the next one'\n"


@pytest.mark.parametrize(
    "leave",
    [
        "",
        "sys.exit(0)",
        "os._exit(0)",
        "threading.Thread(target=lambda: [client.get('k') for _ in range(10**9)], daemon=True).start()",
    ],
)
def test_an_interpreter_ends_with_open_clients(server, leave):
    script = f"""
import os, sys, threading, nuthatch
client = nuthatch.Client(sys.argv[1])
direct = nuthatch.Direct(sys.argv[2])
cache = nuthatch.Cache()
client.set("k", 1)
assert direct.get("k") == b"1"
{leave}
"""
    python(script, server.address, server.shared)


def test_a_client_is_not_copied(client):
    for make in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a client cannot be pickled: it belongs to its process"):
            make(client)


def test_subinterpreters_are_refused(server):
    script = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import nuthatch
other = interpreters.create()
code = "try:\\n import nuthatch\\nexcept ImportError as error:\\n assert 'subinterpreters' in str(error), error\\nelse:\\n raise AssertionError"
failed = interpreters.run_string(other, code)
assert failed is None, failed
print("refused")
"""
    assert python(script) == "refused\n"


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_nothing_is_left_behind(client, server):
    """Memory does not grow with calls: of each kind, of errors, and of clients that were closed."""
    import gc
    import tracemalloc

    direct, cache = nuthatch.Direct(server.shared), nuthatch.Cache(4 << 20)
    client.set("k", bytes(1000))
    cache.set("k", bytes(1000))

    def calls(count):
        for _ in range(count):
            direct.get("k")
            direct.get("none")
            cache.get("k")
            cache.set("k", b"x" * 1000)
        for _ in range(count // 20):
            client.get("k")
            client.get_many(["k", "none"])
            client.set("k", bytes(1000))
            for wrong in ("", None):
                with pytest.raises((ValueError, TypeError)):
                    client.get(wrong)
        for _ in range(count // 1000):
            nuthatch.Client(server.address).get("k")
            nuthatch.Direct(server.shared).get("k")

    calls(20_000)
    gc.collect()
    tracemalloc.start()
    traced, before = tracemalloc.get_traced_memory()[0], resident()
    tracemalloc.stop()
    calls(60_000)
    gc.collect()
    grown = resident() - before
    tracemalloc.start()
    now = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown < 4 << 20 and now - traced < 1 << 20, (grown, now - traced)
