"""Passwords and TLS: who is let in, who is not, and what is told to whom."""

import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import time

import bmemcached
import conftest
import pytest
from judge import MEMCACHED, converse, needs_right
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
    for before in [b"get a\r\n", b"version\r\n", b"mg a v\r\n", b"no such thing\r\n"]:
        said = converse(address, before)
        assert said.startswith((refused, b"CLIENT_ERROR authentication failure\r\n")), said
    assert converse(address, b"set a 0 0 1 noreply\r\nx y\r\n") == b"CLIENT_ERROR bad command line termination\r\n"
    failure = b"CLIENT_ERROR authentication failure\r\n"
    for name, password in [("ann", "secre"), ("ann", "other:word"), ("eve", "secret"), ("", ""), ("ann", "")]:
        assert converse(address, login(name, password)) == failure
    # Errors are borne a few times.
    assert converse(address, login("ann", "no") * 3 + login("ann", "secret") + asked) == failure * 3 + b"STORED\r\nEND\r\n"
    assert converse(address, login("ann", "no") * 20 + login("ann", "secret")) == failure * 8
    # The words between `set` and the length count for nothing, nor do those behind it.
    for words in ["_ _ _", "k x -1", "k 99999999999 0", "k" * 300 + " 0 0"]:
        for end in ["\r\n", "\n", " noreply\r\n", " more words\r\n"]:
            said = f"set {words} 10{end}ann secret\r\n".encode()
            assert converse(address, said + asked) == b"STORED\r\nEND\r\n", said
    for line in [b"set _ _ 10", b"set _ _ _ ten", b"set _ _ _ -1", b"set _ _ _ 4294967296", b"add _ _ _ 10", b"settle _ _ _ 10"]:
        assert converse(address, line + b"\r\n") == refused, line
    assert converse(address, b"set _ _ _ 1025\r\n" + asked) == b"CLIENT_ERROR auth token too long\r\n"
    assert converse(address, b"set _ _ _ 10\r\nann secret!!" + login("ann", "secret")) == b"CLIENT_ERROR bad command line termination\r\nSTORED\r\n"
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
    # A client that is logged in cannot guess others' passwords without end.
    assert said(plain(b"\0ann\0secret"), *[plain(b"\0bob\0no")] * 20, request(NOOP)) == [0, 0x20]
    assert said(plain(b"\0ann\0secret"), plain(b"\0bob\0other:word"), request(NOOP)) == [0, 0, 0]
    client = bmemcached.Client(f"{server.host}:{server.port}", "ann", "secret")
    assert client.set("k", "v") and client.get("k") == "v"
    client.disconnect_all()
    refused = bmemcached.Client(f"{server.host}:{server.port}", "ann", "wrong")
    with pytest.raises(bmemcached.exceptions.MemcachedException):
        refused.set("k", "v")


def test_passwords_change_with_sighup_and_a_bad_file_changes_nothing(start, passwords, tmp_path):
    log = tmp_path / "log"
    server = start("-Y", str(passwords), "--log", str(log))
    def admitted(name, password):
        return converse(server.address, login(name, password)) == b"STORED\r\n"
    def hup(until):
        server.process.send_signal(1)
        while not until():
            pass
    passwords.write_text("ann:new\n")
    hup(lambda: admitted("ann", "new"))
    assert not admitted("ann", "secret")
    conftest.said(log, "SIGHUP: the passwords were read again")
    passwords.write_text("no password here\n")
    server.process.send_signal(1)
    conftest.said(log, "SIGHUP: the passwords of before stay")
    assert admitted("ann", "new")


def test_what_cannot_be_is_told_at_the_start(tmp_path, certificates):

    empty, endless = tmp_path / "empty", tmp_path / "endless"
    empty.write_text("")
    endless.write_text("\n" * 20_000_000)
    for flags, words in [
        (("-Y", "/nonexistent"), "/nonexistent"),
        (("-Y", str(empty)), "no user"),
        (("-Y", str(endless)), "longer than"),
        (("-Y", str(tmp_path)), "directory"),
        (("-Z", "-o", f"ssl_chain_cert={endless},ssl_key={certificates}/server.key"), "endless: longer than"),
        (("-Z", "-o", f"ssl_chain_cert={certificates}/server.pem,ssl_key={endless}"), "endless: longer than"),
        (("-S",), "-Y"),
        (("-Z",), "ssl_chain_cert"),
        (tls_flags(certificates, "none"), "none.pem"),
        (("-Z", "-o", f"ssl_chain_cert={empty},ssl_key={certificates}/server.key"), "no certificate"),
        (("-Z", "-o", f"ssl_chain_cert={certificates}/server.pem,ssl_key={certificates}/other.key"), "server.pem"),
        (tls_flags(certificates, "server", "ssl_verify_mode=2"), "ssl_ca_cert"),
        (tls_flags(certificates, "server", "ssl_verify_mode=9"), "ssl_verify_mode"),
    ]:
        command = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1", *flags]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode != 0 and words in ended.stderr, (flags, ended.stderr)


def test_a_secret_that_everybody_can_read_is_told(start, certificates, passwords, tmp_path):
    log, key = tmp_path / "log", tmp_path / "key"
    key.write_bytes((certificates / "server.key").read_bytes())
    for path in [key, passwords]:
        path.chmod(0o644)
    flags = ("-Z", "-o", f"ssl_chain_cert={certificates}/server.pem,ssl_key={key}", "-Y", str(passwords), "--log", str(log))
    start(*flags)
    conftest.said(log, f"{key}: everybody can read the private key")
    conftest.said(log, f"{passwords}: everybody can read the passwords")
    for path in [key, passwords]:
        path.chmod(0o640)
    log = tmp_path / "none"
    start(*flags[:-1], str(log)).end()
    assert "everybody" not in log.read_text()


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


def test_who_speaks_no_tls_is_told_in_the_log_and_does_not_fill_it(start, certificates, tmp_path):
    log = tmp_path / "log"
    server = start(*tls_flags(certificates), "--log", str(log))
    for _ in range(30):
        assert b"END" not in converse(server.address, b"get a\r\n")
    conftest.said(log, "(?s)(the client does not speak TLS.*){10}")
    lines = log.read_text().splitlines()
    assert 10 <= len([line for line in lines if "the client does not speak TLS" in line]) <= 20, lines


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


