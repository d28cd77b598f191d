"""`watch`: a client is told what others do, a line an event, in memcached's form."""

import re
import socket

import pytest
from judge import converse, needs_right
from test_binary import SET, store
from test_security import certificates, login, tls_flags  # noqa: F401

WORK = (
    b"set a 0 0 1\r\nx\r\nget a b\r\nadd a 0 0 1\r\nx\r\nmg a v\r\nms c 3\r\nabc\r\nappend a 0 0 2\r\nyz\r\n"
    b"cas a 0 0 1 999999\r\nz\r\ndelete b\r\ndelete a\r\nmd c\r\nset %s 0 100 2000000\r\n%s\r\n"
    % (b"k%" + b"e" * 200, b"v" * 2_000_000)
)


class Watcher:
    """A client that watches."""

    def __init__(self, server, kinds, before=b""):
        """`before` logs in."""
        self.socket = socket.create_connection(server.address)
        self.socket.settimeout(120)
        self.file = self.socket.makefile("rb")
        if before:
            self.socket.sendall(before)
            assert self.file.readline() == b"STORED\r\n"
        self.socket.sendall(b"watch%s\r\n" % b"".join(b" " + kind.encode() for kind in kinds))
        assert self.file.readline() == b"OK\r\n"

    def until(self, *marks):
        """All lines up to the first with one of the marks."""
        lines = []
        while True:
            line = self.file.readline().decode()
            assert line.endswith("\n"), lines
            lines.append(line.rstrip("\n"))
            if any(mark in line for mark in marks):
                return lines


def plain(lines):
    """Without what differs from server to server."""
    lines = [re.sub(r"^ts=\d+\.\d+ gid=\d+ ", "", line) for line in lines]
    return [re.sub(r" (clsid|cfd|ttl|rport)=\d+", r" \1=N", line) for line in lines]


def test_lines(server):
    watcher = Watcher(server, ["fetchers", "mutations", "deletions"])
    converse(server.address, WORK)
    converse(server.address, b"get end\r\n")
    lines = watcher.until("key=end ")
    assert [int(re.search(r" gid=(\d+) ", line)[1]) for line in lines] == sorted(
        int(re.search(r" gid=(\d+) ", line)[1]) for line in lines
    )
    long_key = "k%25" + "e" * 200
    get, store = "type=item_get key=%s status=%s clsid=N cfd=N size=%d", (
        "type=item_store key=%s status=%s cmd=%s ttl=N clsid=N cfd=N size=%d"
    )
    # Each change begins with a lookup.
    assert plain(lines) == [
        get % ("a", "not_found", 0),
        store % ("a", "stored", "set", 1),
        get % ("a", "found", 1),
        get % ("b", "not_found", 0),
        get % ("a", "found", 1),
        store % ("a", "not_stored", "add", 1),
        get % ("a", "found", 1),
        get % ("c", "not_found", 0),
        store % ("c", "stored", "set", 3),
        get % ("a", "found", 1),
        store % ("a", "stored", "append", 3),
        get % ("a", "found", 3),
        store % ("a", "exists", "cas", 1),
        get % ("b", "not_found", 0),
        get % ("a", "found", 3),
        "type=deleted key=a cmd=delete clsid=N size=0",
        get % ("c", "found", 3),
        "type=deleted key=c cmd=md clsid=N size=0",
        get % (long_key, "not_found", 0),
        store % (long_key, "stored", "set", 2_000_000),
        get % ("end", "not_found", 0),
    ]


@needs_right
def test_gets_and_sets_as_memcached_tells_them(pair):
    told = []
    for server in pair:
        watcher = Watcher(server, ["mutations"])
        # Of several connections memcached tells thread by thread.
        work = WORK.replace(b"2000000", b"2").replace(b"v" * 2_000_000, b"vv")
        converse(server.address, work + b"set end 0 0 3\r\nend\r\n")
        told.append(plain(watcher.until("key=end ")))
    # What append makes is its value for memcached too; a meta set is a set.
    assert told[0] == told[1]


