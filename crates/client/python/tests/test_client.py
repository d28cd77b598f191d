"""The client for threads: pymemcache's interface."""

import asyncio
import datetime
import threading
import time

import pytest

import nuthatch
from nuthatch import aio, exceptions
from nuthatch.serde import PickleSerde


def test_each_call_does_what_it_says(client):
    assert client.get("k") is None and client.get("k", "none") == "none"
    assert client.set("k", b"value", expire=60) is True
    assert client.get("k") == client.get(b"k") == client["k"] == b"value"
    assert client.add("k", "other") is False and client.add("new", "") is True
    assert client.replace("none", 1) is False and client.append("none", 1) is False
    assert client.append("k", ">") and client.prepend("k", "<") and client.get("k") == b"<value>"
    value, cas = client.gets("k")
    assert value == b"<value>" and client.gets("none") == (None, None)
    assert client.cas("k", "mine", cas) is True
    assert client.cas("k", "late", cas) is False
    assert client.cas("none", "v", cas) is None
    assert client.touch("k", 60) is True and client.touch("none", 60) is False
    assert client.gat("k", 60) == b"mine" and client.gats("k", 60)[0] == b"mine" and client.gat("none") is None
    assert client.incr("n") is None
    client.set("n", 9)
    assert (client.incr("n", 3), client.decr("n", 5), client.decr("n", 50)) == (12, 7, 0)
    assert client.delete("k") is True and client.delete("k") is False
    client["dict"] = "x"
    del client["dict"]
    with pytest.raises(KeyError):
        client["dict"]
    assert client.flush_all() is True and client.get("n") is None


def test_many_keys_at_a_time(client):
    values = {f"key-{number}": b"%d" % number for number in range(3000)}
    assert client.set_many(values, expire=60) == []
    assert client.get_many([*values, "none"]) == values
    assert client.get_multi(key.encode() for key in list(values)[:2]) == {b"key-0": b"0", b"key-1": b"1"}
    value, cas = client.gets_many(["key-7"])["key-7"]
    assert value == b"7" and client.cas("key-7", "new", cas)
    assert client.delete_many(values) is True and client.get_many(values) == {}
    assert client.get_many([]) == {} and client.set_many({}) == [] and client.delete_many([]) is True
    with pytest.raises(exceptions.MemcacheIllegalInputError):
        client.set_many({"good": 1, "": 2})
    assert client.get("good") == b"1"


def test_noreply_and_its_default_are_taken(server):
    client = nuthatch.Client(server.address, default_noreply=True)
    assert client.set("k", 1) is True and client.add("k", 2) is True and client.delete("none") is True
    assert client.add("k", 2, noreply=False) is False
    assert client.get("k") == b"1" and client.incr("k", 1, noreply=True) is None and client.get("k") == b"2"


@pytest.mark.parametrize("value", [b"", b"\r\n", "größe", 12, -3, bytearray(b"ba"), memoryview(b"view"), b"x" * 500_000])
def test_values_are_bytes(client, value):
    client.set("k", value)
    told = value.encode() if isinstance(value, str) else str(value).encode() if isinstance(value, int) else bytes(value)
    assert client.get("k") == told


@pytest.mark.parametrize("key", ["k", b"k", "größe", "with space", b"\0\xff", "x" * 250])
def test_keys_are_bytes_or_text(client, key):
    client.set(key, "v")
    assert client.get(key) == b"v" and client.get_many([key]) == {key: b"v"} and client.delete(key)


@pytest.mark.parametrize("key", ["", "x" * 251, "ü" * 126])
def test_keys_that_are_too_long_or_empty_are_told(client, key):
    for call in (client.get, client.delete, client.incr, client.gets, lambda key: client.set(key, 1)):
        with pytest.raises(exceptions.MemcacheIllegalInputError, match="a key of [0-9]+ bytes: a key has 1 to 250 bytes"):
            call(key)