def test_certificates_of_other_files(start, certificates, tmp_path):
    """A configuration file that names other files: refresh_certs and SIGHUP read those."""
    config, log = tmp_path / "config", tmp_path / "log"
    heard = 0

    def names(cert, key=None):
        config.write_text(f"enable-ssl = true\nextended = [\"ssl_chain_cert={certificates}/{cert}.pem\", "
                          f"\"ssl_key={certificates}/{key or cert}.key\"]\n")

    def hang_up():
        """What the log says of it, which ends with what was applied, or with what was not."""
        nonlocal heard
        server.process.send_signal(signal.SIGHUP)
        while True:
            said = log.read_text()
            news = said[heard:]
            if re.search("SIGHUP: (applied|nothing|no setting)", news):
                heard = len(said)
                return news

    def in_use():
        with socket.create_connection(server.address) as plain:
            with context(certificates).wrap_socket(plain, server_hostname="localhost") as secured:
                return secured.getpeercert()["subject"][0][0][1]

    def told():
        said = converse_tls(server, certificates, b"stats settings\r\nquit\r\n").decode()
        found = {line.split()[1]: line.split()[2] for line in said.splitlines() if line.startswith("STAT ssl_")}
        return [found[name].removeprefix(f"{certificates}/") for name in ("ssl_chain_cert", "ssl_key")]

    names("server")
    server = start("--config", str(config), "--log", str(log))
    assert (in_use(), told()) == ("server", ["server.pem", "server.key"])
    names("other")
    assert converse_tls(server, certificates, b"refresh_certs\r\nquit\r\n") == b"OK\r\n"
    assert (in_use(), told()) == ("other", ["other.pem", "other.key"])
    # A key that is not the certificate's, and files that are not there.
    for wrong in [("server", "client"), ("absent",)]:
        names(*wrong)
        assert converse_tls(server, certificates, b"refresh_certs\r\nquit\r\n").startswith(b"SERVER_ERROR")
        news = hang_up()
        assert "the certificates of before stay" in news and "ssl_key =" not in news, news
        assert (in_use(), told()) == ("other", ["other.pem", "other.key"])
    # A file of settings that cannot be meant so names no other certificates.
    names("server")
    config.write_text(config.read_text() + "no-such = 1\n")
    assert converse_tls(server, certificates, b"refresh_certs\r\nquit\r\n") == b"OK\r\n"
    assert "nothing was changed" in hang_up()
    assert in_use() == "other"
    names("client")
    news = hang_up()
    assert f'-o ssl_chain_cert = "{certificates}/client.pem", -o ssl_key = "{certificates}/client.key"' in news, news
    assert "restart" not in news, news
    assert (in_use(), told()) == ("client", ["client.pem", "client.key"])
    # Without TLS the server would be another.
    config.write_text("conn-limit = 99\n")
    hang_up()
    conftest.said(log, "needs a restart: -o ssl_chain_cert, -o ssl_key, enable-ssl")
    assert (in_use(), told()) == ("client", ["client.pem", "client.key"])


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


def test_listeners_ask_for_certificates_each_as_it_says(start, certificates, tmp_path):
    ca = f"ssl_ca_cert={certificates}/ca.pem"
    server = start(*tls_flags(certificates, "server", ca, "ssl_verify_mode=1", "ssl_session_cache"),
                   "-l", "mtls:proto[ascii]:127.0.0.1:0,btls:tag_any_:127.0.0.1:0")
    ports = [int(line.split()[-1]) for line in (tmp_path / "0" / "ports").read_text().splitlines()]
    asked, done = b"get a\r\nquit\r\n", b"END\r\n"
    for port, served in zip(ports, [{None, "client"}, {"client"}, {None, "client", "stranger"}], strict=True):
        server.port = port
        for client in [None, "client", "stranger"]:
            if client in served:
                assert converse_tls(server, certificates, asked, client) == done
            else:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    converse_tls(server, certificates, asked, client)
    # A session that was begun without a certificate leads nowhere where one is demanded.
    trusting = context(certificates)
    trusting.maximum_version = ssl.TLSVersion.TLSv1_2
    def secured(port, session=None):
        return trusting.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost", session=session)
    with secured(ports[2]) as first, secured(ports[2], first.session) as again:
        assert again.session_reused
        with pytest.raises((ssl.SSLError, ConnectionError)), secured(ports[1], first.session) as other:
            other.sendall(asked)
            assert other.recv(100) == b""
            raise ConnectionError


def test_ciphers_are_those_that_were_named(start, certificates):
    named = "ECDHE-ECDSA-AES128-GCM-SHA256"
    server = start(*tls_flags(certificates, "server", f"ssl_ciphers={named}"))
    trusting = context(certificates)
    def cipher():
        with socket.create_connection(server.address) as plain:
            with trusting.wrap_socket(plain, server_hostname="localhost") as secured:
                return secured.cipher()[0]
    # The list says nothing of TLS 1.3.
    assert cipher().startswith("TLS_")
    trusting.maximum_version = ssl.TLSVersion.TLSv1_2
    assert cipher() == named
    trusting.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        cipher()


def test_what_a_start_says_to_type_next_works_under_tls(certificates, passwords):

    ca = f"ssl_ca_cert={certificates}/ca.pem"
    for verify, users in [(0, ()), (2, ()), (2, ("-Y", str(passwords)))]:
        flags = [*tls_flags(certificates, "server", ca, f"ssl_verify_mode={verify}"), *users]
        command = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1", *flags]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            lines = iter(server.stderr.readline, "")
            assert any(line.endswith(" (TLS)\n") for line in lines)
            said = next(lines).removeprefix("try: ").split("   (Ctrl-C")[0]
            for words, meant in [("NAME PASSWORD", "ann secret"), ("CERTIFICATE", f"{certificates}/client.pem"),
                                 (" KEY", f" {certificates}/client.key")]:
                said = said.replace(words, meant)
            typed = subprocess.run(said, shell=True, capture_output=True, check=False)
            server.terminate()
        assert typed.stdout.endswith(b"STORED\r\nVALUE seed 0 5\r\nacorn\r\nEND\r\n"), (said, typed)


