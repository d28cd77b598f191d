"""Commands that Redis got late, and those that carry a value from one key to another, compared byte by byte with
redis-server, and where it can be had with valkey-server, which has conditions of SET that Redis 8.0 does not have.

VALKEY_SERVER in the environment names the latter, by default the one on the PATH.
"""

import os
import random
import re
import shutil
import socket

import pytest
import redis_judge
from redis import Redis as Client
from redis.exceptions import NoPermissionError
from redis_judge import Redis, asked, converse, judge, line, needs_redis, request
from test_redis import Ours

VALKEY = os.environ.get("VALKEY_SERVER", "valkey-server")
needs_valkey = pytest.mark.skipif(not shutil.which(VALKEY), reason=f"{VALKEY} is not installed")

CARRIED = """
RENAME a b|SET a 1 EX 100|RENAME a b|TTL b|EXISTS a|SET a 2|RENAME a b|TTL b|GET b|RENAME b b|RENAMENX b b|RENAMENX none x|SET c 3
RENAMENX b c|RENAMENX b d|GET d|RENAME|RENAME a|RENAME a b c|COPY a b|SET a 1 EX 100|COPY a b|TTL b|COPY a b|SET a 2|COPY a b REPLACE|GET b
COPY a a|COPY none c|COPY a b foo|COPY a b DB|COPY a b DB x|COPY a b DB 99|COPY a b DB -1|COPY a|COPY a c DB 0|GET c
SET k 10|DUMP none|RESTORE k 0 x|RESTORE k 0 x REPLACE|RESTORE n -1 x|RESTORE n x x|RESTORE n 0 x foo|RESTORE n 0 x IDLETIME x|RESTORE n 0 x FREQ 300
RESTORE n 0|DUMP|ROLE|WAIT 0 0|WAIT 1 1|WAIT x 1|WAIT 1 x|WAIT 1 -1|WAIT 1|SLOWLOG LEN|SLOWLOG GET 0|SLOWLOG GET x|SLOWLOG GET -2|SLOWLOG foo
SLOWLOG LEN x|SLOWLOG|LATENCY LATEST|LATENCY RESET|LATENCY HISTORY x|LATENCY foo|LATENCY LATEST x|LATENCY|ACL WHOAMI|ACL USERS|ACL foo|ACL
ACL CAT|ACL CAT foo|ACL CAT a b|ACL GETUSER|ACL GETUSER nobody|ACL GETUSER a b
COMMAND GETKEYS get a|COMMAND GETKEYS mset a 1 b 2|COMMAND GETKEYS foo a|COMMAND GETKEYS|COMMAND GETKEYS eval x 2 a b c|COMMAND GETKEYS copy a b
CLIENT KILL foo|CLIENT KILL ID|CLIENT KILL ID 0|CLIENT KILL ID 99999|CLIENT KILL TYPE foo|CLIENT KILL ID 1 SKIPME|CLIENT KILL ADDR 1.2.3.4:5
CLIENT KILL LADDR 1.2.3.4:5|CLIENT KILL LADDR x SKIPME yes|CLIENT KILL USER nobody|CLIENT KILL USER default ID 99999|CLIENT KILL MAXAGE 100000
CLIENT NO-TOUCH|CLIENT NO-TOUCH x|CLIENT NO-TOUCH on|CLIENT NO-TOUCH OFF|CLIENT NO-EVICT off|CLIENT PAUSE|CLIENT PAUSE x|CLIENT PAUSE -1|CLIENT PAUSE 0 foo|CLIENT PAUSE 0|CLIENT PAUSE 0 WRITE|CLIENT UNPAUSE|CLIENT UNPAUSE x
CLIENT KILL 1.2.3.4:5|CLIENT KILL|CLIENT KILL SKIPME maybe|CLIENT KILL TYPE replica|CLIENT KILL foo bar|CONFIG SET hz 20|CONFIG SET hz x
CONFIG SET activerehashing foo|CONFIG SET activerehashing no|CONFIG GET activerehashing|CONFIG SET slowlog-max-len 5 foo 1|CONFIG GET slowlog-max-len
MULTI|RENAME none a|COPY a b|DUMP none|EXEC|MULTI|ACL foo|SLOWLOG x|EXEC
"""

