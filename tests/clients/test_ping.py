"""`nuthatch ping` under TLS. All else: crates/server/cli/tests/ping.rs."""

import subprocess

import conftest
from test_security import certificate, tls_flags


def ping(*words):
    command = [conftest.NUTHATCH, "ping", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_server_answers_whatever_its_certificate(start, tmp_path):
    for name, ca in [("ca", None), ("server", "ca")]:
        certificate(tmp_path, name, ca=ca)
    authority = f"ssl_ca_cert={tmp_path / 'ca'}.pem"
    server = start(*tls_flags(tmp_path), "-m", "16")
    address = f"{server.host}:{server.port}"
    said = ping(address, "--tls")
    assert said.returncode == 0 and ": VERSION " in said.stdout, said
    # It would wait for the rest of a handshake.
    assert ping(address, "--timeout", "0.5").returncode == 1
    demanding = start(*tls_flags(tmp_path, "server", authority, "ssl_verify_mode=2"), "-m", "16")
    said = ping(f"{demanding.host}:{demanding.port}", "--tls")
    assert said.returncode == 0 and "wants a certificate" in said.stdout, said


def test_the_server_of_a_file_is_asked_as_it_wants(start, tmp_path):
    for name, ca in [("ca", None), ("server", "ca")]:
        certificate(tmp_path, name, ca=ca)
    server = start(*tls_flags(tmp_path), "-m", "16")
    options = f"ssl_chain_cert={tmp_path / 'server'}.pem,ssl_key={tmp_path / 'server'}.key"
    file = tmp_path / "nuthatch.toml"
    file.write_text(f'port = {server.port}\nlisten = "127.0.0.1"\nenable-ssl = true\nextended = "{options}"\n')
    said = ping("--config", str(file))
    assert said.returncode == 0 and f"127.0.0.1:{server.port}: VERSION " in said.stdout, said