def test_a_certificate_that_is_demanded_keeps_others_out(certificates):

    warning = "may read and write"
    ca = f"ssl_ca_cert={certificates}/ca.pem"
    for verify, warns in [(0, True), (1, True), (2, False)]:
        flags = tls_flags(certificates, "server", ca, f"ssl_verify_mode={verify}")
        command = [conftest.NUTHATCH, "-l", "0.0.0.0", "-p", "-1", *flags]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            lines = []
            for line in iter(server.stderr.readline, ""):
                lines.append(line)
                if ": engine " in line:
                    break
            server.terminate()
        assert any(warning in line for line in lines) == warns, (verify, lines)


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


def hello(folder):
    """What a client of TLS says first, and what goes on from there."""
    come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
    side = context(folder).wrap_bio(come, go, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        side.do_handshake()
    return side, come, go


def shake_hands(connection, side, come, go):
    """Goes on until the handshake is done."""
    while True:
        try:
            side.do_handshake()
            return connection.sendall(go.read())
        except ssl.SSLWantReadError:
            connection.sendall(go.read())
            more = connection.recv(1 << 16)
            assert more, "closed amidst a handshake"
            come.write(more)


def ask_within(connection, side, come, go, text, end):
    side.write(text)
    connection.sendall(go.read())
    said = b""
    while not said.endswith(end):
        try:
            said += side.read(1 << 16)
        except ssl.SSLWantReadError:
            more = connection.recv(1 << 16)
            assert more, said
            come.write(more)
    return said


def test_handshakes_leave_the_others_their_turn(start, certificates):
    server = start(*tls_flags(certificates), "-t", "1")
    served = socket.create_connection(server.address)
    of_served = hello(certificates)
    shake_hands(served, *of_served)
    count = 100
    clients = [(socket.create_connection(server.address), hello(certificates)) for _ in range(count)]
    while f"STAT curr_connections {count + 1}\r\n".encode() not in ask_within(served, *of_served, b"stats\r\n", b"END\r\n"):
        pass
    # All of them have something to say before the server looks again, and who is served is the last.
    server.process.send_signal(signal.SIGSTOP)
    for connection, (_, _, go) in clients:
        connection.sendall(go.read())
    of_served[0].write(b"stats\r\n")
    served.sendall(of_served[2].read())
    server.process.send_signal(signal.SIGCONT)
    said = ask_within(served, *of_served, b"", b"END\r\n")
    # It had its answer while handshakes still waited.
    assert b"STAT conn_yields 0\r\n" not in said
    for connection, side in clients:
        shake_hands(connection, *side)
        assert ask_within(connection, *side, b"mn\r\n", b"\r\n") == b"MN\r\n"
        connection.close()
    served.close()


def test_hundreds_who_log_in_under_tls_at_once_all_get_in(start, certificates, passwords):
    server = start(*tls_flags(certificates), "-Y", str(passwords), "-c", "2000")
    served = socket.create_connection(server.address)
    of_served = hello(certificates)
    shake_hands(served, *of_served)
    assert ask_within(served, *of_served, login("ann", "secret"), b"\r\n") == b"STORED\r\n"
    clients = [(socket.create_connection(server.address), hello(certificates)) for _ in range(600)]
    for connection, (_, _, go) in clients:
        connection.sendall(go.read())
    for number, (connection, side) in enumerate(clients):
        shake_hands(connection, *side)
        side[0].write(login("ann", "secret") + b"mn\r\n")
        connection.sendall(side[2].read())
        if number % 50 == 0:
            assert ask_within(served, *of_served, b"get none\r\n", b"END\r\n") == b"END\r\n"
    for connection, side in clients:
        assert ask_within(connection, *side, b"", b"MN\r\n") == b"STORED\r\nMN\r\n"
        connection.close()
    served.close()


def test_thousands_who_log_in_at_once_all_get_in(start, passwords):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(10_000, hard - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        server = start("-Y", str(passwords), "-c", str(count + 10))
        clients = [socket.create_connection(server.address) for _ in range(count)]
        for client in clients:
            client.sendall(login("ann", "secret") + b"mn\r\n")
        for client in clients:
            said = b""
            while not said.endswith(b"MN\r\n"):
                more = client.recv(100)
                assert more, said
                said += more
            assert said == b"STORED\r\nMN\r\n"
        for client in clients:
            client.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_half_a_handshake_and_half_a_login_are_closed(start, certificates, passwords):
    server = start(*tls_flags(certificates), "-Y", str(passwords), "-o", "login_timeout=2")
    half = [socket.create_connection(server.address) for _ in range(3)]
    half[1].sendall(b"\x16\x03\x01\x02\x00\x01\x00")
    of_half = hello(certificates)
    shake_hands(half[2], *of_half)
    of_half[0].write(b"set login 0 0 10\r\nann")
    half[2].sendall(of_half[2].read())
    served = socket.create_connection(server.address)
    of_served = hello(certificates)
    shake_hands(served, *of_served)
    assert ask_within(served, *of_served, login("ann", "secret"), b"\r\n") == b"STORED\r\n"
    for connection in half:
        while True:
            try:
                if not connection.recv(1 << 16):
                    break
            except ConnectionResetError:
                break
    # A connection that is logged in stays, however long.
    counted = ask_within(served, *of_served, b"stats\r\n", b"END\r\n")
    assert b"STAT login_kicks 3\r\n" in counted


def test_a_stream_of_tls_that_is_cut_anywhere_harms_nobody(start, certificates):
    server = start(*tls_flags(certificates))
    side, come, go = hello(certificates)
    with socket.create_connection(server.address) as connection:
        first = go.read()
        connection.sendall(first)
        while True:
            try:
                side.do_handshake()
                break
            except ssl.SSLWantReadError:
                come.write(connection.recv(1 << 16))
        side.write(b"set k 0 0 5\r\nwhole\r\n")
        second = go.read()
    # Another session refuses the second part, so it is cut in the first, and a session of its own in the second.
    for end in [*range(0, len(first), 7), len(first) - 1]:
        with socket.create_connection(server.address) as connection:
            connection.sendall(first[:end])
    for end in range(0, len(second), 11):
        with socket.create_connection(server.address) as connection:
            fresh = hello(certificates)
            connection.sendall(fresh[2].read())
            while True:
                try:
                    fresh[0].do_handshake()
                    break
                except ssl.SSLWantReadError:
                    fresh[1].write(connection.recv(1 << 16))
            fresh[0].write(b"set k 0 0 5\r\nwhole\r\n")
            connection.sendall(fresh[2].read()[:end])
    assert converse_tls(server, certificates, b"get k\r\nquit\r\n") == b"END\r\n"
    assert converse_tls(server, certificates, b"set k 0 0 5\r\nwhole\r\nquit\r\n") == b"STORED\r\n"


def test_guesses_of_redis_clients_have_an_end(start, passwords):
    server = start("-Y", str(passwords), "-B", "any")
    def guess(name, password):
        return f"*3\r\n$4\r\nAUTH\r\n${len(name)}\r\n{name}\r\n${len(password)}\r\n{password}\r\n".encode()
    wrong = guess("bob", "no")
    assert converse(server.address, wrong * 20).count(b"-WRONGPASS") == 8
    # Admitted by one name, one does not try others' passwords without end; nor by giving it up in between.
    said = converse(server.address, guess("ann", "secret") + wrong * 20)
    assert said.startswith(b"+OK\r\n") and said.count(b"-WRONGPASS") == 8
    reset = b"*1\r\n$5\r\nRESET\r\n"
    said = converse(server.address, (guess("ann", "secret") + wrong * 3 + reset) * 20)
    assert said.count(b"-WRONGPASS") == 8


def test_no_password_and_no_value_is_in_the_log(start, passwords, tmp_path):
    log = tmp_path / "log"
    server = start("-Y", str(passwords), "-B", "any", "-vv", "--log", str(log))
    def bulk(*words):
        return f"*{len(words)}\r\n".encode() + b"".join(f"${len(word)}\r\n{word}\r\n".encode() for word in words)
    for text in [
        login("ann", "secret") + b"set text 0 0 9\r\nwith-data\r\nget text\r\n",
        login("ann", "secretive"),
        b"auth ann secret\r\n" + login("ann", "secret"),
        bulk("AUTH", "ann", "secret") + bulk("SET", "shown", "with-data") + bulk("MSET", "a", "with-data", "b", "with-data"),
        bulk("HELLO", "3", "AUTH", "ann", "secret") + bulk("ECHO", "with-data") + bulk("GET", "text"),
        bulk("AUTH", "ann", "secretive"),
        bulk("AUTH", "ann", "secret") + b"APPEND shown with-data\r\n",
        request(AUTH, b"PLAIN", b"", b"\0ann\0secret") + store(SET, b"binary", b"with-data"),
        request(AUTH, b"PLAIN", b"", b"\0ann\0secretive"),
    ]:
        converse(server.address, text)
    assert server.end() == 0
    said = log.read_text()
    assert "set text" in said and "SET shown" in said and "binary 0x01 binary" in said and "a login failed" in said
    for hidden in ["secret", "with-data"]:
        assert hidden not in said, next(line for line in said.splitlines() if hidden in line)


def old_certificate(folder, name, begin="200101000000Z", end="210101000000Z"):
    """One of years ago, or of another time."""
    cert, key, request = folder / f"{name}.pem", folder / f"{name}.key", folder / f"{name}.csr"
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key),
            "-out", str(request), "-subj", f"/CN={name}")
    index = folder / "index.txt"
    index.write_text("")
    (folder / "serial").write_text("01\n")
    settings = folder / "ca.conf"
    settings.write_text(f"[ca]\ndefault_ca=it\n[it]\ndatabase={index}\nserial={folder}/serial\nnew_certs_dir={folder}\n"
                        "default_md=sha256\npolicy=any\nx509_extensions=more\n[more]\nbasicConstraints=CA:FALSE\n[any]\ncommonName=supplied\n")
    openssl("ca", "-batch", "-config", str(settings), "-selfsign", "-keyfile", str(key), "-in", str(request),
            "-out", str(cert), "-startdate", begin, "-enddate", end, "-notext")
    return cert, key


