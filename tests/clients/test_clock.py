"""The wall clock is set while a server runs: a shim in front of libc shifts it for the server alone."""

import os
import subprocess
import time

import conftest
import pytest
from judge import converse

SHIM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *at) {
  int failed = syscall(SYS_clock_gettime, clock, at);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    long seconds = 0;
    FILE *file = fopen(getenv("CLOCK_SHIFT"), "r");
    if (file) {
      if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
      fclose(file);
    }
    at->tv_sec += seconds;
  }
  return failed;
}
"""


@pytest.fixture
def shift(tmp_path, monkeypatch):
    """Sets the wall clock of the servers that the test starts ahead by so many seconds."""
    source, shim, file = tmp_path / "shim.c", tmp_path / "shim.so", tmp_path / "shift"
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(shim))
    monkeypatch.setenv("CLOCK_SHIFT", str(file))

    def shift_to(seconds):
        # A file is replaced whole: the server reads it at any moment.
        new = tmp_path / "new"
        new.write_text(str(seconds))
        os.replace(new, file)
        return int(time.time()) + seconds

    return shift_to


def left(server, key):
    """Seconds, -1 for ever, None if there is no item."""
    answer = converse(server.address, b"mg %b t\r\n" % key).split()
    return int(answer[1][1:]) if answer[0] == b"HD" else None


def store(server, line):
    assert converse(server.address, line + b" 1\r\nx\r\n") == b"STORED\r\n"


@pytest.mark.parametrize("step", [3600, -3600])
def test_a_moment_is_of_the_wall_clock_of_today(start, shift, step):
    server = start("--redis-port", "-1")
    store(server, b"set before 0 100")
    now = shift(step)
    store(server, b"set unix 0 %d" % (now + 100))
    store(server, b"set past 0 %d" % (now - 1))
    redis = ("127.0.0.1", next(port for kind, port in server.told.items() if "redis" in kind.lower()))
    assert converse(redis, b"SET redis x EXAT %d\r\n" % (now + 100)) == b"+OK\r\n"
    told = int(converse(redis, b"EXPIRETIME redis\r\n")[1:])
    assert told == now + 100
    # A busy machine may take its time.
    for key in (b"before", b"unix", b"redis"):
        assert 60 <= left(server, key) <= 100, key
    assert left(server, b"past") is None


@pytest.mark.parametrize("step", [3600, -3600])
@pytest.mark.parametrize("way", ["-e", "--handover", "--save"])
def test_what_is_left_of_a_life_survives_a_step(start, shift, tmp_path, way, step):
    path = str(tmp_path / "kept")
    flags = [way, path] if way != "--save" else ["--save", path, "--load", path]
    first = start(*flags)
    store(first, b"set short 0 100")
    store(first, b"set long 0 7000")
    shift(step)
    if way == "--handover":
        second = start(*flags)
        assert first.process.wait() == 0
    else:
        assert first.end() == 0
        # It is set once more while no server runs.
        shift(-step)
        second = start(*flags)
    assert 60 <= left(second, b"short") <= 100
    assert 6960 <= left(second, b"long") <= 7000


def apart(**offsets):
    """A command in a time namespace, whose clocks are ahead by so many seconds."""
    return ("unshare", "-T", *(word for name, seconds in offsets.items() for word in (f"--{name}", str(seconds))))


@pytest.mark.parametrize("ahead", [{"monotonic": 1_000_000, "boottime": 0}, {"monotonic": 0, "boottime": 1_000_000}])
def test_in_a_time_namespace_time_passes_as_elsewhere(tmp_path, ahead):
    look = subprocess.run([*apart(**ahead), "readlink", "/proc/self/ns/time"], capture_output=True, text=True, check=False)
    if look.returncode != 0 or look.stdout.strip() == os.readlink("/proc/self/ns/time"):
        pytest.skip("this system makes no time namespaces")
    kept = str(tmp_path / "kept")
    here = (conftest.NUTHATCH,)
    there = (*apart(**ahead), *here)
    for number, program in enumerate([there, here, there]):
        folder = tmp_path / str(number)
        folder.mkdir()
        server = conftest.Server(folder, "-e", kept, program=program)
        if number == 0:
            store(server, b"set short 0 100")
        # The other namespace counts from another start: neither of the two makes the item older.
        assert 60 <= left(server, b"short") <= 100
        stats = dict(line.split()[1:3] for line in converse(server.address, b"stats\r\n").splitlines() if b" " in line)
        assert int(stats[b"uptime"]) < 60
        assert server.end() == 0
