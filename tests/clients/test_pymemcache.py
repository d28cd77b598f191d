"""pymemcache, the pure Python client: each of its operations."""

import time

import pytest
from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient
from pymemcache.exceptions import MemcacheClientError, MemcacheServerError
from pymemcache.serde import pickle_serde


@pytest.fixture
def client(server):
    client = Client(server.address, default_noreply=False)
    client.flush_all()
    yield client
    client.close()


def wait_until(true):
    """Waits for what the server's clock brings about."""
    while not true():
        time.sleep(0.05)


def test_get_and_set(client):
    assert client.get("k") is None
    assert client.get("k", default=b"d") == b"d"
    assert client.set("k", b"value") is True
    assert client.get("k") == b"value"
    assert client.set("k", b"") is True
    assert client.get("k") == b""


def test_bytes_of_all_values(client):
    value = bytes(range(256)) * 3 + b"\r\nEND\r\n"
    client.set("binary", value)
    assert client.get("binary") == value


def test_add_and_replace(client):
    assert client.replace("k", b"1") is False
    assert client.add("k", b"1") is True
    assert client.add("k", b"2") is False
    assert client.replace("k", b"3") is True
    assert client.get("k") == b"3"


def test_append_and_prepend(client):
    assert client.append("k", b"x") is False
    client.set("k", b"middle")
    assert client.append("k", b">") is True
    assert client.prepend("k", b"<") is True
    assert client.get("k") == b"<middle>"


def test_cas(client):
    assert client.gets("k") == (None, None)
    assert client.cas("k", b"1", b"1") is None
    client.set("k", b"1")
    value, cas = client.gets("k")
    assert value == b"1"
    assert client.cas("k", b"2", cas) is True
    assert client.cas("k", b"3", cas) is False
    assert client.get("k") == b"2"
    assert client.gets("k")[1] != cas


def test_many(client):
    values = {f"k{number}": b"%d" % number for number in range(300)}
    assert client.set_many(values) == []
    assert client.get_many([*values, "missing"]) == values
    found = client.gets_many(["k1", "k2", "missing"])
    assert {key: value for key, (value, _) in found.items()} == {"k1": b"1", "k2": b"2"}
    assert client.delete_many(["k1", "k2"]) is True
    assert set(client.get_many(values)) == set(values) - {"k1", "k2"}


def test_delete(client):
    assert client.delete("k") is False
    client.set("k", b"1")
    assert client.delete("k") is True
    assert client.get("k") is None


def test_incr_and_decr(client):
    assert client.incr("n", 1) is None
    client.set("n", b"10")
    assert client.incr("n", 5) == 15
    assert client.decr("n", 6) == 9
    assert client.decr("n", 100) == 0
    client.set("n", b"18446744073709551615")
    assert client.incr("n", 2) == 1
    client.set("n", b"word")
    with pytest.raises(MemcacheClientError, match="non-numeric"):
        client.incr("n", 1)


def test_touch_gat_gats(client):
    assert client.touch("k", 10) is False
    assert client.raw_command("gat 10 k", "END\r\n") == b""
    client.set("k", b"1", expire=1)
    assert client.touch("k", 1000) is True
    client.set("l", b"2", expire=1)
    # This client has no gat of its own.
    assert client.raw_command("gat 1000 l", "END\r\n") == b"VALUE l 0 1\r\n2\r\n"
    reply = client.raw_command("gats 1000 l", "END\r\n")
    cas = client.gets("l")[1]
    assert reply == b"VALUE l 0 1 " + cas + b"\r\n2\r\n"
    client.set("gone", b"4", expire=1)
    wait_until(lambda: client.get("gone") is None)
    assert client.get("k") == b"1"


def test_expiry(client):
    client.set("past", b"1", expire=-1)
    assert client.get("past") is None
    client.set("unix", b"1", expire=int(time.time()) + 100)
    assert client.get("unix") == b"1"
    client.set("unix", b"1", expire=int(time.time()) - 100)
    assert client.get("unix") is None
    client.set("soon", b"1", expire=1)
    wait_until(lambda: client.get("soon") is None)