def test_a_certificate_that_is_over_is_told_at_the_start_and_when_it_is_read_again(start, certificates, tmp_path):
    """It is served all the same: who made it decides, and clients refuse it in their own words."""
    old_certificate(tmp_path, "old")
    log = tmp_path / "log"
    server = start(*tls_flags(tmp_path, "old"), "--log", str(log))
    conftest.said(log, f"{tmp_path}/old.pem: expired")
    # As in `old_certificate`: the end of 2020, which is 51 years and 13 leap days after the beginning of 1970.
    end = (51 * 365 + 13) * 86400
    untrusting = ssl.create_default_context()
    untrusting.check_hostname, untrusting.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(server.address) as plain, untrusting.wrap_socket(plain) as secured:
        secured.sendall(b"stats\r\nquit\r\n")
        told = secured.makefile("rb").read()
    assert f"STAT ssl_certificate_end {end}\r\n".encode() in told
    days = int(re.search(rb"STAT ssl_certificate_days_left (-?\d+)\r\n", told)[1])
    assert 0 <= (end - time.time()) - days * 86400 < 86400 + 60
    with pytest.raises(ssl.SSLCertVerificationError, match="expired|self"), socket.create_connection(server.address) as plain:
        trusting = ssl.create_default_context(cafile=str(tmp_path / "old.pem"))
        trusting.check_hostname = False
        trusting.wrap_socket(plain)
    for name in ["pem", "key"]:
        (tmp_path / f"server.{name}").write_bytes((certificates / f"server.{name}").read_bytes())
    fresh = start(*tls_flags(tmp_path, "server"), "--log", str(tmp_path / "log2"))
    assert "expired" not in (tmp_path / "log2").read_text()
    for name in ["pem", "key"]:
        (tmp_path / f"server.{name}").write_bytes((tmp_path / f"old.{name}").read_bytes())
    fresh.process.send_signal(signal.SIGHUP)
    conftest.said(tmp_path / "log2", f"{tmp_path}/server.pem: expired")


