"""A server as the sidecar of a pool (--upstream): real memcacheds behind it, and fakes that hang and lie."""

import re
import signal
import socket
import subprocess
import threading
import time

import pytest
from conftest import NUTHATCH, Server, said
from judge import MEMCACHED, needs_right
from test_recorded import COUNT, recorded
from test_recorded import said as answers

TICK = 1 / 16


class Talk:
    """A connection, command by command."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def line(self, text):
        self.socket.sendall(text.encode() + b"\r\n")
        return self.file.readline().decode().rstrip()

    def get(self, key):
        """The value; None for a miss."""
        head = self.line(f"get {key}")
        if head == "END":
            return None
        value = self.file.read(int(head.split()[3]) + 2)[:-2].decode()
        assert self.file.readline() == b"END\r\n"
        return value

    def set(self, key, value, seconds=0):
        return self.line(f"set {key} 0 {seconds} {len(value)}\r\n{value}")

    def stats(self):
        self.socket.sendall(b"stats\r\n")
        lines = iter(lambda: self.file.readline().decode().rstrip(), "END")
        return {name: value for _, name, value in (line.split(" ", 2) for line in lines)}

    def redis(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))
        head = self.file.readline().decode().rstrip()
        if head[0] == "$" and head != "$-1":
            return self.file.read(int(head[1:]) + 2)[:-2].decode()
        return head


class Pool:
    """Servers, and a sidecar in front of them."""

    def __init__(self, folder, *ports, lifetime=1000, options="", flags=()):
        self.log = folder / "log"
        servers = ",".join(f"127.0.0.1:{port}" for port in ports)
        upstream = ("--upstream", f"tcp://{servers}{options}", "--upstream-lifetime", str(lifetime))
        more = ("--redis-port", "0", "--log", str(self.log), *flags)
        self.sidecar = Server(folder, "-t", "3", *upstream, *more, program=(NUTHATCH,))
        self.talk = Talk(self.sidecar.port)

    def client(self):
        return Talk(self.sidecar.port)

    def redis(self):
        return Talk(next(port for kind, port in self.sidecar.told.items() if "REDIS" in kind.upper()))


def memcached(folder, *flags):
    folder.mkdir()
    return Server(folder, *flags, program=MEMCACHED)


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool")
    servers = [memcached(folder / name, "-I", "8m") for name in ("one", "other")]
    pool = Pool(folder, *(server.port for server in servers), flags=("-I", "8m"))
    pool.servers = [Talk(server.port) for server in servers]
    yield pool
    assert pool.sidecar.end() == 0
    assert [server.end() for server in servers] == [0, 0]


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A pool of one server, whose items outlive any test as copies."""
    folder = tmp_path_factory.mktemp("one")
    server = memcached(folder / "server")
    pool = Pool(folder, server.port, lifetime=3_600_000)
    pool.server = Talk(server.port)
    yield pool
    assert pool.sidecar.end() == 0
    assert server.end() == 0


# In these something looks at a stale item without a part in winning: afterwards its number is another.
LOOKS_AT_STALE = {23, 25}


@needs_right
@pytest.mark.parametrize("number", sorted(set(range(COUNT)) - LOOKS_AT_STALE))
def test_it_answers_as_the_server_behind_it(one, number):
    text, right = recorded(number)
    # Twice: a second may have begun in between.
    if answers(one.sidecar, text) != right:
        assert answers(one.sidecar, text) == right


def test_items_are_those_of_the_pool(pool):
    keys = [f"shared-{number}" for number in range(100)]
    for key in keys:
        assert pool.talk.set(key, key.upper()) == "STORED"
    having = [{key for key in keys if server.get(key) == key.upper()} for server in pool.servers]
    assert having[0] | having[1] == set(keys) and not having[0] & having[1]
    assert min(map(len, having)) > 10
    for server in pool.servers:
        server.line("flush_all")
    # Copies.
    assert {pool.talk.get(key) for key in keys} <= {None, *(key.upper() for key in keys)}
    assert pool.talk.line("flush_all") == "OK"
    assert {pool.talk.get(key) for key in keys} == {None}


