"""A real server for the tests: the program that NUTHATCH names."""

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

import nuthatch


class Server:
    """A running server, at a port and two sockets of its own."""

    def __init__(self, folder, *flags, port=-1):
        folder.mkdir(exist_ok=True)
        ports = folder / "ports"
        ports.unlink(missing_ok=True)
        self.shared = folder / "shared"
        command = [os.environ["NUTHATCH"], "-l", "127.0.0.1", "-p", str(port), "-m", "64", "--shared", self.shared, *flags]
        self.process = subprocess.Popen(command, env={**os.environ, "MEMCACHED_PORT_FILENAME": str(ports)})
        # Ready when it has written where it listens: bounded by the process's life, not by a clock.
        while not (ports.exists() and ports.read_text().endswith("\n")):
            assert self.process.poll() is None, "the server ended at once"
            time.sleep(0.01)
        told = dict(line.split(": ") for line in ports.read_text().splitlines())
        self.port = int(told["TCP INET"])
        self.address = f"tcp://127.0.0.1:{self.port}"
        # By its memory, and by a ring there.
        self.memory = f"shm://{self.shared}"

    def end(self):
        self.process.terminate()
        return self.process.wait()


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    assert server.end() == 0


@pytest.fixture
def server(running):
    """The server, empty."""
    with nuthatch.Client(running.address) as client:
        client.flush_all()
    return running


@pytest.fixture(params=["address", "memory"])
def client(server, request):
    with nuthatch.Client(getattr(server, request.param)) as client:
        yield client


def python(script, *words, **options):
    """Runs a program of Python and returns what it said; it has to end well."""
    run = [sys.executable, "-c", script, *map(str, words)]
    said = subprocess.run(run, capture_output=True, text=True, check=False, **options)
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


@pytest.fixture
def free_port():
    """A port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def silent_port():
    """A port at which somebody says that it is there, and then nothing more."""
    held = []

    def serve(listener):
        try:
            while True:
                held.append(listener.accept()[0])
                held[-1].recv(4)
                held[-1].sendall(b"MN\r\n")
        except OSError:
            pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve, args=(listener,), daemon=True)
        serving.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        serving.join()
        for connection in held:
            connection.close()