def test_a_pipe_is_no_file_of_settings_passwords_or_certificates(start, certificates, tmp_path):
    """A thread that opened it would wait for a writer: the signals' thread, or a worker."""
    config, users, log, pipe = (tmp_path / name for name in ["config", "users", "log", "pipe"])
    os.mkfifo(pipe)
    for flags in [["-Y", str(pipe)], ["--config", str(pipe)], ["--load", str(pipe)],
                  ["-Z", "-o", f"ssl_chain_cert={certificates}/server.pem,ssl_key={pipe}"]]:
        for check in [["--check"], []]:
            command = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "0", *check, *flags]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert ended.returncode == 2 and f"{pipe}: a pipe, not a file" in ended.stderr, (flags, ended)
    refused = subprocess.run([conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "0", "-P", str(pipe)], capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 2 and f"-P {pipe}: a pipe, not a file" in refused.stderr, refused
    # Nor does a server wait at one, or write through a link, where it begins the file of its ports.
    for made in [os.mkfifo, lambda path: os.symlink(users, path)]:
        users.write_text("untouched")
        made(tmp_path / "ports.lck")
        environment = {**os.environ, "MEMCACHED_PORT_FILENAME": str(tmp_path / "ports")}
        with subprocess.Popen([conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "0"], env=environment) as process:
            while not (tmp_path / "ports").exists():
                assert process.poll() is None
                time.sleep(0.01)
            assert (tmp_path / "ports").read_text().startswith("TCP INET: ") and not (tmp_path / "ports").is_symlink()
            process.terminate()
            assert process.wait() == 0
        (tmp_path / "ports").unlink(missing_ok=True)
        (tmp_path / "ports.lck").unlink()
        assert users.read_text() == "untouched"
    # The name that it has until it is whole is the server's own: a start is refused, and nothing is written elsewhere.
    for made in [os.mkfifo, lambda path: os.symlink(users, path)]:
        begun = tmp_path / ".ports.unfinished"
        made(begun)
        environment = {**os.environ, "MEMCACHED_PORT_FILENAME": str(tmp_path / "ports")}
        refused = subprocess.run([conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "0"], env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert refused.returncode == 1 and f"{tmp_path}/ports: " in refused.stderr, refused
        assert users.read_text() == "untouched" and not (tmp_path / "ports").exists()
        begun.unlink()
    # A pipe without a name has a writer.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        cat.stdin.write(b"ann:secret\n")
        cat.stdin.close()
        given = cat.stdout.fileno()
        command = [conftest.NUTHATCH, "--check", "-Y", f"/dev/fd/{given}"]
        assert subprocess.run(command, pass_fds=[given], capture_output=True, check=False).returncode == 0
    # Files that become one.
    for name in ["pem", "key"]:
        (tmp_path / f"now.{name}").write_bytes((certificates / f"server.{name}").read_bytes())
    config.write_text("threads = 1\n")
    users.write_text("ann:secret\n")
    server = start("--config", str(config), "-Y", str(users), *tls_flags(tmp_path, "now"), "-l", "notls:127.0.0.1", "--log", str(log))
    for path in [config, users, tmp_path / "now.pem"]:
        path.unlink()
        os.mkfifo(path)
    server.process.send_signal(signal.SIGHUP)
    conftest.said(log, "(?s)(a pipe, not a file.*){3}")
    words = login("ann", "secret") + b"refresh_certs\r\nmn\r\n"
    assert converse(server.address, words).endswith(b"see the log\r\nMN\r\n")
    assert server.end() == 0


def test_a_certificate_that_is_soon_over_or_not_yet_valid_is_told(start, tmp_path):
    """By --check, at the start and by refresh_certs. So is one that does not belong to the key, which is refused."""
    def moment(days):
        return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + days * 86400 + 600))

    for name, begin, end in [("fine", -1, 15), ("soon", -1, 13), ("early", 3, 400)]:
        old_certificate(tmp_path, name, moment(begin), moment(end))
    begin = int(time.time()) + 3 * 86400 + 600
    told = [("soon", "ends in 13 days"), ("early", "not valid before 3 days from now"), ("fine", "")]
    for name, words in told:
        command = [conftest.NUTHATCH, "--check", *tls_flags(tmp_path, name)]
        checked = subprocess.run(command, capture_output=True, text=True, check=True)
        assert f"{name}.pem: {words}" in checked.stderr if words else ".pem" not in checked.stderr
    for what in ["pem", "key"]:
        (tmp_path / f"now.{what}").write_bytes((tmp_path / f"fine.{what}").read_bytes())
    log = tmp_path / "log"
    server = start(*tls_flags(tmp_path, "now"), "-l", "notls:127.0.0.1", "--log", str(log))
    for name, words in told[:2]:
        for what in ["pem", "key"]:
            (tmp_path / f"now.{what}").write_bytes((tmp_path / f"{name}.{what}").read_bytes())
        assert converse(server.address, b"refresh_certs\r\n") == b"OK\r\n"
        conftest.said(log, f"now.pem: {words}")
    assert b"STAT ssl_certificate_days_left 400\r\n" in converse(server.address, b"stats\r\n")
    said = re.search(rb"STAT ssl_certificate_begin (\d+)\r\n", converse(server.address, b"stats\r\n"))
    assert abs(int(said[1]) - begin) < 60
    # What does not belong together: what was there stays.
    (tmp_path / "now.key").write_bytes((tmp_path / "fine.key").read_bytes())
    assert b"see the log" in converse(server.address, b"refresh_certs\r\n")
    conftest.said(log, "now.pem: its first certificate does not belong to the key in")
    assert b"STAT ssl_certificate_days_left 400\r\n" in converse(server.address, b"stats\r\n")
    for check in [["--check"], []]:
        command = [conftest.NUTHATCH, *check, *tls_flags(tmp_path, "now"), "-l", "127.0.0.1", "-p", "0"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 2 and "does not belong to the key" in ended.stderr, ended


@pytest.fixture
def of_nobody(certificates, tmp_path):
    """A folder of the user nobody with certificates, and a key that is for root alone."""
    for folder in [tmp_path, *tmp_path.parents][:4]:
        folder.chmod(0o755)
    for name, mode in [("pem", 0o644), ("key", 0o600)]:
        (tmp_path / f"server.{name}").write_bytes((certificates / f"server.{name}").read_bytes())
        (tmp_path / f"server.{name}").chmod(mode)
    folder = tmp_path / "of-nobody"
    folder.mkdir()
    shutil.chown(folder, "nobody")
    return folder


def of_root(folder, name="users"):
    path = folder / name
    path.write_text(USERS)
    path.chmod(0o600)
    return path


only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
MAY_NOT = "the user nobody may not read it"


@only_root
@pytest.mark.parametrize("more", [(), ("-o", "drop_privileges")], ids=["", "confined"])
def test_a_key_for_root_alone_is_read_before_the_user_changes(certificates, of_nobody, more):
    log = of_nobody / "log"
    flags = [*tls_flags(of_nobody.parent), "-u", "nobody", "--log", str(log), *more]
    server = conftest.Server(of_nobody, *flags)
    assert "\nUid:\t65534\t65534\t65534\t" in pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    assert converse_tls(server, certificates, b"get k\r\nquit\r\n") == b"END\r\n"
    # Later it is this user who reads, and what was read stays.
    said = converse_tls(server, certificates, b"refresh_certs\r\nget k\r\nquit\r\n")
    assert said == b"SERVER_ERROR the certificates cannot be read: see the log\r\nEND\r\n"
    conftest.said(log, f"refresh_certs: the certificates of before stay.*server.key: {MAY_NOT}")
    server.process.send_signal(signal.SIGHUP)
    conftest.said(log, f"SIGHUP: the certificates of before stay: .*server.key: {MAY_NOT}")
    assert converse_tls(server, certificates, b"get k\r\nquit\r\n") == b"END\r\n"
    assert server.end() == 0


@only_root
def test_a_key_for_root_alone_in_the_background_and_by_handover(certificates, of_nobody):
    flags = [*tls_flags(of_nobody.parent), "-u", "nobody"]
    ports, pid = of_nobody / "ports", of_nobody / "pid"
    command = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1", "-d", "-P", str(pid), *flags]
    subprocess.run(command, env={**os.environ, "MEMCACHED_PORT_FILENAME": str(ports)}, timeout=60, check=True)
    port = int(ports.read_text().split()[-1])
    with socket.create_connection(("127.0.0.1", port)) as plain:
        with context(certificates).wrap_socket(plain, server_hostname="localhost") as secured:
            secured.sendall(b"get k\r\nquit\r\n")
            assert secured.makefile("rb").read() == b"END\r\n"
    os.kill(int(pid.read_text()), signal.SIGTERM)
    servers = []
    for name in ("first", "second"):
        folder = of_nobody / name
        folder.mkdir()
        shutil.chown(folder, "nobody")
        servers.append(conftest.Server(folder, *flags, "--handover", str(of_nobody / "handover")))
    assert servers[0].process.wait() == 0
    assert converse_tls(servers[1], certificates, b"get k\r\nquit\r\n") == b"END\r\n"
    assert servers[1].end() == 0


@only_root
def test_a_check_is_that_of_the_user_who_serves(of_nobody):
    """Passwords are read when the user has changed, as in memcached, and so are the items; so a start fails, and
    --check says it with the same words."""
    root, folder = of_nobody.parent, of_root(of_nobody.parent).parent
    base = [conftest.NUTHATCH, "-l", "127.0.0.1", "-p", "-1"]
    nobody = ["-u", "nobody"]

    def ends(*flags):
        ended = subprocess.run([*base, *flags], capture_output=True, text=True, timeout=60, check=False)
        # The certificates of these tests end soon.
        told = [line for line in ended.stderr.splitlines(keepends=True) if "WARN" not in line]
        return ended.returncode, ended.stdout + "".join(told)

    fine = (0, "the settings are fine\n")
    assert ends("--check", *tls_flags(root), *nobody) == fine
    assert ends("--check", "-Y", str(root / "users")) == fine
    for check in [["--check"], []]:
        got, said = ends(*check, "-Y", str(root / "users"), *nobody)
        assert got == 2 and f"{root}/users: {MAY_NOT}" in said, said
        got, said = ends(*check, "-P", str(folder / "pid"), *nobody)
        assert got == 2 and f"-P {folder}/pid: " in said, said
    for flags, words in [
        (("-e", str(folder / "items")), "-e .*/items: its folder cannot be written to [(]-u nobody[)]"),
        (("-s", str(folder / "socket")), "-s .*/socket: its folder cannot be written to [(]-u nobody[)]"),
        (("--load", str(folder / "users")), "--load .*denied.* [(]-u nobody[)]"),
        (("-l", "127.0.0.1:81"), "127.0.0.1:81: this user may not listen there [(]-u nobody[)]"),
    ]:
        for check in [["--check"], []]:
            got, said = ends(*check, *flags, *nobody)
            assert got == 2 and re.search(words, said), said
    # What is there and may be written needs no folder.
    for name in ("pid", "log"):
        (folder / name).touch()
        shutil.chown(folder / name, "nobody")
    assert ends("--check", "-P", str(folder / "pid"), "--log", str(folder / "log"), *nobody) == fine
    # Of a user who is not root.
    said = subprocess.run([*base, "--check", *tls_flags(root)], capture_output=True, text=True, user=65534, check=False)
    assert said.returncode == 2 and f"server.key: {MAY_NOT}" in said.stderr


def test_cpserver_and_redis_under_tls_of_their_own(start, certificates):
    places = ("-l", "notls:proto[redis]:127.0.0.1:0", "--cpserver", "127.0.0.1:0")
    server = start(*tls_flags(certificates), *places, program=conftest.IN_LAB)
    with socket.create_connection(("127.0.0.1", server.told["CPSERVER INET"])) as plain:
        with context(certificates).wrap_socket(plain, server_hostname="localhost") as secured:
            secured.sendall(struct.pack("<IIQ", 1, 4, 7) + b"seed" + struct.pack("<IIQ", 0, 0, 7))
            assert secured.recv(100) == struct.pack("<I", 4) + b"seed"
    assert converse(("127.0.0.1", server.told["REDIS INET"]), b"PING\r\n") == b"+PONG\r\n"
    asked = struct.pack("<IIQ", 0, 0, 7)
    for word, secured in [("btls:", True), ("notls:", False)]:
        server = start(*tls_flags(certificates), "--cpserver", f"{word}127.0.0.1:0", program=conftest.IN_LAB)
        said = converse(("127.0.0.1", server.told["CPSERVER INET"]), asked)
        assert (said != b"\0\0\0\0") == secured, said


def test_redis_alone(tmp_path):
    """No address for memcached's clients."""
    log = tmp_path / "log"
    ports = tmp_path / "ports"
    command = [conftest.NUTHATCH, "-l", "proto[redis]:127.0.0.1:0", "--log", str(log), "-v"]
    server = subprocess.Popen(command, env={**os.environ, "MEMCACHED_PORT_FILENAME": str(ports)})
    while not (ports.exists() and ports.read_text().endswith("\n")):
        assert server.poll() is None
    [(kind, port)] = re.findall(r"(.*): (\d+)", ports.read_text())
    assert kind == "REDIS INET" and converse(("127.0.0.1", int(port)), b"PING\r\n") == b"+PONG\r\n"
    conftest.said(log, r"slots \(.*\), .* at Redis at 127.0.0.1:")
    server.terminate()
    assert server.wait() == 0


def before_login(address, text):
    """The answers to a text and to a login behind it. None is the end of the connection."""
    said = []
    with socket.create_connection(address) as connection, connection.makefile("rb") as answers:
        connection.settimeout(60)
        # One at a time: memcached answers only the last of several.
        for words in (text, login("ann", "secret")):
            try:
                connection.sendall(words)
                said.append(answers.readline() or None)
            except ConnectionError:
                said.append(None)
    return said


BEFORE_LOGIN = [
    b"set a 0 0 6\r\nsecret\r\n",
    b"set a 0 0 0\r\n\r\n",
    b"set a 0 0 1\r\n \r\n",
    b"set a 0 0 7\r\nann wro\r\n",
    b"set a 0 0 10\r\nann secretxx",
    b"mn\r\n",
    b"foo\r\n",
    b"quit\r\n",
    b"version\r\n",
    b"get key\r\n",
    b"delete a\r\n",
    b"mg key v\r\n",
    b"set a 0 0\r\n",
    b"set a 0 0 x\r\n",
]


@needs_right
@pytest.mark.parametrize("number", range(len(BEFORE_LOGIN)))
def test_before_login_as_memcached(start, passwords, tmp_path, number):
    (tmp_path / "memcached").mkdir()
    judge = conftest.Server(tmp_path / "memcached", "-Y", str(passwords), program=MEMCACHED)
    try:
        text = BEFORE_LOGIN[number]
        ours = before_login(start("-Y", str(passwords)).address, text)
        assert ours == before_login(judge.address, text)
    finally:
        judge.end()


def test_a_token_that_is_too_long(start, passwords):
    """memcached takes its rest for commands; here the connection ends."""
    address = start("-Y", str(passwords)).address
    said = before_login(address, b"set a 0 0 99999\r\n" + b"x" * 99_999 + b"\r\n")
    assert said == [b"CLIENT_ERROR auth token too long\r\n", None]


def test_who_says_that_it_ends_hears_the_end(start, certificates):
    """A client that ends its session waits for the server's end of it, which comes behind all answers, though its requests
    and its end come in one packet."""
    server = start(*tls_flags(certificates), "-I", "8m")
    value = b"x" * 3_000_000
    assert converse_tls(server, certificates, b"set k 0 0 3000000\r\n" + value + b"\r\nquit\r\n") == b"STORED\r\n"
    for asked, count in [(b"", 0), (b"get a\r\n", 0), (b"get k\r\n" * 3, 3)]:
        come, gone = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context(certificates).wrap_bio(come, gone, server_hostname="localhost")
        with socket.create_connection(server.address) as plain:
            plain.settimeout(120)
            for _ in range(10):
                with contextlib.suppress(ssl.SSLWantReadError):
                    session.do_handshake()
                    break
                plain.sendall(gone.read())
                come.write(plain.recv(1 << 20))
            if asked:
                session.write(asked)
            with contextlib.suppress(ssl.SSLWantReadError):
                session.unwrap()
            plain.sendall(gone.read())
            answers = b""
            while True:
                more = plain.recv(1 << 20)
                if not more:
                    break
                answers += more
        assert count * len(value) <= len(answers) <= count * 1.01 * len(value) + 1000


def signed(folder, name, *words):
    """A certificate of version 1, which `openssl x509 -req` makes without extensions, of a new key of this kind."""
    key, request, cert = folder / f"{name}.key", folder / f"{name}.csr", folder / f"{name}.pem"
    openssl("req", "-new", "-newkey", *words, "-nodes", "-keyout", str(key), "-subj", "/CN=localhost", "-out", str(request))
    openssl("x509", "-req", "-in", str(request), "-signkey", str(key), "-days", "2", "-out", str(cert))
    return cert, key


def speaks(server, **settings):
    """What a client that verifies nothing gets."""
    trusting = ssl._create_unverified_context()
    for name, value in settings.items():
        trusting.load_cert_chain(*value)
    with socket.create_connection(server.address) as plain, trusting.wrap_socket(plain) as secured:
        secured.sendall(b"get a\r\nquit\r\n")
        return secured.makefile("rb").read()


@pytest.mark.parametrize("kind", [["rsa:2048"], ["ec", "-pkeyopt", "ec_paramgen_curve:P-384"], ["ed25519"]])
def test_a_server_does_not_verify_its_own_certificate(start, tmp_path, kind):
    cert, _ = signed(tmp_path, "first", *kind)
    text = subprocess.run(["openssl", "x509", "-in", str(cert), "-noout", "-text"], capture_output=True, check=True).stdout
    if b"Version: 1" not in text:
        pytest.skip("this openssl makes no certificates of version 1 that way")
    assert speaks(start(*tls_flags(tmp_path, "first"))) == b"END\r\n"


def test_a_key_of_another_certificate_is_refused_whatever_its_version(tmp_path):
    signed(tmp_path, "first", "rsa:2048")
    signed(tmp_path, "second", "rsa:2048")
    (tmp_path / "first.key").write_bytes((tmp_path / "second.key").read_bytes())
    refused = subprocess.run([conftest.NUTHATCH, "--check", *tls_flags(tmp_path, "first")], capture_output=True, text=True)
    assert refused.returncode != 0 and "first.pem: its first certificate does not belong to the key in" in refused.stderr


def test_files_may_begin_with_a_byte_order_mark(start, certificates, tmp_path):
    for name in ["server.pem", "server.key", "ca.pem", "client.pem", "client.key"]:
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + (certificates / name).read_bytes())
    server = start(*tls_flags(tmp_path, "server", f"ssl_ca_cert={tmp_path}/ca.pem", "ssl_verify_mode=2"))
    assert converse_tls(server, certificates, b"get a\r\nquit\r\n", "client") == b"END\r\n"


