"""Lines with words that are missing, empty, too many or malformed: all commands, each word in turn.

whole() makes a conversation of a line, with a value set before it and looked at behind it. Left out is what
differs on purpose: see docs/running.md.
"""

NUMBERS = """- -0 -1 +1 -100 1.5 0x1 x 1x 100 2592000 2592001 2147483645 2147483646 2147483647 2147483648 4294967295
    4294967296 4294967297 -2147483648 -2147483649 -4294967295 9223372036854775807 9223372036854775808
    -9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616
    00000000001 000000000001 0000000000000000000001 00000000000000000000001 noreply""".split()
FEW_NUMBERS = ["-1", "x", "1x", "4294967295", "noreply"]
# Those of one parser have the same numbers: they are gone through once.
ALIKE = ("gats", "add", "replace", "append", "prepend", "decr")
# What each word is: a name, a key, a number, the length of the data block, or no more than a word.
TEXT = {
    "get k": "nk",
    "gets k none": "nkk",
    "gat 100 k": "n#k",
    "gats 100 k none": "n#kk",
    "set k 5 100 2": "nk##l",
    "add new 5 100 2": "nk##l",
    "replace k 5 100 2": "nk##l",
    "append k 5 100 2": "nk##l",
    "prepend k 5 100 2": "nk##l",
    "cas k 5 100 2 1": "nk##l#",
    "incr k 1": "nk#",
    "decr k 1": "nk#",
    "touch k 100": "nk#",
    "delete k": "nk",
    "flush_all 100": "n#",
    "verbosity 0": "n#",
    "cache_memlimit 64": "n#",
}
META = {
    "mg k v": "nkw",
    "ms k 2": "nkl",
    "md k": "nk",
    "ma k v": "nkw",
    "me k": "nk",
    "mn": "n",
}
STORES = ("set", "add", "replace", "append", "prepend", "cas", "ms")
# Flags with a number, and those with other tokens.
COUNTED = "CDEFJNRT"
ALL_FLAGS = "T100 N100 c f h k O s t v q u x I E7 R5 C5 D1 J1 F3 P L".split()
# Names with what may stand behind them, where one line has one answer.
OTHERS = """
quit|quit x|quit noreply
shutdown|shutdown x|shutdown graceful|shutdown noreply|shutdown x noreply
stats nonsense|stats noreply|stats detail|stats detail x|stats detail on off|stats detail off on|stats reset
stats reset noreply|stats reset x|stats extstore
stats cachedump|stats cachedump 1|stats cachedump x 1|stats cachedump 1 x|stats cachedump 64 1
stats cachedump 4294967296 1|stats cachedump -1 1|stats cachedump +1 1|stats cachedump 63 1 x
slabs|slabs x|slabs noreply|slabs reassign|slabs reassign 1|slabs reassign 1 2 3|slabs reassign 1 2 noreply
slabs automove|slabs automove noreply|slabs automove x|slabs automove 0|slabs automove 1|slabs automove 2
slabs automove 3|slabs automove -1|slabs automove 1 x|slabs automove 1 noreply|slabs automove x noreply
slabs automove ratio|slabs automove ratio x|slabs automove ratio 0.8|slabs automove ratio 0.8 x
slabs automove freeratio|slabs automove freeratio 0.01|slabs automove window|slabs automove window x
slabs automove window 2|slabs automove window 3|slabs automove window 30 x|slabs automove window 1800
slabs automove window 1801|slabs automove window noreply
lru|lru x|lru noreply|lru tune|lru tune 10|lru tune 10 25 0.1|lru tune 10 25 0.1 2.0|lru tune 10 25 0.1 2.0 x
lru tune 10 25 0.1 2.0 noreply|lru tune x 25 0.1 2.0|lru tune 10 25 0.1 x|lru tune 50 40 0.1 2.0
lru tune 10 25 0 2.0|lru tune 10 25 0.1 -1|lru mode|lru mode x|lru temp_ttl|lru temp_ttl x
lru_crawler|lru_crawler x|lru_crawler x y|lru_crawler noreply|lru_crawler sleep|lru_crawler sleep x
lru_crawler sleep 100|lru_crawler sleep 1000000|lru_crawler sleep 1000001|lru_crawler sleep 100 x
lru_crawler sleep 100 noreply|lru_crawler tocrawl|lru_crawler tocrawl x|lru_crawler tocrawl 0
lru_crawler crawl|lru_crawler crawl x|lru_crawler crawl 300|lru_crawler crawl 1 x|lru_crawler metadump
lru_crawler metadump 1 2|lru_crawler mgdump|lru_crawler mgdump 1 2
foo|foo bar|foo noreply|foo noreply x|noreply|noreply noreply|GET k|gett k|mx|mx k|mx k noreply|ge k
HTTP/1.1|foo HTTP/1.1 x|foo HTTP
"""


