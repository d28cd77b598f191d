"""What the tests of images, charts and packages share: where things are, and what the program says of flags."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUTHATCH = os.environ.get("NUTHATCH", str(ROOT / "target/debug/nuthatch"))
VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M)[1]
# 1.05 times -m and 32 megabytes are promised (docs/operations.md); the kernel's buffers come on top.
PROMISED = 1.05, 32
# Of the scripts of a thread, and twice that while one answers; and of the texts of all.
SCRIPTS = 16, 8

# Tools that scripts/setup-deploy.sh has put beside this Python.
os.environ["PATH"] += os.pathsep + str(pathlib.Path(sys.executable).parent)


def accepts(words, folder):
    """The program takes these flags. The files that they name are made in a folder."""
    (folder / "users").write_text("ann:secret\n")
    (folder / "items").mkdir(exist_ok=True)
    places = {
        "/run/secrets/users": "users",
        "/etc/nuthatch/users/users": "users",
        "/etc/nuthatch/tls/tls.crt": "tls.crt",
        "/etc/nuthatch/tls/tls.key": "tls.key",
        "/data": "items",
    }
    for place, name in places.items():
        words = [word.replace(place, str(folder / name)) for word in words]
    ended = subprocess.run([NUTHATCH, "--check", *words], capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, (words, ended.stderr)


def value(words, flag):
    return words[words.index(flag) + 1]


def suffices(megabytes, words):
    """So many megabytes are enough for a server with these flags, and not far more than that."""
    promised = PROMISED[0] * int(value(words, "-m")) + PROMISED[1]
    if "--lua" in words:
        promised += 2 * SCRIPTS[0] * int(value(words, "-t")) + SCRIPTS[1]
    assert promised + 32 <= megabytes <= 1.1 * promised + 48, (megabytes, words)
