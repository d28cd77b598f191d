"""Events about keys (notify-keyspace-events): redis-server is told the same requests, and must tell the same events."""

import pytest
import redis
from conftest import ENGINE
from pymemcache.client.base import Client
from redis_judge import Redis, needs_redis, version
from test_redis import Ours

SAID = """
SET k v|SET k v EX 100|SET k v KEEPTTL|SET k v XX GET|SET k w NX|SETNX n 1|SETEX s 100 v|PSETEX s 100000 v|GETSET k x|GETDEL k|GETDEL k
SET k v|GETEX k EX 100|GETEX k PERSIST|GETEX k|EXPIRE k 100|PERSIST k|PERSIST k|EXPIRE k 100 GT|EXPIRE k 100 LT|PEXPIREAT k 99999999999999
APPEND k more|APPEND new more|SETRANGE k 2 zz|SETRANGE fresh 2 zz|STRLEN k|GETRANGE k 0 1|SET odd v|INCR odd|INCRBYFLOAT odd 1
INCR i|INCRBY i 5|DECR i|DECRBY i 100|INCR i|EXPIRE i 100|INCR i|INCRBYFLOAT f 1.5|INCRBYFLOAT f -3|EXPIRE f 100|INCRBYFLOAT f 1
MSET a 1 b 2 c 3|MSETNX a 1 zz 2|MSETNX yy 1 zz 2|DEL a b nothing|UNLINK c|RENAME yy ww|RENAMENX ww zz|RENAMENX ww vv|RENAME none x
SET a 1 EX 100|RENAME a vv|RENAME vv vv|COPY vv uu|COPY vv uu|COPY vv uu REPLACE|COPY vv uu DB 3|MOVE vv 3|MOVE uu 5|MOVE uu 5|MOVE none 5
SET e v|EXPIRE e -1|EXPIRE nothing 10|TOUCH i|GET i|GET nothing|TTL i|SELECT 2|SET in2 v|DEL in2|SELECT 0|FLUSHDB|FLUSHALL
MULTI|SET t 1|INCR t|DEL t|EXEC|MULTI|SET t 1|DISCARD|SET last v
"""


def told(server, flags):
    """The events of these requests, by key and by event."""
    with redis.Redis(port=server.port) as client, redis.Redis(port=server.port).pubsub() as subscriber:
        client.flushall()
        client.config_set("notify-keyspace-events", flags)
        subscriber.psubscribe("__key*")
        assert subscriber.get_message(timeout=60)["type"] == "psubscribe"
        connection = client.connection_pool.get_connection()
        for words in SAID.strip().replace("\n", "|").split("|"):
            connection.send_command(*words.split(" "))
            try:
                connection.read_response()
            except redis.ResponseError:
                pass  # Both refuse it.
        client.connection_pool.release(connection)
        # The last, by the same way.
        client.publish("__key:end", "")
        events = []
        while (message := subscriber.get_message(timeout=60))["channel"] != b"__key:end":
            events.append((message["channel"], message["data"]))
        client.config_set("notify-keyspace-events", "")
    # What had expired when it got its lifetime is told once more here, when it is removed.
    return [event for event in events if b"expired" not in event[0] + event[1]]


# Partitions tell no expiries.
tells_expiries = pytest.mark.skipif(ENGINE.startswith(("cphash", "lockhash")), reason=f"{ENGINE} does not tell what expires")


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    server = Ours(tmp_path_factory.mktemp("ours"))
    yield server
    assert server.end() == 0


@pytest.mark.parametrize("flags", ["KEA", "K$", "Eg", "Kl", "A"])
@pytest.mark.skipif(version() < (8,), reason="it takes Redis 8")
@needs_redis
def test_events_are_those_of_redis(ours, tmp_path, flags):
    judge = Redis(tmp_path)
    try:
        assert told(ours, flags) == told(judge, flags)
    finally:
        judge.end()


@tells_expiries
def test_what_expires_is_told(ours):
    """Nobody asks for the keys: the server itself removes them."""
    with redis.Redis(port=ours.port) as client, redis.Redis(port=ours.port).pubsub() as subscriber:
        client.config_set("notify-keyspace-events", "Ex")
        subscriber.subscribe("__keyevent@0__:expired")
        assert subscriber.get_message(timeout=60)["type"] == "subscribe"
        keys = {b"session:%d" % number for number in range(100)}
        for key in keys:
            client.set(key, "v", px=20)
        assert {subscriber.get_message(timeout=60)["data"] for _ in keys} == keys


@tells_expiries
@pytest.mark.skipif(ENGINE == "chained", reason="chained puts an item in a dead one's place and does not tell")
def test_what_expires_is_told_before_its_key_is_set_again(ours):
    with redis.Redis(port=ours.port) as client, redis.Redis(port=ours.port).pubsub() as subscriber:
        client.config_set("notify-keyspace-events", "KA")
        subscriber.subscribe("__keyspace@0__:again")
        assert subscriber.get_message(timeout=60)["type"] == "subscribe"
        client.set("again", "v", px=5)
        while client.get("again"):
            pass
        client.set("again", "longer")
        events = [subscriber.get_message(timeout=60)["data"] for _ in range(4)]
        assert events == [b"set", b"expire", b"expired", b"set"]


def test_what_is_evicted_is_told(tmp_path):
    """The setting is given at the start."""
    server = Ours(tmp_path, "--notify-keyspace-events", "Ee", "-m", "8")
    with redis.Redis(port=server.port) as client, redis.Redis(port=server.port).pubsub() as subscriber:
        assert client.config_get("notify-keyspace-events") == {"notify-keyspace-events": "eE"}
        subscriber.subscribe("__keyevent@0__:evicted")
        assert subscriber.get_message(timeout=60)["type"] == "subscribe"
        value = b"x" * 10_000
        with client.pipeline(transaction=False) as pipe:
            for number in range(2000):
                pipe.set(b"k%d" % number, value)
            pipe.execute()
        message = subscriber.get_message(timeout=60)
        assert message["data"].startswith(b"k") and not client.exists(message["data"])
    assert server.end() == 0


def test_memcacheds_clients_change_keys_too(ours):
    with redis.Redis(port=ours.port) as client, redis.Redis(port=ours.port).pubsub() as subscriber:
        client.config_set("notify-keyspace-events", "KA")
        subscriber.subscribe("__keyspace@0__:shared")
        assert subscriber.get_message(timeout=60)["type"] == "subscribe"
        other = Client(("127.0.0.1", ours.server.port))
        other.set("shared", "1", expire=100)
        other.incr("shared", 1)
        other.delete("shared")
        other.close()
        events = [subscriber.get_message(timeout=60)["data"] for _ in range(4)]
        assert events == [b"set", b"expire", b"incrby", b"del"]