def test_a_copy_is_used_no_longer_than_its_lifetime(pool):
    for turn in range(3):
        assert pool.talk.set("aged", f"old {turn}") == "STORED"
        assert pool.talk.get("aged") == f"old {turn}"
        server = next(server for server in pool.servers if server.get("aged"))
        assert server.set("aged", f"new {turn}") == "STORED"
        changed = time.monotonic()
        while True:
            asked = time.monotonic()
            if pool.talk.get("aged") == f"new {turn}":
                break
            assert asked < changed + 1 + TICK, "a copy outlives its lifetime"


def test_an_item_that_ends_sooner_than_its_copy_would_is_gone(one):
    began = time.monotonic()
    assert one.talk.set("short", "lived", 2) == "STORED"
    while one.talk.get("short"):
        assert time.monotonic() < began + 60, "it has no end"
    # memcached counts seconds of its own clock.
    assert time.monotonic() > began + 0.9


def test_reads_are_answered_by_copies_and_changes_by_the_server(one):
    talk = one.talk
    assert talk.set("copied", "value") == "STORED"
    before = talk.stats()
    assert [talk.get("copied") for _ in range(10)] == ["value"] * 10
    assert talk.stats()["upstream_reads"] == before["upstream_reads"]
    assert one.server.line("delete copied") == "DELETED"
    # Who asks for its number asks the server.
    assert talk.get("copied") == "value" and talk.line("gets copied") == "END"
    assert talk.line("touch copied 9") == "NOT_FOUND"
    assert talk.get("copied") is None


def test_a_number_that_was_read_serves_for_cas(one):
    assert one.talk.set("counted", "1") == "STORED"
    cas = one.talk.line("gets counted").split()[-1]
    one.talk.file.readline(), one.talk.file.readline()
    assert one.server.set("counted", "2") == "STORED"
    assert one.talk.line(f"cas counted 0 0 1 {cas}\r\n3") == "EXISTS"
    # The change that failed has removed the copy.
    assert one.talk.get("counted") == "2"


def test_marked_items_keep_their_marks(one):
    """A set with an older number leaves the item stale: its copy would not say so. And a touch makes nothing fresh."""
    talk, server = one.talk, one.server
    assert talk.set("marked", "1") == "STORED"
    cas = talk.line("mg marked c").split("c")[1]
    assert talk.line("md marked I") == "HD"
    assert talk.line(f"ms marked 1 C{cas} I\r\n2") == "HD"
    reads = [(sorted(talk.line("mg marked v").split()[2:]), talk.file.readline()) for _ in range(2)]
    assert reads == [(["W", "X"], b"2\r\n"), (["X", "Z"], b"2\r\n")]
    assert server.line("md marked I T100") == "HD"
    redis = one.redis()
    assert redis.redis("EXPIRE", "marked", "50", "GT") == ":0"
    assert redis.redis("EXPIRE", "marked", "500", "GT") == ":1"
    assert sorted(server.line("mg marked t").split()[1:]) in (["W", "X", "t500"], ["W", "X", "t499"])


def test_after_a_look_at_the_item_nobody_gets_an_older_one(one):
    """Class of bug: an update that is lost, since who watches an item computes the next from a copy of before."""
    redis = one.redis()
    for look in (lambda: redis.redis("WATCH", "seen"), lambda: redis.redis("TTL", "seen"), lambda: one.talk.line("mg seen c")):
        assert one.talk.set("seen", "1") == "STORED" and one.talk.get("seen") == "1"
        assert one.server.set("seen", "9") == "STORED"
        look()
        assert redis.redis("GET", "seen") == "9"
    # In one batch, too. What was read with the number is a copy.
    assert one.server.set("seen", "10") == "STORED"
    before = one.talk.stats()["upstream_kept"]
    assert one.talk.line("mg seen c v\r\nget seen").startswith("VA 2 c")
    lines = [one.talk.file.readline() for _ in range(4)]
    assert lines == [b"10\r\n", b"VALUE seen 0 2\r\n", b"10\r\n", b"END\r\n"]
    assert one.server.set("seen", "11") == "STORED"
    assert one.talk.stats()["upstream_kept"] > before and one.talk.get("seen") == "10"