@needs_right
def test_a_change_begins_with_a_lookup_as_memcached_tells_it(pair):
    """In a pipeline, where what one request makes is what the next finds, and of a value that arrives piece by piece."""
    work = (
        b"set a 0 0 1\r\nx\r\nset a 0 0 2\r\nxy\r\nadd a 0 0 1\r\nx\r\nadd b 0 0 1\r\nx\r\nreplace c 0 0 1\r\nx\r\n"
        b"append a 0 0 1\r\nz\r\nprepend c 0 0 1\r\nz\r\ncas c 0 0 1 5\r\nz\r\nms m 1\r\nx\r\nms m 2 ME\r\nxy\r\n"
        b"delete b\r\ndelete b\r\nset long 0 0 100000\r\n%s\r\nset long 0 0 1\r\nx\r\nget end\r\n" % (b"v" * 100_000)
    )
    told = []
    for server in pair:
        watcher = Watcher(server, ["fetchers", "mutations"])
        converse(server.address, work)
        told.append(plain(watcher.until("key=end ")))
    assert told[0] == told[1]
    assert "type=item_get key=a status=not_found clsid=N cfd=N size=0" == told[1][0]


@needs_right
def test_a_connection_has_one_number(pair):
    """In the lines of watchers and in `stats conns`."""
    for server in pair:
        watcher = Watcher(server, ["fetchers", "connevents"])
        with socket.create_connection(server.address) as client:
            client.settimeout(120)
            client.sendall(b"get number\r\nstats conns\r\n")
            file = client.makefile("rb")
            assert file.readline() == b"END\r\n"
            listed = {}
            while (line := file.readline()) != b"END\r\n":
                _, name, value = line.decode().split(" ", 2)
                listed[name] = value.strip()
            own = f"tcp:{client.getsockname()[0]}:{client.getsockname()[1]}"
            port = str(client.getsockname()[1])
            client.shutdown(socket.SHUT_RDWR)
        [number] = [name.split(":")[0] for name, value in listed.items() if name.endswith(":addr") and value == own]
        lines = watcher.until(f"type=conn_close rip=127.0.0.1 rport={port}")
        mine = [line for line in lines if "key=number" in line or f"rport={port} " in line]
        assert [re.search(r" cfd=(\d+)", line)[1] for line in mine] == [number] * 3, mine


# Each way to delete, of what is there and of what is not.
DELETIONS = (
    b"set a 0 0 2\r\nxy\r\ndelete a\r\ndelete a\r\nms m 3 T100\r\nabc\r\nmd m I\r\nmd m I T30\r\nmd m C1\r\nmd m q\r\n"
    b"md m q\r\nms m 3\r\nabc\r\nmd m x T60\r\nmd m\r\nms m 3\r\nabc\r\nmd m x I\r\nmd bQ== b\r\nmd none\r\nmd none x\r\n"
)


@needs_right
def test_deletions_as_memcached_tells_them(pair):
    told = []
    for server in pair:
        watcher = Watcher(server, ["deletions", "mutations"])
        converse(server.address, DELETIONS + b"set end 0 0 3\r\nend\r\n")
        # Size and class are those of an item that is gone.
        told.append([re.sub(r"(type=deleted .*) size=\d+$", r"\1 size=N", line) for line in plain(watcher.until("key=end "))])
    assert told[0] == told[1]
    deleted = [re.search(r"key=(\S+) cmd=(\S+)", line).groups() for line in told[1] if "type=deleted" in line]
    assert deleted == [("a", "delete"), ("m", "md"), ("m", "md"), ("m", "md"), ("m", "md")]


OVERSIZED = [
    f"{verb} k%{number} 0 100 2000000{more}\r\n"
    for number, (verb, more) in enumerate(
        [("set", ""), ("set", " noreply"), ("add", ""), ("replace", ""), ("append", ""), ("prepend", ""), ("cas", " 1")]
    )
]


@needs_right
def test_a_value_over_the_limit_as_memcached_tells_it(pair):
    told = []
    for server in pair:
        watcher = Watcher(server, ["mutations"])
        text = b"".join(line.encode() + b"v" * 2_000_000 + b"\r\n" for line in OVERSIZED)
        converse(server.address, text + b"set end 0 0 3\r\nend\r\n")
        # memcached prints the connection as the class, and what lies behind its arguments as the connection.
        told.append([re.sub("cfd=-", "cfd=", line) for line in watcher.until("key=end ")])
    assert plain(told[0]) == plain(told[1])
    assert len(told[1]) == len(OVERSIZED) + 1


