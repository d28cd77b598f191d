"""pymemcache's own tests of a client and a server, with our client."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

theirs = pytest.importorskip("pymemcache.test")
# Tests of theirs that are not ours, and why.
DIFFERS = {
    "test_incr_decr": "a step that is no number is a TypeError here",
    "test_misc": "it asks for a cachedump, of which other servers than memcached have nothing",
    "test_errors": "keys with white space are keys here",
}
REPLACED = [
    ("from pymemcache.client.base import Client, PooledClient\n", "from nuthatch import Client\n"),
    ("from pymemcache.client.base import Client\n", "from nuthatch import Client\n"),
    ("[Client, PooledClient, HashClientSingle]", "[Client]"),
    ("from pymemcache.exceptions import", "from nuthatch.exceptions import"),
]


def test_its_tests_of_a_server(server, tmp_path):
    folder = pathlib.Path(theirs.__file__).parent
    for name in ("conftest.py", "test_integration.py"):
        text = (folder / name).read_text()
        for there, here in REPLACED:
            text = text.replace(there, here)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--server=127.0.0.1", f"--port={server.port}"]
    command += ["-k", " and ".join(f"not {name}" for name in DIFFERS)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False).stdout
    assert re.search(r"^[0-9]+ passed, 1 skipped, 5 deselected", said, re.M), said[-9000:]