COMPARED = """
SET k v|SET k w IFEQ v|GET k|SET k x IFEQ v|GET k|SET k x IFEQ w GET|SET none x IFEQ a|SET none x IFEQ a GET|EXISTS none|SET k y IFEQ x EX 100
TTL k|SET k z IFEQ y KEEPTTL|TTL k|SET k v IFEQ|SET k v IFEQ a NX|SET k v NX IFEQ a|SET k v XX IFEQ a|SET k v IFEQ a IFEQ b|SET k v ifeq v v
SET k v|DELIFEQ k x|DELIFEQ k v|DELIFEQ k v|DELIFEQ k|DELIFEQ|MSETEX 2 a 1 b 2 EX 100|TTL a|MSETEX 2 a 1 c 2 NX|EXISTS c
MSETEX 2 a 5 b 6 XX KEEPTTL|TTL a|MGET a b|MSETEX 2 a 5 none 6 XX|EXISTS none|MSETEX 0 a 1|MSETEX x a 1|MSETEX 2 a 1|MSETEX 1 a 1 foo
MSETEX 1 a 1 GET|MSETEX 1 a 1 EX 0|MSETEX 1 a|MSETEX -1 a b|MSETEX 1 a 1 EX|MSETEX 1 a 1 NX XX|MSETEX 2 a 1 b 2 c 3|MSETEX 9999999999 a 1
MSETEX 2 a 1 a 2|GET a|MSETEX 1 n 5 NX PX 100000|TTL n|MULTI|SET a x IFEQ 2|DELIFEQ a x|EXEC
"""


def lines(text):
    return [line(one) for one in text.strip().replace("\n", "|").split("|")]


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    server = Ours(tmp_path_factory.mktemp("ours"))
    yield server
    assert server.end() == 0


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    server = Redis(tmp_path_factory.mktemp("redis"), "--databases", "16")
    yield server
    assert server.end() == 0


@pytest.fixture(scope="module")
def valkey(tmp_path_factory):
    before, redis_judge.REDIS = redis_judge.REDIS, VALKEY
    try:
        server = Redis(tmp_path_factory.mktemp("valkey"), "--databases", "16")
    finally:
        redis_judge.REDIS = before
    yield server
    assert server.end() == 0


@needs_redis
def test_carried(redis, ours):
    judge((redis, ours), [line(words) for words in asked(CARRIED)])


@needs_valkey
def test_carried_as_in_valkey(valkey, ours):
    judge((valkey, ours), lines(CARRIED))


@needs_valkey
def test_compared(valkey, ours):
    judge((valkey, ours), lines(COMPARED))


def values():
    """Values in every form in which Redis dumps them: integers, short, long, compressed, binary."""
    draw = random.Random(7)
    yield from (b"", b"0", b"-1", b"127", b"-129", b"32768", b"2147483647", b"2147483648", b"-2147483649", b"007", b"1.5", b"+1")
    yield from (b"x" * length for length in (1, 19, 20, 21, 63, 64, 300, 16383, 16384, 70_000, 900_000))
    yield from (draw.randbytes(length) for length in (30, 63, 64, 5000, 900_000))
    yield from (bytes(draw.choices(b"abcd", k=length)) for length in (30, 500, 200_000))
    yield b"abc" * 10 + draw.randbytes(40) + b"abc" * 200


