"""Odd lines, one at a time, are answered as memcached 1.6.45 answers them.

Its answers stand in the file RECORDED, so that no memcached of that version is needed. Where there is one,
it is asked, and with RECORD=1 its answers are written down.
"""

import json
import os
import re
import time

from judge import RECORDED, answers_to, needs_right
from odd_lines import lines, whole

# A failure shows so many.
SHOWN = 20

NO_NUMBER = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"


def answers_of(server):
    return {line: as_recorded(server, line) for line in lines()}


def as_recorded(server, line):
    """The answer as if no second had begun between the set and the question how long the item has to live."""
    begun = time.monotonic()
    answer = answers_to(server, whole(line)).decode("latin-1")
    for seconds in range(1, 2 + int(time.monotonic() - begun)):
        answer = answer.replace(f" t{1000 - seconds} ", " t1000 ")
    return answer


def recorded():
    """The answer to each line. The file has them by answer: many lines have the same."""
    by_answer = json.loads(RECORDED.read_text())
    return {line: answer for answer, lines in by_answer.items() for line in lines}


def record(answers):
    by_answer = {}
    for line, answer in answers.items():
        by_answer.setdefault(answer, []).append(line)
    RECORDED.write_text(json.dumps(by_answer, indent=0) + "\n")


def differences(said, expected):
    found = [(line, expected.get(line), said[line]) for line in said if said[line] != expected.get(line)]
    return len(found), found[:SHOWN]


@needs_right
def test_memcached_says_what_is_recorded(pair):
    answers = answers_of(pair[0])
    if os.environ.get("RECORD") == "1":
        record(answers)
    assert differences(answers, recorded()) == (0, [])


def test_ours_says_what_is_recorded(start):
    """But for values below zero that memcached wraps to a number above: these are no numbers here, as -1 is none."""
    expected = recorded()
    assert set(expected) == set(lines())
    wraps = [line for line in expected if re.search(r"\r\n-[0-9]{19,}\r\n(incr|decr|ma) ", line)]
    assert wraps
    for line in wraps:
        expected[line] = re.sub(r"^((STORED\r\n){2})(VA \d+\r\n)?\d+\r\n", rf"\1{NO_NUMBER}", expected[line])
    assert differences(answers_of(start("-m", "64", "-t", "2")), expected) == (0, [])
