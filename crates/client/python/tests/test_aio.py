"""The client for asyncio."""

import asyncio
import os
import pickle
import threading

import pytest
from conftest import python

import nuthatch
from nuthatch import aio, exceptions


def run(converse, server, **options):
    """Runs a conversation with a client of its own."""

    async def all_of_it():
        async with aio.Client(server if isinstance(server, str) else server.address, **options) as client:
            await converse(client)

    asyncio.run(all_of_it())


@pytest.mark.parametrize("by", ["address", "memory"])
def test_each_call_does_what_it_says(server, by):
    async def converse(client):
        assert await client.get("k") is None and await client.get("k", 1) == 1
        assert await client.set("k", "value", 60) is True and await client.get(b"k") == b"value"
        assert await client.add("k", 1) is False and await client.replace("none", 1) is False
        assert await client.append("k", ">") and await client.prepend("k", "<") and not await client.append("none", 1)
        value, cas = await client.gets("k")
        assert value == b"<value>" and await client.gets("none") == (None, None)
        assert await client.cas("k", "mine", cas) is True and await client.cas("k", "late", cas) is False
        assert await client.cas("none", 1, cas) is None
        assert await client.touch("k", 60) and not await client.touch("none", 60) and await client.gat("k", 60) == b"mine"
        await client.set("n", 9)
        assert [await client.incr("n", 3), await client.decr("n", 5), await client.incr("none")] == [12, 7, None]
        assert await client.delete("k") and not await client.delete("k")
        values = {f"k{number}": b"%d" % number for number in range(2000)}
        await client.set_many(values)
        assert await client.get_many([*values, "none"]) == values
        await client.delete_many(values)
        assert await client.get_many(values) == {} == await client.get_many([])
        assert (await client.stats())[b"curr_items"] > 0 and (await client.version()).startswith(b"1.6.")
        await client.flush_all()
        assert await client.get("n") is None
        for wrong in ("", "x" * 251):
            with pytest.raises(exceptions.IllegalInputError):
                await client.get(wrong)
        for wrong in (None, 5):
            with pytest.raises(TypeError, match="a key is"):
                await client.get(wrong)
        with pytest.raises(TypeError, match="a value is"):
            await client.set("k", None)

    run(converse, getattr(server, by))


def test_many_tasks_share_a_connection(server):
    async def converse(client):
        before = (await client.stats())[b"total_connections"]

        async def work(number):
            for turn in range(20):
                value = b"%d-%d" % (number, turn)
                await client.set(f"k{number}", value)
                assert await client.get(f"k{number}") == value

        await asyncio.gather(*map(work, range(256)))
        assert (await client.stats())[b"total_connections"] == before

    run(converse, server)


def test_cancelled_calls_do_no_harm(server):
    async def converse(client):
        await client.set("k", "v")
        for turn in range(200):
            tasks = [asyncio.create_task(client.get("k")) for _ in range(10)]
            for _ in range(turn % 4):
                await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            assert found[1::2] == [b"v"] * 5
            assert all(one == b"v" or isinstance(one, asyncio.CancelledError) for one in found)
        assert client._bridge.futures == {} and await client.get("k") == b"v"

    run(converse, server)


def test_a_computation_that_is_cancelled_makes_nobody_wait(server):
    async def converse(client):
        begun = asyncio.Event()

        async def never():
            begun.set()
            await asyncio.Event().wait()

        async def at_once():
            return "v"

        task = asyncio.create_task(client.get_or_compute("k", never, 60, lease=3600))
        await begun.wait()
        task.cancel()
        assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
        assert await client.get_or_compute("k", at_once, 60, lease=3600) == b"v"
        assert client._bridge.futures == client._bridge.computing == {}

    run(converse, server)


def test_a_call_that_is_cancelled_before_it_computes_makes_nobody_wait(server):
    async def converse(client):
        async def never():
            await asyncio.Event().wait()

        for turn in range(300):
            task = asyncio.create_task(client.get_or_compute(f"k{turn}", never, 60, lease=3600))
            for _ in range(turn % 6):
                await asyncio.sleep(0)
            if turn % 2:
                await asyncio.sleep(turn * 1e-6)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            # Its reply comes after that of the call.
            await client.touch("other")
            assert await client.add(f"k{turn}", "v") is True, turn

    run(converse, server)