def test_flags(server):
    client = Client(server.address, serde=pickle_serde, default_noreply=False)
    for value in [5, "text", b"bytes", {"a": [1, 2.5, None]}]:
        client.set("object", value)
        assert client.get("object") == value
    client.set("flags", "x", flags=0xFFFFFFFF)
    assert client.raw_command(b"get flags", b"END\r\n").startswith(b"VALUE flags 4294967295 1\r\n")


def test_noreply(server):
    client = Client(server.address, default_noreply=True)
    client.set("k", b"1")
    client.append("k", b"2")
    client.prepend("k", b"0")
    client.add("k", b"x")
    client.replace("r", b"x")
    client.set("n", b"5")
    client.incr("n", 4, noreply=True)
    client.decr("n", 2, noreply=True)
    client.touch("n", 100, noreply=True)
    client.set("d", b"x")
    client.delete("d")
    # None of them left a reply behind that this would read.
    assert client.get_many(["k", "r", "n", "d"]) == {"k": b"012", "n": b"7"}
    client.flush_all()
    assert client.get("k") is None


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 100_000, 1 << 20, 5_000_000])
def test_sizes(client, size):
    value = bytes(number % 251 for number in range(997)) * (size // 997 + 1)
    assert client.set("large", value[:size]) is True
    assert client.get("large") == value[:size]


def test_too_large(client):
    client.set("large", b"old")
    with pytest.raises(MemcacheServerError, match="too large"):
        client.set("large", bytes(9 << 20))
    # The connection goes on, and the old value is not what a reader wants after a failed set.
    assert client.get("large") is None
    assert client.set("large", b"new") is True


def test_keys(client):
    for key in ["k" * 250, "a", "~!@#$%^&*()"]:
        assert client.set(key, b"1") is True
        assert client.get(key) == b"1"
    with pytest.raises(MemcacheClientError, match="bad command line format|too long"):
        client.raw_command(b"get " + b"k" * 251)


def test_flush_all(client):
    client.set("k", b"1")
    assert client.flush_all() is True
    assert client.get("k") is None
    client.set("k", b"2")
    assert client.get("k") == b"2"
    client.flush_all(delay=1)
    wait_until(lambda: client.get("k") is None)


def test_administration(client):
    # Three numbers and nothing else: Node's client reads the last three, and others raise at a further word.
    assert client.version() == b"1.6.45"
    client.set("k", b"1")
    client.get("k")
    stats = client.stats()
    assert stats[b"version"] == b"1.6.45" and stats[b"nuthatch_version"]
    assert stats[b"curr_items"] >= 1
    assert stats[b"get_hits"] >= 1
    assert stats[b"limit_maxbytes"] == 128 << 20
    for group in ["settings", "items", "slabs", "sizes", "conns"]:
        assert isinstance(client.stats(group), dict)
    assert client.cache_memlimit(128) is True


def test_pool_and_ring(server, start):
    pool = PooledClient(server.address, max_pool_size=4, default_noreply=False)
    pool.set("k", b"1")
    assert pool.get("k") == b"1"
    other = start("-t", "1")
    ring = HashClient([server.address, other.address], default_noreply=False)
    values = {f"ring{number}": b"%d" % number for number in range(100)}
    assert ring.set_many(values) == []
    assert ring.get_many(values) == values
    counts = [len(Client(one.address).get_many(values)) for one in (server, other)]
    assert sum(counts) == 100 and min(counts) > 0


def test_full_memory_evicts_or_refuses(start):
    evicting = Client(start("-m", "8", "-t", "1").address, default_noreply=False)
    value = bytes(1000)
    for number in range(20_000):
        assert evicting.set(f"k{number}", value) is True
    stats = evicting.stats()
    assert stats[b"evictions"] > 0 and stats[b"curr_items"] < 20_000
    assert evicting.get("k19999") == value

    refusing = Client(start("-m", "8", "-t", "1", "-M").address, default_noreply=False)
    with pytest.raises(MemcacheServerError, match="out of memory"):
        for number in range(20_000):
            refusing.set(f"k{number}", value)
    assert refusing.get("k0") == value
