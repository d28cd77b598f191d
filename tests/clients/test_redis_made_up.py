"""Made-up requests with options in every order, in any case of letters, and with numbers that are none: redis-server and
ours answer them alike. A seed makes a conversation; SEEDS in the environment says how many.
"""

import os
import random

import pytest
from conftest import ENGINE
from redis_judge import judge, needs_redis, request, version
from test_redis import IN_STEPS, pair  # noqa: F401 (a fixture)

SEEDS = range(int(os.environ.get("SEEDS", "30")))

pytestmark = needs_redis

KEYS = ["a", "b", "k:1"]
LARGE = "9223372036854775807"
VALUES = ["", "0", "5", "-7", "1.5", "abc", LARGE, "007", "1 ", " 1", "-0", "+5", "1e2", "\r\n", "a\0b", "\xff\xfe",
          "x" * 44, "x" * 45, "y" * 3000]
NUMBERS = ["0", "1", "-1", "3", "100", "x", "", "-0", "+1", "01", " 1", "1 ", "1.0", "1e3", "0x10", LARGE,
           "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551616", "9" * 25, "1\0"]
DECIMALS = ["0", "1", "-1", "1.5", "-0.5", "0.25", "3.0", "1e2", "5.0e3", "+1.5", ".5", "5.", "-.5", "x", "", "1e", "1..2", "1,5", "nan", "-0.0"]
# Where a scan takes several steps it does so of nothing, too.
FIRST = [] if ENGINE in IN_STEPS else ["0", "-0", "+0", "00"]
# Redis 7.0 takes the other of these two for a beginning.
FIRST += [] if ENGINE in IN_STEPS or version() < (8,) else ["", " 0"]
CURSORS = [*FIRST, "-", "+", "x", "0 ", "0x0", "++0", "18446744073709551616", "-18446744073709551616"]
EXPIRIES = ["EX", "PX", "EXAT", "PXAT"]