def test_large_and_odd_items(pool):
    for size in (0, 1, 8192, 8193, 100_000, 3 << 20):
        value = "x" * size
        assert pool.talk.set("large", value) == "STORED"
        assert pool.talk.get("large") == value
        server = next(server for server in pool.servers if server.get("large") is not None)
        assert server.set("large", value + "y") == "STORED"
        assert pool.talk.line("touch large 100") == "TOUCHED"
        assert pool.talk.get("large") == value + "y"
    assert pool.talk.set("k" * 250, "long") == "STORED" and pool.talk.get("k" * 250) == "long"
    assert pool.talk.line("mg a2V5 b v").startswith("EN")
    # Behind the limit of the servers; the connection goes on.
    assert pool.talk.set("too", "x" * (9 << 20)).startswith("SERVER_ERROR object too large")
    assert pool.talk.line("mn") == "MN"


def test_many_large_values_in_one_answer(tmp_path):
    """More than connections may hold: they lie in the memory of the copies."""
    server = memcached(tmp_path / "server", "-I", "8m", "-m", "200")
    pool = Pool(tmp_path, server.port, options="?timeout_ms=600000", flags=("-I", "8m"))
    value = "x" * (1 << 20)
    keys = [f"large-{number}" for number in range(32)]
    for key in keys:
        assert Talk(server.port).set(key, value) == "STORED"
    talk = pool.client()
    talk.socket.sendall(f"get {' '.join(keys)}\r\n".encode())
    for key in keys:
        assert talk.file.readline() == f"VALUE {key} 0 {len(value)}\r\n".encode()
        assert talk.file.read(len(value) + 2) == value.encode() + b"\r\n"
    assert talk.file.readline() == b"END\r\n"
    assert [one.end() for one in (pool.sidecar, server)] == [0, 0]


def test_who_was_told_of_a_change_never_reads_what_was_before(pool):
    """Threads with connections of their own: a read that begins after a set was answered finds that or a later one."""
    told = [0] * 4
    failed = []
    over = threading.Event()

    def write(place):
        talk = pool.client()
        for number in range(1, 400):
            if number % 50 == 0:
                assert talk.line(f"delete raced-{place}") == "DELETED"
            assert talk.set(f"raced-{place}", str(number)) == "STORED"
            told[place] = number
        talk.socket.close()

    def read(seed):
        talk = pool.client()
        turn = seed
        while not over.is_set():
            turn += 1
            place = turn % len(told)
            least = told[place]
            value = talk.get(f"raced-{place}")
            # A delete stands before each fiftieth.
            may_miss = least == 0 or (told[place] + 1) // 50 > least // 50
            if value is None and not may_miss or value is not None and int(value) < least:
                failed.append((place, least, value))
        talk.socket.close()

    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    writers = [threading.Thread(target=write, args=(place,)) for place in range(len(told))]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    for thread in readers:
        thread.join()
    assert not failed, failed[:5]
    assert told == [399] * 4


def test_redis_clients_have_the_pool_too(pool):
    redis = pool.redis()
    assert redis.redis("SET", "name", "1", "EX", "100") == "+OK"
    assert redis.redis("GET", "name") == "1" and pool.talk.get("name") == "1"
    assert redis.redis("INCRBY", "name", "41") == ":42"
    assert redis.redis("EXPIRE", "name", "50", "GT") == ":0"
    assert redis.redis("EXPIRE", "name", "50", "LT") == ":1"
    assert redis.redis("TTL", "name") in (":50", ":49")
    assert redis.redis("PERSIST", "name") == ":1" and redis.redis("TTL", "name") == ":-1"
    assert redis.redis("SETNX", "name", "x") == ":0"
    assert redis.redis("GETDEL", "name") == "42" and redis.redis("GET", "name") == "$-1"
    assert redis.redis("SELECT", "1").startswith("-ERR DB index")
    assert redis.redis("SWAPDB", "0", "1").startswith("-ERR")
    assert redis.redis("CONFIG", "GET", "databases").startswith("*2")
    pool.servers[0].set("there", "x")
    pool.servers[1].set("there", "x")
    redis = pool.redis()
    assert redis.redis("FLUSHDB") == "+OK"
    assert [server.get("there") for server in pool.servers] == [None, None]