def test_a_value_over_the_limit_is_told_in_every_protocol_of_memcached(start):
    """memcached of that version may crash at such an ms."""
    server = start("-m", "64")
    watcher = Watcher(server, ["mutations"])
    value = b"v" * 2_000_000
    for line in [b"ms m 2000000", b"ms bQ== 2000000 b MA", b"ms m 2000000 C1", b"ms m 2000000 MP N5", b"ms m 2000000 q MR"]:
        converse(server.address, line + b"\r\n" + value + b"\r\n")
    converse(server.address, store(SET, b"bin", value) + store(0x02, b"bin", value))
    converse(server.address, b"set end 0 0 3\r\nend\r\n")
    lines = watcher.until("key=end ")[:-1]
    found = [re.search(r"key=(\S+) status=(\S+) cmd=(\S+) ttl=0 clsid=0 cfd=\d+ size=0$", line).groups() for line in lines]
    assert found == [("m", "too_large", cmd) for cmd in ("set", "append", "cas", "prepend", "replace")] + [
        ("bin", "too_large", cmd) for cmd in ("set", "add")
    ]


@needs_right
def test_an_item_that_a_read_makes_was_not_found(pair):
    told = []
    for server in pair:
        watcher = Watcher(server, ["fetchers"])
        work = b"mg made v N30\r\nmg made2 t N30\r\nmg made v N30\r\nmg made2 t\r\nget end\r\n"
        converse(server.address, work)
        told.append(plain(watcher.until("key=end ")))
    assert told[0] == told[1]
    assert [re.search("status=([a-z_]+)", line)[1] for line in told[1][:4]] == ["not_found"] * 2 + ["found"] * 2


def test_connections_come_and_go(server):
    watcher = Watcher(server, ["connevents"])
    with socket.create_connection(server.address) as client:
        client.settimeout(120)
        port = client.getsockname()[1]
        client.sendall(b"version\r\nquit\r\n")
        assert client.makefile("rb").read().startswith(b"VERSION ")
    # Others come and go meanwhile.
    own = [line for line in watcher.until(f"type=conn_close rip=127.0.0.1 rport={port} ") if f" rport={port} " in line]
    new, close = plain(own)
    assert new == "type=conn_new rip=127.0.0.1 rport=N transport=tcp cfd=N"
    assert close == "type=conn_close rip=127.0.0.1 rport=N transport=tcp reason=normal cfd=N"


def closed(server, watcher, *texts):
    """Why each of these conversations was closed."""
    reasons = []
    for text in texts:
        with socket.create_connection(server) as client:
            port = client.getsockname()[1]
            client.settimeout(120)
            client.sendall(text)
            try:
                while client.recv(1 << 16):
                    pass
            except ConnectionResetError:
                pass
        close = watcher.until(f"type=conn_close rip=127.0.0.1 rport={port} ")[-1]
        reasons.append(re.search(r"reason=(\S+)", close)[1])
    return reasons


BINARY_QUIT = bytes([0x80, 0x07]) + bytes(22)


@needs_right
def test_reasons_as_memcached_tells_them(pair):
    told = []
    for server in pair:
        watcher = Watcher(server, ["connevents"])
        texts = [b"quit\r\n", b"GET / HTTP/1.0\r\n\r\n", b"x" * 3000, BINARY_QUIT]
        told.append(closed(server.address, watcher, *texts))
    assert told[0] == told[1] == ["normal", "error", "error", "normal"]


def test_reasons_of_logins_and_handshakes(start, certificates, tmp_path):  # noqa: F811
    users = tmp_path / "users"
    users.write_text("ann:secret\n")
    users.chmod(0o600)
    flags = [*tls_flags(certificates), "-l", "notls:127.0.0.1:0", "-Y", str(users), "-o", "login_timeout=2"]
    server = start(*flags)
    ports = [int(line.split()[-1]) for line in (tmp_path / "0" / "ports").read_text().splitlines()]
    plain, secured = (("127.0.0.1", port) for port in reversed(ports))
    watcher = Watcher(server, ["connevents"], before=login("ann", "secret"))
    quit_redis = b"*1\r\n$4\r\nQUIT\r\n"
    wrong = login("ann", "no")
    assert closed(plain, watcher, login("ann", "secret") + b"quit\r\n", wrong * 8, b"", wrong) == ["normal"] + ["error"] * 3
    # A client that speaks no TLS, and half a handshake.
    assert closed(secured, watcher, b"get a\r\n", b"\x16\x03\x01\x02\x00\x01\x00") == ["error"] * 2
    with socket.create_connection(secured) as client:
        client.sendall(b"get a\r\n")
        line = watcher.until("type=conntlserr")[-1]
        assert re.fullmatch(r"ts=\d+\.\d{6} gid=\d+ type=conntlserr fd=\d+ msg=the client does not speak TLS", line), line
    redis = start("--redis-port", "0")
    watcher = Watcher(redis, ["connevents"])
    place = ("127.0.0.1", redis.told["REDIS INET"])
    assert closed(place, watcher, quit_redis, b"*1\r\n!") == ["normal", "error"]


