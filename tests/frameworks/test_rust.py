"""Rust's client of Redis, with its near cache, and Redlock: rust/frameworks.rs, compiled by scripts/setup-frameworks.sh."""

import pytest
from programs import converse
from servers import INSTALLED, servers  # noqa: F401

PROGRAM = INSTALLED / "bin/frameworks"


@pytest.mark.skipif(not PROGRAM.exists(), reason="Rust's libraries are not installed")
def test_rust(servers):  # noqa: F811
    converse([PROGRAM], *(one.port for one in servers))
