"""memccapable, libmemcached's own test of a server's text protocol."""

import shutil
import subprocess

import pytest


@pytest.mark.skipif(not shutil.which("memccapable"), reason="memccapable is not installed")
def test_all_of_the_text_protocol(server):
    command = ["memccapable", "-h", server.host, "-p", str(server.port), "-a"]
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    said = output.stdout + output.stderr
    results = [line for line in said.splitlines() if line.startswith("ascii ")]
    assert len(results) > 20, said
    assert [line for line in results if not line.rstrip().endswith("[pass]")] == []
    assert output.returncode == 0, said