def test_wrong_types_are_told(client):
    for wrong in (None, 1, 1.5, ["k"], object()):
        with pytest.raises(TypeError, match="a key is bytes or str, not"):
            client.get(wrong)
        with pytest.raises(TypeError, match="a key is bytes or str, not"):
            client.set_many({1: 2})
    for wrong in (None, True, 1.5, {}, object()):
        with pytest.raises(TypeError, match="a value is bytes, .* a serde makes bytes of other objects"):
            client.set("k", wrong)
    with pytest.raises(TypeError, match="a time is in seconds"):
        client.set("k", "v", expire="soon")
    with pytest.raises(exceptions.MemcacheIllegalInputError, match="cas is"):
        client.cas("k", "v", "not a number")
    with pytest.raises(TypeError):
        nuthatch.Client(object())
    with pytest.raises(exceptions.IllegalInputError, match="invalid address"):
        nuthatch.Client("http://127.0.0.1")


def test_a_value_that_is_no_number_and_one_that_is_too_large_are_told(client):
    client.set("k", "word")
    with pytest.raises(exceptions.MemcacheClientError, match="not a number"):
        client.incr("k")
    with pytest.raises(exceptions.MemcacheServerError, match="large"):
        client.set("k", b"x" * (2 << 20))
    assert client.get("other") is None


def test_months_are_a_lifetime_and_a_number_of_seconds_may_be_a_date(client, server):
    months = datetime.timedelta(days=40)
    client.set("k", 1, expire=months)
    assert client.get("k") == b"1" and client.touch("k", months) and client.get("k") == b"1"
    assert client.get_or_compute("c", lambda: 2, months, lease=datetime.timedelta(seconds=5)) == client.get("c") == b"2"
    client.set("k", 1, expire=time.time() + 100)
    assert client.get("k") == b"1"
    # 40 days after 1970.
    client.set("k", 1, expire=months.total_seconds())
    assert client.get("k") is None
    with pytest.raises(OverflowError):
        client.set("k", 1, expire=10**400)

    async def tasks():
        async with aio.Client(server.address) as client:
            await client.set("k", 1, expire=months)
            return await client.get("k"), await client.get_or_compute("a", three, months, lease=datetime.timedelta(seconds=5))

    async def three():
        return 3

    assert asyncio.run(tasks()) == (b"1", b"3")


def test_numbers_are_changed_within_64_bits(client, server):
    async def task(by):
        async with aio.Client(server.address) as client:
            await client.incr("n", by)

    client.set("n", 5)
    for by in -1, 1 << 64, 10**400:
        for call in lambda: client.incr("n", by), lambda: client.decr("n", by), lambda: asyncio.run(task(by)):
            with pytest.raises(exceptions.IllegalInputError, match="a number is changed by 0 to 18446744073709551615"):
                call()
    for by in "5", 1.0, None:
        with pytest.raises(TypeError):
            client.incr("n", by)
    assert client.incr("n", (1 << 64) - 1) == 4 and client.decr("n", (1 << 64) - 1) == 0


def test_a_kind_of_statistics_that_there_is_not_is_refused(client):
    with pytest.raises(exceptions.ServerError):
        client.stats("unheard_of")
    assert client.stats("reset") == {}


def test_items_expire(client):
    client.set("second", 1, expire=1)
    client.set("delta", 1, expire=datetime.timedelta(seconds=1))
    client.set("date", 1, expire=int(time.time()) + 1)
    client.set("over", 1, expire=-1)
    client.set("long", 1, expire=10**9)
    client.set("ever", 1, expire=None)
    assert client.get("over") is None and client.get("second") == b"1" and client.get("delta") == b"1"
    while client.get_many(["second", "delta", "date"]):
        time.sleep(0.05)
    # A date that is long over.
    assert client.get("long") is None and client.get("ever") == b"1"


def test_a_prefix_belongs_to_the_client(client, server):
    mine = nuthatch.Client(server.address, key_prefix="mine:")
    mine.set("k", 1)
    mine.set_many({"a": 2})
    assert client.get("mine:k") == b"1" and client.get("k") is None and mine.get_many(["k", "a"]) == {"k": b"1", "a": b"2"}


