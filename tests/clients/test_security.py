"""Passwords and TLS: who is let in, who is not, and what is told to whom."""

import socket
import ssl
import subprocess

import bmemcached
import pytest
from judge import converse
from pymemcache.client.base import Client
from test_binary import NOOP, SET, VERSION, answers, request, store

LIST, AUTH = 0x20, 0x21
USERS = "ann:secret\nbob:other:word\n"


@pytest.fixture
def passwords(tmp_path):
    path = tmp_path / "users"
    path.write_text(USERS)
    path.chmod(0o600)
    return path


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def certificate(folder, name, *, ca=None, days=2):
    """A key and a certificate, signed by itself or by `ca`."""
    key, cert = folder / f"{name}.key", folder / f"{name}.pem"
    subject = ["-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    signer = ["-CA", str(folder / f"{ca}.pem"), "-CAkey", str(folder / f"{ca}.key")] if ca else []
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", str(key), "-out", str(cert), "-days", str(days), *subject, *signer,
            "-addext", f"basicConstraints=critical,CA:{'FALSE' if ca else 'TRUE'}")
    return cert, key


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    for name, ca in [("ca", None), ("server", "ca"), ("other", "ca"), ("client", "ca"), ("stranger", None)]:
        certificate(folder, name, ca=ca)
    return folder


def tls_flags(folder, name="server", *more):
    options = [f"ssl_chain_cert={folder / name}.pem", f"ssl_key={folder / name}.key", *more]
    return "-Z", "-o", ",".join(options)


def context(folder, client=None):
    trusting = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if client:
        trusting.load_cert_chain(folder / f"{client}.pem", folder / f"{client}.key")
    return trusting


def converse_tls(server, folder, text, client=None):
    with socket.create_connection(server.address) as plain:
        with context(folder, client).wrap_socket(plain, server_hostname="localhost") as secured:
            secured.sendall(text)
            return secured.makefile("rb").read()


def login(name, password):
    said = f"{name} {password}"
    return f"set login 0 0 {len(said)}\r\n{said}\r\n".encode()


def test_text_clients_log_in_as_with_memcached(start, passwords):
    address = start("-Y", str(passwords)).address
    asked = b"get a\r\n"
    assert converse(address, login("ann", "secret") + asked) == b"STORED\r\nEND\r\n"
    assert converse(address, login("bob", "other:word") + asked) == b"STORED\r\nEND\r\n"
    refused = b"CLIENT_ERROR unauthenticated\r\n"
    for before in [b"get a\r\n", b"version\r\n", b"set a 0 0 1 noreply\r\nx y\r\n", b"mg a v\r\n", b"no such thing\r\n"]:
        said = converse(address, before)
        assert said.startswith((refused, b"CLIENT_ERROR authentication failure\r\n")), said
    failure = b"CLIENT_ERROR authentication failure\r\n"
    for name, password in [("ann", "secre"), ("ann", "other:word"), ("eve", "secret"), ("", ""), ("ann", "")]:
        assert converse(address, login(name, password)) == failure
    # Errors are borne a few times.
    assert converse(address, login("ann", "no") * 3 + login("ann", "secret") + asked) == failure * 3 + b"STORED\r\nEND\r\n"
    assert converse(address, login("ann", "no") * 20 + login("ann", "secret")) == failure * 8
    # A login that comes byte by byte.
    with socket.create_connection(address) as connection:
        for byte in login("ann", "secret"):
            connection.sendall(bytes([byte]))
        assert connection.recv(100) == b"STORED\r\n"


