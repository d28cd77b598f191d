"""Redis' own programs and the clients that programs use, against ours."""

import os
import random
import re
import select
import shutil
import socket
import subprocess
import threading
import time
import warnings

import pytest
import redis
from conftest import ENGINE, LONGEST_KEY, Server
from redis_judge import line, request
from redis._parsers import _RESP2Parser, _RESP3Parser
from redis.backoff import NoBackoff
from redis.retry import Retry

needs_tools = pytest.mark.skipif(not shutil.which("redis-cli"), reason="redis-tools are not installed")


class Ours(Server):
    def __init__(self, folder, *flags):
        super().__init__(folder, "-m", "64", "-t", "2", "--redis-port", "0", *flags)
        self.redis_port = self.told["REDIS INET"]


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    running = Ours(tmp_path_factory.mktemp("ours"), "-B", "any")
    yield running
    assert running.end() == 0


@pytest.fixture
def start(tmp_path):
    running = []

    def start_with(*flags):
        running.append(Ours(tmp_path, *flags))
        return running[-1]

    yield start_with
    for one in running:
        one.end()


# The parser in C, which is taken where it is installed, and those in Python.
PARSERS = {"hiredis-2": (2, None), "hiredis-3": (3, None), "python-2": (2, _RESP2Parser), "python-3": (3, _RESP3Parser)}


@pytest.fixture(params=PARSERS)
def client(ours, request):
    protocol, parser = PARSERS[request.param]
    chosen = {"parser_class": parser} if parser else {}
    pool = redis.ConnectionPool(port=ours.redis_port, protocol=protocol, **chosen)
    with redis.Redis(connection_pool=pool) as client:
        client.flushall()
        yield client
    pool.disconnect()