GREETINGS = {b"mn\r\n": b"MN\r\n", b"stats\r\n": b"END\r\n"}


class Fake:
    """A server of one connection after the other, whose answers a function gives."""

    def __init__(self, answer):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.asked = []
        self.answer = answer
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        with connection, connection.makefile("rwb", 0) as file:
            for line in file:
                if line in GREETINGS:
                    file.write(GREETINGS[line])
                    continue
                self.asked.append(line)
                if line.startswith(b"ms "):
                    file.readline()
                said = self.answer(line)
                if said is None:
                    return
                try:
                    file.write(said)
                except OSError:
                    return


def opaque(line):
    return re.search(rb" (O[0-9a-f]+)", line)[1]


def test_one_read_serves_all_who_want_the_key(tmp_path):
    hold = threading.Event()

    def answer(line):
        hold.wait()
        return b"VA 5 %s f0 c7 t-1\r\nvalue\r\n" % opaque(line)

    fake = Fake(answer)
    pool = Pool(tmp_path, fake.port, lifetime=3_600_000, options="?timeout_ms=600000")
    found = []
    wanting = [threading.Thread(target=lambda: found.append(pool.client().get("wanted"))) for _ in range(16)]
    for thread in wanting:
        thread.start()
    while not fake.asked:
        time.sleep(0.01)
    # Time for the other workers to want it, too. If they are late, they find the copy.
    time.sleep(0.2)
    hold.set()
    for thread in wanting:
        thread.join()
    assert found == ["value"] * 16
    assert len([line for line in fake.asked if line.startswith(b"mg wanted")]) == 1
    assert pool.sidecar.end() == 0


LIES = [
    b"VA 5 O999 f0 c7 t-1\r\nwrong\r\n",
    b"VA 5 f0 c7 t-1\r\nwrong\r\n",
    b"VA 999999999999 O0 f0\r\n",
    b"VA 5 O0 f0 c7 t-1\r\nwrong and longer\r\n",
    b"HD O77\r\n",
    b"EN\r\nVA 5 O1 f0 c7 t-1\r\nwrong\r\n",
    b"ERROR\r\n",
    b"x" * 5000,
    b"\0\xff\r\n",
    None,
]


@pytest.mark.parametrize("lie", LIES)
def test_a_server_that_lies_makes_no_wrong_value(tmp_path, lie):
    fake = Fake(lambda line: lie)
    pool = Pool(tmp_path, fake.port, options="?timeout_ms=300&retry_most_ms=50")
    for key in ("a", "b", "c"):
        assert pool.talk.get(key) is None
        assert pool.talk.line("mn") == "MN"
    assert pool.talk.set("a", "x").startswith("SERVER_ERROR the server behind")
    assert pool.sidecar.end() == 0


def test_a_server_that_hangs_is_a_miss_and_holds_nobody_for_long(tmp_path):
    fake = Fake(lambda line: b"")
    pool = Pool(tmp_path, fake.port, options="?timeout_ms=100")
    assert pool.talk.get("a") is None
    assert pool.talk.set("a", "x").startswith("SERVER_ERROR the server behind")
    assert pool.talk.line("delete a").startswith("SERVER_ERROR the server behind")
    assert pool.talk.line("incr a 1").startswith("SERVER_ERROR the server behind")
    assert pool.talk.line("mg a N30 v").startswith("SERVER_ERROR the server behind")
    assert pool.redis().redis("SET", "a", "x").startswith("-ERR the server behind")
    assert pool.talk.line("flush_all").startswith("SERVER_ERROR a server behind")
    assert pool.redis().redis("FLUSHALL").startswith("-ERR a server behind")
    assert pool.redis().redis("FLUSHDB").startswith("-ERR a server behind")
    assert int(pool.talk.stats()["upstream_failed"]) == 9
    # An end does not wait for it.
    assert pool.sidecar.end() == 0