def test_binary_clients_log_in_by_sasl(start, passwords):
    server = start("-Y", str(passwords), "-S")
    def said(*requests):
        return [entry[3] for entry in answers(converse(server.address, b"".join(requests)))]
    def plain(text):
        return request(AUTH, b"PLAIN", b"", text)
    assert answers(converse(server.address, request(LIST)))[0][6] == b"PLAIN"
    assert said(plain(b"\0ann\0secret"), store(SET, b"a", b"1")) == [0, 0]
    assert said(plain(b"ann\0ann\0secret"), request(NOOP)) == [0, 0]
    assert said(store(SET, b"a", b"1"), request(NOOP)) == [0x20]
    assert said(request(VERSION), request(NOOP), request(NOOP)) == [0, 0x20]
    for wrong in [b"\0ann\0no", b"", b"\0", b"ann secret", b"\0\0\0\0", b"\0ann\0secret\0"]:
        assert said(plain(wrong)) == [0x20]
    assert said(request(AUTH, b"CRAM-MD5", b"", b"\0ann\0secret")) == [0x20]
    assert said(*[plain(b"\0ann\0no")] * 20) == [0x20] * 8
    # Who is admitted cannot guess others' passwords without end.
    assert said(plain(b"\0ann\0secret"), *[plain(b"\0bob\0no")] * 20, request(NOOP)) == [0, 0x20]
    assert said(plain(b"\0ann\0secret"), plain(b"\0bob\0other:word"), request(NOOP)) == [0, 0, 0]
    client = bmemcached.Client(f"{server.host}:{server.port}", "ann", "secret")
    assert client.set("k", "v") and client.get("k") == "v"
    client.disconnect_all()
    refused = bmemcached.Client(f"{server.host}:{server.port}", "ann", "wrong")
    with pytest.raises(bmemcached.exceptions.MemcachedException):
        refused.set("k", "v")


def test_passwords_change_with_sighup_and_a_bad_file_changes_nothing(start, passwords):
    server = start("-Y", str(passwords))
    def admitted(name, password):
        return converse(server.address, login(name, password)) == b"STORED\r\n"
    def hup(until):
        server.process.send_signal(1)
        while not until():
            pass
    passwords.write_text("ann:new\n")
    hup(lambda: admitted("ann", "new"))
    assert not admitted("ann", "secret")
    passwords.write_text("no password here\n")
    server.process.send_signal(1)
    assert admitted("ann", "new")


def test_what_cannot_be_is_told_at_the_start(tmp_path, certificates):
    import conftest

    empty = tmp_path / "empty"
    empty.write_text("")
    for flags, words in [
        (("-Y", "/nonexistent"), "/nonexistent"),
        (("-Y", str(empty)), "no user"),
        (("-S",), "-Y"),
        (("-Z",), "ssl_chain_cert"),
        (tls_flags(certificates, "none"), "none.key"),
        (("-Z", "-o", f"ssl_chain_cert={empty},ssl_key={certificates}/server.key"), "no certificate"),
        (("-Z", "-o", f"ssl_chain_cert={certificates}/server.pem,ssl_key={certificates}/other.key"), "server.pem"),
        (tls_flags(certificates, "server", "ssl_verify_mode=2"), "ssl_ca_cert"),
        (tls_flags(certificates, "server", "ssl_verify_mode=9"), "ssl_verify_mode"),
    ]:
        command = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1", *flags]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode != 0 and words in ended.stderr, (flags, ended.stderr)


def test_clients_under_tls(start, certificates):
    server = start(*tls_flags(certificates))
    client = Client(server.address, tls_context=context(certificates), connect_timeout=60, timeout=60)
    # pymemcache takes the name for the certificate from the address.
    big = b"x" * 900_000
    assert client.set("k", big) and client.get("k") == big
    client.set_many({f"m{n}": b"v" * n for n in range(300)})
    assert len(client.get_many([f"m{n}" for n in range(300)])) == 300
    client.close()
    binary = bmemcached.Client(f"{server.host}:{server.port}", tls_context=context(certificates))
    assert binary.set("b", "v") and binary.get("b") == "v"
    binary.disconnect_all()
    # A pipeline whose answers do not fit into the socket.
    said = converse_tls(server, certificates, b"get k\r\n" * 30 + b"quit\r\n")
    assert said.count(b"VALUE k 0 900000") == 30 and len(said) > 27_000_000
    settings = converse_tls(server, certificates, b"stats settings\r\nquit\r\n")
    assert b"STAT ssl_enabled yes" in settings and b"STAT ssl_min_version tlsv1.2" in settings


def test_what_is_no_tls_and_tls_where_there_is_none(start, certificates):
    secured, plain = start(*tls_flags(certificates)), start()
    assert b"END" not in converse(secured.address, b"get a\r\n")
    assert b"END" not in converse(secured.address, b"")
    with pytest.raises(ssl.SSLError), socket.create_connection(plain.address) as connection:
        context(certificates).wrap_socket(connection, server_hostname="localhost")
    # Half a handshake holds nobody up.
    half = [socket.create_connection(secured.address) for _ in range(20)]
    for connection in half:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
    assert converse_tls(secured, certificates, b"get a\r\nquit\r\n") == b"END\r\n"
    said = converse_tls(secured, certificates, b"stats\r\nquit\r\n")
    assert b"STAT ssl_handshake_errors 1" in said