def ask(port, text, end):
    """What is answered to a text, up to this end."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(60)
        connection.sendall(text)
        answers = b""
        while not answers.endswith(end):
            more = connection.recv(1 << 16)
            assert more, answers
            answers += more
    return answers


def test_redis_py(client):
    assert client.set("k", "v", ex=100) and client.get("k") == b"v"
    assert 98 <= client.ttl("k") <= 100
    assert client.get("none") is None
    assert client.mset({"a": 1, "b": 2}) and client.mget("a", "none", "b") == [b"1", None, b"2"]
    assert client.incr("a", 5) == 6 and client.decr("a", 10) == -4
    assert client.incrbyfloat("f", 1.25) == 1.25
    assert client.set("k", "w", nx=True) is None and client.set("k", "w", get=True) == b"v"
    assert client.delete("a", "b", "none") == 2
    assert sorted(client.scan_iter(match="?", count=100)) == [b"f", b"k"]
    assert client.type("k") in ("string", b"string")
    assert client.client_setname("me") and client.client_getname() in ("me", b"me")
    server = client.info("server")
    assert server["server_name"] == "nuthatch" and server["tcp_port"] == client.connection_pool.connection_kwargs["port"]
    assert re.fullmatch("[0-9a-f]{40}", server["run_id"]) and server["run_id"] == client.info()["run_id"]
    assert server["os"].startswith("linux ")
    # redis-py's own suite begins with these.
    assert client.info()["cluster_enabled"] == 0 and client.info("cluster") == {"cluster_enabled": 0}
    assert client.info("keyspace")["db0"]["keys"] > 0 and client.info("memory")["used_memory_human"][-1] in "KM"
    assert client.info("cpu")["used_cpu_user"] >= 0 and client.info("memory")["used_memory_rss"] > 1 << 20
    assert client.config_get("maxmemory")["maxmemory"] == str(64 << 20)
    with pytest.raises(redis.ResponseError, match="cache of plain values"):
        client.lpush("list", 1)


def test_pipelines_and_transactions(client):
    with client.pipeline(transaction=False) as pipeline:
        for number in range(1000):
            pipeline.set(f"key:{number}", number)
        for number in range(1000):
            pipeline.get(f"key:{number}")
        answers = pipeline.execute()
    assert answers == [True] * 1000 + [str(number).encode() for number in range(1000)]
    with client.pipeline() as pipeline:
        pipeline.watch("key:1")
        client.set("key:1", "other")
        pipeline.multi()
        pipeline.set("key:1", "mine")
        with pytest.raises(redis.WatchError):
            pipeline.execute()
    assert client.get("key:1") == b"other"
    with client.pipeline() as pipeline:
        assert pipeline.incr("n").get("n").execute() == [1, b"1"]


def test_values_of_all_lengths(client):
    for size in [0, 1, 8191, 8192, 16384, 16385, 100_000, 1_000_000]:
        value = random.Random(size).randbytes(size)
        assert client.set("k", value) and client.get("k") == value and client.strlen("k") == size
    with pytest.raises(redis.ResponseError, match="larger than"):
        client.set("k", b"x" * (2 << 20))
    assert client.strlen("k") == 1_000_000


def test_keys_are_lost_when_their_time_is_over(client):
    client.set("k", "v", px=300)
    client.set("long", "v", ex=100)
    assert client.get("k") == b"v" and 0 < client.pttl("k") <= 375
    client.set("kept", "v", px=300)
    assert client.persist("kept")
    while client.get("k") is not None:
        time.sleep(0.02)
    assert client.ttl("k") == -2 and client.exists("long", "kept") == 2


def test_every_key_is_scanned(client):
    names = {f"key:{number}".encode() for number in range(5000)}
    client.mset({name: 1 for name in names})
    assert set(client.scan_iter(count=100)) == names
    assert set(client.keys("*")) == names
    assert set(client.keys("key:12?")) == {f"key:12{digit}".encode() for digit in range(10)}
    assert client.randomkey() in names


def test_few_keys_are_scanned_in_few_steps(client):
    names = {f"few:{number}".encode() for number in range(5)}
    client.mset({name: 1 for name in names})
    cursor, found, steps = None, set(), 0
    while cursor != 0:
        cursor, keys = client.scan(cursor or 0)
        found |= set(keys)
        steps += 1
    assert found == names
    # A table of partitions is walked by its buckets, empty ones too.
    assert steps <= 3 or ENGINE in ("cphash", "lockhash")


def test_a_scan_that_costs_more_than_a_slice_has(start):
    ours = start("-R", "3")
    with redis.Redis(port=ours.redis_port) as client:
        client.mset({f"key:{number}": 1 for number in range(100)})
        assert len(list(client.scan_iter(count=1000))) == 100 and client.ping()


def test_limits_are_told(client):
    with pytest.raises(redis.ResponseError, match=f"key is longer than {LONGEST_KEY} bytes"):
        client.get("k" * (LONGEST_KEY + 1))
    with pytest.raises(redis.ResponseError, match="key is empty"):
        client.set("", 1)
    assert client.set("k" * LONGEST_KEY, 1)
    # In a list of many, such a key is one that is not there.
    assert client.mget("k" * LONGEST_KEY, "k" * (LONGEST_KEY + 1), "") == [b"1", None, None]


def test_counters_of_many_clients_add_up(ours, client):
    others = [redis.Redis(port=ours.redis_port) for _ in range(4)]
    for _ in range(50):
        for other in others:
            with other.pipeline(transaction=False) as pipeline:
                for _ in range(10):
                    pipeline.incr("n")
                pipeline.execute()
    assert client.get("n") == b"2000"


def test_both_protocols_have_the_same_items(ours, client):
    client.set("shared", "nut")
    said = ask(ours.port, b"get shared\r\nset other 5 0 5\r\nacorn\r\n", b"STORED\r\n")
    assert said == b"VALUE shared 0 3\r\nnut\r\nEND\r\nSTORED\r\n"
    assert client.get("other") == b"acorn"


def test_the_first_byte_tells_the_protocol(ours):
    assert ask(ours.port, line("PING"), b"\r\n") == b"+PONG\r\n"
    assert ask(ours.port, b"mn\r\n", b"\r\n") == b"MN\r\n"
    assert ask(ours.port, b"\x80\x0a" + bytes(22), bytes(8))[:2] == b"\x81\x0a"


def test_a_password_comes_first(start, tmp_path):
    users = tmp_path / "users"
    users.write_text("default:secret\nann:other\n")
    users.chmod(0o600)
    ours = start("-Y", str(users), "-B", "any")
    for port in (ours.redis_port, ours.port):
        said = ask(port, line("SET k v") + line("MGET a b") + line("HELLO 3") + request("SET", "k", "v" * 5000) + line("QUIT"), b"+OK\r\n")
        assert said.count(b"-NOAUTH") == 4, said
        for login in ({"password": "secret"}, {"username": "ann", "password": "other"}):
            with redis.Redis(port=port, **login) as client:
                assert client.set("k", "v") and client.get("k") == b"v"
        for login in ({"password": "wrong"}, {"username": "ann", "password": "secret"}):
            with redis.Redis(port=port, retry=Retry(NoBackoff(), 0), **login) as client:
                with pytest.raises(redis.AuthenticationError):
                    client.get("k")
    said = ask(ours.redis_port, line("AUTH wrong") * 8, b"-WRONGPASS invalid username-password pair or user is disabled.\r\n" * 8)
    assert said.count(b"WRONGPASS") == 8


@pytest.mark.parametrize("flags", [("-B", "ascii"), ("-B", "auto"), ("-B", "any")])
@pytest.mark.parametrize("hello", [b"\x16\x03\x01\x02\x00\x01\x00", b"\x16\x03\x03\n\x00\r\n" + bytes(600)])
def test_who_speaks_tls_is_told_that_nobody_here_does(start, flags, hello):
    ours = start(*flags)
    for port, words in ((ours.port, b"CLIENT_ERROR"), (ours.redis_port, b"-ERR")):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.settimeout(60)
            connection.sendall(hello)
            assert connection.makefile("rb").read() == words + b" this port does not speak TLS\r\n"


def test_clients_are_listed_by_their_names(client, ours):
    with redis.Redis(port=ours.redis_port, client_name="other") as other:
        number = other.client_id()
        assert [one["name"] for one in client.client_list(client_id=[number])] == ["other"]
        other.client_setname("new")
        assert "new" in [one["name"] for one in client.client_list(_type="normal")]
        assert other.client_info()["name"] == "new"


def test_clients_are_ended_by_their_user_and_our_address(start, tmp_path):
    users = tmp_path / "users"
    users.write_text("default:secret\nguest:pass\n")
    users.chmod(0o600)
    ours = start("-Y", str(users))
    client = redis.Redis(port=ours.redis_port, password="secret")
    guest = redis.Redis(port=ours.redis_port, username="guest", password="pass", single_connection_client=True)
    assert guest.client_info()["user"] == "guest"
    assert client.client_kill_filter(user="guest") == 1
    assert "guest" not in [one["user"] for one in client.client_list()]
    assert client.client_kill_filter(laddr=f"127.0.0.1:{ours.redis_port + 1}") == 0
    guest.ping()
    assert client.client_kill_filter(laddr=f"127.0.0.1:{ours.redis_port}") >= 1
    with pytest.raises(redis.ResponseError, match="No such user 'nobody'"):
        client.client_kill_filter(user="nobody")


@pytest.mark.parametrize("end", ["by itself", "by a client"])
def test_writes_wait(client, ours, end):
    """Reads go on; what writes, and all of memcached's clients, waits until the end."""
    client.set("k", "before")
    with (
        socket.create_connection(("127.0.0.1", ours.redis_port)) as writer,
        socket.create_connection(("127.0.0.1", ours.port)) as memcached,
    ):
        assert client.client_pause(1500 if end == "by itself" else 50_000, all=False)
        writer.sendall(b"GET k\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nafter\r\nGET k\r\n")
        memcached.sendall(b"get k\r\n")
        assert client.get("k") == b"before"
        answers = writer.makefile("rb")
        assert [answers.readline(), answers.readline()] == [b"$6\r\n", b"before\r\n"]
        for waiting in (writer, memcached):
            assert not select.select([waiting], [], [], 0.2)[0]
        if end == "by a client":
            assert client.client_unpause()
        assert [answers.readline() for _ in range(3)] == [b"+OK\r\n", b"$5\r\n", b"after\r\n"]
        assert memcached.makefile("rb").readline().startswith(b"VALUE k 0 ")