def fits_no_block(word):
    """A number that is no data block's length in memcached, which then takes the block for commands."""
    return word.isdigit() and (len(word) > 11 or int(word) > 2**31 - 3)


def length_of(verb, words):
    """The word that says how long the data block is."""
    place = 1 if verb == "ms" else 3
    return words[place] if verb in STORES and len(words) > place else ""


def differs(line):
    """On purpose, or for a reason that is none of ours."""
    verb, *words = line.split()
    length = length_of(verb, words)
    # The answer to a key that is too long takes the place of those before it.
    if verb in ("get", "gets", "gat", "gats") and any(len(word) > 250 for word in words):
        return True
    # A number that gets shorter gets spaces.
    if verb == "decr" and "4294967295" in words:
        return True
    # The answer to a value that is too large comes behind its block.
    if length in ("2592000", "2592001", "2147483645"):
        return True
    # Terabytes.
    return verb == "cache_memlimit" and words[:1] in (["2592000"], ["2592001"])


def block_of(line):
    """What follows a line, or None where nothing may."""
    verb, *words = line.split() or [""]
    # Several lines bring their own.
    if verb not in STORES or line.startswith(" ") or line.count("\n") > 1:
        return b""
    length = length_of(verb, words)
    odd = verb == "ms" and any(not (word[0].isdigit() or "A" <= word[0] <= "z") for word in words[2:])
    if odd or fits_no_block(length) or length.isdigit() and int(length) > 100:
        return None
    value = b"1" * int(length) if length.isdigit() else b"" if length in ("-", "-0") else b"10"
    return value + b"\r\n"


def text_lines():
    for line, kinds in {**TEXT, **META}.items():
        words = line.split()
        for count in range(1, len(words) + 1):
            for behind in ["", " noreply"]:
                yield " ".join(words[:count]) + behind
        for place in range(1, len(words) - 1):
            yield " ".join(words[:place] + words[place + 1 :])
        if line not in META:
            for behind in [" x", " x y z", " x noreply", " noreply x"]:
                yield line + behind
            # The last of 23 words is the last that is looked at.
            for count in [22, 23]:
                yield line + " x" * (count - len(words)) + " noreply"
        yield from (f" {line}", f"  {line}  ", line.replace(" ", "   ") + " ", line.upper(), line + "x")
        for place, kind in enumerate(kinds):
            numbers = FEW_NUMBERS if words[0] in ALIKE else NUMBERS
            odd = {"#": numbers, "l": numbers, "k": ["k" * 250, "k" * 251, "\xff\xe9"]}.get(kind, [])
            for word in odd:
                changed = " ".join(words[:place] + [word] + words[place + 1 :])
                if not differs(changed):
                    yield changed
                    if kind == "k" or word in ("x", "-1"):
                        yield changed + " noreply"


