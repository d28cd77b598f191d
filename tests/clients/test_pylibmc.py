"""pylibmc, the client on top of libmemcached: each of its operations, in both of its modes."""

import threading
import time

import pylibmc
import pytest


@pytest.fixture(params=[{}, {"tcp_nodelay": True, "no_block": True, "ketama": True, "cas": True}])
def client(server, request):
    client = pylibmc.Client([f"{server.host}:{server.port}"], behaviors={"cas": True})
    client.behaviors.update(request.param)
    client.flush_all()
    yield client
    client.disconnect_all()


def wait_until(true):
    while not true():
        time.sleep(0.05)


def test_get_set_and_delete(client):
    assert client.get("k") is None
    assert client.set("k", "value")
    assert client.get("k") == "value"
    assert "k" in client
    assert client.delete("k")
    assert not client.delete("k")
    assert client.get("k", 7) == 7


@pytest.mark.parametrize("value", [1, 1 << 40, "text", b"bytes", "ünï", [1, {"a": None}]])
def test_flags_carry_types(client, value):
    assert client.set("typed", value)
    found = client.get("typed")
    assert found == value and type(found) is type(value)


def test_add_replace_append_prepend(client):
    assert not client.replace("k", b"1")
    assert client.add("k", b"1")
    assert not client.add("k", b"2")
    assert client.replace("k", b"2")
    assert client.append("k", b">")
    assert client.prepend("k", b"<")
    assert client.get("k") == b"<2>"


def test_gets_and_cas(client):
    client.set("k", 1)
    value, cas = client.gets("k")
    assert value == 1
    assert client.cas("k", 2, cas)
    assert not client.cas("k", 3, cas)
    assert client.get("k") == 2


def test_incr_and_decr(client):
    client.set("n", 10)
    assert client.incr("n") == 11
    assert client.incr("n", 9) == 20
    assert client.decr("n", 21) == 0
    with pytest.raises(pylibmc.NotFound):
        client.incr("missing")


def test_multi(client):
    values = {f"k{number}": number for number in range(500)}
    assert client.set_multi(values) == []
    assert client.get_multi([*values, "missing"]) == values
    assert client.add_multi({"k0": 1, "new": 2}) == ["k0"]
    assert client.delete_multi(["k1", "k2"])
    assert len(client.get_multi(list(values))) == 498
    assert client.set_multi({"a": 1, "b": 2}, key_prefix="p:") == []
    assert client.get_multi(["a", "b"], key_prefix="p:") == {"a": 1, "b": 2}


def test_touch_and_expiry(client):
    assert not client.touch("k", 100)
    client.set("k", 1, time=1)
    assert client.touch("k", 1000)
    client.set("soon", 1, time=1)
    wait_until(lambda: client.get("soon") is None)
    assert client.get("k") == 1


def test_what_is_dead_on_arrival(client):
    # libmemcached sends -1 as 4294967295: Django does for timeout=0.
    client.set("k", 1)
    client.set("k", 2, time=-1)
    assert client.get("k") is None
    client.set("k", 1)
    client.set("k", 2, time=2**32 - 1)
    assert client.get("k") is None


@pytest.mark.parametrize("size", [0, 1000, 100_000, 2 << 20])
def test_sizes(client, size):
    value = b"\xab\r\n" * (size // 3)
    assert client.set("large", value)
    assert client.get("large") == value


def test_compression(client):
    text = "again and again " * 10_000
    assert client.set("text", text, min_compress_len=100)
    assert client.get("text") == text


def test_too_large(client):
    with pytest.raises(pylibmc.Error):
        client.set("large", bytes(9 << 20))
    client.disconnect_all()
    assert client.set("large", b"small")
    assert client.get("large") == b"small"


def test_noreply(server):
    client = pylibmc.Client([f"{server.host}:{server.port}"], behaviors={"_noreply": True})
    for number in range(1000):
        client.set(f"quiet{number % 10}", number)
    other = pylibmc.Client([f"{server.host}:{server.port}"])
    client.get("quiet9")
    assert other.get("quiet9") == 999


def test_stats(client, server):
    [(name, stats)] = client.get_stats()
    assert str(server.port) in name.decode()
    assert int(stats["limit_maxbytes"]) == 128 << 20


def test_threads_each_with_a_client(server):
    pool = pylibmc.ThreadMappedPool(pylibmc.Client([f"{server.host}:{server.port}"]))
    wrong = []

    def work(thread):
        with pool.reserve() as client:
            for number in range(500):
                client.set(f"t{thread}", number)
                if client.get(f"t{thread}") != number:
                    wrong.append((thread, number))
        pool.relinquish()

    threads = [threading.Thread(daemon=True, target=work, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
