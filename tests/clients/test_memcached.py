"""memcached itself as the judge: the same bytes go to it and to us, and the answers are compared.

Numbers that must differ are made alike first: see `comparable`. What differs on purpose is listed in
docs/running.md, and not said here. Some conversations are made up, each from a seed: SEEDS in the
environment says how many. A failure shows the least of its conversation that makes a difference.
"""

import base64
import os
import random
import re
import shutil
import socket
import threading

import pytest
from conftest import Server

MEMCACHED = ("memcached", "-U", "0", *(("-u", "root") if os.geteuid() == 0 else ()))
SEEDS = range(int(os.environ.get("SEEDS", "30")))

pytestmark = pytest.mark.skipif(not shutil.which("memcached"), reason="memcached is not installed")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """memcached and ours, with the same flags."""
    flags = ("-m", "64", "-t", "2")
    servers = [
        Server(tmp_path_factory.mktemp("memcached"), *flags, program=MEMCACHED),
        Server(tmp_path_factory.mktemp("ours"), *flags),
    ]
    yield servers
    assert [server.end() for server in servers] == [0, 0]


def converse(address, text):
    """All that is answered to a text and its end."""
    with socket.create_connection(address) as connection:

        def say():
            try:
                connection.sendall(text)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # The server closed first: its answers tell.

        speaker = threading.Thread(target=say)
        speaker.start()
        answers = connection.makefile("rb").read()
        speaker.join()
    return answers


CAS = re.compile(rb"(?m)(^VALUE \S+ \d+ \d+ |^(?:VA|HD|EX|NS|NF)\b.* c|^ME .* cas=)(\d+)")
SECONDS = re.compile(rb"(?m)(^(?:VA|HD)\b.* t|^ME .* exp=)-?(\d+)")
UNLIKE = re.compile(rb"(?m)(^(?:VA|HD)\b.* l|^ME | la=| fetch=| cls=| size=)\S+")


def comparable(answers):
    """The same for both: cas numbers by their order of appearance, seconds rounded (me of 1.6.18 tells them
    with the wrong sign), and without what only a server knows."""
    names = {b"0": b"0"}
    for _, cas in CAS.findall(answers):
        names.setdefault(cas, b"#%d" % len(names))
    answers = CAS.sub(lambda found: found[1] + names[found[2]], answers)
    answers = SECONDS.sub(lambda found: found[1] + b"%d" % round(int(found[2]), -1), answers)
    return UNLIKE.sub(rb"\1_", answers)


def answers_to(server, text):
    """The answers of an empty server. {cas} in a line is the cas that was told last before it."""
    converse(server.address, b"flush_all\r\n")
    answers = b""
    for part in re.split(rb"(?m)^(?=.*\{cas\})", text):
        told = CAS.findall(answers)
        answers += converse(server.address, part.replace(b"{cas}", told[-1][1] if told else b"1"))
    return comparable(answers)


def differ(pair, commands):
    memcached, ours = (answers_to(server, b"".join(commands)) for server in pair)
    return memcached != ours


def least(pair, commands):
    """Commands that cannot be spared to see the difference."""
    size = len(commands)
    while size := size // 2:
        start = 0
        while start < len(commands):
            fewer = commands[:start] + commands[start + size :]
            if differ(pair, fewer):
                commands = fewer
            else:
                start += size
    return commands


def judge(pair, commands):
    if differ(pair, commands):
        commands = least(pair, commands)
        memcached, ours = (answers_to(server, b"".join(commands)) for server in pair)
        assert ours == memcached, commands


