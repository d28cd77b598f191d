"""Go's clients and libraries: all of go/frameworks_test.go, compiled by scripts/setup-frameworks.sh."""

import subprocess

import pytest
from servers import INSTALLED, servers  # noqa: F401

PROGRAM = INSTALLED / "bin/frameworks.test"
NAMES = subprocess.run([PROGRAM, "-test.list", "."], capture_output=True, text=True, check=True).stdout.split() if PROGRAM.exists() else []


@pytest.mark.skipif(not NAMES, reason="Go's libraries are not installed")
@pytest.mark.parametrize("name", NAMES)
def test_go(name, servers):  # noqa: F811
    ports = " ".join(str(one.port) for one in servers)
    said = subprocess.run([PROGRAM, "-test.v", "-test.run", f"^{name}$"], env={"PORTS": ports}, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    if "--- SKIP" in said.stdout:
        pytest.skip(said.stdout)
