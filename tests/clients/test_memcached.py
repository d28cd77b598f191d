"""The same conversations with memcached and with us: see judge.py.

What differs on purpose is listed in docs/running.md, and not said here. Some conversations are made up, each
from a seed: SEEDS in the environment says how many. A failure shows the least of its conversation that makes
a difference.
"""

import base64
import os
import random
import re
import time

import pytest
from conftest import Server
from judge import MEMCACHED, RIGHT, VERSION, answers_to, converse, judge, needs_memcached, needs_right
from odd_lines import NUMBERS, block_of, differs

SEEDS = range(int(os.environ.get("SEEDS", "30")))

pytestmark = needs_memcached


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
get  k
mg k  v\x20
GET k
gett k
foo bar
mx
---
incr k x
incr k -1
incr k 18446744073709551616
touch k x
gat x k
delete k 0
delete k 0 noreply
flush_all x
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
ms k 1 Fx
a
ms k 1 Tx
a
ms k x
ms k -1
ma k Dx
ma k MX
ma k t t
ma k b
---
set k 0 0 3
abcdefgh
get k
ms k 2
abcdefg
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


@needs_right
def test_the_size_of_what_is_not_stored_is_that_of_what_was_sent(pair):
    judge(pair, [b"ms none 2 MR s\r\nxy\r\n", b"ms none 3 C5 s c\r\nxyz\r\n", b"ms k 1 s\r\nx\r\n", b"ms k 2 ME s k\r\nxy\r\n",
                 b"ms k 2 C1 s O1\r\nxy\r\n", b"ms k 3 MA s\r\nxyz\r\n", b"ms k 2 ME s q\r\nxy\r\n", b"mg k s\r\n",
                 b"ms k 300000 ME s\r\n" + b"v" * 300_000 + b"\r\n"])