def test_certificates_of_clients_and_versions(start, certificates):
    asked = b"get a\r\nquit\r\n"
    ca = f"ssl_ca_cert={certificates}/ca.pem"
    strict = start(*tls_flags(certificates, "server", ca, "ssl_verify_mode=2", "ssl_min_version=3"))
    assert converse_tls(strict, certificates, asked, "client") == b"END\r\n"
    for client in [None, "stranger"]:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            converse_tls(strict, certificates, asked, client)
    old = context(certificates, "client")
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)), socket.create_connection(strict.address) as connection:
        old.wrap_socket(connection, server_hostname="localhost")
    lenient = start(*tls_flags(certificates, "server", ca, "ssl_verify_mode=1", "ssl_session_cache"))
    assert converse_tls(lenient, certificates, asked) == b"END\r\n"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        converse_tls(lenient, certificates, asked, "stranger")


def test_certificates_are_read_again(start, certificates, tmp_path):
    for name in ["pem", "key"]:
        (tmp_path / f"server.{name}").write_bytes((certificates / f"server.{name}").read_bytes())
    server = start(*tls_flags(tmp_path))
    def subject():
        with socket.create_connection(server.address) as plain:
            with context(certificates).wrap_socket(plain, server_hostname="localhost") as secured:
                return secured.getpeercert()["subject"][0][0][1]
    assert subject() == "server"
    for name in ["pem", "key"]:
        (tmp_path / f"server.{name}").write_bytes((certificates / f"other.{name}").read_bytes())
    assert subject() == "server"
    assert converse_tls(server, certificates, b"refresh_certs\r\nquit\r\n") == b"OK\r\n"
    assert subject() == "other"
    (tmp_path / "server.pem").write_text("nothing")
    assert converse_tls(server, certificates, b"refresh_certs\r\nquit\r\n").startswith(b"SERVER_ERROR")
    assert subject() == "other"
    (tmp_path / "server.pem").unlink()
    server.process.send_signal(1)
    assert subject() == "other"


def test_one_listener_without_tls(start, certificates, tmp_path):
    server = start(*tls_flags(certificates), "-l", "notls:127.0.0.1:0")
    ports = [int(line.split()[-1]) for line in (tmp_path / "0" / "ports").read_text().splitlines()]
    kinds = []
    for port in ports:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"get a\r\n")
            connection.shutdown(socket.SHUT_WR)
            kinds.append(connection.recv(100) == b"END\r\n")
    assert sorted(kinds) == [False, True], server


def test_redis_clients_under_tls_with_a_password(start, certificates, passwords):
    import redis

    users = passwords.read_text() + "default:alone\n"
    passwords.write_text(users)
    server = start(*tls_flags(certificates), "-Y", str(passwords), "--redis-port", "0", "-B", "any")
    # -B any: the same port.
    options = {"ssl": True, "ssl_ca_certs": str(certificates / "ca.pem"), "port": server.port, "host": "127.0.0.1"}
    client = redis.Redis(**options, username="ann", password="secret")
    assert client.set("k", b"v" * 300_000) and client.get("k") == b"v" * 300_000
    assert redis.Redis(**options, password="alone").get("k")
    for wrong in [{"password": "secret"}, {"username": "ann", "password": "alone"}, {}]:
        with pytest.raises((redis.AuthenticationError, redis.ResponseError)):
            redis.Redis(**options, **wrong).get("k")


def test_the_end_of_a_connection_is_told_within_tls(start, certificates):
    """Else a client takes an end for a cut by somebody on the way."""
    server = start(*tls_flags(certificates))
    with socket.create_connection(server.address) as plain:
        secured = context(certificates).wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
        secured.sendall(b"version\r\n")
        assert secured.recv(100).startswith(b"VERSION")
        # Says that it sends no more, and waits for the server to say so too.
        secured.unwrap()
    with socket.create_connection(server.address) as plain:
        secured = context(certificates).wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
        secured.sendall(b"version\r\n")
        assert secured.recv(100).startswith(b"VERSION")
        server.process.terminate()
        assert secured.recv(100) == b""