def test_words(start):
    server = start("-t", "2")
    assert converse(server.address, b"watch nothing\r\nversion\r\n").startswith(b"ERROR\r\n")
    watchers = [Watcher(server, []) for _ in range(20)]
    said = converse(server.address, b"watch\r\nmn\r\n")
    assert said.startswith(b"WATCHER_TOO_MANY log watcher limit reached\r\n"), said
    # What a watcher sends is dropped, and its end is noticed.
    watchers[0].socket.sendall(b"get a\r\n" * 1000)
    converse(server.address, b"get seen\r\n")
    assert "key=seen" in watchers[0].until("key=seen")[-1]
    watchers.pop().socket.close()
    while True:
        said = converse(server.address, b"stats\r\n").decode()
        if "STAT log_watchers 19\r\n" in said:
            break
    refusing = start("-W")
    said = converse(refusing.address, b"watch\r\n")
    assert said == b"CLIENT_ERROR watch commands not allowed\r\n"


def test_a_watcher_that_does_not_read_keeps_nobody(start):
    server = start("-t", "2")
    watcher = Watcher(server, ["fetchers"])
    # Far more than a socket and the queue take.
    many = b"get %s\r\n" % b" ".join(b"key:%04d" % number for number in range(2000))
    for _ in range(100):
        assert converse(server.address, many) == b"END\r\n"
    said = converse(server.address, b"stats\r\n").decode()
    skipped = int(re.search(r"log_watcher_skipped (\d+)", said)[1])
    assert skipped > 0 and "STAT log_worker_written 200000\r\n" in said
    lines = watcher.until("skipped=")
    assert re.fullmatch(r"skipped=\d+", lines[-1])
    # And then it is told again; there may be another gap before that, which leaves out this line, too.
    while True:
        converse(server.address, b"get end\r\n")
        if "key=end" in watcher.until("key=end", "skipped=")[-1]:
            break


def test_other_protocols_are_told_too(start):
    server = start("-B", "any")
    watcher = Watcher(server, ["fetchers", "mutations"])
    requests = [b"SET r hi", b"GET r", b"INCR n"]
    with socket.create_connection(server.address) as client:
        for words in (request.split() for request in requests):
            client.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        # A close with answers unread resets the connection, and the server may lose what it has not read.
        client.settimeout(120)
        answers = b"+OK\r\n$2\r\nhi\r\n:1\r\n"
        assert client.makefile("rb").read(len(answers)) == answers
    lines = plain(watcher.until("key=n "))
    assert lines[0] == "type=item_get key=r status=not_found clsid=N cfd=N size=0"
    assert lines[1] == "type=item_store key=r status=stored cmd=set ttl=N clsid=N cfd=N size=2"
    assert lines[2] == "type=item_get key=r status=found clsid=N cfd=N size=2"


def test_evictions(start):
    server = start("-m", "4", "-t", "2")
    watcher = Watcher(server, ["evictions"])
    value = b"v" * 1000
    for begin in range(0, 8000, 100):
        text = b"".join(b"set k%%%d 0 %d 1000 noreply\r\n%s\r\n" % (n, 500 if n % 2 else 0, value) for n in range(begin, begin + 100))
        converse(server.address, text + b"mn\r\n")
    line = watcher.until("type=eviction")[-1]
    found = re.fullmatch(r"ts=\d+\.\d{6} gid=\d+ type=eviction key=k%25(\d+) fetch=no ttl=(-?\d+) la=\d+ clsid=(\d+) size=1000", line)
    assert found, line
    assert 0 < int(found[2]) <= 500 if int(found[1]) % 2 else found[2] == "-1"
    stats = converse(server.address, b"stats items\r\n").decode()
    assert f"items:{found[3]}:evicted " in stats
