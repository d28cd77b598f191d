"""Conversations of programs in other languages: each says what is not as expected, and ends with 0 if nothing is."""

import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


def works(*command):
    """A command ends well; what it lacks is not installed otherwise."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def converse(command, *words, **environment):
    run = [*map(str, command), *map(str, words)]
    said = subprocess.run(run, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout[-3000:] + said.stderr[-3000:]