# Conversations, each a number of lines. Those of the protocol end with a return besides.
CONVERSATIONS = """
get none
gets none none
set k 5 0 3
abc
get k none k
gets k
set k 0 0 0

get k
add k 0 0 1
x
add new 1 100 1
x
replace none 0 0 1
x
replace k 7 0 1
y
append none 0 0 1
x
append k 9 9 2
zz
prepend k 9 9 2
xx
gets k
delete k
delete k
---
set k 0 0 1
a
gets k
cas k 3 0 1 {cas}
b
cas k 4 0 1 1
c
cas k 5 0 1 0
d
cas none 0 0 1 1
x
gets k
---
set k 0 -1 1
x
get k
set k 0 2592001 1
x
get k
set k 0 100 1
x
touch k -1
get k
set k 0 100 1
x
gat -1 k
get k
touch k 0
set k 0 0 1
x
touch k 50
gats 100 k none k
mg k t
gat 0 k
mg k t
---
set n 0 0 2
10
incr n 5
decr n 100
incr n 18446744073709551615
incr n 1
set n 0 0 20
18446744073709551616
incr n 1
set n 0 0 3
 9\x20
incr n 1
set n 0 0 0

incr n 1
set n 7 100 1
1
incr n 1
mg n f t
incr none 1
decr none 1
---
set k 0 0 1 noreply
a
add k 0 0 1 noreply
b
append k 0 0 1 noreply
c
incr k 1 noreply
touch k 0 noreply
delete none noreply
flush_all 100 noreply
verbosity 0 noreply
get k
delete k noreply
get k
---
mg none
mg none q
mg none v k Oop t
ms k 2 T100 F5
ab
mg k
mg k s v
mg k O1 f k v s c t
mg k q k
mg k T50 t
mg k T0 t
ms k 2 q
cd
ms k 2 MS c k Oop
ef
mg k v c
---
mg k h u
ms k 1
a
mg k h u l
mg k h
mg k h
me k
---
ms k 1 ME
a
ms k 1 ME
b
ms k 1 MA
c
ms k 1 MP q
d
ms k 1 MR F3
e
mg k v f
ms none 1 MR
x
ms none 1 MA
x
ms none 1 MP q
x
mg none v
---
ms k 1 c
a
ms k 1 C{cas}
b
mg k c v
ms k 1 C1 q
c
ms k 1 C1 I
d
mg k v c
mg k v c
ms k 1 C{cas} I T30
e
mg k v t
ms none 1 C5
x
ms k 1 MA C1
x
md k C1
md k C1 q
md k q
---
ms k 1
a
md k I T30
mg k v t
mg k v
mg k v
get k
ms k 1
b
mg k v
md k I
touch k 0
mg k v
mg k v
---
mg k N30 v t
mg k N30 v t
mg k v k
set k 0 0 1
x
mg k N30 v
mg k R100
touch k 50
mg k R30
mg k R60
mg k R60
mg k
---
ma n
ma n q
ma n N60 J13 v t
ma n v
ma n D10 c
ma n MD D3 v
ma n MI v k Oop
ma n M- D1000 v
ma n M+ q
ma n T30 t
ma n C1
ma n C0 v
ms s 1
x
ma s
ma s q
---
ms Zm9v 3 b
bar
get foo
mg Zm9v b v
mg Zm9v b k v
mg none b
ms AAEC 1 b k
x
mg AAEC b k v
mg c3BhIGNl b k
md AAEC b q
md AAEC b k
---
md none
md none q
md none q k O1
mn
mn what follows
---
get
gets
gat
set
set k
set k 0 0
cas k 0 0 1
incr k
decr
touch k
delete
mg
ms
ms k
md
ma
me
mx
foo bar
---
get  k
  get k
 mg k  v\x20
GET k
gett k
---
incr k x
incr k -1
incr k 18446744073709551616
touch k x
gat x k
delete k 0
delete k 1
delete k 0 noreply
delete k a b
flush_all x
verbosity
verbosity x
verbosity 0
---
mg k v v
mg k Z
mg k Tx
mg k T
mg k Cx
ms k 1 Z
a
ms k 1 v v
a
ms k 1 MX
a
ms k 1 M
a
ms k 1 Fx
a
ms k 1 Tx
a
ms k x
ms k -1
ma k Dx
ma k MX
ma k MII
ma k t t
ma k b
---
set k 0 0 3
abcdef
get k
ms k 2
abcd
---
mn
get k
---
stats detail
stats nonsense
stats cachedump 1
stats cachedump 100 1
lru
lru_crawler
lru_crawler crawl x
lru_crawler sleep 1000001
slabs
slabs automove x
cache_memlimit 1
cache_memlimit x
cache_memlimit 64
quit
get k
"""


