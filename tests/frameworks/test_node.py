"""Libraries of Node.js: limiters, stores of caches and sessions, locks, near caches."""

import pytest
from programs import HERE, converse, works
from servers import INSTALLED, server, servers  # noqa: F401

MODULES = INSTALLED / "node/node_modules"

pytestmark = pytest.mark.skipif(
    not ((MODULES / "redlock").exists() and works("node", "--version")), reason="Node.js' libraries are not installed"
)


@pytest.mark.parametrize("program", ["events.js", "limits.js", "stores.js", "tracking.js"])
def test_node(program, server):  # noqa: F811
    converse(["node", HERE / "node" / program], server.port, NODE_PATH=str(MODULES))


def test_redlock(servers):  # noqa: F811
    converse(["node", HERE / "node/redlock.js"], *(one.port for one in servers), NODE_PATH=str(MODULES))
