"""redis-py and what it is sent unasked: messages of channels, and that keys of its near cache have changed."""

import pytest
import redis
from redis.cache import CacheConfig
from test_redis import Ours


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    server = Ours(tmp_path_factory.mktemp("ours"))
    yield server
    assert server.end() == 0


@pytest.mark.parametrize("protocol", [2, 3])
def test_messages(ours, protocol):
    # The server may not yet have heard that the other protocol's subscriber has gone.
    channel, pattern = f"{protocol} news", f"{protocol} n*"
    publisher = redis.Redis(port=ours.port, protocol=protocol)
    with redis.Redis(port=ours.port, protocol=protocol).pubsub() as subscriber:
        subscriber.subscribe(channel)
        subscriber.psubscribe(pattern)
        assert [subscriber.get_message(timeout=60)["type"] for _ in range(2)] == ["subscribe", "psubscribe"]
        assert publisher.publish(channel, "hi") == 2
        got = [subscriber.get_message(timeout=60) for _ in range(2)]
        assert [message["type"] for message in got] == ["message", "pmessage"]
        assert {message["data"] for message in got} == {b"hi"}
        assert publisher.pubsub_numsub(channel) == [(channel.encode(), 1)]
        assert publisher.pubsub_channels(pattern) == [channel.encode()]


def test_near_cache(ours):
    near = redis.Redis(port=ours.port, protocol=3, cache_config=CacheConfig())
    other = redis.Redis(port=ours.port)
    other.set("k", "one")
    assert near.get("k") == b"one"
    assert near.get_cache().size == 1
    before = other.info("stats")["keyspace_hits"]
    assert near.get("k") == b"one"
    assert other.info("stats")["keyspace_hits"] == before, "it came from the near cache"
    for value in (b"two", b"three"):
        other.set("k", value)
        while near.get("k") != value:
            pass  # The message is on its way.
    other.delete("k")
    while near.get("k") is not None:
        pass
