"""A server with -o drop_privileges does all that one without it does, and is confined."""

import ctypes
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest
from conftest import NUTHATCH, Server
from judge import converse
from pymemcache.client.base import Client
from test_security import certificate, context, tls_flags


def has_landlock():
    """Asks the kernel for its version of Landlock."""
    return ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) > 0


pytestmark = pytest.mark.skipif(not has_landlock(), reason="the kernel has no Landlock")


def status(process):
    lines = pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return dict(line.split(":\t") for line in lines if ":\t" in line)


def test_it_is_confined_in_all_threads(tmp_path):
    server = Server(tmp_path, "-o", "drop_privileges", "-U", "-1", "--metrics", "127.0.0.1:0")
    # It listens a moment before; for all threads at once it is then.
    end = time.monotonic() + 120
    while status(server.process)["Seccomp"] != "2":
        assert time.monotonic() < end
        time.sleep(0.01)
    for thread in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
        said = (thread / "status").read_text()
        assert "NoNewPrivs:\t1" in said and "Seccomp:\t2" in said
    client = Client(server.address)
    client.set("k", b"x" * 100_000)
    assert client.get("k") == b"x" * 100_000
    assert b"STAT rusage_user" in converse(server.address, b"stats\r\n")
    assert server.end() == 0


def test_systemd_is_told_of_the_start_and_of_a_long_stop(tmp_path, monkeypatch):
    """By a socket that was opened before: a confined process makes none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(tmp_path / "notify"))
        told.settimeout(120)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        server = Server(tmp_path, "-o", "drop_privileges", "-e", str(tmp_path / "items"))
        assert told.recv(1000) == b"READY=1\n"
        Client(server.address).set("k", b"x", noreply=False)
        assert server.end() == 0
        assert told.recv(1000).startswith(b"EXTEND_TIMEOUT_USEC=")


def test_what_a_server_writes_and_reads_again(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for name, ca in [("ca", None), ("server", "ca")]:
        certificate(folder, name, ca=ca)
    users = folder / "users"
    users.write_text("ann:secret\n")
    users.chmod(0o600)
    log, pid, items, saved = (tmp_path / name / name for name in ("log", "pid", "items", "saved"))
    for file in (log, pid, items, saved):
        file.parent.mkdir()
    flags = ["-o", "drop_privileges", *tls_flags(folder), "-Y", str(users), "--log", str(log), "-P", str(pid),
             "-e", str(items), "--save", str(saved), "--save-every", "1", "-v"]
    server = Server(tmp_path, *flags)

    def say(text, password=b"secret"):
        return converse_as(server, folder, b"set a 0 0 %d\r\nann %s\r\n" % (4 + len(password), password) + text)

    def wait_for(what):
        until = time.monotonic() + 120
        while not what():
            assert time.monotonic() < until
            time.sleep(0.02)

    assert b"STORED" in say(b"set k 0 0 1\r\nx\r\n")
    wait_for(saved.exists)
    # The log is put away, the password changed and the certificate replaced by another file.
    os.rename(log, log.with_name("old"))
    users.with_name("new").write_text("ann:other\n")
    os.rename(users.with_name("new"), users)
    users.chmod(0o600)
    (folder / "later").mkdir()
    certificate(folder, "late", ca="ca")
    os.rename(folder / "late.pem", folder / "server.pem")
    os.rename(folder / "late.key", folder / "server.key")
    server.process.send_signal(signal.SIGHUP)
    wait_for(log.exists)
    wait_for(lambda: b"VALUE k" in say(b"get k\r\n", b"other"))
    assert subject(server, folder) == "late"
    assert server.end() == 0
    assert items.exists() and not pid.exists()
    # The next one has the items.
    (tmp_path / "ports").unlink()
    server = Server(tmp_path, *flags)
    assert b"VALUE k" in say(b"get k\r\n", b"other")
    assert server.end() == 0


def converse_as(server, folder, text):

    with socket.create_connection(server.address) as plain:
        with context(folder).wrap_socket(plain, server_hostname="localhost") as connection:
            connection.sendall(text + b"quit\r\n")
            said = b""
            while more := connection.recv(65536):
                said += more
    return said


def subject(server, folder):

    with socket.create_connection(server.address) as plain:
        with context(folder).wrap_socket(plain, server_hostname="localhost") as connection:
            found = connection.getpeercert()["subject"]
    return dict(pair for (pair,) in found)["commonName"]


def test_a_unix_socket_is_removed(tmp_path):


    path = tmp_path / "socket"
    server = subprocess.Popen([NUTHATCH, "-s", str(path), "-o", "drop_privileges"])
    while not path.exists():
        assert server.poll() is None
        time.sleep(0.01)
    # Up, and not just bound.
    while status(server)["Seccomp"] != "2":
        assert server.poll() is None
        time.sleep(0.01)
    server.terminate()
    assert server.wait() == 0 and not path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts other files")
def test_names_of_hosts_are_not_looked_up_again(tmp_path):
    """A confined server cannot ask for one; another one would wait for the answer before it heeds the next signal."""
    hosts, config, log, ports = (tmp_path / name for name in ["hosts", "config", "log", "ports"])
    hosts.write_text("127.0.0.1 cache.example\n")
    for more in [["-o", "drop_privileges"], []]:
        config.write_text('listen = "cache.example"\nport = 0\nconn-limit = 100\n')
        log.unlink(missing_ok=True)
        ports.unlink(missing_ok=True)
        command = [NUTHATCH, "--config", str(config), "--log", str(log), *more]
        view = f"mount --bind {hosts} /etc/hosts && exec \"$@\""
        environment = {**os.environ, "MEMCACHED_PORT_FILENAME": str(ports)}
        process = subprocess.Popen(["unshare", "-m", "sh", "-c", view, "sh", *command], env=environment)
        while not ports.exists():
            assert process.poll() is None
            time.sleep(0.01)
        address = ("127.0.0.1", int(ports.read_text().split(": ")[1]))
        hosts.write_text("127.0.0.1 other.example\n")
        config.write_text('listen = "cache.example"\nport = 0\nconn-limit = 200\n')
        process.send_signal(signal.SIGHUP)
        while "SIGHUP: applied: conn-limit = 200" not in log.read_text():
            assert "nothing was changed" not in log.read_text(), log.read_text()
        assert b"STAT max_connections 200\r\n" in converse(address, b"stats\r\n")
        config.write_text('listen = "another.example"\nport = 0\nconn-limit = 200\n')
        process.send_signal(signal.SIGHUP)
        while "SIGHUP: needs a restart: listen" not in log.read_text():
            assert "nothing was changed" not in log.read_text(), log.read_text()
        process.terminate()
        assert process.wait() == 0
        hosts.write_text("127.0.0.1 cache.example\n")
