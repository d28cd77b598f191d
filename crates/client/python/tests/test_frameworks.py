"""The backends for frameworks, as their users set them up, and the decorator."""

import asyncio
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import threading
import time

import pytest
from conftest import python

import nuthatch
from nuthatch import aio

ROOT = pathlib.Path(__file__).resolve().parents[4]
DJANGO = ROOT / ".venv/python/sources/django-5.2.9.tar.gz"
# As `django-admin startproject` and the manual of its cache have it.
SETTINGS = """
SECRET_KEY = "secret"
USE_TZ = False
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
DATABASES = {name: {"ENGINE": "django.db.backends.sqlite3"} for name in ("default", "other")}
CACHES = {"default": {"BACKEND": "nuthatch.django.CacheBackend", "LOCATION": "ADDRESS"}}
"""


@pytest.mark.skipif(not DJANGO.exists(), reason="Django's source is not to be had (scripts/setup-python.sh)")
@pytest.mark.parametrize("form", ["address", "servers"])
def test_django(server, tmp_path, form):
    """Django's tests of its own backend for memcached, with ours in its place, and of sessions, the default cache being ours."""
    with tarfile.open(DJANGO) as archive:
        archive.extractall(tmp_path, filter="data")
    tests = tmp_path / "django-5.2.9/tests"
    address = server.address if form == "address" else f"127.0.0.1:{server.port}"
    (tests / "of_nuthatch.py").write_text(SETTINGS.replace("ADDRESS", address))
    cases = tests / "cache/tests.py"
    params = {"BACKEND": "nuthatch.django.CacheBackend", "LOCATION": address}
    text, replaced = re.subn(r"^PyMemcacheCache_params = [^)]*\)", f"PyMemcacheCache_params = {params}", cases.read_text(), flags=re.M)
    # As with PyLibMCCache: the end of a request is not the end of a connection.
    mine = "class PyMemcacheCacheTests(BaseMemcachedTests, TestCase):\n"
    assert replaced == 1 and mine in text
    # These look into pymemcache's own objects.
    text = text.replace("def test_pymemcache_", "def without_pymemcache_")
    cases.write_text(text.replace(mine, f"{mine}    should_disconnect_on_close = False\n"))
    command = [sys.executable, "runtests.py", "--settings=of_nuthatch", "--parallel=1"]
    command += ["cache.tests.PyMemcacheCacheTests", "sessions_tests.tests.CacheSessionTests", "sessions_tests.tests.CacheDBSessionTests"]
    environment = {**os.environ, "PYTHONPATH": str(tests.parent)}
    said = subprocess.run(command, cwd=tests, env=environment, capture_output=True, text=True, check=False).stderr
    ran = re.search(r"Ran (\d+) tests", said)
    assert ran and int(ran[1]) > 130 and re.search("^OK", said, re.M), said[-6000:]


def test_flask_caching(server):
    pytest.importorskip("flask_caching")
    import flask
    from flask_caching import Cache

    app, calls = flask.Flask("cached"), []
    config = {"CACHE_TYPE": "nuthatch.flask_caching.Backend", "CACHE_NUTHATCH_URL": server.address, "CACHE_KEY_PREFIX": "app:"}
    cache = Cache(app, config=config)

    @app.get("/<name>")
    @cache.cached(timeout=60)
    def page(name):
        calls.append(name)
        return f"<h1>{name}</h1>"

    @cache.memoize(60)
    def double(number):
        calls.append(number)
        return {"number": 2 * number}

    with app.test_client() as client:
        assert [client.get("/ann").text for _ in range(3)] == ["<h1>ann</h1>"] * 3 and calls == ["ann"]
    with app.app_context():
        assert double(4) == double(4) == {"number": 8} and calls == ["ann", 4]
        cache.delete_memoized(double)
        assert double(4) == {"number": 8} and calls == ["ann", 4, 4]
        assert cache.set("k", [1, None], timeout=1) and cache.get("k") == [1, None] and cache.has("k") and not cache.has("none")
        assert cache.add("k", 1) is False and cache.set_many({"a": 1, "b": "two"}) == ["a", "b"]
        assert cache.get_many("a", "none", "b") == [1, None, "two"] and cache.get_dict("a", "none") == {"a": 1, "none": None}
        while cache.get("k") is not None:
            time.sleep(0.05)
        assert cache.delete("a") and cache.delete_many("a", "b") == ["b"]
        assert cache.set("n", b"x" * (2 << 20)) is False and cache.get("n") is None
        assert cache.set("n", 5) and cache.cache.inc("n", 2) == 7 and cache.cache.dec("n") == 6
        cache.clear()
        assert cache.get("n") is None