@pytest.mark.parametrize("kind", [["rsa:2048"], ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], ["ed25519"]])
def test_a_key_is_what_its_bytes_say(start, tmp_path, kind):
    openssl("req", "-x509", "-newkey", *kind, "-nodes", "-keyout", str(tmp_path / "made.key"),
            "-subj", "/CN=localhost", "-out", str(tmp_path / "made.pem"))
    made = (tmp_path / "made.key").read_text()
    keys = [made]
    if kind != ["ed25519"]:
        keys.append(subprocess.run(["openssl", "pkey", "-traditional", "-in", str(tmp_path / "made.key")],
                                   capture_output=True, check=True, text=True).stdout)
    for key in keys:
        label = key.split("-----")[1].removeprefix("BEGIN ")
        for other in ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"]:
            (tmp_path / "made.key").write_text(key.replace(label, other))
            assert speaks(start(*tls_flags(tmp_path, "made"))) == b"END\r\n", (label, other)


@pytest.mark.parametrize("make, says", [
    (["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"], "a P-521 key: ring has no P-521; use P-256 or P-384\n"),
    (["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"], "a secp256k1 key: ring has no secp256k1; use P-256 or P-384\n"),
    (["genpkey", "-algorithm", "ED448"], "an Ed448 key: ring has no Ed448; use Ed25519\n"),
    (["genpkey", "-algorithm", "RSA-PSS"], "an RSA-PSS key: ring has no RSA-PSS; use RSA (`openssl genrsa`)\n"),
    (["genrsa", "1024"], "RSA of 2048 to 4096 bits"),
    (["genpkey", "-algorithm", "RSA", "-aes128", "-pass", "pass:x"], "the key is encrypted"),
    (["genrsa", "-aes128", "-traditional", "-passout", "pass:x", "2048"], "the key is encrypted"),
])
def test_a_key_that_cannot_be_used_is_named_with_the_cause(certificates, tmp_path, make, says):
    made = subprocess.run(["openssl", *make], capture_output=True, check=True).stdout
    (tmp_path / "server.key").write_bytes(made)
    (tmp_path / "server.pem").write_bytes((certificates / "server.pem").read_bytes())
    refused = subprocess.run([conftest.NUTHATCH, "--check", *tls_flags(tmp_path)], capture_output=True, text=True)
    assert refused.returncode != 0 and f"{tmp_path}/server.key: " in refused.stderr and says in refused.stderr, refused.stderr


