"""pymemcache's own tests of a client and a server, with our client."""

import subprocess
import sys

import pytest

import nuthatch

pytest.importorskip("pymemcache.test.test_integration")

# Why a test of theirs is not one of ours.
DIFFERS = {
    "test_tls": "TLS is said by the address here",
}
PLUGIN = '''
import pytest
import nuthatch
from nuthatch import exceptions
from pymemcache import exceptions as theirs
from pymemcache.test import test_integration as tests

for name in dir(theirs):
    if hasattr(exceptions, name) and name.startswith("Memcache"):
        setattr(theirs, name, getattr(exceptions, name))
        if hasattr(tests, name):
            setattr(tests, name, getattr(exceptions, name))


class Client(nuthatch.Client):
    """It takes the words of theirs that say how their socket is used."""

    def __init__(self, server, socket_module=None, encoding="ascii", allow_unicode_keys=False, no_delay=False, **words):
        super().__init__(server, **words)


tests.Client = Client


@pytest.fixture(params=[Client], ids=["nuthatch"])
def client_class(request):
    return request.param
'''


def test_its_tests_of_a_server(server, tmp_path):
    (tmp_path / "with_ours.py").write_text(PLUGIN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "with_ours", "--pyargs", "pymemcache.test.test_integration"]
    command += ["-p", "no:cacheprovider", "-o", "addopts=", f"--server=127.0.0.1", f"--port={server.port}"]
    import os

    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(tmp_path)
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    print(said.stdout)
    assert said.returncode == 0, said.stdout[-8000:] + said.stderr[-2000:]