def test_who_does_not_touch_leaves_no_trace(client, ours):
    def was_hit():
        """Whether somebody has read the item: what the eviction goes by. Without a trace of its own."""
        with socket.create_connection(("127.0.0.1", ours.port)) as memcached:
            memcached.sendall(b"me a\r\n")
            return b" fetch=yes " in memcached.makefile("rb").readline()

    client.mset({"a": 1, "b": 2})
    with redis.Redis(port=ours.redis_port, single_connection_client=True) as other:
        assert other.client_no_touch("ON") == b"OK"
        assert (other.get("a"), other.mget("a", "b", "none")) == (b"1", [b"1", b"2", None])
        # Not by a pipeline, which has a connection of its own.
        for words in ("WATCH c", "MULTI", "GET a", "EXEC"):
            answer = other.execute_command(words)
        assert answer == [b"1"]
        assert not was_hit()
        assert other.client_no_touch("OFF") == b"OK"
        assert other.get("a") == b"1"
        assert was_hit()


def worked(server):
    """Seconds that a server has worked."""
    with open(f"/proc/{server.process.pid}/stat") as file:
        ticks = file.read().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def test_all_requests_wait(client, ours):
    spent = worked(ours)
    begun = time.monotonic()
    assert client.client_pause(1000)
    assert client.ping()
    assert time.monotonic() - begun >= 0.9
    assert worked(ours) - spent < 0.5, "it sleeps meanwhile, although there are requests"
    with pytest.raises(redis.ResponseError, match="60000"):
        client.client_pause(60_001)