class Requests:
    """Makes them up."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        # Either: a sum of both kinds may not be exact in a long double.
        self.decimals = seed % 2 == 0

    def one_of(self, *words):
        return self.dice.choice(words)

    def key(self):
        return self.dice.choice(KEYS)

    def exact(self, words):
        return self.dice.choice([word for word in words if len(word) < len(LARGE) or not self.decimals])

    def value(self):
        return self.exact(VALUES)

    def number(self, *usual):
        return self.dice.choice(usual) if self.dice.random() < 0.6 else self.exact(NUMBERS)

    def cased(self, word):
        return self.one_of(word, word, word.lower(), word.title())

    def options(self, *words):
        """Some of them, those of expiries with a number mostly."""
        told = []
        for _ in range(self.one_of(0, 1, 1, 2, 2, 3)):
            word = self.dice.choice(words)
            told.append(self.cased(word))
            if word in EXPIRIES and self.dice.random() < 0.9:
                # So far off that no second matters.
                usual = {"EX": "1000000", "PX": "1000000000", "EXAT": "1893456000", "PXAT": "1893456000000"}
                told.append(self.number(usual[word]))
        return told

    def scan(self):
        told = []
        for _ in range(self.one_of(0, 0, 1, 2)):
            told += self.one_of(["MATCH", "none"], ["COUNT", self.number("1000")], ["TYPE", "list"], ["MATCH"], ["COUNT"], ["foo", "x"])
        # Which keys come in which order is each server's own affair: none does.
        return ["SCAN", self.dice.choice(CURSORS), *told, "MATCH", "none", "COUNT", "1000"]

    def make(self):
        key, value, dice = self.key, self.value, self.dice
        kinds = [
            lambda: ["GET", key()],
            lambda: ["SET", key(), value(), *self.options("NX", "XX", "GET", "KEEPTTL", *EXPIRIES)],
            lambda: ["SET", key(), value(), *self.options("NX", "XX", "GET", "KEEPTTL", "PERSIST", "foo", "", *EXPIRIES)],
            lambda: ["GETEX", key(), *self.options("PERSIST", *EXPIRIES)],
            lambda: [self.one_of("SETEX", "PSETEX"), key(), self.number("1000000"), value()],
            lambda: [self.one_of("SETNX", "GETSET", "APPEND"), key(), value()],
            lambda: [self.one_of("GETRANGE", "SUBSTR"), key(), self.number("0", "-3", "2"), self.number("-1", "5")],
            lambda: ["SETRANGE", key(), self.number("0", "2", "50"), value()],
            lambda: [self.one_of("INCRBY", "DECRBY"), key(), self.number("1", "-5")],
            lambda: ["INCRBYFLOAT", key(), dice.choice(DECIMALS)] if self.decimals else ["INCR", key()],
            lambda: ["MSET", *(dice.choice([key, value])() if place % 2 else key() for place in range(dice.randint(1, 5)))],
            lambda: ["MSETNX", *(word for _ in range(dice.randint(1, 2)) for word in (key(), value()))],
            lambda: [self.one_of("DEL", "UNLINK", "EXISTS", "TOUCH", "MGET"), *(key() for _ in range(dice.randint(0, 3)))],
            lambda: ["EXPIRE", key(), self.number("1000000", "2000000"), *self.options("NX", "XX", "GT", "LT")],
            lambda: ["PEXPIREAT", key(), self.number("1893456000000"), *self.options("NX", "XX", "GT", "LT", "foo")],
            lambda: [self.one_of("EXPIRETIME", "PERSIST", "TYPE", "STRLEN", "GETDEL"), key()],
            self.scan,
            lambda: ["SELECT", self.number("0", "1", "15")],
            lambda: ["MOVE", key(), self.number("0", "1", "15")],
            lambda: ["SWAPDB", self.number("0", "1"), self.number("1", "15")],
            lambda: [self.one_of("FLUSHALL", "FLUSHDB"), *self.one_of([], ["foo"], ["ASYNC"], ["async", "sync"])],
            lambda: [self.one_of("MULTI", "EXEC", "DISCARD", "UNWATCH", "RANDOMKEY"), *self.one_of([], [], [], ["x"])],
            lambda: ["MULTI"],
            lambda: ["EXEC"],
            lambda: ["WATCH", *(key() for _ in range(dice.randint(0, 2)))],
            lambda: ["OBJECT", self.one_of("ENCODING", "FREQ", "foo"), *self.one_of(["none"], [], ["none", "x"])],
            lambda: ["MEMORY", "USAGE", "none", *self.one_of([], ["SAMPLES"], ["SAMPLES", self.number("5")], ["foo", "1"])],
            lambda: ["CLIENT", self.one_of("GETNAME", "SETNAME", "NO-EVICT", "foo"), *self.one_of(["me"], ["a b"], ["on"], [])],
            lambda: ["COMMAND", self.one_of("COUNT", "LIST", "foo"), *self.one_of(["x"], ["FILTERBY", "foo", "zzz"], ["FILTERBY", "MODULE", "zzz"])],
            lambda: [self.one_of("foo", "", "get\r\n", "FOO BAR", "x" * 140), *(self.one_of("a", "b\r\n", "y" * 200) for _ in range(dice.randint(0, 4)))],
        ]
        words = dice.choice(kinds)()
        # One word too few or too many.
        chance = dice.random()
        if chance < 0.03:
            words = words[:-1] or words
        elif chance < 0.06:
            words.append(self.one_of("x", "NX"))
        if words[0] == "RANDOMKEY" and len(words) == 1:
            return self.make()
        return [self.cased(words[0]), *words[1:]]


def is_told_otherwise(words):
    """GETEX looks at its options though the key is not there, and commands are fewer: see docs/redis.md."""
    name = words[0].upper()
    return name == "GETEX" and len(words) > 2 or name == "COMMAND" and words[1:] in (["COUNT"], ["LIST"])


@pytest.mark.parametrize("seed", SEEDS)
def test_made_up_requests(pair, seed):  # noqa: F811
    made = Requests(seed)
    requests = [words for words in (made.make() for _ in range(200)) if not is_told_otherwise(words)]
    judge(pair, [request(*(word.encode("latin-1") for word in words)) for words in requests])
