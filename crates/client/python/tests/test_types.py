"""The package's types, as a type checker reads them."""

import pathlib
import subprocess
import sys

import pytest

import nuthatch
from nuthatch import aio

HERE = pathlib.Path(__file__).parent


def told(folder, *words):
    run = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False, cwd=folder)
    return run.returncode, run.stdout + run.stderr


def test_a_program_with_types_is_understood(tmp_path):
    pytest.importorskip("mypy")
    code, said = told(tmp_path, "mypy", "--strict", "--no-incremental", HERE / "typed.py")
    assert code == 0, said


def test_types_say_what_the_functions_take(tmp_path):
    pytest.importorskip("mypy")
    settings = tmp_path / "mypy.ini"
    # The frameworks' own types are not asked for.
    settings.write_text("[mypy]\nignore_missing_imports = true\n[mypy-django.*]\nfollow_untyped_imports = true\n")
    words = "--ignore-missing-stub", "--mypy-config-file", settings
    code, said = told(tmp_path, "mypy.stubtest", "nuthatch", *words)
    assert code == 0, said


def test_clients_have_their_values_type():
    assert nuthatch.Client[bytes] and aio.Client[bytes]