def ask(server, *words):
    """The bytes that are answered to a request, or the line of another answer."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(request(*words))
        answers = connection.makefile("rb")
        head = answers.readline()
        return answers.read(int(head[1:])) if head.startswith(b"$") and head != b"$-1\r\n" else head


@needs_redis
@pytest.mark.parametrize("there_and_back", [("redis", "ours"), ("ours", "redis"), ("ours", "ours")])
def test_what_one_dumps_another_restores(request, there_and_back):
    one, other = (request.getfixturevalue(name) for name in there_and_back)
    for value in values():
        ask(one, "SET", "k", value)
        dump = ask(one, "DUMP", "k")
        assert ask(other, "RESTORE", "copy", 100_000, dump, "REPLACE") == b"+OK\r\n", value[:100]
        assert ask(other, "GET", "copy") == value
        assert ask(other, "TTL", "copy") == b":100\r\n"
        assert ask(other, "RESTORE", "copy", 0, dump).startswith(b"-BUSYKEY")
        assert ask(other, "RESTORE", "copy", 1, dump, "ABSTTL", "REPLACE") == b"+OK\r\n"
        assert ask(other, "EXISTS", "copy") == b":0\r\n"
        assert ask(other, "RESTORE", "copy", 1, dump, "ABSTTL") == b"+OK\r\n", "of a key that is not there"
        assert ask(other, "SET", "copy", "kept") == b"+OK\r\n"
        assert ask(other, "RESTORE", "copy", 1, dump, "ABSTTL").startswith(b"-BUSYKEY")
        assert ask(other, "GETDEL", "copy") == b"kept"
        broken = dump[:-1] + bytes([dump[-1] ^ 1])
        assert ask(other, "RESTORE", "copy", 0, broken) == b"-ERR DUMP payload version or checksum are wrong\r\n"


@needs_valkey
def test_valkey_restores_what_is_dumped_here(valkey, ours):
    for value in values():
        ask(ours, "SET", "k", value)
        assert ask(valkey, "RESTORE", "copy", 0, ask(ours, "DUMP", "k"), "REPLACE") == b"+OK\r\n"
        assert ask(valkey, "GET", "copy") == value
        assert ask(ours, "RESTORE", "copy", 0, ask(valkey, "DUMP", "copy"), "REPLACE") == b"+OK\r\n"
        assert ask(ours, "GET", "copy") == value


def test_digests(ours):
    """Digests that XXH3's authors have published for these lengths stand in the library; here they go there and back."""
    assert ask(ours, "DIGEST", "none") == b"$-1\r\n"
    for value in values():
        ask(ours, "SET", "k", value)
        digest = ask(ours, "DIGEST", "k")
        assert len(digest) == 16
        assert ask(ours, "SET", "k", "other", "IFDNE", digest) == b"$-1\r\n"
        assert ask(ours, "SET", "k", value, "IFDEQ", digest.upper()) == b"+OK\r\n"
        assert ask(ours, "DELEX", "k", "IFNE", value[:10_000]) == b":%d\r\n" % (len(value) > 10_000)
        ask(ours, "SET", "k", value)
        assert ask(ours, "DELEX", "k", "IFDEQ", digest) == b":1\r\n"
        assert ask(ours, "DELEX", "k", "IFDNE", digest) == b":0\r\n"
    ask(ours, "SET", "k", "")
    assert ask(ours, "DIGEST", "k") == b"2d06800538d394c2", "XXH3 of nothing"


def test_a_long_value_has_conditions(ours):
    long = b"l" * 900_000
    assert ask(ours, "SET", "k", long, "IFEQ", "x") == b"$-1\r\n"
    assert ask(ours, "SET", "k", long, "IFNE", "x") == b"+OK\r\n"
    assert ask(ours, "SET", "k", long + b"m", "IFNE", "x", "GET") == long
    assert ask(ours, "SET", "k", "short") == b"+OK\r\n"
    assert ask(ours, "SET", "k", long, "IFEQ", "short", "EX", "100") == b"+OK\r\n"
    assert ask(ours, "STRLEN", "k") == b":900000\r\n"
    assert ask(ours, "TTL", "k") == b":100\r\n"
    assert ask(ours, "SET", "k", long, "IFEQ", "short") == b"$-1\r\n"
    assert ask(ours, "RENAME", "k", "renamed") == b"+OK\r\n"
    assert ask(ours, "COPY", "renamed", "copied") == b":1\r\n"
    assert ask(ours, "GET", "copied") == long