@pytest.mark.parametrize("text", CONVERSATIONS.strip("\n").split("\n---\n"))
def test_conversations(pair, text):
    judge(pair, [text.replace("\n", "\r\n").encode() + b"\r\n"])


BYTES = {
    "line ends": b"set k 0 0 1\na\r\nget k\nmn\n",
    "only a newline behind the value": b"set k 0 0 1\r\na\nmn\r\nmn\r\n",
    "a value of line ends": b"set k 0 0 8\r\n\r\nEND\r\n\n\r\nget k\r\n",
    "all bytes": b"set k 0 0 256\r\n" + bytes(range(256)) + b"\r\nget k\r\n",
    "keys of 8 bits": b"set \x80\xff 0 0 1\r\na\r\nget \x80\xff\r\n",
    "long keys": b"set %b 0 0 1\r\na\r\nget %b %b\r\n" % (b"k" * 250, b"k" * 250, b"K" * 250),
    "too long keys": b"get %b\r\nincr %b 1\r\nmg %b v\r\ndelete %b\r\n" % ((b"k" * 251,) * 4),
    "many keys": b"set a 0 0 1\r\n1\r\nget" + b" a none" * 5000 + b"\r\n",
    "cut off in a line": b"get k\r\nget k",
    "cut off in a value": b"set k 0 0 10\r\n12345",
}


@pytest.mark.parametrize("text", BYTES.values(), ids=BYTES.keys())
def test_bytes(pair, text):
    judge(pair, [text])


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 600_000, (1 << 20) - 300, 1 << 20, 3 << 20])
@pytest.mark.parametrize("verb", ["set k 0 0 %d", "add k 0 0 %d noreply", "ms k %d", "append k 0 0 %d"])
def test_sizes(pair, verb, size):
    store = verb.encode() % size + b"\r\n" + b"v" * size + b"\r\n"
    judge(pair, [b"set k 0 0 3\r\nold\r\n", store, b"get k\r\n", b"mg k s\r\n"])


KEYS = ["a", "b", "c"]
# No number begins with 0: what is added to it would be shorter, and memcached puts spaces behind it then.
VALUES = ["", "7", "42", "x", "v" * 100, "v" * 3000, "get a\r\nget b"]
EXPTIMES = [0, 0, 0, 100, 2592000, -1]
OTHER = [
    "mn",
    "flush_all",
    "flush_all noreply",
    "flush_all 0",
    "get",
    "foo",
    "",
    "mg",
    "ms a",
    "incr a x",
    "touch a x",
    "mg a v v",
    "mg a !",
    "ma a Dx",
    "ma a MX",
    "verbosity 0",
    "delete a 0",
    "mg " + "k" * 251,
]
# The flags of the meta commands, and what may stand behind a flag's letter. Without h: what mg itself made,
# memcached takes for fetched. Without ma's T: of a number that gets another digit, 1.6.18 loses it.
FLAGS = {"mg": "bcfklOqstuvNRT", "ms": "cCFIkOqTM", "md": "bCIkOqT", "ma": "bcDJkMNOqtv", "me": ""}
TOKENS = {
    "C": ["{cas}", 1, 0],
    "D": [0, 1, 1000],
    "F": [0, 5, 2**32 - 1],
    "J": [1, 13],
    "M": {"ms": "SEAPRS", "ma": "I+I"},
    "N": [0, 30, 100],
    "O": ["", "1", "x" * 31],
    "R": [0, 60, 200],
    "T": [0, 30, 100],
}


