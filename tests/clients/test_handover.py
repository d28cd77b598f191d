"""A new process takes the place of a running one: its items, its sockets, and no client is refused."""

import array
import collections
import os
import pathlib
import signal
import socket
import struct
import subprocess
import threading
import time

import conftest
import pytest
import redis
from judge import converse
from ports import free_port
from test_restart import ITEMS, fill, held

HELLO = b"nuthatch handover 2"
PATIENCE = 120


def is_ready(told):
    """Whether a server says so within a while."""
    told.settimeout(0.1)
    try:
        return b"READY=1" in told.recv(100)
    except TimeoutError:
        return False


class Process:
    """A server that may take over: it is ready when it says so, as to systemd."""

    def __init__(self, folder, *flags, ready=True, environment=None, program=conftest.SERVER):
        folder.mkdir(exist_ok=True)
        self.log = folder / "log"
        self.ports = folder / "ports"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.bind(str(folder / "told"))
            environment = {"MEMCACHED_PORT_FILENAME": str(self.ports), **(environment or {}), "NOTIFY_SOCKET": str(folder / "told")}
            command = [*program, "--log", str(self.log), "-v", *flags]
            self.process = subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True)
            end = time.monotonic() + PATIENCE
            while ready and not is_ready(told):
                assert self.process.poll() is None, self.process.stderr.read()
                assert time.monotonic() < end, "the server is not ready"

    def until(self, words, times=1):
        """Waits until the log says so."""
        while (self.log.read_text() if self.log.exists() else "").count(words) < times:
            assert self.process.poll() is None, self.process.stderr.read()
            time.sleep(0.01)

    def end(self):
        self.process.terminate()
        return self.process.wait()


@pytest.fixture
def start(tmp_path):
    running = []

    def start_with(*flags, **more):
        running.append(Process(tmp_path / f"server{len(running)}", *flags, **more))
        return running[-1]

    yield start_with
    for one in running:
        one.process.kill()
        one.process.wait()


@pytest.fixture
def port():
    return free_port()


class At:
    def __init__(self, port):
        self.address = ("127.0.0.1", port)


def words_of(answer):
    """Flags and cas: of the time to live, some goes by."""
    return [word for word in answer.split() if word[:1] in b"cf"]


@pytest.mark.each_engine
def test_databases_and_long_keys_go_to_the_next(start, tmp_path, port):
    flags = ["-l", "127.0.0.1", "-p", "-1", "--redis-port", str(port), "--handover", str(tmp_path / "control"), "-m", "64"]
    long = "l" * (conftest.LONGEST_KEY - 1)

    def client(database):
        return redis.Redis(port=port, db=database)

    servers = [start(*flags)]
    for database in range(16):
        client(database).mset({"k": database, f"own:{database}": "v"})
    client(3).set(long, "long", ex=1000)
    client(7).setrange("large", 300_000, "end")
    # By database, the one whose items it got.
    items = list(range(16))

    def swap(one, other):
        client(9).swapdb(one, other)
        items[one], items[other] = items[other], items[one]

    swap(0, 1)
    swap(2, 0)
    client(1).flushdb()
    client(1).set("k", "again")
    client(6).flushdb()
    for number in range(3):
        servers.append(start(*flags))
        assert servers[-2].process.wait() == 0
        for database in {*range(16)} - {1, 6}:
            assert client(database).get("k") == b"%d" % items[database]
            assert list(client(database).scan_iter("own:*")) == [b"own:%d" % items[database]]
        assert client(1).keys() == [b"k"] and client(1).get("k") == b"again" and client(6).dbsize() == 0
        assert client(3).get(long) == b"long" and 900 < client(3).ttl(long) <= 1000
        assert client(7).getrange("large", 299_999, -1) == b"\0end"
        # The next server begins with these databases as its own, and they change again.
        swap(10 + number, 13)
        client(6).flushdb()
    assert servers[-1].end() == 0