def test_a_certificate_of_p_521_is_named_with_the_cause(start, certificates, tmp_path):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-521", "-nodes", "-subj", "/CN=localhost",
            "-keyout", str(tmp_path / "server.key"), "-out", str(tmp_path / "server.pem"))
    why = "a P-521 key: ring has no P-521; use P-256 or P-384\n"
    for words in [["--check"], ["-p", "0", "-l", "127.0.0.1"]]:
        refused = subprocess.run([conftest.NUTHATCH, *words, *tls_flags(tmp_path)], capture_output=True, text=True, timeout=60)
        assert refused.returncode != 0 and f"{tmp_path}/server.key: {why}" in refused.stderr, refused.stderr
    # No client can be verified by it, and those of the others are.
    both = (tmp_path / "server.pem").read_text() + (certificates / "ca.pem").read_text()
    (tmp_path / "both.pem").write_text(both)
    flags = tls_flags(certificates, "server", f"ssl_ca_cert={tmp_path}/both.pem", "ssl_verify_mode=2")
    checked = subprocess.run([conftest.NUTHATCH, "--check", *flags], capture_output=True, text=True)
    assert checked.returncode == 0 and f"{tmp_path}/both.pem: no client is verified by {why}" in checked.stderr, checked.stderr
    own = (certificates / "client.pem", certificates / "client.key")
    assert speaks(start(*flags), own=own) == b"END\r\n"