def test_a_server_that_hangs_keeps_no_answers_of_others_back(tmp_path):
    """All servers are asked at once, and one after the other is waited for: what the others have said meanwhile counts."""
    server, hung = memcached(tmp_path / "server"), Fake(lambda line: b"")
    pool = Pool(tmp_path, hung.port, server.port, lifetime=1, options="?timeout_ms=200")
    keys = [f"key-{number}" for number in range(20)]
    stored = [key for key in keys if pool.talk.set(key, "x") == "STORED"]
    lost = [key for key in keys if key not in stored]
    # Who hangs is asked and waited for first.
    pool.talk.socket.sendall(f"get {lost[0]} {' '.join(stored)}\r\n".encode())
    lines = iter(pool.talk.file.readline, b"END\r\n")
    assert [line.split()[1].decode() for line in lines if line.startswith(b"VALUE")] == stored
    sets = [f"set {key} 0 0 1\r\ny\r\n" for key in (lost[0], *stored)]
    pool.talk.socket.sendall("".join(sets).encode())
    answers = [pool.talk.file.readline() for _ in (lost[0], *stored)]
    assert answers[0].startswith(b"SERVER_ERROR") and set(answers[1:]) == {b"STORED\r\n"}
    assert [one.end() for one in (pool.sidecar, server)] == [0, 0]


def test_no_worker_waits_for_a_server_to_come_back(tmp_path):
    """It is stopped without a word: the system takes connections for it, and nobody greets."""
    server = memcached(tmp_path / "server")
    # An attempt to connect outlasts the test.
    times = "?timeout_ms=100&late_max_ms=0&retry_least_ms=1&retry_most_ms=1&connect_timeout_ms=3600000"
    pool = Pool(tmp_path, server.port, options=times)
    assert pool.talk.set("a", "x") == "STORED"
    server.process.send_signal(signal.SIGSTOP)
    while "until it answers" not in pool.log.read_text():
        pool.talk.set("a", "y")
    for _ in range(20):
        assert pool.talk.set("a", "y").startswith("SERVER_ERROR the server behind")
    server.process.send_signal(signal.SIGCONT)
    while pool.talk.set("a", "z") != "STORED":
        pass
    assert [one.end() for one in (pool.sidecar, server)] == [0, 0]


def test_a_look_that_failed_is_no_missing_item(tmp_path):
    """The store behind it would be carried out: it must not replace what was not seen."""
    fake = Fake(lambda line: b"SERVER_ERROR busy\r\n" if line.startswith(b"mg ") else b"NS %s\r\n" % opaque(line))
    pool = Pool(tmp_path, fake.port, options="?timeout_ms=600000&connect_timeout_ms=600000")
    redis = pool.redis()
    long = "v" * 100_000
    for words in (
        ("SET", "k", "v", "KEEPTTL"), ("SET", "k", long, "KEEPTTL"), ("SET", "k", long, "XX", "KEEPTTL"),
        ("SET", "k", long, "GET"), ("SET", "k", long, "NX", "GET"),
        ("MSETEX", "1", "k", "v", "KEEPTTL"), ("MSETEX", "1", "k", "v", "XX"), ("MSETEX", "1", "k", "v", "NX"), ("MSETNX", "k", "v"),
    ):
        assert redis.redis(*words).startswith("-"), words[3:]
    assert redis.redis("SET", "k", long, "XX", "GET") == "$-1"
    stores = [line.split() for line in fake.asked if line.startswith(b"ms ")]
    assert stores and all(b"ME" in line for line in stores) and len(stores) < 10
    fake.asked.clear()
    assert [redis.redis(*words.split()) for words in ("WATCH k", "MULTI", "SET k v", "EXEC")] == ["+OK", "+OK", "+QUEUED", "*-1"]
    assert not [line for line in fake.asked if line.startswith(b"ms ")]
    assert pool.sidecar.end() == 0


def test_a_sidecar_is_no_server_of_a_pool(tmp_path):
    """Requests would go round for ever where two have each other behind them, or one has itself."""
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as held:
        free = held.getsockname()[1]
    one = Pool(folders[0], free)
    other = Pool(folders[1], one.sidecar.port, flags=("-p", str(free)))
    for pool in (one, other):
        while "near cache" not in pool.log.read_text():
            assert pool.talk.set("a", "x").startswith("SERVER_ERROR the server behind")
        assert pool.talk.get("a") is None
    sets = [int(pool.talk.stats()["cmd_set"]) for pool in (one, other)]
    assert other.talk.set("a", "x").startswith("SERVER_ERROR the server behind")
    assert [int(pool.talk.stats()["cmd_set"]) for pool in (one, other)] == [sets[0], sets[1] + 1]
    assert [pool.sidecar.end() for pool in (one, other)] == [0, 0]


