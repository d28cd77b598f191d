"""memccapable, libmemcached's own test of a server's text protocol."""

import shutil
import subprocess

import pytest


@pytest.mark.skipif(not shutil.which("memccapable"), reason="memccapable is not installed")
def test_all_of_the_text_protocol(server):
    command = ["memccapable", "-h", server.host, "-p", str(server.port), "-a"]
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    # A failure is said on the other stream, without its name: show both.
    assert output.returncode == 0, output.stdout + output.stderr
    assert "All tests passed" in output.stdout
    assert output.stdout.count("[pass]") >= 27