def test_files_that_are_no_pem_are_named_with_the_cause(certificates, tmp_path):
    text = (certificates / "server.pem").read_text()
    (tmp_path / "server.key").write_bytes((certificates / "server.key").read_bytes())
    for bytes_, says in [
        (text.encode("utf-16"), "UTF-16"),
        (ssl.PEM_cert_to_DER_cert(text), "DER"),
        (text.encode()[:400], "cut off: a line -----END CERTIFICATE----- is missing"),
        (text.encode() + text.encode()[:400], "cut off: a line -----END CERTIFICATE----- is missing"),
        (text.replace("CERTIFICATE-----", "CERTIFICATE--").encode(), "a line -----BEGIN …----- is damaged"),
        (text.replace("CERT", "TRUSTED CERT").encode(), "no certificate, but: TRUSTED CERTIFICATE"),
        ((certificates / "server.key").read_bytes(), "no certificate, but: PRIVATE KEY"),
        (b"hello\n", "no certificate\n"),
    ]:
        (tmp_path / "server.pem").write_bytes(bytes_)
        refused = subprocess.run([conftest.NUTHATCH, "--check", *tls_flags(tmp_path)], capture_output=True, text=True)
        assert refused.returncode != 0 and f"{tmp_path}/server.pem: {says}" in refused.stderr, refused.stderr


def test_clients_may_sign_themselves_if_they_are_trusted(start, certificates, tmp_path):
    def own(name, *words):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.pem"), *words)
    own("authority")
    own("leaf", "-addext", "basicConstraints=critical,CA:FALSE")
    own("servers", "-addext", "extendedKeyUsage=serverAuth")
    own("unknown")
    trusted = [(tmp_path / f"{name}.pem").read_text() for name in ["authority", "leaf", "servers"]]
    (tmp_path / "trusted.pem").write_text("".join(trusted))
    server = start(*tls_flags(certificates, "server", f"ssl_ca_cert={tmp_path}/trusted.pem", "ssl_verify_mode=2"))
    def said(name):
        try:
            return speaks(server, own=(tmp_path / f"{name}.pem", tmp_path / f"{name}.key"))
        except OSError:
            return b""
    assert said("authority") == said("leaf") == b"END\r\n"
    assert said("servers") == said("unknown") == b""


def test_clients_certificates_are_not_asked_for_if_nothing_could_verify_them(start, certificates):
    flags = tls_flags(certificates, "server", "ssl_verify_mode=1")
    checked = subprocess.run([conftest.NUTHATCH, "--check", *flags], capture_output=True, text=True)
    assert checked.returncode == 0 and "no client's certificate is verified" in checked.stderr, checked
    server = start(*flags)
    for client in [None, "client"]:
        assert converse_tls(server, certificates, b"get a\r\nquit\r\n", client) == b"END\r\n"