def test_a_transaction_waits_whole(client, ours):
    with redis.Redis(port=ours.redis_port) as other, other.pipeline() as transaction:
        transaction.watch("n")
        transaction.multi()
        transaction.set("n", 1).incr("n")
        assert client.client_pause(700, all=False)
        begun = time.monotonic()
        assert transaction.execute() == [True, 2]
        assert time.monotonic() - begun >= 0.5


def test_clients_are_listed_with_what_they_do(client, ours):
    def shown(one):
        number = one.client_id()
        return lambda: client.client_list(client_id=[number])[0]

    with redis.Redis(port=ours.redis_port, db=3) as two, redis.Redis(port=ours.redis_port, protocol=3) as three:
        of_two, of_three = shown(two), shown(three)
        two.get("k")
        assert {"cmd": "get", "db": "3", "resp": "2", "user": "default", "lib-name": "redis-py"}.items() <= of_two().items()
        assert of_two()["laddr"] == f"127.0.0.1:{ours.redis_port}"
        two.client_setname("x" * 200)
        assert of_two()["cmd"] == "client|setname"
        with two.pipeline() as transaction:
            transaction.set("k", 1).get("k").execute()
        assert of_two()["cmd"] == "exec"
        two.execute_command("CLIENT", "SETINFO", "lib-ver", "v" * 100)
        assert of_two()["lib-ver"] == "v" * 64
        assert of_three()["resp"] == "3"
        with three.pubsub() as subscriber:
            subscriber.subscribe("a", "b")
            subscriber.psubscribe("c*")
            assert [subscriber.get_message(timeout=60) for _ in range(3)][-1]["type"] == "psubscribe"
            told = [one for one in client.client_list(_type="pubsub") if one["cmd"] == "psubscribe"]
            assert [(one["sub"], one["psub"], one["ssub"]) for one in told] == [("2", "1", "0")]
        assert client.client_info()["cmd"] == "client|info"
        with socket.create_connection(("127.0.0.1", ours.port)) as memcached:
            memcached.sendall(b"get k\r\n")
            memcached.recv(100)
            here = "%s:%d" % memcached.getsockname()
            assert [one["cmd"] for one in client.client_list() if one["addr"] == here] == ["NULL"]