@pytest.mark.parametrize("has_lock", [False, True])
def test_dogpile(server, has_lock):
    pytest.importorskip("dogpile.cache")
    from dogpile.cache import make_region
    from dogpile.cache.api import NO_VALUE

    import nuthatch.dogpile  # noqa: F401

    arguments = {"url": server.address, "expire": 60, "distributed_lock": has_lock}
    region = make_region().configure("nuthatch", expiration_time=60, arguments=arguments)
    calls = []

    @region.cache_on_arguments()
    def double(number):
        calls.append(number)
        time.sleep(0.1)
        return {"number": 2 * number}

    threads = [threading.Thread(target=double, args=(4,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert double(4) == {"number": 8} and calls == [4]
    double.invalidate(4)
    assert double(4) == {"number": 8} and calls == [4, 4]
    region.set_multi({"a": 1, "b": None})
    assert region.get_multi(["a", "none", "b"]) == [1, NO_VALUE, None]
    region.delete_multi(["a", "b"])
    region.delete("a")
    assert region.get("a") is NO_VALUE


def test_a_lock_of_dogpile_that_is_released_late_is_anothers(server):
    pytest.importorskip("dogpile.cache")
    from nuthatch.dogpile import Backend

    first, second = (Backend({"url": server.address, "distributed_lock": True}).get_mutex("k") for _ in range(2))
    assert first.acquire() and not second.acquire(wait=False)
    # Its time is over.
    nuthatch.Client(server.address).delete("_lockk")
    assert second.acquire(wait=False)
    first.release()
    assert second.locked()
    second.release()
    assert not first.locked()


def test_the_decorator_computes_once(server):
    client, calls = nuthatch.Client(server.address), []

    @nuthatch.cached(client, 60)
    def double(number, *, more=None):
        """Twice as much."""
        calls.append(number)
        time.sleep(0.1)
        return {"number": 2 * number, "more": more}

    threads = [threading.Thread(target=double, args=(4,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert double(4) == {"number": 8, "more": None} and calls == [4] and double.__doc__ == "Twice as much."
    assert double(4, more="x")["more"] == "x" and double(5)["number"] == 10 and calls == [4, 4, 5]
    client.delete(double.key_of(4))
    assert double(4) and calls == [4, 4, 5, 4]

    @nuthatch.cached(client, key=lambda name: f"page:{name}", dumps=str.encode, loads=bytes.decode)
    def page(name):
        return name.title()

    assert page("ann") == page("ann") == "Ann" and client.get("page:ann") == b"Ann"


def test_the_decorator_computes_early_and_once(server):
    """Within `early` of the end one computes, and the others get what there was."""
    client, calls = nuthatch.Client(server.address), []

    @nuthatch.cached(client, 100, early=200)
    def count():
        calls.append(1)
        return len(calls)

    assert [count() for _ in range(2)] == [1, 2]

    @nuthatch.cached(client, 100, early=10)
    def later():
        calls.append(1)
        return len(calls)

    assert [later() for _ in range(3)] == [3, 3, 3]


def test_equal_arguments_have_one_key(server):
    """Whichever objects they are, and in whichever process."""
    script = """
import nuthatch
client = nuthatch.Client("127.0.0.1:1")

@nuthatch.cached(client)
def function(*args, **kwargs):
    pass

word, same = "hello", "".join(["hel", "lo"])
keys = [
    function.key_of(word, same, {"a": word, "b": [same]}, more={word}, less={"x", "y", "z"}),
    function.key_of(word, word, {"b": [word], "a": word}, less={"z", "y", "x"}, more={same}),
]
assert keys[0] == keys[1], keys
others = [(), (1,), (True,), (1.0,), ("1",), (b"1",), ([1],), ((1,),), ({1},), (frozenset([1]),), ({1: 1},), ({}, {1: 1})]
assert len({function.key_of(*args) for args in others}) == len(others)
loop = []
loop.append(loop)
assert function.key_of(loop)
print(keys[0])
"""
    assert python(script) == python(script)

    def long():
        pass

    names = ["größe" * 60 + end for end in "ab"]
    keys = []
    for long.__qualname__ in names:
        keys.append(nuthatch.cached(nuthatch.Client(server.address))(long).key_of())
    assert keys[0] != keys[1] and max(len(key.encode()) for key in keys) <= 250


def test_lifetimes_of_months_are_no_dates(server):
    pytest.importorskip("flask_caching")
    from nuthatch.dogpile import Backend
    from nuthatch.flask_caching import Backend as OfFlask

    client, calls = nuthatch.Client(server.address), []
    months = 40 * 24 * 3600

    @nuthatch.cached(client, months)
    def count():
        calls.append(1)
        return len(calls)

    assert count() == count() == 1
    flask = OfFlask(server.address, default_timeout=months)
    assert flask.set("f", 1) and flask.get("f") == 1
    assert flask.set("f", 1, timeout=float("inf")) and flask.get("f") == 1
    assert flask.set("f", 1, timeout=-1) and flask.get("f") is None
    dogpile = Backend({"url": server.address, "expire": months})
    dogpile.set_serialized("d", b"1")
    assert dogpile.get_serialized("d") == b"1"


def test_the_decorator_tells_functions_from_coroutines(server):
    async def coroutine():
        pass

    for client, function in (nuthatch.Client(server.address), coroutine), (aio.Client(server.address), len):
        with pytest.raises(TypeError, match="a coroutine needs a nuthatch.aio.Client"):
            nuthatch.cached(client)(function)


def test_the_decorator_takes_coroutines(server):
    calls = []

    async def converse():
        async with aio.Client(server.address) as client:

            @nuthatch.cached(client, 60)
            async def double(number):
                calls.append(number)
                await asyncio.sleep(0.1)
                return [2 * number]

            assert await asyncio.gather(*(double(4) for _ in range(10))) == [[8]] * 10 and calls == [4]

    asyncio.run(converse())