def test_a_serde_keeps_objects(server):
    client = nuthatch.Client(server.address, serde="pickle")
    values = {"bytes": b"b", "text": "ü", "int": -12, "list": [1, {"a": None}], "none": None, "true": True, "date": datetime.date(2025, 1, 2)}
    client.set_many(values)
    assert client.get_many(values) == values
    for key, value in values.items():
        client.set(key, value)
        assert client.get(key) == value and type(client.get(key)) is type(value)
        assert client.gets(key)[0] == value
    json = nuthatch.Client(server.address, serde="json")
    json.set("k", {"a": [1, None]})
    assert json.get("k") == {"a": [1, None]} and nuthatch.Client(server.address).get("k") == b'{"a":[1,null]}'
    with pytest.raises(ValueError, match="no serde is named 'yaml'"):
        nuthatch.Client(server.address, serde="yaml")


def test_serdes_are_pymemcaches(server):
    pymemcache = pytest.importorskip("pymemcache")
    theirs = pymemcache.Client(("127.0.0.1", server.port), serde=pymemcache.serde.PickleSerde())
    ours = nuthatch.Client(("127.0.0.1", server.port), serde=PickleSerde())
    crossed = nuthatch.Client([f"127.0.0.1:{server.port}"], serde=pymemcache.serde.PickleSerde())
    for value in (b"b", "ü", 12, 1 << 80, [1, "a"], None, True):
        theirs.set("theirs", value, noreply=False)
        ours.set("ours", value)
        assert ours.get("theirs") == crossed.get("ours") == theirs.get("ours") == value


def test_statistics_and_versions_are_told(client):
    client.set("k", 1)
    stats = client.stats()
    assert stats[b"curr_items"] > 0 and isinstance(stats[b"rusage_user"], float) and stats[b"engine"] == b"cuckoo"
    assert client.stats("settings")[b"maxbytes"] == 64 << 20
    assert client.version().startswith(b"1.6.")
    for wrong in ("a b", "x\r\nflush_all"):
        with pytest.raises(exceptions.Error):
            client.stats(wrong)
    assert client.get("k") == b"1"


def test_many_threads_share_a_connection(server):
    client = nuthatch.Client(server.address)
    before, failed = client.stats()[b"total_connections"], []

    def work(number):
        try:
            for turn in range(300):
                value = b"%d-%d" % (number, turn) * (1 + turn % 50)
                client.set(f"k{number}", value)
                assert client.get(f"k{number}") == value
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == [] and client.stats()[b"total_connections"] == before


def test_one_of_many_threads_computes(server):
    client = nuthatch.Client(server.address)
    calls, values = [], []

    def compute():
        calls.append(1)
        time.sleep(0.2)
        return b"computed"

    threads = [threading.Thread(target=lambda: values.append(client.get_or_compute("k", compute, 60))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1] and values == [b"computed"] * 8
    with pytest.raises(ZeroDivisionError):
        client.get_or_compute("other", lambda: 1 // 0)
    with pytest.raises(TypeError, match="a value is"):
        client.get_or_compute("other", lambda: None)
    assert client.get_or_compute("other", lambda: 5) == b"5"


def test_a_closed_client_connects_anew(client):
    client.set("k", 1)
    client.close()
    assert client.get("k") == b"1"


def test_a_server_that_is_not_there_is_told(free_port):
    client = nuthatch.Client(f"127.0.0.1:{free_port}")
    with pytest.raises(exceptions.DownError, match="is down"):
        client.get("k")
    with pytest.raises(ConnectionError):
        client.set("k", 1)
    with pytest.raises(exceptions.DownError):
        client.set_many({"k": 1})
    lenient = nuthatch.Client(f"127.0.0.1:{free_port}", ignore_exc=True)
    assert lenient.get("k", 1) == 1 and lenient.get_many(["k"]) == {} and lenient.gets("k") == (None, None)


def test_a_server_that_does_not_answer_is_told(silent_port):
    client = nuthatch.Client(f"127.0.0.1:{silent_port}", timeout=0.2)
    with pytest.raises(exceptions.TimeoutError, match="may have been carried out"):
        client.set("k", 1)
    with pytest.raises(TimeoutError):
        client.get("k")