def test_what_is_forbidden(start):
    ours = start("-F", "-X")
    with redis.Redis(port=ours.redis_port) as client:
        client.set("k", "v")
        for forbidden in (client.flushall, client.keys, client.randomkey, client.scan):
            with pytest.raises(redis.ResponseError):
                forbidden()
        assert client.get("k") == b"v"


@needs_tools
def test_redis_cli(ours):
    def cli(*words):
        said = subprocess.run(["redis-cli", "-p", str(ours.redis_port), *words], capture_output=True, check=True, timeout=60)
        return said.stdout.decode()

    assert cli("SET", "k", "v") == "OK\n" and cli("-3", "GET", "k") == "v\n"
    assert cli("--scan", "--pattern", "k") == "k\n"
    assert "redis_version" in cli("INFO")
    assert cli("COMMAND", "COUNT").strip().isdigit()


@needs_tools
@pytest.mark.parametrize("pipeline", [1, 16])
def test_redis_benchmark(ours, pipeline):
    command = ["redis-benchmark", "-p", str(ours.redis_port), "-q", "-n", "2000", "-c", "10", "-P", str(pipeline), "-r", "100"]
    said = subprocess.run([*command, "-t", "ping,set,get,incr,mset"], capture_output=True, check=True, timeout=300)
    text = said.stdout.decode()
    for name in ("PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET"):
        assert f"{name}" in text, text
    assert "rror" not in text + said.stderr.decode()


