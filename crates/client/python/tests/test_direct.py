"""Direct gets out of the server's memory."""

import asyncio
import os
import pickle
import threading

import pytest
from conftest import Server

import nuthatch
from nuthatch import aio, exceptions


def test_values_are_read_as_they_were_stored(client, server):
    direct = nuthatch.Direct(server.shared)
    assert direct.get("k") is None and direct.get("k", 5) == 5
    for value in (b"", b"value", b"x" * 900_000):
        client.set("k", value, flags=7)
        assert direct.get("k") == direct.get(b"k") == value and direct.get_with_flags("k") == (value, 7)
    client.set_many({f"k{number}": number for number in range(100)})
    keys = [f"k{number}" for number in range(101)]
    assert direct.get_many(keys) == [b"%d" % number for number in range(100)] + [None]
    assert direct.get("x" * 300) is None and direct.get("") is None
    with pytest.raises(TypeError, match="a key is bytes or str, not int"):
        direct.get(1)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(direct)


def test_a_path_may_be_an_address(client, server):
    client.set("k", "v")
    for place in (f"shm://{server.shared}", str(server.shared), server.shared):
        assert nuthatch.Direct(place).get("k") == b"v"
    for wrong in ("tcp://127.0.0.1", "unix:///run/a", "shm://run/a", f"shm://{server.shared}?or=tcp://127.0.0.1", "shm:///a,/b"):
        with pytest.raises(exceptions.IllegalInputError, match="Direct takes the PATH of a server's --shared, or shm:///PATH"):
            nuthatch.Direct(wrong)
    with pytest.raises(exceptions.DownError):
        nuthatch.Direct("/run/a://b")


def test_a_server_that_returns_is_found_again(tmp_path):
    server = Server(tmp_path / "server")
    nuthatch.Client(server.address).set("k", "old")
    direct = nuthatch.Direct(str(server.shared))
    assert direct.get("k") == b"old"
    server.process.kill()
    server.process.wait()
    with pytest.raises(exceptions.DownError, match="shared"):
        while direct.get("k") == b"old":
            pass
    server = Server(tmp_path / "server")
    nuthatch.Client(server.address).set("k", "new")
    assert direct.get("k") == b"new"
    server.end()
    with pytest.raises(exceptions.DownError):
        nuthatch.Direct(tmp_path / "nobody")


def test_a_child_has_a_connection_of_its_own(client, server):
    client.set("k", "v")
    direct = nuthatch.Direct(server.shared)
    child = os.fork()
    if child == 0:
        os._exit(0 if direct.get("k") == b"v" else 1)
    assert os.waitpid(child, 0)[1] == 0 and direct.get("k") == b"v"


def test_threads_share_a_reader(client, server):
    direct, wrong = nuthatch.Direct(server.shared), []
    stop = threading.Event()

    def read():
        while not stop.is_set():
            value = direct.get("k")
            if value is not None and value != value[:1] * len(value):
                wrong.append(value)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(300):
        client.set("k", b"%d" % (turn % 10) * (1 + turn * 37 % 5000))
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_clients_read_the_memory_by_its_address(client, server):
    address = f"shm://{server.shared}?or={server.address}"

    async def tasks():
        async with aio.Client(address) as reader:
            await reader.set("a", 1)
            return [await reader.get("a") for _ in range(100)]

    with nuthatch.Client(address, serde="pickle") as reader:
        reader.set("k", [1])
        asked = client.stats()[b"cmd_get"]
        assert [reader.get("k") for _ in range(100)] == [[1]] * 100 and reader.get_many(["k", "none"]) == {"k": [1]}
        assert asyncio.run(tasks()) == [b"1"] * 100
        child = os.fork()
        if child == 0:
            os._exit(0 if reader.get("k") == [1] and reader.set("k", [2]) and reader.get("k") == [2] else 1)
        assert os.waitpid(child, 0)[1] == 0 and reader.get("k") == [2]
        # Who connects asks first: the child did.
        assert client.stats()[b"cmd_get"] <= asked + 1


def test_a_near_cache_is_an_option(client, server):
    with nuthatch.Client(server.address, near_ms=3_600_000) as near:
        near.set("k", "old")
        assert near.get("k") == b"old"
        client.set("k", "new")
        assert near.get("k") == b"old" and near.delete("k") and near.get("k") is None
