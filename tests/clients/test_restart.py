"""Items that outlive the process: a restart, copies, and files that are not what they should be."""

import fcntl
import os
import pathlib
import re
import resource
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

import conftest
import pytest
import redis
from judge import converse

ITEMS = {f"key{n}": b"v" * (n * 37 % 20_000) for n in range(500)}


def fill(server):
    text = b"".join(b"set %b %d 1000 %d noreply\r\n%b\r\n" % (key.encode(), number, len(value), value)
                    for number, (key, value) in enumerate(ITEMS.items()))
    assert converse(server.address, text + b"mn\r\n") == b"MN\r\n"


def held(server):
    text = b"".join(b"mg %b v f c t\r\n" % key.encode() for key in ITEMS)
    return converse(server.address, text)


def count(server):
    stats = converse(server.address, b"stats\r\n").decode().splitlines()
    return int(next(line.split()[2] for line in stats if line.startswith("STAT curr_items ")))


def with_seconds_rounded(answer):
    """Some of their life goes by."""
    words = answer.split(b" ")
    return [word[:3] if word.startswith(b"t9") else word for word in words]


@pytest.mark.each_engine
@pytest.mark.parametrize("stop", [signal.SIGUSR1, signal.SIGTERM])
def test_a_restart_keeps_items_with_flags_cas_and_life(start, tmp_path, stop):
    path = tmp_path / "items"
    first = start("-e", str(path), "-m", "64")
    fill(first)
    before = held(first)
    first.process.send_signal(stop)
    assert first.process.wait() == 0 and path.stat().st_size > 1_000_000
    second = start("-e", str(path), "-m", "64")
    after = held(second)
    shown = [line for line in after.splitlines() if line.startswith(b"VA")]
    assert len(shown) == len(ITEMS) and shown[1].startswith(b"VA 37 f1 c")
    assert [w for w in with_seconds_rounded(before) if w[:1] in b"cf"] == [w for w in with_seconds_rounded(after) if w[:1] in b"cf"]
    # It was used up: who is killed now leaves nothing behind.
    assert not path.exists()
    second.process.kill()
    second.process.wait()
    assert count(start("-e", str(path))) == 0


def test_a_stop_that_was_killed_amid_writing_is_told(start, tmp_path):
    path, log = tmp_path / "items", tmp_path / "log"
    # What such a one leaves.
    unfinished = tmp_path / ".items.unfinished"
    unfinished.write_bytes(b"NUTHATCH")
    server = start("-e", str(path), "--log", str(log))
    conftest.said(log, "started empty: .* was killed before all were written")
    assert not unfinished.exists()
    server.process.kill()
    server.process.wait()
    # That is told once: this one was killed while it served.
    second = start("-e", str(path), "--log", str(tmp_path / "second"))
    assert second.end() == 0 and "killed" not in (tmp_path / "second").read_text()


def test_a_file_that_is_damaged_is_put_aside(start, tmp_path):
    path = tmp_path / "items"
    first = start("-e", str(path))
    fill(first)
    assert first.end() == 0
    whole = path.read_bytes()
    for bad in [whole[:-1], whole[:100], b"", b"no such file", whole[:5000] + b"\0" + whole[5001:]]:
        path.write_bytes(bad)
        log = tmp_path / "log"
        server = start("-e", str(path), "--log", str(log))
        assert count(server) == 0
        conftest.said(log, "started empty")
        assert (tmp_path / "items.refused").read_bytes() == bad
        server.process.kill()
        server.process.wait()
        log.unlink()


@pytest.mark.each_engine
def test_a_cas_of_before_the_restart_is_not_given_out_again(start, tmp_path):
    path = tmp_path / "items"
    first = start("-e", str(path))
    converse(first.address, b"set a 0 0 1\r\nx\r\n" * 20)
    # Chosen by a client: it must not use up the numbers.
    assert converse(first.address, b"ms high 1 E18446744073709551615\r\nx\r\n") == b"HD\r\n"
    assert first.end() == 0
    second = start("-e", str(path))
    assert converse(second.address, b"gets a\r\n") == b"VALUE a 0 1 20\r\nx\r\nEND\r\n"
    seen = set()
    for _ in range(40):
        seen.add(converse(second.address, b"ms a 1 c\r\ny\r\n"))
    assert len(seen) == 40 and b"HD c20\r\n" not in seen


