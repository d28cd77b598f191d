"""Gateways are operated as servers are: metrics, passwords, TLS, Redis' clients, datagrams, files that are read again."""

import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.request

import bmemcached
import pytest
import redis
from jobs import NUTHATCH_PE, Job
from prometheus_client.parser import text_string_to_metric_families
from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheClientError


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Passwords, and two certificates that a third one has signed."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "passwords").write_text("ann:secret\n")
    for name, is_signed in (("ca", False), ("server", True), ("client", True)):
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2", "-subj", f"/CN={name}"]
        command += ["-addext", "subjectAltName=IP:127.0.0.1"]
        command += ["-addext", f"basicConstraints=critical,CA:{'FALSE' if is_signed else 'TRUE'}"]
        command += ["-CA", "ca.pem", "-CAkey", "ca.key"] if is_signed else []
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return folder


@pytest.fixture
def start():
    """Starts jobs; those that a test leaves are ended."""
    jobs = []

    def start(*flags):
        jobs.append(Job("dedicated", *flags))
        return jobs[-1]

    yield start
    for job in jobs:
        job.process.terminate()
        job.process.wait()


def said_ports(job, pattern):
    """Of each gateway."""
    ports = [int(port) for line in job.said for port in re.findall(pattern, line)]
    assert len(ports) == 2, job.said
    return ports


def metrics(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        families = text_string_to_metric_families(page.read().decode())
        return {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}


def test_each_gateway_has_metrics_and_redis_clients_share_its_store(start):
    job = start("--metrics", "127.0.0.1:0", "--redis-port", "0", "-F")
    one, other = job.clients()
    first, second = (redis.Redis(port=port) for port in said_ports(job, r"Redis at \S+:(\d+)"))
    assert one.set("k", b"by memcached")
    assert second.get("k") == b"by memcached"
    assert first.set("n", 41)
    assert second.incr("n") == 42
    assert other.get("n") == b"42"
    with pytest.raises(MemcacheClientError):
        one.flush_all()
    for port in said_ports(job, r"metrics at http://127\.0\.0\.1:(\d+)/metrics"):
        told = metrics(port)
        assert told["nuthatch_connections"] >= 1
        # The store's, whichever gateway is asked.
        assert told["nuthatch_items"] == 2
    for client in (one, other, first, second):
        client.close()
    assert job.end() == 0


def test_clients_say_a_password_which_is_read_again_at_sighup(files, start):
    job = start("-Y", str(files / "passwords"))

    def login(port, password):
        client = bmemcached.Client((f"127.0.0.1:{port}",), "ann", password)
        return client.set("k", "v")

    one, other = job.ports
    assert login(one, "secret")
    stranger = Client(("127.0.0.1", other), default_noreply=False)
    with pytest.raises(MemcacheClientError):
        stranger.get("k")
    with pytest.raises(bmemcached.exceptions.MemcachedException):
        login(one, "wrong")
    (files / "passwords").write_text("ann:another\n")
    for pe in job.pes():
        os.kill(pe, signal.SIGHUP)
    # Both gateways say so.
    while sum("the passwords were read again" in line for line in list(job.said)) < 2:
        assert job.process.poll() is None, job.said
        time.sleep(0.01)
    for port in (one, other):
        assert login(port, "another")
    assert job.end() == 0


def test_tls_and_the_certificate_of_a_client(files, start):
    flags = ("-Z", "--ssl-chain-cert", str(files / "server.pem"), "--ssl-key", str(files / "server.key"))
    job = start(*flags)
    context = ssl.create_default_context(cafile=files / "ca.pem")
    one, other = (Client(("127.0.0.1", port), tls_context=context, default_noreply=False) for port in job.ports)
    assert one.set("k", b"secret")
    assert other.get("k") == b"secret"
    with socket.create_connection(("127.0.0.1", job.ports[0])) as plain:
        plain.sendall(b"get k\r\n")
        assert b"VALUE" not in plain.recv(100)
    assert job.end() == 0

    job = start(*flags, "--ssl-ca-cert", str(files / "ca.pem"))
    with pytest.raises((ssl.SSLError, OSError)):
        Client(("127.0.0.1", job.ports[0]), tls_context=context).get("k")
    context.load_cert_chain(files / "client.pem", files / "client.key")
    client = Client(("127.0.0.1", job.ports[0]), tls_context=context, default_noreply=False)
    assert client.set("k", b"v")
    client.close()
    assert job.end() == 0


def test_files_that_are_not_there_end_the_job_with_their_names(files):
    for flags in (("-Y", "/none/passwords"), ("-Z", "--ssl-chain-cert", "/none/passwords", "--ssl-key", str(files / "server.key"))):
        job = Job.start("dedicated", *flags)
        said = job.communicate()[1]
        assert job.returncode != 0
        assert "/none/passwords" in said, said


def test_a_log_that_nobody_reads_stops_no_client(tmp_path):
    """One PE without a launcher, whose log goes into a pipe that is full."""
    ports = tmp_path / "ports"
    pe = subprocess.Popen(
        [NUTHATCH_PE, "--co-located", "-vv", "-l", "127.0.0.1", "-p", "0", "-m", "16", "-t", "1"],
        env={**os.environ, "MEMCACHED_PORT_FILENAME": str(ports)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        port = None
        while port is None:
            line = pe.stderr.readline()
            assert line
            port = re.search(r"gateway at \S+:(\d+)", line)
        client = Client(("127.0.0.1", int(port[1])), default_noreply=False)
        # Two lines a command: some megabytes, of which a pipe takes 64 KiB.
        for number in range(20_000):
            assert client.set("k", str(number))
        assert client.get("k") == b"19999"
        assert client.stats()[b"log_lines_lost"] > 0
    finally:
        threading.Thread(target=pe.stderr.read, daemon=True).start()
        pe.terminate()
        assert pe.wait() == 0