def test_a_server_that_does_not_answer_is_told(silent_port, free_port):
    async def converse(client):
        with pytest.raises(exceptions.TimeoutError):
            await client.get("k")
        call = asyncio.create_task(client.get("k"))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(call, 0.05)

    run(converse, f"tcp://127.0.0.1:{silent_port}", timeout=0.3)

    async def nobody(client):
        with pytest.raises(exceptions.DownError):
            await client.get("k")

    run(nobody, f"tcp://127.0.0.1:{free_port}")
    with pytest.raises(exceptions.IllegalInputError):
        aio.Client("http://127.0.0.1")


def test_what_one_server_has_is_there_though_another_is_not(server, free_port):
    address = f"tcp://127.0.0.1:{server.port},127.0.0.1:{free_port}"

    async def converse(client):
        keys = [f"key{number}" for number in range(40)]
        stored = []
        for key in keys:
            try:
                await client.set(key, b"v")
                stored.append(key)
            except exceptions.DownError:
                pass
        assert 0 < len(stored) < len(keys)
        assert await client.get_many(keys) == dict.fromkeys(stored, b"v")

    run(converse, address, ignore_exc=True)


def test_a_close_ends_what_waits_and_the_next_call_starts_anew(silent_port, server):
    async def converse(client):
        call = asyncio.create_task(client.get("k"))
        await asyncio.sleep(0.05)
        await client.close()
        with pytest.raises(exceptions.Error, match="closed"):
            await call

    run(converse, f"tcp://127.0.0.1:{silent_port}")

    async def again(client):
        await client.set("k", 1)
        await client.close()
        assert await client.get("k") == b"1"

    run(again, server)


def test_one_client_in_loop_after_loop_but_not_in_two(server):
    client = aio.Client(server.address)
    assert asyncio.run(client.set("k", 1)) and asyncio.run(client.get("k")) == b"1"

    async def outer():
        await client.get("k")
        told = []

        def other():
            try:
                asyncio.run(client.get("k"))
            except RuntimeError as error:
                told.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        while not told:
            await asyncio.sleep(0.01)
        thread.join()
        assert "each loop needs a client of its own" in told[0]
        await client.close()

    asyncio.run(outer())
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(client)


def test_a_child_starts_anew(server):
    client = aio.Client(server.address)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(client.set("k", "v"))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.set_event_loop(None)
            asyncio.events._set_running_loop(None)
            code = 0 if asyncio.run(client.get("k")) == b"v" else 1
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert loop.run_until_complete(client.get("k")) == b"v"
    loop.run_until_complete(client.close())
    loop.close()


def test_an_interpreter_ends_with_calls_under_way(silent_port):
    script = """
import asyncio, sys
from nuthatch import aio
client = aio.Client(f"tcp://127.0.0.1:{sys.argv[1]}")
async def leave():
    task = asyncio.create_task(client.get("k"))
    await asyncio.sleep(0.05)
asyncio.run(leave())
print("left")
"""
    assert python(script, silent_port) == "left\n"


def test_one_of_many_tasks_computes(server):
    async def converse(client):
        calls = []

        async def compute():
            calls.append(1)
            await asyncio.sleep(0.2)
            return b"computed"

        found = await asyncio.gather(*(client.get_or_compute("k", compute, 60) for _ in range(20)))
        assert found == [b"computed"] * 20 and calls == [1]

        async def fail():
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await client.get_or_compute("other", fail)

        started = asyncio.Event()

        async def wait():
            started.set()
            await asyncio.sleep(1000)

        call = asyncio.create_task(client.get_or_compute("other", wait))
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert client._bridge.computing == {} and client._bridge.futures == {}

    run(converse, server)


def test_a_serde_keeps_objects(server):
    async def converse(client):
        await client.set("k", {"a": [1]})
        assert await client.get("k") == {"a": [1]} and await client.get_many(["k"]) == {"k": {"a": [1]}}

    run(converse, server, serde="json", key_prefix="mine:")
    assert nuthatch.Client(server.address).get("mine:k") == b'{"a":[1]}'