@pytest.mark.each_engine
def test_items_and_sockets_go_to_the_next_and_nobody_is_refused(start, tmp_path, port):
    control, pid = tmp_path / "control", tmp_path / "pid"
    flags = ["-l", "127.0.0.1", "-p", str(port), "--handover", str(control), "-P", str(pid), "-m", "64", "-t", "2"]
    first = start(*flags)
    fill(At(port))
    before = held(At(port))
    assert before.count(b"VA ") == len(ITEMS)
    idle = socket.create_connection(At(port).address)
    stop, served = threading.Event(), []

    def knock():
        while not stop.is_set():
            # Refused it would raise. One accepted just when the server parts with its clients is closed without an
            # answer, as any open connection, and asks again.
            with socket.create_connection(At(port).address) as connection:
                connection.settimeout(PATIENCE)
                try:
                    connection.sendall(b"mg key7 s\r\n")
                    served.append(connection.recv(100))
                except ConnectionError:
                    served.append(b"")

    def knocks(count):
        seen = len(served)
        while len(served) < seen + count:
            assert all(one.is_alive() for one in knocking)
            time.sleep(0.01)

    knocking = [threading.Thread(daemon=True, target=knock) for _ in range(4)]
    for one in knocking:
        one.start()
    servers = [first]
    try:
        knocks(20)
        for _ in range(3):
            servers.append(start(*flags))
            assert servers[-2].process.wait() == 0
            assert int(pid.read_text()) == servers[-1].process.pid and control.exists()
            knocks(20)
    finally:
        stop.set()
        for one in knocking:
            one.join()
    assert set(served) <= {b"HD s259\r\n", b""} and served.count(b"HD s259\r\n") > 60
    assert idle.recv(100) == b""
    assert words_of(held(At(port))) == words_of(before)
    servers[-1].until("500 items")
    assert servers[-1].end() == 0 and not control.exists() and not pid.exists()


def test_what_was_read_is_answered_before(start, tmp_path, port):
    flags = ["-l", "127.0.0.1", "-p", str(port), "--handover", str(tmp_path / "control")]
    start(*flags)
    with socket.create_connection(At(port).address) as client:
        client.settimeout(PATIENCE)
        answers = client.makefile("rb")
        client.sendall(b"set k 0 0 1\r\nx\r\n" + b"get k\r\n" * 5000)
        # Before that the connection may not have been accepted, and is the next process's.
        assert answers.readline() == b"STORED\r\n"
        start(*flags)
        said = answers.read()
    answer = b"VALUE k 0 1\r\nx\r\nEND\r\n"
    # All that was read, and nothing by halves.
    assert said == answer * (len(said) // len(answer))
    assert converse(At(port).address, b"get k\r\n") == b"VALUE k 0 1\r\nx\r\nEND\r\n"


def test_all_kinds_of_sockets_go_along(start, tmp_path, port):
    path, control = tmp_path / "unix", tmp_path / "control"
    flags = ["-l", "127.0.0.1", "-p", "-1", "-U", "-1", "-t", "3", "--redis-port", "0", "--metrics", "127.0.0.1:0",
             "--cpserver", "127.0.0.1:0", "--handover", str(control)]
    first = start(*flags, program=conftest.IN_LAB)
    first.until("metrics at")
    line = next(line for line in first.log.read_text().splitlines() if "metrics at" in line)
    ports = first.ports.read_text()
    assert "UDP" in ports
    second = start(*flags, program=conftest.IN_LAB)
    second.until("metrics at")
    again = next(line for line in second.log.read_text().splitlines() if "metrics at" in line)
    assert line.split(" at ", 1)[1] == again.split(" at ", 1)[1] and second.ports.read_text() == ports
    assert first.process.wait() == 0
    udp = int(ports.split("UDP INET: ")[1].split()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(PATIENCE)
        client.sendto(struct.pack(">HHHH", 1, 0, 1, 0) + b"mn\r\n", ("127.0.0.1", udp))
        assert client.recv(100)[8:] == b"MN\r\n"
    assert second.end() == 0
    # By a path, which stays where it is.
    flags = ["-s", str(path), "--handover", str(control)]
    first = start(*flags)
    seen = path.stat().st_ino
    second = start(*flags)
    assert first.process.wait() == 0 and path.stat().st_ino == seen
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"mn\r\n")
        assert client.recv(100) == b"MN\r\n"
    assert second.end() == 0 and not path.exists()


def test_a_confined_server_hands_over_its_restart_file_too(start, tmp_path, port):
    items = tmp_path / "items"
    flags = ["-l", "127.0.0.1", "-p", str(port), "--handover", str(tmp_path / "control"), "-e", str(items), "-o", "drop_privileges"]
    first = start(*flags, ready=False)
    while not first.ports.exists():
        if first.process.poll() is not None:
            said = first.process.stderr.read()
            assert "no Landlock" in said, said
            pytest.skip("this kernel has no Landlock")
    first.until("taken from") if items.exists() else None
    while True:
        try:
            fill(At(port))
            break
        except ConnectionRefusedError:
            assert first.process.poll() is None, first.process.stderr.read()
            time.sleep(0.01)
    second = start(*flags)
    assert first.process.wait() == 0
    # It left nothing: its items are the other's, who leaves them when it ends.
    assert not items.exists()
    assert held(At(port)).count(b"VA ") == len(ITEMS)
    assert second.end() == 0 and items.exists()
    third = start(*flags)
    assert held(At(port)).count(b"VA ") == len(ITEMS) and third.process.poll() is None


class Successor:
    """A process that asks for a handover, as far as a test wants."""

    def __init__(self, control, hello=HELLO):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(control))
        self.say(hello)

    def say(self, text):
        self.socket.sendall(struct.pack("<I", len(text)) + text)

    def hear(self):
        length, ancillary, _, _ = self.socket.recvmsg(4, socket.CMSG_SPACE(16))
        for _, kind, data in ancillary:
            for descriptor in array.array("i", data):
                os.close(descriptor)
        return self.socket.recv(struct.unpack("<I", length)[0], socket.MSG_WAITALL)

    def hear_all(self):
        heard = []
        while b"end" not in heard:
            heard.append(self.hear())
        return heard