def test_a_server_that_ends_and_comes_back(tmp_path):
    first, second = (memcached(tmp_path / name) for name in ("first", "second"))
    pool = Pool(tmp_path, first.port, second.port, lifetime=3_600_000, options="?retry_most_ms=50")
    keys = [f"key-{number}" for number in range(50)]
    for key in keys:
        assert pool.talk.set(key, "x") == "STORED"
    lost = [key for key in keys if Talk(first.port).get(key)]
    assert first.end() == 0
    assert 5 < len(lost) < 45
    # Copies of what it had are there; changes of it fail, and change nothing here.
    assert {pool.talk.get(key) for key in keys} == {"x"}
    outcomes = {key: pool.talk.set(key, "y") for key in keys}
    assert {key for key, outcome in outcomes.items() if outcome != "STORED"} == set(lost)
    assert [pool.talk.get(key) for key in lost] == [None] * len(lost)
    said(pool.log, f"127.0.0.1:{first.port}.*until it answers")
    (tmp_path / "again").mkdir()
    again = Server(tmp_path / "again", "-p", str(first.port), program=MEMCACHED)
    while pool.talk.set(lost[0], "z") != "STORED":
        time.sleep(0.01)
    said(pool.log, f"127.0.0.1:{first.port}: it answers again")
    assert len(re.findall("until it answers", pool.log.read_text())) == 1
    assert [server.end() for server in (pool.sidecar, again, second)] == [0, 0, 0]


def test_a_server_that_was_restarted_gets_the_first_change(tmp_path):
    """Nobody has noticed that the connection has ended: a change that gets no answer on it could not be sent again."""
    first = memcached(tmp_path / "first")
    pool = Pool(tmp_path, first.port)
    assert pool.talk.set("a", "1") == "STORED"
    assert first.end() == 0
    (tmp_path / "again").mkdir()
    again = Server(tmp_path / "again", "-p", str(first.port), program=MEMCACHED)
    assert pool.talk.line("incr a 1") == "NOT_FOUND"
    assert pool.talk.set("a", "2") == "STORED"
    assert pool.talk.stats()["upstream_failed"] == "0"
    assert [server.end() for server in (pool.sidecar, again)] == [0, 0]


def test_a_successor_takes_no_items_and_no_flush_for_the_pool(tmp_path):
    server = memcached(tmp_path / "server")
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    handover = ("--handover", str(tmp_path / "handover"))
    before = Server(tmp_path / "before", *handover, program=(NUTHATCH,))
    talk = Talk(before.port)
    assert talk.set("own", "x") == "STORED"
    assert talk.line("flush_all 100") == "OK"
    talk.socket.close()
    after = Pool(tmp_path / "after", server.port, flags=handover)
    assert before.process.wait() == 0
    assert after.talk.get("own") is None and Talk(server.port).get("own") is None
    assert Talk(server.port).stats()["cmd_flush"] == "0"
    assert [one.end() for one in (after.sidecar, server)] == [0, 0]


@pytest.mark.parametrize(
    "flags, words",
    [
        (("--upstream", "a:11211"), "--upstream a:11211: invalid address"),
        (("--upstream", "shm:///run/s"), "--upstream shm:///run/s: "),
        (("--upstream", "tcp://a", "-e", "/tmp/x"), "not with -e"),
        (("--upstream", "tcp://a", "-o", "drop_privileges"), "makes no connections"),
        (("--upstream", "tcp://a", "--upstream-lifetime", "0"), "--upstream-lifetime"),
        (("--upstream-lifetime", "5"), "needs --upstream"),
    ],
)
def test_settings_that_cannot_be(flags, words):
    ended = subprocess.run([NUTHATCH, "--check", *flags], capture_output=True, text=True)
    assert ended.returncode == 2 and words in ended.stderr