def text_command(dice, numbers):
    verbs = "set set set add replace append prepend cas get gets gat delete touch"
    verb = dice.choice((verbs + " incr decr" if numbers else verbs).split())
    key, exptime = dice.choice(KEYS), dice.choice(EXPTIMES)
    noreply = dice.choice(["", "", "", " noreply"])
    match verb:
        case "get" | "gets":
            return f"{verb} {' '.join(dice.choices(KEYS, k=dice.randint(1, 5)))}"
        case "gat":
            return f"gat {exptime} {key} {dice.choice(KEYS)}"
        case "incr":
            return f"incr {key} {dice.choice([0, 1, 1000])}{noreply}"
        case "decr":
            return f"decr {key} 0{noreply}"
        case "delete":
            return f"delete {key}{noreply}"
        case "touch":
            return f"touch {key} {exptime}{noreply}"
    value = dice.choice(VALUES)
    demand = dice.choice([" {cas}", " 1", " 0"]) if verb == "cas" else ""
    return f"{verb} {key} {dice.choice([0, 5])} {exptime} {len(value)}{demand}{noreply}\r\n{value}"


def meta_command(dice, numbers):
    verb = dice.choice(["mg", "mg", "ms", "md", "ma" if numbers else "mg", "me"])
    letters = dice.sample(FLAGS[verb], min(dice.randint(0, 6), len(FLAGS[verb])))
    if numbers:
        # What is stale or won is fresh again in memcached if it is counted while it is still being sent.
        letters = [letter for letter in letters if letter not in "IR"]
    if "b" in letters and "k" in letters:
        letters.remove("k")  # memcached's tells how the item was stored, ours how it was asked for.
    if verb == "ma" and "N" in letters and "q" in letters:
        letters.remove("q")  # Later versions, and ours, leave out that an item was made, 1.6.18 does not.
    if verb == "ma" and "N" in letters and "J" not in letters:
        letters.append("J")  # Not 0.
    # In memcached the time to live is what the flags before have made of it. Ours asks, changes, and tells it.
    letters.sort(key=lambda letter: ("RTN".find(letter) % 4, letter.islower()))
    tokens = {**TOKENS, "M": TOKENS["M"].get(verb)}
    if "I" in letters:
        tokens["C"] = [1, 10**15]  # Older and newer than any: told ones may be other keys', in any order.
    flags = [letter + str(dice.choice(tokens.get(letter, [""]))) for letter in letters]
    key = dice.choice(KEYS)
    key = base64.b64encode(key.encode()).decode() if "b" in letters else key
    if verb != "ms":
        return " ".join([verb, key, *flags])
    value = dice.choice(VALUES)
    return " ".join([verb, key, str(len(value)), *flags]) + "\r\n" + value


def other_command(dice, _):
    return dice.choice(OTHER)


@pytest.mark.parametrize("seed", SEEDS)
def test_made_up_conversations(pair, seed):
    dice = random.Random(seed)
    kinds = dice.choices([text_command, meta_command, other_command], [10, 10, 1], k=150)
    judge(pair, [kind(dice, seed % 2 == 0).encode() + b"\r\n" for kind in kinds])


# What clients did is counted alike.
COUNTED = """cmd_get cmd_set cmd_touch cmd_flush get_hits get_misses delete_hits delete_misses incr_hits
    incr_misses decr_hits decr_misses cas_hits cas_misses cas_badval touch_hits touch_misses
    store_too_large""".split()


def test_counters(tmp_path_factory):
    # Without what memcached counts though it is not done, and ours though it is something else: numbers made.
    odd = re.compile("abcdef|flush_all x|ma n N60")
    conversations = [text for text in CONVERSATIONS.split("\n---\n") if not odd.search(text)]
    counts = []
    for program in [{"program": MEMCACHED}, {}]:
        server = Server(tmp_path_factory.mktemp("server"), "-t", "1", **program)
        for text in conversations:
            answers_to(server, text.replace("\n", "\r\n").encode() + b"\r\n")
        stats = dict(re.findall(rb"STAT (\S+) (\d+)", converse(server.address, b"stats\r\n")))
        counts.append({name: int(stats[name.encode()]) for name in COUNTED})
        assert server.end() == 0
    memcached, ours = counts
    assert ours == memcached