def test_a_successor_that_fails_takes_nothing(start, tmp_path, port):
    control = tmp_path / "control"
    flags = ["-l", "127.0.0.1", "-p", str(port), "--handover", str(control)]
    server = start(*flags)
    fill(At(port))
    before = held(At(port))

    def goes_on(times):
        server.until("this server goes on", times)
        assert words_of(held(At(port))) == words_of(before) and before.count(b"VA ") == len(ITEMS)

    # Garbage, another version, and words that end anywhere.
    for number, said in enumerate([b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff", b"\x04\0\0\0ab", b""]):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(control))
            client.sendall(said)
        goes_on(number + 1)
    other = Successor(control, b"nuthatch handover 1")
    assert other.hear() == b"refused: the running server is of another version"
    goes_on(5)
    silent = Successor(control)
    assert silent.hear_all()[:2] == [b"socket control", b"socket memcached"]
    silent.socket.close()
    goes_on(6)
    # Amidst the items, and behind them.
    middle = Successor(control)
    middle.hear_all()
    middle.say(b"ready")
    assert middle.socket.recv(8, socket.MSG_WAITALL) == b"NUTHATCH"
    waiting = socket.create_connection(At(port).address)
    waiting.sendall(b"mn\r\n")
    middle.socket.close()
    assert waiting.recv(100) == b"MN\r\n"
    goes_on(7)
    wrong = Successor(control)
    wrong.hear_all()
    wrong.say(b"ready")
    wrong.say(b"no")
    while wrong.socket.recv(1 << 20):
        pass
    goes_on(8)
    # A real one that cannot start leaves the running server as it was, and says why.
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = start(*flags, "--metrics", f"127.0.0.1:{taken.getsockname()[1]}", ready=False)
        assert refused.process.wait() == 1 and "--metrics" in refused.process.stderr.read()
    goes_on(9)
    # And then it hands over all the same.
    second = start(*flags)
    assert server.process.wait() == 0
    assert words_of(held(At(port))) == words_of(before)
    assert second.end() == 0


def test_scripts_do_not_hold_up_the_next(start, tmp_path, port):
    """Who waits for a script waits for its worker, and meanwhile nobody is served."""
    control = tmp_path / "control"
    flags = ["-l", "127.0.0.1", "-p", "-1", "--redis-port", str(port), "--handover", str(control), "-t", "2", "--lua"]
    flags += ["-o", "lua_steps=1000000,lua_busy=1"]
    ended = []

    def run(client, key):
        script = "redis.call('SET', KEYS[1], 'v') while true do pcall(redis.call, 'GET', KEYS[1]) end"
        try:
            client.eval(script, 2, key, "other")
        except redis.RedisError as error:
            ended.append(str(error))

    def running(*keys):
        # Each is answered first: the script of one that is not accepted yet would be the next server's, and never end there.
        clients = [redis.Redis(port=port, retry=None, single_connection_client=True) for _ in keys]
        for client in clients:
            assert client.ping()
        threads = [threading.Thread(target=run, args=pair) for pair in zip(clients, keys, strict=True)]
        for thread in threads:
            thread.start()
        while True:
            try:
                redis.Redis(port=port, retry=None, socket_timeout=0.3).get("k")
            except redis.ResponseError as error:
                assert "busy running a script" in str(error)
                return threads
            except redis.TimeoutError:
                pass  # The worker of the script has it.

    first = start(*flags)
    threads = running("a")
    fails = Successor(control)
    fails.hear_all()
    fails.say(b"ready")
    assert fails.socket.recv(8, socket.MSG_WAITALL) == b"NUTHATCH"
    threads[0].join()
    fails.socket.close()
    first.until("this server goes on")
    # So do its scripts, longer than the one above was waited for.
    long = "local n = 0 repeat n = n + 1 until n % 1000 == 0 and redis.call('TIME')[1] - ARGV[1] > 2 return n"
    assert redis.Redis(port=port).eval(long, 0, int(time.time())) > 0
    threads = running("b", "c", "d")
    second = start(*flags)
    assert first.process.wait() == 0
    for thread in threads:
        thread.join()
    assert len(ended) == 4
    assert redis.Redis(port=port).get("a") == b"v"
    assert second.end() == 0


def test_a_second_successor_is_refused_at_once(start, tmp_path, port):
    control = tmp_path / "control"
    flags = ["-l", "127.0.0.1", "-p", str(port), "--handover", str(control)]
    server = start(*flags)
    fill(At(port))
    silent = Successor(control)
    assert silent.hear_all()[-1] == b"end"
    # It asks while the first one prepares its start, and while that takes the items.
    for said in [b"", b"ready"]:
        if said:
            silent.say(said)
            assert silent.socket.recv(8, socket.MSG_WAITALL) == b"NUTHATCH"
        seconds = []
        for _ in range(20):
            seconds.append(Successor(control))
            # Less than the server waits for the first one.
            seconds[-1].socket.settimeout(5)
            assert seconds[-1].hear() == b"refused: another process is taking over"
        real = start(*flags, ready=False)
        assert real.process.wait(5) == 1
        assert "refused: another process is taking over" in real.process.stderr.read()
    silent.socket.close()
    server.until("this server goes on")
    assert held(At(port)).count(b"VA ") == len(ITEMS)
    last = start(*flags)
    assert server.process.wait() == 0
    assert held(At(port)).count(b"VA ") == len(ITEMS)
    assert last.end() == 0


def filled(port):
    """More than the kernel buffers between two processes."""
    value = b"x" * 1_000_000
    text = b"".join(b"set k%d 0 0 1000000 noreply\r\n%b\r\n" % (number, value) for number in range(30))
    assert converse(At(port).address, text + b"mn\r\n") == b"MN\r\n"


@pytest.mark.parametrize("reads", [0, 50_000])
def test_a_successor_that_hardly_reads_is_cut_off(start, tmp_path, port, reads):
    """Nobody is served meanwhile. It is not enough to read a little now and then."""
    control = tmp_path / "control"
    server = start("-l", "127.0.0.1", "-p", str(port), "--handover", str(control))
    filled(port)
    slow = Successor(control)
    slow.hear_all()
    slow.say(b"ready")
    server.until("nothing more is accepted")
    with socket.create_connection(At(port).address) as waiting:
        waiting.sendall(b"mn\r\n")
        waiting.settimeout(0.2)
        answer, end = b"", time.monotonic() + PATIENCE
        while not answer and time.monotonic() < end:
            try:
                answer = waiting.recv(100)
            except TimeoutError:
                if reads:
                    slow.socket.recv(reads)
        assert answer == b"MN\r\n"
    server.until("silent, or too slow, for 10 s")
    assert converse(At(port).address, b"stats\r\n").count(b"STAT curr_items 30\r\n") == 1
    # What was wrong with one successor is nothing to the next.
    slow.socket.close()
    second = start("-l", "127.0.0.1", "-p", str(port), "--handover", str(control))
    assert server.process.wait() == 0
    assert converse(At(port).address, b"stats\r\n").count(b"STAT curr_items 30\r\n") == 1
    assert second.end() == 0


@pytest.mark.each_engine
def test_a_stop_ends_a_handover_and_nothing_is_lost(start, tmp_path, port):
    control, items = tmp_path / "control", tmp_path / "items"
    flags = ["-l", "127.0.0.1", "-p", str(port), "--handover", str(control), "-e", str(items)]
    server = start(*flags)
    filled(port)
    slow = Successor(control)
    slow.hear_all()
    slow.say(b"ready")
    # Amidst the items.
    assert slow.socket.recv(8, socket.MSG_WAITALL) == b"NUTHATCH"
    server.process.terminate()
    assert server.process.wait() == 0
    assert "this server is to stop" in server.log.read_text()
    start(*flags)
    assert converse(At(port).address, b"stats\r\n").count(b"STAT curr_items 30\r\n") == 1


def test_if_the_server_that_hands_over_is_stopped_the_successor_takes_what_it_leaves(start, tmp_path, port):
    items = tmp_path / "items"
    flags = ["-l", "127.0.0.1", "-p", str(port), "--handover", str(tmp_path / "control"), "-m", "512", "-e", str(items)]
    server = start(*flags)
    server, other = stopped_in_between(start, server, flags, port)
    server.process.terminate()
    server.process.send_signal(signal.SIGCONT)
    assert server.process.wait() == 0
    log = ""
    while "100000 items" not in log and other.process.poll() is None:
        log = other.log.read_text()
        time.sleep(0.01)
    if other.process.poll() is not None:
        # The old one took longer to end than the successor waits for that: then all is left for the next start.
        start(*flags)
    assert converse(At(port).address, b"stats\r\n").count(b"STAT curr_items 100000\r\n") == 1
    assert not (tmp_path / "items.refused").exists()


def test_a_successor_can_be_stopped_while_the_running_server_is_silent(start, tmp_path, port):
    """What listens there may be anything. Without room in its queue a process does not even get to speak."""
    control = tmp_path / "control"
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(control))
        mute.listen(0)
        flags = ["-l", "127.0.0.1", "-p", str(port), "--handover", str(control)]
        for _ in range(3):
            successor = start(*flags, ready=False)
            time.sleep(0.5)
            assert successor.end() == 0
            assert "stopped before it was up" in successor.log.read_text()


def test_a_successor_that_is_killed_in_between_takes_nothing(start, tmp_path, port):
    control = tmp_path / "control"
    flags = ["-l", "127.0.0.1", "-p", str(port), "--handover", str(control), "-m", "512"]
    server = start(*flags)
    value = b"x" * 1000
    text = b"".join(b"set k%d 0 0 1000 noreply\r\n%b\r\n" % (number, value) for number in range(100_000))
    assert converse(At(port).address, text + b"mn\r\n") == b"MN\r\n"
    other = start(*flags, ready=False)
    server.until("nothing more is accepted")
    other.process.kill()
    other.process.wait()
    # It was quick: then it has taken over, and there is no server left; else the first goes on with all of its items.
    log, ended = "", False
    while "went to another process" not in log and "this server goes on" not in log:
        assert not ended, log
        ended = server.process.poll() is not None
        log = server.log.read_text()
    if "this server goes on" in log:
        assert converse(At(port).address, b"stats\r\n").count(b"STAT curr_items 100000\r\n") == 1


def stopped_in_between(start, server, flags, port):
    """Both servers, when the first has been filled with 100,000 items and has given some of them: it stands still."""
    value = b"x" * 1000
    text = b"".join(b"set k%d 0 0 1000 noreply\r\n%b\r\n" % (number, value) for number in range(100_000))
    assert converse(At(port).address, text + b"mn\r\n") == b"MN\r\n"
    while True:
        other = start(*flags, ready=False)
        server.until("nothing more is accepted")
        server.process.send_signal(signal.SIGSTOP)
        if "went to another process" not in server.log.read_text():
            return server, other
        # It was quick, and all of it is done: once more with the other.
        server.process.send_signal(signal.SIGCONT)
        assert server.process.wait() == 0
        server = other


@pytest.mark.parametrize("load", [False, True])
def test_if_the_server_that_hands_over_is_killed_the_successor_serves(start, tmp_path, port, load):
    """It has the sockets by then, so nobody else could serve. It has no items but those of a copy."""
    copy = tmp_path / "copy"
    flags = ["-l", "127.0.0.1", "-p", str(port), "--handover", str(tmp_path / "control"), "-m", "512"]
    flags += ["--save", str(copy), "--save-every", "100000"] + ["--load", str(copy)] * load
    server = start(*flags)
    assert converse(At(port).address, b"set old 0 0 1\r\nx\r\n") == b"STORED\r\n"
    server.process.send_signal(signal.SIGUSR2)
    server.until("1 items")
    server, other = stopped_in_between(start, server, flags, port)
    server.process.kill()
    server.process.wait()
    held = b"VALUE old 0 1\r\nx\r\nEND\r\n" if load else b"END\r\n"
    assert converse(At(port).address, b"get old k1 k50000 k99999\r\n") == held
    conftest.said(other.log, "was killed: its items are lost")
    assert converse(At(port).address, b"set k1 0 0 1\r\ny\r\nget k1\r\n") == b"STORED\r\nVALUE k1 0 1\r\ny\r\nEND\r\n"
    # It hands over in its turn.
    third = start(*flags)
    assert other.process.wait() == 0
    assert converse(At(port).address, b"get k1\r\n") == b"VALUE k1 0 1\r\ny\r\nEND\r\n"
    assert third.end() == 0


def test_a_successor_that_is_stopped_in_between_takes_nothing(start, tmp_path, port):
    """Ctrl-C before it is up does not mean the items."""
    flags = ["-l", "127.0.0.1", "-p", str(port), "--handover", str(tmp_path / "control"), "-m", "512"]
    server = start(*flags)
    server, other = stopped_in_between(start, server, flags, port)
    other.process.terminate()
    time.sleep(1)
    server.process.send_signal(signal.SIGCONT)
    assert other.process.wait() == 0
    server.until("this server goes on")
    assert converse(At(port).address, b"stats\r\n").count(b"STAT curr_items 100000\r\n") == 1
    assert "stopped before it was up" in other.log.read_text()
    # It has left no trace: the next one finds the server.
    third = start(*flags)
    assert server.process.wait() == 0
    assert converse(At(port).address, b"stats\r\n").count(b"STAT curr_items 100000\r\n") == 1
    assert third.end() == 0


def test_a_successor_that_fails_leaves_the_paths_of_the_running_server(start, tmp_path):
    path, control = tmp_path / "unix", tmp_path / "control"
    flags = ["-s", str(path), "--handover", str(control)]

    def serves():
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"mn\r\n")
            return client.recv(100) == b"MN\r\n"

    server = start(*flags)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = start(*flags, "--metrics", f"127.0.0.1:{taken.getsockname()[1]}", ready=False)
        assert refused.process.wait() == 1
    server.until("this server goes on")
    assert path.exists() and control.exists() and serves()
    second = start(*flags)
    assert server.process.wait() == 0 and serves()
    assert second.end() == 0 and not path.exists() and not control.exists()