def refused(*flags):
    command = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    return ended.stderr


def test_a_start_that_fails_leaves_the_items_for_the_next(start, tmp_path):
    path = tmp_path / "items"
    first = start("-e", str(path))
    fill(first)
    assert first.end() == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "--metrics" in refused("-e", str(path), "--metrics", f"127.0.0.1:{taken.getsockname()[1]}")
    environment = {**os.environ, "MEMCACHED_PORT_FILENAME": str(tmp_path / "none" / "ports")}
    command = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1", "-e", str(path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2 and "ports" in ended.stderr
    assert count(start("-e", str(path))) == len(ITEMS)


def test_a_folder_is_not_put_aside(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "not a file" in refused("-e", str(folder))
    assert folder.is_dir()


def test_only_ones_own_file_is_taken(start, tmp_path):
    """Else anybody who can write into the folder could have foreign items taken for ours, or files of ours emptied."""
    path, victim = tmp_path / "items", tmp_path / "victim"
    assert start("-e", str(path)).end() == 0
    path.rename(tmp_path / "real")
    path.symlink_to(tmp_path / "real")
    assert str(path) in refused("-e", str(path)) and path.is_symlink()
    path.unlink()
    lock = tmp_path / "items.lock"
    lock.unlink()
    victim.write_text("keep")
    lock.symlink_to(victim)
    assert str(path) in refused("-e", str(path)) and victim.read_text() == "keep"
    lock.unlink()
    os.mkfifo(path)
    assert "not a file" in refused("-e", str(path))
    path.unlink()
    if os.geteuid() == 0:
        (tmp_path / "real").rename(path)
        os.chown(path, 65534, 65534)
        assert "it belongs to the user 65534" in refused("-e", str(path))
        os.chown(path, 0, 0)
        lock.write_text("")
        os.chown(lock, 65534, 65534)
        assert "it belongs to the user 65534" in refused("-e", str(path))
        lock.unlink()
    # Whoever may write into the folder can have a start wait for ever.
    os.mkfifo(lock)
    assert str(path) in refused("-e", str(path))


def test_a_copy_is_not_taken_for_what_a_stop_left(tmp_path):
    path = str(tmp_path / "items")
    assert "--save" in refused("-e", path, "--save", path)
    assert "--load" in refused("-e", path, "--load", path)


def test_what_a_stop_left_is_newer_than_a_copy(start, tmp_path):
    """What the copy has and the file of the stop has not was deleted in between."""
    items, copy, log = tmp_path / "items", tmp_path / "copy", tmp_path / "log"
    first = start("--save", str(copy))
    assert converse(first.address, b"set a 0 0 3\r\nold\r\nset gone 0 0 1\r\nx\r\n") == b"STORED\r\n" * 2
    assert first.end() == 0
    second = start("-e", str(items))
    assert converse(second.address, b"set a 0 0 3\r\nnew\r\n") == b"STORED\r\n"
    assert second.end() == 0
    flags = ("-e", str(items), "--load", str(copy), "--log", str(log), "-v")
    third = start(*flags)
    assert converse(third.address, b"get a gone\r\n") == b"VALUE a 0 3\r\nnew\r\nEND\r\n"
    conftest.said(log, "not read")
    third.process.kill()
    third.process.wait()
    # Nothing was left, so there is no newer one.
    assert converse(start(*flags).address, b"get a gone\r\n") == b"VALUE a 0 3\r\nold\r\nVALUE gone 0 1\r\nx\r\nEND\r\n"


def test_a_copy_that_could_never_be_written_is_told_at_the_start(tmp_path):
    assert "--save" in refused("--save", "/nonexistent/copy")
    (tmp_path / "file").write_text("")
    assert "--save" in refused("--save", str(tmp_path / "file" / "copy"))
    assert "--save" in refused("--save", "/proc/copy")


@pytest.fixture
def stranger(tmp_path):
    """A user whose processes have a limit that root's have not."""
    if os.geteuid() != 0:
        pytest.skip("only root becomes somebody else")
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(0o755)
    folder = tmp_path / "stranger"
    folder.mkdir()
    user = 20_000 + os.getpid() % 10_000
    os.chown(folder, user, user)
    return user, folder


def start_as(user, folder, *flags, threads=None):
    """Its exit code, or the process and its address once it is up."""
    def limit():
        if threads:
            resource.setrlimit(resource.RLIMIT_NPROC, (threads, threads))
    ports = folder / "ports"
    ports.unlink(missing_ok=True)
    process = subprocess.Popen([*conftest.SERVER, "-l", "127.0.0.1", "-p", "-1", *flags], cwd=folder, user=user, group=user,
                               extra_groups=[], preexec_fn=limit, env={"MEMCACHED_PORT_FILENAME": str(ports)}, stderr=subprocess.PIPE, text=True)
    if threads:
        return process.wait(), process.stderr.read()
    while not ports.exists():
        assert process.poll() is None
        time.sleep(0.01)
    return process, ("127.0.0.1", int(ports.read_text().split()[-1]))


def test_a_start_that_finds_no_thread_leaves_the_items(stranger):
    user, folder = stranger
    items = folder / "items"
    process, address = start_as(user, folder, "-e", str(items))
    assert converse(address, b"set a 0 0 1\r\nx\r\n") == b"STORED\r\n"
    process.terminate()
    assert process.wait() == 0
    code, said = start_as(user, folder, "-e", str(items), "-t", "64", threads=20)
    assert code == 1 and "a thread, worker-" in said, said
    process, address = start_as(user, folder, "-e", str(items))
    assert converse(address, b"get a\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n"
    process.terminate()
    process.wait()


@pytest.mark.each_engine
def test_a_flush_that_is_to_come_comes_after_a_restart_too(start, tmp_path):
    """Servers are flushed one after the other, each a little later: one that is restarted meanwhile must not bring items back."""
    path, copy = tmp_path / "items", tmp_path / "copy"
    first = start("-e", str(path))
    assert converse(first.address, b"set a 0 0 1\r\nx\r\nflush_all 3\r\n") == b"STORED\r\nOK\r\n"
    assert first.end() == 0
    second = start("-e", str(path), "--save", str(copy))
    # It takes what is stored before it comes, which is seen by a, stored before. (A start may take as long: then b stays.)
    said = converse(second.address, b"set b 0 0 1\r\nx\r\nget a\r\n")
    assert said in (b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n", b"STORED\r\nEND\r\n")
    taken = b"get a b\r\n" if b"VALUE" in said else b"get a\r\n"
    while converse(second.address, taken) != b"END\r\n":
        time.sleep(0.1)
    assert converse(second.address, b"set c 0 0 1\r\nx\r\nflush_all 1\r\n") == b"STORED\r\nOK\r\n"
    assert second.end() == 0
    # It would have come meanwhile.
    time.sleep(2)
    assert converse(start("--load", str(copy)).address, b"get c\r\n") == b"END\r\n"


@pytest.mark.each_engine
def test_a_restart_keeps_databases_and_long_keys(start, tmp_path):
    flags = ("-e", str(tmp_path / "items"), "-m", "64", "--redis-port", "0")

    def client(server, database):
        return redis.Redis(port=server.told["REDIS INET"], db=database)

    first = start(*flags)
    for database in range(4):
        client(first, database).set("k", database)
    long = "l" * (conftest.LONGEST_KEY - 1)
    client(first, 0).swapdb(0, 1)
    client(first, 2).flushdb()
    client(first, 3).set(long, "long")
    first.process.send_signal(signal.SIGUSR1)
    assert first.process.wait() == 0
    second = start(*flags)
    assert [client(second, database).get("k") for database in range(4)] == [b"1", b"0", None, b"3"]
    assert client(second, 3).get(long) == b"long" and client(second, 3).dbsize() == 2
    assert converse(second.address, b"get k\r\n") == b"VALUE k 0 1\r\n1\r\nEND\r\n"
    # Database 0 alone goes, and the others with a flush of all.
    client(second, 0).flushdb()
    assert [client(second, database).dbsize() for database in range(4)] == [0, 1, 0, 2]
    assert converse(second.address, b"flush_all\r\n") == b"OK\r\n"
    assert client(second, 3).dbsize() == 0


@pytest.mark.each_engine
def test_a_file_of_an_earlier_build_is_read(start):
    """It was left by the first version of the format (25 November 2026): a later one that could not read it has another number."""
    server = start("--load", str(pathlib.Path(__file__).with_name("items-version-1")), "-m", "64")
    expected = [
        (b"plain", 0, b"value"),
        (b"flags", 4294967295, b"f"),
        (b"empty", 0, b""),
        (b"lives", 0, b"until 2038"),
        (b"bytes", 1, bytes(range(256))),
        (b"long", 2, b"0123456789" * 2000),
        (b"k" * 250, 0, b"longest key"),
        (b"number", 0, b"42"),
    ]
    for key, flags, value in expected:
        told = b"VALUE %b %d %d\r\n%b\r\nEND\r\n" % (key, flags, len(value), value)
        assert converse(server.address, b"get %b\r\n" % key) == told
    assert converse(server.address, b"mg YmluAGFyeQ== b v\r\n") == b"VA 3\r\nbin\r\n"
    left = int(converse(server.address, b"mg lives t\r\n").split(b"t")[1])
    assert 0 < left <= 268435455
    assert count(server) == len(expected) + 1


def test_one_server_a_file(start, tmp_path):
    path = tmp_path / "items"
    start("-e", str(path))
    command = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1", "-e", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1 and "another server uses this file" in ended.stderr


@pytest.mark.each_engine
def test_copies_now_and_then(start, tmp_path):
    path = tmp_path / "copy"
    first = start("--save", str(path), "--save-every", "1")
    fill(first)
    # One that comes now may have begun before the items came; the next one has not.
    for _ in range(2):
        before = path.stat().st_mtime_ns if path.exists() else 0
        while not path.exists() or path.stat().st_mtime_ns == before:
            assert first.process.poll() is None, "the server ended"
            time.sleep(0.05)
    first.process.kill()
    first.process.wait()
    seen = path.stat()
    second = start("--load", str(path))
    assert count(second) == len(ITEMS) and path.stat().st_mtime == seen.st_mtime
    for flags, words in [(("--load", str(tmp_path / "none")), "--load"), (("--save-every", "0"), "--save-every")]:
        command = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1", *flags]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode != 0 and words in ended.stderr


@pytest.mark.each_engine
def test_a_copy_is_made_when_it_is_asked_for_and_at_the_end(start, tmp_path):
    """The flags of the first start are those of the next, though there is no copy yet."""
    path, log = tmp_path / "copy", tmp_path / "log"
    flags = ("--save", str(path), "--load", str(path), "--save-every", "100000", "--log", str(log), "-v")
    first = start(*flags)
    fill(first)
    conftest.said(log, "started empty: no copy is at")
    first.process.send_signal(signal.SIGUSR2)
    conftest.said(log, f"{len(ITEMS)} items")
    conftest.said(log, f"saved to {path}")
    assert path.exists()
    assert b"STAT saves 1\r\n" in converse(first.address, b"stats\r\n")
    assert converse(first.address, b"set late 0 0 1\r\nx\r\n") == b"STORED\r\n"
    assert first.end() == 0
    second = start(*flags)
    assert count(second) == len(ITEMS) + 1
    # There is a file that is not the one saved to, or none is saved: that must be there.
    assert "--load" in refused("--load", str(tmp_path / "none"), "--save", str(path))


def test_a_copy_that_is_damaged_does_not_keep_the_server_down(start, tmp_path):
    """If it is the server's own: then it is put aside. A copy that somebody names must be right."""
    path, aside = tmp_path / "copy", tmp_path / "copy.refused"
    own = ("--save", str(path), "--load", str(path), "--save-every", "100000")
    first = start(*own)
    fill(first)
    assert first.end() == 0
    whole = path.read_bytes()
    later = whole[:8] + (99).to_bytes(4, "little") + whole[12:]
    for number, bad in enumerate([whole[:-1], b"", whole[:5000] + b"\0" + whole[5001:], later, b"no such file"]):
        path.write_bytes(bad)
        log = tmp_path / f"log{number}"
        assert f"--load: {path}" in refused("--load", str(path))
        assert path.read_bytes() == bad and not aside.exists()
        server = start(*own, "--log", str(log))
        assert count(server) == 0 and aside.read_bytes() == bad
        conftest.said(log, f"started empty: --load: {path}")
        assert server.end() == 0 and path.exists()
        aside.unlink()


def test_a_signal_without_a_file_is_told(start, tmp_path):
    log = tmp_path / "log"
    server = start("--log", str(log))
    server.process.send_signal(signal.SIGUSR2)
    conftest.said(log, "--save")
    assert converse(server.address, b"mn\r\n") == b"MN\r\n"


def test_a_copy_is_made_that_is_asked_for_as_soon_as_the_ports_are_told(tmp_path):
    for number in range(10):
        ports, log = tmp_path / f"ports {number}", tmp_path / f"log {number}"
        flags = ["-v", "--save", str(tmp_path / f"copy {number}"), "--log", str(log)]
        server = subprocess.Popen(
            [*conftest.SERVER, "-l", "127.0.0.1", "-p", "-1", *flags],
            env={**os.environ, "MEMCACHED_PORT_FILENAME": str(ports)},
        )
        while not ports.exists():
            assert server.poll() is None
        server.send_signal(signal.SIGUSR2)
        told = dict(line.split(": ") for line in ports.read_text().splitlines())
        assert converse(("127.0.0.1", int(told["TCP INET"])), b"mn\r\n") == b"MN\r\n"
        server.terminate()
        assert server.wait() == 0
        assert "SIGUSR2: a copy of all items" in log.read_text()


def identity(place):
    """Without the times: a reader of a link sets that of its last access."""
    status = place.lstat()
    return status.st_dev, status.st_ino, status.st_mode, status.st_nlink, status.st_rdev


def test_what_is_no_file_is_not_replaced(start, tmp_path):
    """A device would be gone for all programs of the machine."""
    places = [tmp_path / name for name in ["pipe", "link", "device"]]
    os.mkfifo(places[0])
    places[1].symlink_to(tmp_path / "elsewhere")
    if os.geteuid() == 0:
        # A null device of its own.
        os.mknod(places[2], 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    for place in places:
        if not os.path.lexists(place):
            continue
        before = identity(place)
        for flags in [("--save", str(place)), ("--save", str(place), "--check"), ("-e", str(place), "--check")]:
            assert "not a file" in refused(*flags)
        assert identity(place) == before
    # It came while the server ran.
    path, log = tmp_path / "copy", tmp_path / "log"
    server = start("--save", str(path), "--save-every", "1", "--log", str(log))
    path.unlink(missing_ok=True)
    while True:
        try:
            os.mkfifo(path)
            break
        except FileExistsError:
            path.unlink()
    conftest.said(log, "--save: ")
    assert path.is_fifo()
    server.process.kill()
    server.process.wait()


@pytest.fixture
def mounted(tmp_path):
    """A file that is mounted onto another one, as containers get single files."""
    source, place = tmp_path / "source", tmp_path / "mounted"
    source.write_text("")
    place.write_text("")
    if os.geteuid() != 0 or subprocess.run(["mount", "--bind", str(source), str(place)], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_mount_point_cannot_be_replaced_and_is_told_at_the_start(mounted):
    for flag in ["-e", "--save"]:
        told = [refused(flag, str(mounted), *check).splitlines()[-1] for check in ([], ["--check"])]
        assert told[0] == told[1] and f"{flag} {mounted}: a mount point" in told[0] and "mount its folder" in told[0]
    assert {path.name for path in mounted.parent.iterdir()} == {"source", "mounted"}


def test_a_file_that_only_its_owner_may_replace_is_told_at_the_start(stranger):
    user, folder = stranger
    os.chown(folder, 0, 0)
    folder.chmod(0o1777)
    (folder / "copy").write_text("")
    for check in ([], ["--check"]):
        command = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1", "--save", str(folder / "copy"), *check]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, user=user, group=user, extra_groups=[])
        assert ended.returncode == 2 and "who alone may replace it" in ended.stderr
    assert [path.name for path in folder.iterdir()] == ["copy"]


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_what_another_user_has_prepared_gets_no_items(stranger, mode):
    """He may write into the folder. A server that runs finds it at its stop, and one that starts tells it."""
    user, folder = stranger
    os.chown(folder, 0, 0)
    folder.chmod(mode)
    items, ready = folder / "items", folder / "ports"

    def prepare():
        prepared = folder / ".items.unfinished"
        prepared.write_text("")
        prepared.chmod(0o666)
        os.chown(prepared, user, user)
        return prepared

    environment = {"MEMCACHED_PORT_FILENAME": str(ready)}
    process = subprocess.Popen([conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1", "-e", str(items)], env=environment, stderr=subprocess.PIPE, text=True)
    while not ready.exists():
        assert process.poll() is None
        time.sleep(0.01)
    prepared = prepare()
    address = ("127.0.0.1", int(ready.read_text().split()[-1]))
    assert converse(address, b"set secret 0 0 1\r\nx\r\n") == b"STORED\r\n"
    process.terminate()
    assert process.wait() == 1 and f".items.unfinished: it belongs to the user {user}" in process.stderr.read()
    assert prepared.read_text() == "" and not items.exists()
    for check in ([], ["--check"]):
        assert f".items.unfinished: it belongs to the user {user}" in refused("-e", str(items), *check)
        assert f".items.unfinished: it belongs to the user {user}" in refused("--save", str(items), *check)


def test_what_others_may_write_is_not_loaded(start, tmp_path):
    path = tmp_path / "copy"
    server = start("--save", str(path))
    assert converse(server.address, b"set a 0 0 1\r\nx\r\n") == b"STORED\r\n"
    assert server.end() == 0
    ways = [["--load", str(path)], ["--load", str(path), "--save", str(path)], ["-e", str(path)]]

    def told(words):
        before = path.read_bytes()
        for way in ways:
            for check in ([], ["--check"]):
                said = refused(*way, *check).splitlines()[-1]
                assert words in said and str(path) in said and way[0] in said, said
        assert path.read_bytes() == before and not path.with_suffix(".refused").exists()

    path.chmod(0o666)
    told("other users may write to it: its mode is 666")
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
        told("it belongs to the user 65534")
        os.chown(path, 0, 0)
    # By a link that the administrator has made.
    (tmp_path / "link").symlink_to(path)
    assert count(start("--load", str(tmp_path / "link"))) == 1


@pytest.mark.each_engine
def test_what_finds_no_memory_is_told(start, tmp_path):
    path, log = tmp_path / "copy", tmp_path / "log"
    first = start("--save", str(path), "-m", "64")
    fill(first)
    assert converse(first.address, b"set large 0 0 900000\r\n" + b"x" * 900_000 + b"\r\n") == b"STORED\r\n"
    assert first.end() == 0
    second = start("--load", str(path), "-m", "2", "-I", "500k", "--log", str(log))
    left = count(second)
    told = conftest.said(log, r"(\d+) items, .* 1 left out \(1 larger than an item may be\); (\d+) evicted")
    assert int(told[1]) == len(ITEMS)
    evicted, gone = int(told[2]), len(ITEMS) - left
    # Partitions give capacity to each other, so of theirs some leave later than that.
    assert evicted <= gone if conftest.ENGINE in ["cphash", "lockhash"] else evicted == gone
    assert evicted > 100


@pytest.fixture
def small(tmp_path):
    """A folder with room for a megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], check=False
    ).returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_copy_that_finds_the_disk_full_is_told_and_the_one_of_before_stays(start, tmp_path, small):
    path, log = small / "copy", tmp_path / "log"
    server = start("--save", str(path), "--save-every", "1", "--log", str(log), "-v")
    assert converse(server.address, b"set a 0 0 1\r\nx\r\n") == b"STORED\r\n"
    conftest.said(log, "1 items")
    before = path.read_bytes()
    fill(server)
    conftest.said(log, "--save: .*No space left on device")
    assert path.read_bytes() == before
    # It goes on, and copies again when there is room.
    assert converse(server.address, b"flush_all\r\nset b 0 0 1\r\ny\r\n") == b"OK\r\nSTORED\r\n"
    while path.read_bytes() == before:
        time.sleep(0.05)
    assert count(start("--load", str(path))) == 1


def test_a_full_disk_is_told_and_leaves_nothing(start, small):
    server = start("-e", str(small / "items"))
    fill(server)
    server.process.terminate()
    assert server.process.wait() == 1
    assert [entry.name for entry in small.iterdir()] == ["items.lock"]


ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.argv[2], sys.argv[2:])
"""


NAMED = """
import os, sys
names = sys.argv[1].split(":")
for place, fd in enumerate(sys.argv[2].split(":")):
    os.dup2(int(fd), 3 + place)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(names)), "LISTEN_FDNAMES": ":".join(names)}
os.execv(sys.argv[3], sys.argv[3:])
"""


def test_sockets_of_systemds_have_names(tmp_path):
    """So that no port refuses anybody while the server is restarted, of whatever protocol it is."""
    listening = {name: socket.create_server(("127.0.0.1", 0)) for name in ["redis", "nuthatch.socket", "metrics", "cpserver"]}
    listening["udp"] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening["udp"].bind(("127.0.0.1", 0))
    address = {name: one.getsockname() for name, one in listening.items()}
    # Nobody serves yet; who comes waits.
    insert_and_lookup = struct.pack("<IIQ", 1, 5, 7) + b"acorn" + struct.pack("<IIQ", 0, 0, 7)
    asks = {"redis": b"PING\r\n", "nuthatch.socket": b"mn\r\n", "metrics": b"GET /healthz HTTP/1.0\r\n\r\n", "cpserver": insert_and_lookup}
    waiting = {name: socket.create_connection(address[name]) for name in asks}
    for name, text in asks.items():
        waiting[name].sendall(text)
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asking.sendto(b"\0\1\0\0\0\1\0\0mn\r\n", address["udp"])
    # Out of the way of the numbers that they get.
    high = {name: fcntl.fcntl(one.fileno(), fcntl.F_DUPFD, 50) for name, one in listening.items()}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(tmp_path / "told"))
        words = [":".join(high), ":".join(map(str, high.values())), *conftest.IN_LAB, "-t", "2"]
        process = subprocess.Popen([sys.executable, "-c", NAMED, *words], pass_fds=list(high.values()),
                                   env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "told")})
        until_ready(told, process)
    assert waiting["redis"].recv(100) == b"+PONG\r\n"
    assert waiting["nuthatch.socket"].recv(100) == b"MN\r\n"
    assert waiting["cpserver"].makefile("rb").read(9) == struct.pack("<I", 5) + b"acorn"
    # Its clients gain by large batches, wherever they come in.
    assert b"STAT batch_max 1000\r\n" in converse(address["nuthatch.socket"], b"stats settings\r\n")
    assert waiting["metrics"].recv(100).startswith(b"HTTP/1.1 200")
    asking.settimeout(120)
    assert asking.recv(100)[8:] == b"MN\r\n"
    process.terminate()
    assert process.wait() == 0 and waiting["cpserver"].recv(100) == b""
    for descriptor in high.values():
        os.close(descriptor)


def test_sockets_of_systemds_that_cannot_be_are_told(tmp_path):
    ear = socket.create_server(("127.0.0.1", 0))
    other = socket.create_server(("127.0.0.1", 0))
    deaf = socket.socket()
    deaf.bind(("127.0.0.1", 0))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("127.0.0.1", 0))
    path = socket.socket(socket.AF_UNIX)
    path.bind(str(tmp_path / "socket"))
    path.listen()
    for names, sockets, words in [
        ("memcached", [deaf], "not a listening socket"),
        ("memcached", [datagrams], "not a listening socket"),
        ("memcached:udp", [ear, other], "not a socket for datagrams"),
        ("memcached:metrics", [ear, path], "--metrics: cannot listen at descriptor 4: a unix socket"),
        ("memcached:metrics", [ear, deaf], "--metrics: cannot listen at descriptor 4: not a listening socket"),
        ("memcached:metrics", [ear, datagrams], "--metrics: cannot listen at descriptor 4: not a listening socket"),
        # Its clients are served by another program.
        ("memcached:cpserver", [ear, other], "systemd's socket cpserver: its clients are served by `nuthatch-lab serve`"),
    ]:
        high = [fcntl.fcntl(one.fileno(), fcntl.F_DUPFD, 50) for one in sockets]
        command = [sys.executable, "-c", NAMED, names, ":".join(map(str, high)), conftest.NUTHATCH, "-t", "1"]
        ended = subprocess.run(command, pass_fds=high, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode != 0 and words in ended.stderr, (names, ended.stderr)
        for descriptor in high:
            os.close(descriptor)


def test_the_sockets_of_units_have_names_that_the_server_knows():
    units = sorted((conftest.ROOT / "dist/systemd").glob("*.socket"))
    names = [re.search("^FileDescriptorName=(.*)$", unit.read_text(), re.M)[1] for unit in units]
    assert sorted(names) == ["memcached", "metrics", "redis", "udp"]
    # The package stops and forgets each of them.
    script = (conftest.ROOT / "scripts/package-deb.sh").read_text()
    lists = re.findall("for unit in (.*); do", script)
    assert len(lists) == 2
    assert all({unit.name for unit in units} <= set(one.split()) for one in lists)


def until_ready(told, process):
    """What systemd is told until the server is ready: bounded by the process's life, not by a clock."""
    said = []
    while "READY=1" not in said:
        if select.select([told], [], [], 0.1)[0]:
            said.append(told.recv(100).decode().strip())
        else:
            assert process.poll() is None, f"the server ended at once: {process.args}"
    return said


def test_systemd_is_asked_for_time_while_items_are_read_and_written(tmp_path):
    """Else it kills a start or a stop that takes longer than its timeouts, and with it the items."""
    more = "EXTEND_TIMEOUT_USEC=300000000"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(tmp_path / "told"))

        def serve(name):
            ports = tmp_path / name
            command = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1", "-e", str(tmp_path / "items")]
            environment = {"NOTIFY_SOCKET": str(tmp_path / "told"), "MEMCACHED_PORT_FILENAME": str(ports)}
            process = subprocess.Popen(command, env={**os.environ, **environment})
            said = until_ready(told, process)
            return process, said, ("127.0.0.1", int(ports.read_text().split()[-1]))

        first, said, address = serve("first")
        assert more not in said
        assert converse(address, b"set a 0 0 1\r\nx\r\n") == b"STORED\r\n"
        first.terminate()
        assert first.wait() == 0
        assert told.recv(100).decode().strip() == more
        second, said, _ = serve("second")
        assert said == [more, "READY=1"]
        second.kill()
        second.wait()


def test_no_client_is_refused_across_a_restart_under_a_socket_of_systemds(tmp_path):
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        address = listening.getsockname()

        def serve(number):
            ready = tmp_path / f"ready{number}"
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
                told.bind(str(ready))
                command = [sys.executable, "-c", ACTIVATE, str(listening.fileno()), *conftest.SERVER]
                flags = ["-e", str(tmp_path / "items")]
                process = subprocess.Popen([*command, *flags], pass_fds=[listening.fileno()],
                                           env={**os.environ, "NOTIFY_SOCKET": str(ready)})
                until_ready(told, process)
            return process

        first = serve(1)
        assert converse(address, b"set a 5 0 1\r\nx\r\n") == b"STORED\r\n"
        first.terminate()
        assert first.wait() == 0
        # Nobody serves now, and still nobody is refused.
        waiting = [socket.create_connection(address) for _ in range(20)]
        for client in waiting:
            client.sendall(b"get a\r\n")
        second = serve(2)
        for client in waiting:
            assert client.recv(100) == b"VALUE a 5 1\r\nx\r\nEND\r\n"
            client.close()
        second.terminate()
        assert second.wait() == 0