def meta_lines():
    for line in ["mg k", "ms k 2", "md k", "ma k", "me k"]:
        verb = line[:2]
        letters = map(chr, range(33, 127)) if verb in ("mg", "ms") else "CDEFIJKLMNOPRSTZcfhklqstuvxz1"
        # A key that is no base64 has lines of its own.
        yield from (f"{line} {letter}" for letter in letters if letter != "b")
        for letter in "!19[_`{~":
            yield f"{line} v v {letter}"
        for letter in COUNTED:
            few = ["x", "5"] if letter in "DJ" else ["x", "5", *NUMBERS]
            for number in few if verb in ("mg", "ms") else ["x"]:
                yield f"{line} {letter}{number}"
        for flags in ["v v", "v q v", "O1 O2", "Tx Z", "Z Tx", "Tx Jx", "Jx Tx", "Fx", "Tx Fx", "Fx Tx", "Tx v v"]:
            yield f"{line} {flags}"
        for mode in "SEAPRIDX+-seapr":
            yield f"{line} M{mode}"
            yield f"{line} q k M{mode}x"
        for size in [30, 31, 32, 33]:
            # One that is too long has its effect in memcached: mg and ma tell it of what they have done.
            yield f"{'ms none 2' if verb == 'ms' else verb + ' none'} k O{'o' * size} s"
        for count in [16, 17, 18, 19, 20, 22, 23, 24]:
            yield f"{line} {' '.join(ALL_FLAGS[:count])}"
            yield f"{line} {' '.join('v' * count)}"
        if verb != "me":
            for key in ["bm9uZQ==", "bm9uZQ=", "bm9uZQ", "b", "===="]:
                for flags in ["b", "k b Oo", "b Tx", "Tx b", "b Z"]:
                    yield f"{verb} {key} {'2 ' if verb == 'ms' else ''}{flags}"
            full = {"ms": "2 "}.get(verb, "")
            for size in [248, 252, 336]:
                yield f"{verb} {'QUJD' * (size // 4)} {full}b"
                yield f"{verb} {'QUJD' * (size // 4)} {full}"


def other_lines():
    for line in OTHERS.replace("\n", "|").split("|"):
        if line:
            yield line
            yield f" {line}"


def expiries():
    """Each way to say when an item ends, with each number."""
    for number in ["0", "1000", *NUMBERS]:
        for line in [
            "set k 0 {} 2",
            "touch k {}",
            "gat {} k",
            "ms k 2 T{}",
            "ms new 2 MA N{}",
            "mg k T{}",
            "mg new N{}",
            "mg k R{}",
            "md k I T{}",
            "md k x T{}",
            "ma k T{}",
            "ma new N{}",
            "flush_all {}",
        ]:
            yield line.format(number)


def stored_numbers():
    """Each command that counts, on each value that may be a number. What the value is then is looked at where memcached
    puts no spaces behind it, as it does where the new number is shorter."""
    values = [value for value in NUMBERS if value != "noreply"]
    values += ["", "+", "+5", "+-5", "-5", "0005", f"{0:025}5", f"+{0:025}5", f"{0:0249}5", "-18446744073709551615"]
    values += [" 5", "5 ", " 5 ", "\t5", "\n5", "\v5", "\f5", "\r5", "5\t", "5\n", "5\v", "5\f", "5\r", "\x1f5", "5\x1f"]
    values += ["+ 5", "- 0", " +5 ", " -0 ", "\xa05", "5\xa0", "5e0", "5,", "5_0", "0b1", "\xb2", "5" + " " * 200]
    for value in values:
        stored = f"set k 7 1000 {len(value)}\r\n{value}\r\n"
        for command in ["incr k 1", "decr k 1", "incr k 0", "ma k v", "ma k v MD"]:
            yield f"{stored}{command}\r\nset k 7 1000 2\r\n50\r\n"
        if len(value) <= 18:
            yield f"{stored}incr k 10000000000000000000\r\n"


def deltas():
    """How much ma counts, and from what."""
    for number in NUMBERS + ["+5", "", "0005", f"{0:025}5"]:
        yield from (f"ma k v D{number}", f"ma new v N100 J{number}")
        # Back to two digits, as above.
        yield f"ma k v MD D{number}\r\nset k 7 1000 2\r\n50\r\n"


def ends():
    """Lines that are short, and their ends."""
    for line in ["", "a", "ab", "mn", "mg", "mn x", "set k 0 0 2", "flush_all", "foo", "foo noreply"]:
        yield from (line + "\n", line + "\r\r\n")
    yield "get k\n"
    yield ""
    yield "a"


def lines():
    """All lines, each once. Where none is there, \r\n is the end."""
    made = [text_lines(), meta_lines(), other_lines(), expiries(), stored_numbers(), deltas(), ends()]
    return list(dict.fromkeys(line for some in made for line in some))


def whole(line):
    """The conversation about a line."""
    before = b"set k 7 1000 2\r\n50\r\n"
    behind = b"get k\r\nmg k t f v\r\nget new\r\nmn\r\n"
    block = block_of(line)
    ended = line if line.endswith("\n") else line + "\r\n"
    said = before + ended.encode("latin-1")
    return said if block is None else said + block + behind
