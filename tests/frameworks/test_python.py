"""Libraries and frameworks of Python, set up as their manuals do."""

import asyncio
import sys
import threading
import time
import warnings

import pytest
from programs import HERE, converse
from servers import has_lua, server, servers  # noqa: F401

redis = pytest.importorskip("redis")


def url(server, database=0):  # noqa: F811
    return f"redis://127.0.0.1:{server.port}/{database}"


def test_celerys_results(server):  # noqa: F811
    """In a process of its own: its worker does not leave the one that it ran in as it was."""
    pytest.importorskip("celery")
    converse([sys.executable, HERE / "python/celery_results.py"], server.port)


def test_cashews(server):  # noqa: F811
    cashews = pytest.importorskip("cashews")
    cache = cashews.Cache()

    async def converse():
        cache.setup(url(server, 2))
        calls = []

        @cache(ttl="1m", key="user:{name}")
        async def user(name):
            calls.append(name)
            return {"name": name}

        assert [await user("ann") for _ in range(3)] == [{"name": "ann"}] * 3 and calls == ["ann"]
        await cache.set_many({"a": 1, "b": "two"}, expire=60)
        assert await cache.get_many("a", "none", "b") == (1, None, "two")
        assert await cache.incr("n", expire=60) == 1 and 58 <= await cache.get_expire("n") <= 60
        async with cache.lock("held", expire=10):
            assert await cache.is_locked("held")
        assert not await cache.is_locked("held")

        @cache.rate_limit(limit=2, period="1m", key="limited")
        async def limited():
            return True

        assert await limited() and await limited()
        with pytest.raises(cashews.RateLimitError):
            await limited()
        await cache.delete_match("user:*")
        assert await user("ann") == {"name": "ann"} and calls == ["ann", "ann"]
        assert sorted([key async for key in cache.scan("?")]) == ["a", "b", "n"]
        async with cache.transaction():
            await cache.set("a", 2)
        assert await cache.get("a") == 2
        await cache.close()

    asyncio.run(converse())


def test_cashews_near_cache(server):  # noqa: F811
    """Kept right by the server's tracking."""
    cashews = pytest.importorskip("cashews")

    async def converse():
        cache = cashews.Cache()
        cache.setup(url(server, 2), client_side=True)
        await cache.set("near", "v", expire=60)
        assert await cache.get("near") == "v"
        other = cashews.Cache()
        other.setup(url(server, 2))
        await other.set("cashews:near", "w", expire=60)
        while await cache.get("near") != "w":
            await asyncio.sleep(0.01)
        # It listens, and does not ask each time.
        with redis.Redis(port=server.port) as asking:
            assert asking.pubsub_numsub("__redis__:invalidate")[0][1] >= 1
        await cache.close()
        await other.close()

    asyncio.run(converse())


def test_redis_pys_near_cache(server):  # noqa: F811
    from redis.cache import CacheConfig

    with redis.Redis(port=server.port, protocol=3, cache_config=CacheConfig()) as near, redis.Redis(port=server.port) as other:
        other.set("k", "v")
        assert near.get("k") == near.get("k") == b"v" and near.get_cache().size == 1
        other.set("k", "w")
        while near.get("k") != b"w":
            time.sleep(0.01)


def test_fastapi_cache(server):  # noqa: F811
    pytest.importorskip("fastapi_cache")
    from fastapi import FastAPI
    from fastapi.testclient import TestClient
    from fastapi_cache import FastAPICache
    from fastapi_cache.backends.redis import RedisBackend
    from fastapi_cache.decorator import cache
    from redis import asyncio as aioredis

    app, calls = FastAPI(), []

    @app.get("/{name}")
    @cache(expire=60, namespace="nuts")
    async def read(name):
        calls.append(name)
        return {"name": name}

    @app.delete("/")
    async def clear():
        return await FastAPICache.clear(namespace="nuts")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with TestClient(app) as client:
            FastAPICache.init(RedisBackend(aioredis.from_url(url(server))), prefix="fastapi-cache")
            seen = [client.get("/ann").headers["X-FastAPI-Cache"] for _ in range(3)]
            assert seen == ["MISS", "HIT", "HIT"] and calls == ["ann"]
            # By a script that asks KEYS.
            if has_lua(server):
                assert client.delete("/").status_code == 200
                assert client.get("/ann").headers["X-FastAPI-Cache"] == "MISS"
            else:
                with pytest.raises(redis.ResponseError, match="there is no Lua here"):
                    client.delete("/")


def test_flask_limiter(server):  # noqa: F811
    pytest.importorskip("flask_limiter")
    import flask
    from flask_limiter import Limiter
    from flask_limiter.util import get_remote_address

    app = flask.Flask("limited")
    limiter = Limiter(get_remote_address, app=app, default_limits=["5 per hour"], storage_uri=url(server))

    @app.get("/")
    def all_may():
        return "nuts"

    @app.get("/few")
    @limiter.limit("2 per minute")
    def few_may():
        return "few nuts"

    client = app.test_client()
    assert [client.get("/few").status_code for _ in range(3)] == [200, 200, 429]
    assert [client.get("/").status_code for _ in range(6)] == [200] * 5 + [429]


def test_flask_session(server):  # noqa: F811
    pytest.importorskip("flask_session")
    import flask
    from flask_session import Session

    app = flask.Flask("with sessions")
    app.config.update(SESSION_TYPE="redis", SESSION_REDIS=redis.from_url(url(server)))
    Session(app)

    @app.get("/")
    def visits():
        flask.session["visits"] = flask.session.get("visits", 0) + 1
        return str(flask.session["visits"])

    one, other = app.test_client(), app.test_client()
    assert [one.get("/").text for _ in range(3)] == ["1", "2", "3"] and other.get("/").text == "1"


def hold(ports, acquire):
    """Of some threads each holds a lock for a moment; never two at once."""
    held, worst, lock = 0, 0, threading.Lock()

    def work():
        nonlocal held, worst
        with acquire():
            with lock:
                held += 1
                worst = max(worst, held)
            time.sleep(0.005)
            with lock:
                held -= 1

    threads = [threading.Thread(target=work, daemon=True) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (held, worst) == (0, 1)


def test_redlock(servers):  # noqa: F811
    redlock = pytest.importorskip("redlock")
    locks = redlock.Redlock([{"host": "127.0.0.1", "port": one.port, "db": 0} for one in servers], retry_count=1)
    held = locks.lock("held", 10_000)
    assert held and not locks.lock("held", 10_000)
    locks.unlock(held)
    # One of three servers has another's lock: most are enough.
    with redis.Redis(port=servers[2].port) as third:
        third.set("held", "another's")
        held = locks.lock("held", 10_000)
        assert held
        locks.unlock(held)
        assert third.get("held") == b"another's"


def test_potterys_redlock(servers):  # noqa: F811
    pottery = pytest.importorskip("pottery")
    masters = {redis.Redis(port=one.port) for one in servers}
    hold(servers, lambda: pottery.Redlock(key="held", masters=masters, auto_release_time=60))
    lock = pottery.Redlock(key="held", masters=masters, auto_release_time=60)
    assert lock.acquire() and lock.locked() > 50
    lock.extend()
    lock.release()
    assert not lock.locked()