BYTES = {
    "line ends": b"set k 0 0 1\na\r\nget k\nmn x\n",
    "only a newline behind the value": b"set k 0 0 1\r\na\nxmn x\r\nmn\r\n",
    "a value of line ends": b"set k 0 0 8\r\n\r\nEND\r\n\n\r\nget k\r\n",
    "all bytes": b"set k 0 0 256\r\n" + bytes(range(256)) + b"\r\nget k\r\n",
    "keys of 8 bits": b"set \x80\xff 0 0 1\r\na\r\nget \x80\xff\r\n",
    "long keys": b"set %b 0 0 1\r\na\r\nget %b %b\r\n" % (b"k" * 250, b"k" * 250, b"K" * 250),
    "too long keys": b"incr %b 1\r\nmg %b v\r\ndelete %b\r\n" % ((b"k" * 251,) * 3),
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
# What a storage command takes of more than 32 bits.
WIDE_EXPTIMES = [2**32 - 1, 2**31, 2**32, 2**63 - 1, -(2**31) - 1, -(2**63)]
OTHER = [
    "mn",
    "flush_all",
    "flush_all noreply",
    "flush_all 0",
    "foo",
    "ms a",
    "incr a x",
    "touch a x",
    "mg a v v",
    "mg a Z",
    "ma a Dx",
    "ma a MX",
    "verbosity 0",
    "delete a 0",
    "mg " + "k" * 251,
]
# The flags of the meta commands, and what may stand behind a flag's letter. Without h: what mg itself made,
# memcached takes for fetched. Without ma's T: of a number that gets another digit, memcached loses it.
FLAGS = {"mg": "bcfklOqstuvNRT", "ms": "cCFIkOqTM", "md": "bCIkOqT", "ma": "bcDJkMNOqtv", "me": ""}
TOKENS = {
    "C": ["{cas}", 1, 0],
    "D": [0, 1, 1000],
    "F": [0, 5, 2**32 - 1],
    "J": [1, 13],
    "M": {"ms": "SEAPRS", "ma": "I+I"},
    "N": [0, 30, 100],
    "O": ["", "1", "x" * 30],
    "R": [0, 60, 200],
    "T": [0, 30, 100],
}
if VERSION >= RIGHT:
    # 1.6.18 has no x. Without a cas of the client's own, memcached's leaves the item its cas.
    # Nor s, of ms.
    FLAGS = {**FLAGS, "md": FLAGS["md"] + "x", "ms": FLAGS["ms"] + "s"}
    TOKENS["E"] = [7, 10**15]


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
    exptime = dice.choice(WIDE_EXPTIMES) if dice.random() < 0.1 else exptime
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
    if VERSION < RIGHT and verb == "ma" and "N" in letters and "q" in letters:
        letters.remove("q")  # Later versions, and ours, leave out that an item was made.
    if verb == "ma" and "N" in letters and "J" not in letters:
        letters.append("J")  # Not 0.
    if "x" in letters:
        letters.append("E")
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


ODD_WORDS = ["x", "noreply", "k" * 251, "\xff", "{", "v", "Tx", "-", *NUMBERS]


def odd_command(dice, numbers):
    """A command with some of its words changed."""
    line, *value = dice.choice([text_command, meta_command])(dice, numbers).split("\r\n", 1)
    words = line.split(" ")
    for _ in range(dice.randint(1, 2)):
        place = dice.randint(0, len(words))
        match dice.randint(0, 5):
            case 0:
                words[place:] = []
            case 1:
                words[place : place + 1] = []
            case 2:
                words.insert(place, dice.choice(ODD_WORDS))
            case 3:
                words.insert(place, "")
            case 4:
                words.append("noreply")
            case _:
                words[place : place + 1] = [dice.choice(ODD_WORDS)]
    line = " ".join(words)
    if differs_on_purpose(line) or value and block_of(line) is None:
        return odd_command(dice, numbers)
    return "\r\n".join([line, *value])


def odd_commands(dice, numbers):
    kinds = dice.choices([text_command, meta_command, odd_command], [4, 4, 10], k=150)
    commands = [kind(dice, numbers).encode("latin-1") + b"\r\n" for kind in kinds]
    # A value of thousands of bytes that is taken for a line is too long for us.
    commands = [command for command in commands if len(command) < 1000]
    # All on one connection. Where a block is dropped, memcached answers behind its end: there is one.
    return [command.replace(b"{cas}", b"1") for command in commands] + [b"mn\r\n" * 100]


def differs_on_purpose(line):
    """See docs/running.md."""
    verb, *words = line.split() or [""]
    if verb and differs(line):
        return True
    letters = [word[0] for word in words[1:]]
    if verb == "me" and "b" in words[1:]:
        return True
    # A number that gets shorter.
    if verb in ("incr", "decr") and any(word.isdigit() and int(word) > (verb == "incr") * 10**6 for word in words):
        return True
    if verb in ("mg", "ma") and {"b", "k"} <= set(letters):
        return True
    # Each flag sees what those before it did, and what is dead has a time to live.
    if verb in ("mg", "ma", "md") and "t" in letters and {"T", "N", "R"} & set(letters):
        return True
    if verb == "md" and "x" in letters and "E" not in letters:
        return True
    return verb in ("mg", "ma") and {"T", "R"} <= set(letters)


@pytest.mark.parametrize("seed", SEEDS)
def test_made_up_conversations(pair, seed):
    dice = random.Random(seed)
    kinds = dice.choices([text_command, meta_command, other_command], [10, 10, 1], k=150)
    judge(pair, [kind(dice, seed % 2 == 0).encode() + b"\r\n" for kind in kinds])


@needs_right
@pytest.mark.parametrize("seed", SEEDS)
def test_made_up_conversations_with_odd_lines(pair, seed):
    dice = random.Random(seed)
    judge(pair, odd_commands(dice, seed % 2 == 0))


def both_say(pair, text):
    text = text.replace("\n", "\r\n").encode()
    memcached, ours = (converse(server.address, text) for server in pair)
    assert ours == memcached


def test_what_has_an_end_ends(pair):
    """Items with a second to live, and those before a delayed flush, are gone when it is over."""
    both_say(pair, "flush_all\nset a 0 1 1\na\nms b 1 T1\nb\nset c 0 1000 1\nc\ntouch c 1\nmg d N1\nget a b c d\n")
    # Both count whole seconds: an end may be over a second late.
    time.sleep(2.1)
    both_say(pair, "get a b c d\nset k 0 0 1\na\nflush_all 2\nget k\n")
    time.sleep(3)
    both_say(pair, "get k\nset k 0 0 1\nb\nget k\n")


# What clients did is counted alike.
COUNTED = """cmd_get cmd_set cmd_touch cmd_flush get_hits get_misses delete_hits delete_misses incr_hits
    incr_misses decr_hits decr_misses cas_hits cas_misses cas_badval touch_hits touch_misses
    store_too_large""".split()


def stats_of(server, topic=b""):
    return dict(re.findall(rb"STAT (\S+) (\d+)\r\n", converse(server.address, b"stats %b\r\n" % topic)))


def test_counters(tmp_path_factory):
    # Without what memcached counts though it is not done, and ours though it is something else: numbers made.
    odd = re.compile("abcdef|flush_all x|ma n N60")
    conversations = [text for text in CONVERSATIONS.split("\n---\n") if not odd.search(text)]
    counts = []
    resets = []
    for program in [{"program": MEMCACHED}, {}]:
        server = Server(tmp_path_factory.mktemp("server"), "-t", "1", **program)
        for text in conversations:
            answers_to(server, text.replace("\n", "\r\n").encode() + b"\r\n")
        # One that stays: the others may expire between the two looks.
        assert converse(server.address, b"set stays 0 0 1\r\nx\r\n") == b"STORED\r\n"
        stats = stats_of(server)
        counts.append({name: int(stats[name.encode()]) for name in COUNTED})
        assert converse(server.address, b"stats reset\r\n") == b"RESET\r\n"
        # What was counted, and whether it still is.
        after = stats_of(server)
        resets.append({name: int(after[name]) <= 1 for name in stats if int(stats[name]) > 3})
        assert server.end() == 0
    memcached, ours = counts
    assert ours == memcached
    memcached, ours = resets
    assert len(memcached.keys() & ours.keys()) > len(COUNTED) / 2
    # Without what memcached's own thread goes on counting, and what its buffers happen to take at that moment.
    compared = memcached.keys() & ours.keys() - {b"lru_maintainer_juggles", b"response_obj_bytes"}
    assert [name for name in compared if memcached[name] != ours[name]] == []


def test_prefixes(pair):
    """What is counted by prefix, and that resets forget it."""
    text = b"""stats reset
stats detail on
set p:1 0 0 1
a
set plain 0 0 1
a
add p:1 0 0 1
b
append p:1 0 0 1
b
cas p:1 0 0 1 1
c
get p:1 p:2 plain
gat 0 p:1
touch p:1 0
incr p:1 1
delete p:1
delete p:1
ms p:1 1
a
mg p:1 v
ma p:1
md p:1
set q: 0 0 1
a
set : 0 0 1
a
get q: :
stats detail dump
stats reset
stats detail dump
stats detail off
""".replace(b"\n", b"\r\n")
    memcached, ours = (sorted(converse(server.address, text).split(b"\r\n")) for server in pair)
    assert ours == memcached


# It has no mgdump, and tells no flags.
@needs_right
def test_dumps(pair):
    """Keys of any bytes in lines, as they can be told there."""
    told = []
    for server in pair:
        text = b"flush_all\r\nset a%b 7 0 1\r\na\r\nms CgoK 1 b\r\na\r\nms b+c 1\r\na\r\n"
        converse(server.address, text)
        said = []
        for line in [b"lru_crawler metadump all", b"lru_crawler mgdump all"]:
            answer = converse(server.address, line + b"\r\n")
            said += sorted(re.sub(rb"(exp|la|cas|fetch|cls|size)=\S+", rb"\1=_", answer).splitlines(True))
        told.append(said)
    memcached, ours = told
    assert ours == memcached
