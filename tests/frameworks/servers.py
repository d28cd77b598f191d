"""The server of these tests: ours, or redis-server with FRAMEWORKS_AGAINST=redis, which tells whose fault a failure is."""

import os
import pathlib
import sys

import pytest
import redis

CLIENTS = pathlib.Path(__file__).resolve().parents[1] / "clients"
sys.path.insert(0, str(CLIENTS))
from conftest import ROOT, Server  # noqa: E402
from redis_judge import Redis  # noqa: E402

AGAINST_REDIS = os.environ.get("FRAMEWORKS_AGAINST") == "redis"
# What scripts/setup-frameworks.sh has installed.
INSTALLED = ROOT / ".venv/frameworks"


class Ours(Server):
    """As somebody starts it for Redis' clients."""

    def __init__(self, folder, *flags):
        super().__init__(folder, "-m", "64", "--redis-port", "0", *flags)
        self.port = self.told["REDIS INET"]


def has_lua(server):
    with redis.Redis(port=server.port) as client:
        try:
            return client.eval("return {#KEYS, #ARGV}", 0) == [0, 0]
        except redis.ResponseError:
            return False


@pytest.fixture
def server(tmp_path):
    running = (Redis if AGAINST_REDIS else Ours)(tmp_path)
    yield running
    assert running.end() == 0


@pytest.fixture
def servers(tmp_path):
    """Three, for locks that need most of them."""
    running = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        running.append((Redis if AGAINST_REDIS else Ours)(tmp_path / str(number)))
    yield running
    assert [one.end() for one in running] == [0, 0, 0]
