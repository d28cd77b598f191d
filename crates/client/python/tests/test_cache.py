"""The cache in process."""

import os
import pickle
import threading
import time

import pytest

import nuthatch
from nuthatch import exceptions


def test_each_call_does_what_it_says():
    cache = nuthatch.Cache(8 << 20)
    assert cache.get("k") is None and cache.get("k", 1) == 1 and "k" not in cache
    cache.set("k", "value")
    assert cache.get(b"k") == cache["k"] == b"value" and "k" in cache and len(cache) == 1 and cache.keys() == [b"k"]
    assert cache.add("k", 1) is False and cache.add("n", 1) is True and cache.replace("none", 1) is False
    assert (cache.incr("n", 5), cache.decr("n"), cache.incr("none")) == (6, 5, None)
    assert cache.get_many(["k", "none", "n"]) == {"k": b"value", "n": b"5"}
    assert cache.pop("k") == b"value" and cache.pop("k", 7) == 7 and cache.delete("n") and not cache.delete("n")
    cache["k"] = bytearray(b"b")
    del cache["k"]
    with pytest.raises(KeyError):
        del cache["k"]
    with pytest.raises(KeyError):
        cache["k"]
    stats = cache.stats()
    assert stats["entry_count"] == 0 and stats["hits"] > 0 and 0 < stats["hit_ratio"] < 1 and stats["memory_limit"] == 8 << 20
    cache.set("k", 1)
    cache.clear()
    assert cache.get("k") is None


def test_items_expire():
    cache = nuthatch.Cache(ttl=0.1)
    cache.set("default", 1)
    cache.set("ever", 1, ttl=float("inf"))
    cache.set("over", 1, ttl=-1)
    cache.set("touched", 1)
    assert cache.touch("touched", 60) and not cache.touch("none") and "over" not in cache
    while "default" in cache:
        time.sleep(0.01)
    assert cache.get_many(["ever", "touched"]) == {"ever": b"1", "touched": b"1"}


def test_memory_has_its_limit():
    cache = nuthatch.Cache(4 << 20)
    for number in range(2000):
        cache.set(f"k{number}", bytes(10_000))
    stats = cache.stats()
    assert stats["evictions"] > 1000 and stats["memory_used"] <= 4 << 20
    full = nuthatch.Cache(1 << 20, evict=False)
    with pytest.raises(MemoryError):
        for number in range(2000):
            full.set(f"k{number}", bytes(10_000))


def test_what_is_wrong_is_told():
    cache = nuthatch.Cache(4 << 20)
    with pytest.raises(exceptions.IllegalInputError, match="1 to 250 bytes"):
        cache.set("x" * 251, 1)
    with pytest.raises(exceptions.IllegalInputError, match="larger than the cache allows"):
        cache.set("k", bytes(4 << 20))
    with pytest.raises(TypeError, match="a value is"):
        cache.set("k", None)
    with pytest.raises(ValueError, match="a memory limit of 5 bytes"):
        nuthatch.Cache(5)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(cache)
    cache.set("k", "word")
    with pytest.raises(exceptions.ClientError):
        cache.incr("k")


def test_one_of_many_threads_computes():
    cache, calls, values = nuthatch.Cache(), [], []

    def compute():
        calls.append(1)
        time.sleep(0.2)
        return "computed"

    threads = [threading.Thread(target=lambda: values.append(cache.get_or_compute("k", compute, 60))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1] and values == [b"computed"] * 8
    with pytest.raises(ZeroDivisionError):
        cache.get_or_compute("other", lambda: 1 // 0)
    with pytest.raises(RuntimeError, match="waits for itself"):
        cache.get_or_compute("own", lambda: cache.get_or_compute("own", bytes))


def test_a_child_has_a_copy():
    cache = nuthatch.Cache()
    cache.set("k", "parent's")
    child = os.fork()
    if child == 0:
        cache.set("k", "child's")
        os._exit(0 if cache.get("k") == b"child's" else 1)
    assert os.waitpid(child, 0)[1] == 0 and cache.get("k") == b"parent's"
