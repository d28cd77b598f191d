"""Clients of other languages, each in the protocols that it speaks: a program of its own holds the conversation."""

import os
import pathlib
import shutil
import subprocess

import pytest
from conftest import Server

PROGRAMS = pathlib.Path(__file__).with_name("languages")
NODE = pathlib.Path(__file__).resolve().parents[2] / ".venv/node/node_modules"
SPYMEMCACHED = pathlib.Path("/usr/share/java/spymemcached.jar")


def works(command):
    return shutil.which(command[0]) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def needs(name, *command):
    return pytest.mark.skipif(not works(command), reason=f"{name} is not installed")


def loaded(extension):
    return "php", "-r", f"exit(extension_loaded('{extension}') ? 0 : 1);"


def converse(program, *words, command):
    """Runs a program of `languages`, which says what is not as expected."""
    environment = {**os.environ, "NODE_PATH": str(NODE)}
    run = [*command, str(PROGRAMS / program), *map(str, words)]
    said = subprocess.run(run, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.fixture(scope="module")
def redis_port(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("server"), "-m", "64", "-B", "any")
    yield running.port
    assert running.end() == 0


@pytest.fixture(scope="module")
def with_password(tmp_path_factory):
    folder = tmp_path_factory.mktemp("passwords")
    users = folder / "users"
    users.write_text("ann:secret\n")
    users.chmod(0o600)
    running = Server(folder, "-m", "64", "-S", "-Y", str(users))
    yield running.port
    assert running.end() == 0


both = pytest.mark.parametrize("protocol", ["binary", "text"])


@needs("php-memcached", *loaded("memcached"))
@both
def test_php(server, protocol):
    converse("memcached.php", server.port, protocol, command=["php"])


@needs("php-memcached", *loaded("memcached"))
def test_php_with_a_password(with_password):
    converse("memcached.php", with_password, "binary", "ann", "secret", command=["php"])


@needs("php-memcached", *loaded("memcached"))
@both
def test_phps_sessions(server, protocol):
    converse("session.php", server.port, protocol, command=["php"])


@needs("php-redis", *loaded("redis"))
@pytest.mark.parametrize("program", ["redis.php", "laravel.php"])
def test_php_redis(redis_port, program):
    converse(program, redis_port, command=["php"])


@needs("dalli", "ruby", "-e", "require 'dalli'")
def test_dalli(server):
    converse("dalli.rb", server.port, command=["ruby"])


@needs("ActiveSupport", "ruby", "-e", "require 'active_support'; require 'dalli'; require 'redis'")
@pytest.mark.parametrize("kind", ["memcached", "redis"])
def test_rails(server, redis_port, kind):
    converse("rails.rb", kind, server.port if kind == "memcached" else redis_port, command=["ruby"])


@needs("memjs", "node", "-e", f"require('{NODE}/memjs')")
def test_memjs(server):
    converse("memjs.js", server.port, command=["node"])


@needs("memjs", "node", "-e", f"require('{NODE}/memjs')")
def test_memjs_with_a_password(with_password):
    converse("memjs.js", with_password, "ann", "secret", command=["node"])


@needs("ioredis", "node", "-e", f"require('{NODE}/ioredis')")
def test_ioredis(redis_port):
    converse("ioredis.js", redis_port, command=["node"])


@pytest.mark.skipif(not (shutil.which("java") and SPYMEMCACHED.exists()), reason="spymemcached is not installed")
@both
def test_spymemcached(server, protocol):
    converse("Spymemcached.java", server.port, protocol, command=["java", "-cp", str(SPYMEMCACHED)])