@pytest.mark.parametrize("with_handover", [True, False])
@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_a_successor_that_fails_leaves_all_files_of_the_running_server(start, tmp_path, port, kind, with_handover):
    folder = tmp_path / "files"
    folder.mkdir()
    place = {name: str(folder / name) for name in ["unix", "control", "pid", "ports", "items", "copy", "damaged"]}
    (folder / "damaged").write_text("damaged")
    where = {"unix": ["-s", place["unix"]], "tcp": ["-l", "127.0.0.1", "-p", str(port)]}[kind]
    # Without a handover, a port that is not free is what fails first.
    there = where if with_handover or kind == "unix" else ["-l", "127.0.0.1", "-p", "0"]
    flags = ["-P", place["pid"], "--save", place["copy"], "-t", "2"]
    flags += ["--handover", place["control"]] if with_handover else []
    environment = {"MEMCACHED_PORT_FILENAME": place["ports"]}

    def files():
        return {path.name: path.read_bytes() if path.is_file() else path.stat().st_ino for path in folder.iterdir()}

    def converse_there(words):
        with socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET) as client:
            client.connect(place["unix"] if kind == "unix" else ("127.0.0.1", port))
            client.sendall(words)
            return client.recv(100)

    server = start(*where, *flags, "-e", place["items"], environment=environment)
    assert converse_there(b"set a 0 0 1\r\nx\r\n") == b"STORED\r\n"
    before = files()
    assert before["pid"] == b"%d\n" % server.process.pid and {"ports", kind} <= before.keys() | {"tcp"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = f"127.0.0.1:{taken.getsockname()[1]}"
        wrong = [
            (1, ["--metrics", busy]),
            (1, ["--cpserver", busy]),
            (2, ["-Y", place["damaged"]]),
            (2, ["-Z", "-o", f"ssl_chain_cert={place['damaged']},ssl_key={place['damaged']}"]),
            (2, ["-P", str(folder / "none" / "pid")]),
        ]
        # These are not read in a handover.
        wrong += [] if with_handover else [(1, ["-e", place["items"]]), (2, ["--load", place["damaged"]])]
        for code, more in wrong:
            # All of these flags are the laboratory's too.
            refused = start(*there, *flags, *more, ready=False, environment=environment, program=conftest.IN_LAB)
            assert refused.process.wait() == code, more
            assert files() == before, (more, refused.process.stderr.read())
            assert converse_there(b"get a\r\n") == b"VALUE a 0 1\r\nx\r\nEND\r\n", more
    assert server.end() == 0
    # What it had made is gone, and what it leaves is there.
    assert files().keys() == {"copy", "damaged", "items", "items.lock", "ports"}


def test_a_successor_whose_process_id_cannot_be_written_takes_nothing(start, tmp_path, port):
    flags = ["-l", "127.0.0.1", "-p", str(port), "--handover", str(tmp_path / "control")]
    server = start(*flags)
    fill(At(port))
    refused = start(*flags, "-P", str(tmp_path / "none" / "pid"), ready=False)
    assert refused.process.wait() == 2 and "-P" in refused.process.stderr.read()
    assert held(At(port)).count(b"VA ") == len(ITEMS)
    assert server.end() == 0


def test_what_an_earlier_stop_left_is_not_taken_after_a_handover(start, tmp_path, port):
    """A server that is killed leaves nothing, whatever file it had."""
    items = tmp_path / "items"
    flags = ["-l", "127.0.0.1", "-p", str(port)]
    earlier = start(*flags, "-e", str(items))
    assert converse(At(port).address, b"set a 0 0 3\r\nold\r\n") == b"STORED\r\n"
    assert earlier.end() == 0 and items.exists()
    control = ["--handover", str(tmp_path / "control")]
    first = start(*flags, *control)
    assert converse(At(port).address, b"set b 0 0 1\r\nx\r\n") == b"STORED\r\n"
    second = start(*flags, *control, "-e", str(items))
    assert first.process.wait() == 0
    assert converse(At(port).address, b"get a b\r\n") == b"VALUE b 0 1\r\nx\r\nEND\r\n"
    # Before it is killed: lines that its log has not written yet are lost then.
    conftest.said(second.log, "older than what came by handover")
    second.process.kill()
    second.process.wait()
    start(*flags, "-e", str(items))
    assert converse(At(port).address, b"get a b\r\n") == b"END\r\n"
    assert (tmp_path / "items.refused").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_another_user_gets_nothing(start, tmp_path, port):
    control = tmp_path / "control"
    server = start("-l", "127.0.0.1", "-p", str(port), "--handover", str(control))
    assert control.stat().st_mode & 0o777 == 0o600
    # Were its permissions looser.
    control.chmod(0o777)
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(0o755)
    program = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(control)!r}); s.sendall(b'\\x13\\0\\0\\0nuthatch handover 2'); print(s.recv(10))"
    said = subprocess.run(["/usr/bin/python3", "-c", program], user=65534, group=65534, capture_output=True, text=True, check=False)
    assert said.stdout.strip() in ("b''", "") and "Permission" not in said.stderr
    server.until("the other side is a process of the user 65534")
    assert converse(At(port).address, b"mn\r\n") == b"MN\r\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_a_unix_socket_takes_the_users_it_was_told_of(start, tmp_path):
    path = tmp_path / "unix"
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(0o755)
    server = start("-s", str(path), "-a", "777", "-o", "unix_peers=nobody:12345")
    program = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(path)!r}); s.sendall(b'mn\\r\\n'); print(s.recv(10))"

    def said(user):
        command = ["/usr/bin/python3", "-c", program]
        return subprocess.run(command, user=user, group=65534, capture_output=True, text=True, check=False)

    for user in [0, 65534, 12345]:
        assert said(user).stdout.strip() == r"b'MN\r\n'", user
    other = said(12346)
    assert other.stdout.strip() in ("b''", "")
    server.until("a unix socket's client is refused: user 12346")
    # A client that connects in a loop must not fill the disk.
    again = program.replace("import socket; ", "import socket\nfor _ in range(100): ").replace("s.sendall(b'mn\\r\\n'); print(s.recv(10))", "s.close()")
    subprocess.run(["/usr/bin/python3", "-c", again], user=12346, group=65534, capture_output=True, check=True)
    assert said(0).stdout.strip() == r"b'MN\r\n'"
    assert server.log.read_text().count("is refused: user") <= 20
    assert server.end() == 0