BACKENDS = ["django.core.cache.backends.redis.RedisCache", "django_redis.cache.RedisCache"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_djangos_cache(ours, backend):
    from django.conf import settings
    from django.core.cache import CacheHandler

    if not settings.configured:
        settings.configure()
    caches = CacheHandler({name: {"BACKEND": backend, "LOCATION": f"redis://127.0.0.1:{ours.redis_port}/{name[-1]}"} for name in ("0", "default1")})
    other, cache = caches["0"], caches["default1"]
    other.set("k", "of another database", 100)
    cache.clear()
    assert cache.get("k") is None and other.get("k") == "of another database"
    cache.set("k", {"a": [1, 2]}, 100)
    assert cache.get("k") == {"a": [1, 2]} and cache.get("none", "other") == "other"
    assert cache.add("k", 1) is False and cache.add("new", 1) is True
    assert cache.incr("new", 4) == 5 and cache.decr("new", 10) == -5
    cache.set_many({"a": 1, "b": "two"}, 100)
    assert cache.get_many(["a", "b", "c"]) == {"a": 1, "b": "two"}
    assert cache.touch("a", 200) and not cache.touch("none")
    assert cache.has_key("a") and cache.delete("a") and not cache.delete("a")
    cache.delete_many(["b", "new"])
    assert cache.get_or_set("made", lambda: 7) == 7
    if LONGEST_KEY > 250:
        with warnings.catch_warnings():
            # memcached would refuse this key.
            warnings.simplefilter("ignore")
            cache.set("long" * 1000, 8, 100)
            assert cache.get("long" * 1000) == 8 and cache.delete("long" * 1000)
    cache.clear()
    assert cache.get("k") is None and other.get("k") == "of another database"


def in_threads(count, work):
    """What each of so many threads makes of its number."""
    made = [None] * count

    def run(number):
        made[number] = work(number)

    threads = [threading.Thread(daemon=True, target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert None not in made, "a thread failed"
    return made


@pytest.mark.parametrize("backend", BACKENDS)
def test_djangos_counters_add_up(ours, backend):
    from django.conf import settings
    from django.core.cache import CacheHandler

    if not settings.configured:
        settings.configure()

    def cache():
        return CacheHandler({"default": {"BACKEND": backend, "LOCATION": f"redis://127.0.0.1:{ours.redis_port}/0"}})["default"]

    def count(_):
        mine = cache()
        return [mine.incr("n") for _ in range(250)]

    cache().clear()
    cache().set("n", 0, 1000)
    counts = in_threads(4, count)
    assert sorted(sum(counts, [])) == list(range(1, 1001)) and cache().get("n") == 1000
    with pytest.raises(ValueError):
        cache().incr("none")
    assert cache().decr("n", 10) == 990


def test_django_rediss_options_of_incr_and_its_lock(ours):
    from django.conf import settings
    from django.core.cache import CacheHandler

    if not settings.configured:
        settings.configure()
    cache = CacheHandler({"default": {"BACKEND": BACKENDS[1], "LOCATION": f"redis://127.0.0.1:{ours.redis_port}/0"}})["default"]
    cache.clear()
    assert cache.incr("new", 7, ignore_key_check=True) == 7 and cache.incr("new", 3) == 10
    cache.set("text", "abc")
    with pytest.raises(TypeError):
        cache.incr("text")
    with cache.lock("lock", timeout=50) as lock:
        assert lock.owned() and not cache.lock("lock", timeout=5).acquire(blocking=False)
    assert cache.lock("lock", timeout=5).acquire(blocking=False)


def test_redis_pys_lock(client):
    from redis.exceptions import LockNotOwnedError

    lock = client.lock("lock", timeout=10)
    assert lock.acquire() and not client.lock("lock").acquire(blocking=False)
    assert lock.extend(20) and 29_000 < client.pttl("lock") <= 30_100
    assert lock.extend(50, replace_ttl=True) and 49_000 < client.pttl("lock") <= 50_100
    assert lock.reacquire() and 9_000 < client.pttl("lock") <= 10_100
    lock.release()
    assert client.get("lock") is None
    # Of another, or of nobody.
    assert lock.acquire()
    client.set("lock", "stolen", ex=100)
    for late in (lambda: lock.extend(5), lock.reacquire, lock.release):
        with pytest.raises(LockNotOwnedError):
            late()
    assert client.get("lock") == b"stolen" and client.ttl("lock") > 90
    # Nothing is to be put off that has no end.
    client.set("lock", "token")
    lock.local.token = b"token"
    with pytest.raises(LockNotOwnedError):
        lock.extend(5)
    assert lock.reacquire() and 9_000 < client.pttl("lock")


def test_what_is_watched_is_not_written_over(ours):
    """The textbook's counter, and a sum that two keys share: the faster one is noticed, or did not come in between."""

    def count(client):
        with client.pipeline() as pipeline:
            pipeline.watch("n", "a", "b")
            number, a, b = (int(pipeline.get(key)) for key in ("n", "a", "b"))
            pipeline.multi()
            pipeline.get("other").mset({"b": b - 1, "more": 1}).set("n", number + 1).set("a", a + 1)
            try:
                return pipeline.execute()[2]
            except redis.WatchError:
                return False

    def work(number):
        with redis.Redis(port=ours.redis_port) as client:
            if number == 0:
                # Nobody else watches what this one counts.
                return sum(bool(client.incr("n")) for _ in range(500))
            done = 0
            while done < 300:
                done += count(client)
            return 0

    with redis.Redis(port=ours.redis_port) as client:
        client.flushall()
        client.mset({"n": 0, "a": 0, "b": 0})
        plain = sum(in_threads(5, work))
        assert [int(value) for value in client.mget("n", "a", "b")] == [1200 + plain, 1200, -1200]


def test_a_new_expiry_is_noticed_by_who_watches(client):
    client.set("k", "v")
    for change in (lambda: client.expire("k", 100), lambda: client.getex("k", ex=200), lambda: client.persist("k")):
        with client.pipeline() as pipeline:
            pipeline.watch("k")
            change()
            pipeline.multi()
            with pytest.raises(redis.WatchError):
                pipeline.set("k", "mine").execute()
    assert client.get("k") == b"v"


def test_a_long_transaction_of_what_is_watched(client):
    """More than others are kept waiting for: it goes on behind them, and is whole."""
    client.mset({f"k{n}": "x" * 20_000 for n in range(100)})
    with client.pipeline() as pipeline:
        pipeline.watch("k0")
        pipeline.multi()
        for number in range(3000):
            pipeline.incr("n").get(f"k{number % 100}")
        pipeline.set("k1", "y" * 900_000).mset({f"m{n}": n for n in range(3000)}).get("k1").keys("m*")
        answers = pipeline.execute()
    assert answers[0:6000:2] == list(range(1, 3001)) and set(answers[1:6000:2]) == {b"x" * 20_000}
    assert answers[6000:6003] == [True, True, b"y" * 900_000] and len(answers[6003]) == 3000


def test_one_at_a_time_holds_a_lock(ours):
    held = []

    def work(number):
        with redis.Redis(port=ours.redis_port) as client:
            for _ in range(20):
                with client.lock("one", timeout=60, sleep=0.001):
                    held.append(number)
                    assert held == [number]
                    held.clear()
        return True

    assert all(in_threads(4, work))


def test_scripts_that_are_not_known_are_refused(client):
    others = [
        "return 1",
        "return redis.call('lpush', KEYS[1], ARGV[1])",
        "while redis.call('get', KEYS[1]) do end",
        "if redis.call('get', KEYS[1]) == ARGV[1] then",
    ]
    for text in others:
        for ask in (lambda: client.eval(text, 1, "k", "v"), lambda: client.script_load(text)):
            with pytest.raises(redis.ResponseError, match="there is no Lua here"):
                ask()
    # Whatever it did before it named another key has not happened.
    for text, keys in [
        ("redis.call('set', KEYS[1], 1) return redis.call('get', 'other')", ["k"]),
        ("return redis.call('del', KEYS[1])", ["k", "l"]),
        ("return redis.call('get', KEYS[1])", []),
    ]:
        with pytest.raises(redis.ResponseError, match="there is no Lua here"):
            client.eval(text, len(keys), *keys)
    assert not client.exists("k")
    with pytest.raises(redis.exceptions.NoScriptError):
        client.evalsha("0" * 40, 0)
    assert client.script_flush() and client.script_exists("0" * 40) == [False]


def test_a_script_stores_a_value_of_any_length(client):
    """As Laravel's cache stores by its add."""
    add = client.register_script("return redis.call('exists',KEYS[1])<1 and redis.call('setex',KEYS[1],ARGV[2],ARGV[1])")
    for length in (10, 20_000, 70_000, 1_000_000):
        value = random.Random(length).randbytes(length)
        assert add(keys=[f"of {length}"], args=[value, 100]) == b"OK"
        assert add(keys=[f"of {length}"], args=[b"other", 100]) is None
        assert client.get(f"of {length}") == value and 99 <= client.ttl(f"of {length}") <= 100
    with pytest.raises(redis.ResponseError, match="limit of an item"):
        add(keys=["k"], args=[b"v" * 2_000_000, 100])
    with client.pipeline() as pipeline:
        pipeline.eval(add.script, 1, "in a transaction", value, 100)
        assert pipeline.execute() == [b"OK"]
    assert client.get("in a transaction") == value


def test_scripts_of_several_clients_do_not_lose_a_count(start):
    ours = start()
    text = "local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('expire', KEYS[1], 100) end return n"

    def work(_):
        with redis.Redis(port=ours.redis_port) as client:
            return [client.eval(text, 1, "n") for _ in range(500)]

    counts = [count for counts in in_threads(4, work) for count in counts]
    assert sorted(counts) == list(range(1, 2001))


def test_a_transaction_of_some_megabytes(start):
    """As Django's set_many and others make of a dictionary. By `-m 512` a transaction may hold 12 MiB."""
    ours = start("-m", "512")
    with redis.Redis(port=ours.redis_port) as client:
        values = {f"k{n}": random.Random(n).randbytes(n * 997 % 40_000) for n in range(250)}
        assert sum(map(len, values.values())) > 4_000_000
        with client.pipeline() as pipeline:
            pipeline.mset({f"m{n}": b"v" * 100 for n in range(20_000)})
            for key, value in values.items():
                pipeline.set(key, value, ex=1000)
            assert pipeline.execute() == [True] * 251
        assert client.mget(values) == list(values.values())
        assert client.mget("m0", "m19999") == [b"v" * 100] * 2
        # What no server could keep beside the others is refused, and nothing of it is done.
        with client.pipeline() as pipeline, pytest.raises(redis.ResponseError, match="too long"):
            for number in range(60):
                pipeline.set(f"none{number}", b"x" * 500_000)
            pipeline.execute()
        assert client.get("none0") is None


def test_scan_meets_what_stays_while_everything_changes(start):
    ours = start()
    stop = threading.Event()
    with redis.Redis(port=ours.redis_port) as client:
        stays = {f"stays:{n}".encode() for n in range(3000)}
        client.mset({key: "x" * 50 for key in stays})

        def change():
            with redis.Redis(port=ours.redis_port) as other:
                number = 0
                while not stop.is_set():
                    # New keys, keys that go, values that get longer and shorter: the index grows, items move.
                    other.mset({f"goes:{number + n}": "y" * (n * 7 % 900) for n in range(200)})
                    other.delete(*[f"goes:{number - 1000 + n}" for n in range(200)])
                    number += 200

        changing = threading.Thread(daemon=True, target=change)
        changing.start()
        try:
            for count in [10, 1000]:
                met = set(client.scan_iter(match="stays:*", count=count))
                assert met == stays
        finally:
            stop.set()
            changing.join()


def test_a_flush_does_not_come_into_a_transaction_that_watches(ours):
    """Nothing changes while a transaction whose keys are watched is carried out: all of its reads see the same."""
    reads, rounds = 200, 2000
    ended = threading.Event()

    def flush():
        with socket.create_connection(ours.address, 120) as client:
            answers = client.makefile("rb")
            while not ended.is_set():
                client.sendall(b"flush_all noreply\r\n" * 2000 + b"mn\r\n")
                assert answers.readline() == b"MN\r\n"

    flusher = threading.Thread(daemon=True, target=flush)
    flusher.start()
    said = b"".join(line(words) for words in ["SET k v", "WATCH k", "MULTI", *["GET k"] * reads, "EXEC"])
    try:
        with socket.create_connection(("127.0.0.1", ours.redis_port), 120) as client:
            answers = client.makefile("rb")

            def value():
                return answers.readline() if answers.readline() == b"$1\r\n" else None

            for _ in range(rounds):
                client.sendall(said)
                assert answers.read(15 + 9 * reads) == b"+OK\r\n" * 3 + b"+QUEUED\r\n" * reads
                # Or the flush came behind WATCH; before it, the key is gone for all of them.
                if answers.readline() != b"*-1\r\n":
                    assert len({value() for _ in range(reads)}) == 1
    finally:
        ended.set()
        flusher.join()