def test_a_connection_is_ended(ours):
    with socket.create_connection(("127.0.0.1", ours.port)) as victim:
        victim.sendall(line("CLIENT ID"))
        number = victim.recv(100)[1:-2]
        assert ask(ours, "CLIENT", "KILL", "ID", number) == b":1\r\n"
        assert victim.recv(100) == b""
    with socket.create_connection(("127.0.0.1", ours.port)) as victim:
        here = "%s:%d" % victim.getsockname()
        assert ask(ours, "CLIENT", "KILL", here) == b"+OK\r\n"
        assert victim.recv(100) == b""
    said = line("CLIENT KILL SKIPME no TYPE normal")
    # The server may not have seen yet that connections of before are closed.
    ended = converse(ours.port, said)
    assert re.fullmatch(rb":[1-9]\d*\r\n", ended), "it ends itself behind its answer"


@pytest.mark.skipif(redis_judge.version() < (8,), reason="older versions have other categories")
def test_categories(redis, ours):
    theirs, ours = (Client(port=server.port, decode_responses=True) for server in (redis, ours))
    assert ours.acl_cat() == theirs.acl_cat()
    known = {name for category in theirs.acl_cat() for name in theirs.acl_cat(category)}
    here = {name for category in ours.acl_cat() for name in ours.acl_cat(category)} & known
    for category in ours.acl_cat():
        assert set(ours.acl_cat(category)) & known == set(theirs.acl_cat(category)) & here, category
    for name in here:
        if "|" not in name:
            ours_of, theirs_of = (set(client.execute_command("COMMAND INFO", name)[0][6]) for client in (ours, theirs))
            assert ours_of == theirs_of, name


def test_users_are_shown_to_administrators(tmp_path):
    users = tmp_path / "users"
    users.write_text("default:secret\nweb:other\n:admin:default\n")
    users.chmod(0o600)
    server = Ours(tmp_path, "-Y", str(users))
    try:
        client = Client(port=server.port, username="default", password="secret", decode_responses=True)
        assert client.execute_command("ACL LIST") == ["user default on ~* &* +@all", "user web on ~* &* +@all -@admin"]
        shown = client.acl_getuser("web")
        assert shown["flags"] == ["on"] and shown["passwords"] == [] and shown["keys"] == ["~*"]
        assert (shown["commands"], shown["categories"]) == ([], ["+@all", "-@admin"])
        assert client.acl_getuser("nobody") is None
        client = Client(port=server.port, username="web", password="other", decode_responses=True)
        assert client.acl_whoami() == "web" and "get" in client.acl_cat("string")
        with pytest.raises(NoPermissionError):
            client.acl_getuser("web")
    finally:
        assert server.end() == 0


@pytest.mark.parametrize("watches", ["", "WATCH other|"])
@pytest.mark.parametrize("behind", [0, 1, 3000])
def test_who_ends_itself_in_a_transaction_carries_it_out(ours, watches, behind):
    """Redis does, too, but does not answer it."""
    ask(ours, "DEL", "counted")
    counted = "INCR counted|" * behind
    conversation = f"{watches}MULTI|CLIENT KILL SKIPME no USER default ADDR %s:%d|{counted}EXEC|INCR counted"
    with socket.create_connection(("127.0.0.1", ours.port)) as victim:
        said = conversation % victim.getsockname()
        victim.sendall(b"".join(map(line, said.split("|"))))
        answers = b""
        while more := victim.recv(1 << 16):
            answers += more
    numbers = "".join(f":{number}\r\n" for number in range(1, behind + 1))
    assert answers.endswith(b"*%d\r\n:1\r\n" % (behind + 1) + numbers.encode())
    assert ask(ours, "INCRBY", "counted", "0") == b":%d\r\n" % behind