def test_a_stop_amidst_a_handover_is_a_stop(start, tmp_path, port):
    control = tmp_path / "control"
    server = start("-l", "127.0.0.1", "-p", str(port), "--handover", str(control))
    asking = Successor(control)
    asking.hear_all()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait() == 0 and not pathlib.Path(control).exists()


@pytest.mark.each_engine
def test_redis_clients_lose_nothing_that_was_answered(start, tmp_path, port):
    """Pipelines and transactions of several threads, while one server after the other takes over."""
    redis_port = free_port()
    flags = ["-l", "127.0.0.1", "-p", str(port), "--redis-port", str(redis_port), "--handover", str(tmp_path / "control"), "-t", "2"]
    servers = [start(*flags)]
    stop, failed, answered, tried, counted = threading.Event(), [], {}, {}, collections.Counter()

    def write(me):
        client = redis.Redis(port=redis_port, socket_timeout=PATIENCE, retry=None, single_connection_client=True)
        transaction = me % 2 == 0
        while not stop.is_set():
            number = tried.get(me, 0) + 1
            tried[me] = number
            try:
                pipeline = client.pipeline(transaction=transaction)
                for key in range(20):
                    pipeline.set(f"{me}:{key}", number)
                pipeline.incr(f"{me}:count")
                answers = pipeline.execute()
                assert answers[:-1] == [True] * 20, answers
                answered[me] = number
                counted[me] += 1
                assert client.get(f"{me}:19") == b"%d" % number
            except redis.ConnectionError as error:
                # Its connection ends when the server parts with its clients; it is never refused.
                if "closed" not in str(error).lower() and "reset" not in str(error).lower() and "pipe" not in str(error).lower():
                    failed.append(error)
                    return
                client.close()
                client = redis.Redis(port=redis_port, socket_timeout=PATIENCE, retry=None, single_connection_client=True)
            except BaseException as error:  # noqa: BLE001 (told below, whatever it is)
                failed.append(error)
                return

    writing = [threading.Thread(daemon=True, target=write, args=(me,)) for me in range(6)]
    for thread in writing:
        thread.start()

    def more():
        seen = dict(answered)
        while not failed and any(answered.get(me, 0) < seen.get(me, 0) + 10 for me in range(6)):
            time.sleep(0.01)

    try:
        more()
        for _ in range(4):
            servers.append(start(*flags))
            assert servers[-2].process.wait() == 0
            more()
    finally:
        stop.set()
        for thread in writing:
            thread.join()
    assert not failed, failed
    client = redis.Redis(port=redis_port)
    for me in range(6):
        values = {int(client.get(f"{me}:{key}")) for key in range(20)}
        # What was not answered may be there, of a pipeline a part of it.
        assert all(answered[me] <= value <= tried[me] for value in values), (me, values, answered[me], tried[me])
        assert counted[me] <= int(client.get(f"{me}:count")) <= tried[me]
    assert servers[-1].end() == 0
