"""Spring's cache on Redis, with the two clients that it knows."""

import pytest
from programs import HERE, converse, works
from servers import INSTALLED, server  # noqa: F401

JARS = INSTALLED / "java"


@pytest.mark.skipif(not (any(JARS.glob("spring-data-redis-*.jar")) and works("java", "-version")), reason="Spring is not installed")
def test_spring(server):  # noqa: F811
    converse(["java", "-cp", f"{JARS}/*", HERE / "java/Spring.java"], server.port)
