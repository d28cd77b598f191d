"""memcached itself as the judge: the same bytes go to it and to us, and the answers are compared.

MEMCACHED in the environment names the judge, by default the memcached on the PATH. RIGHT is the version whose
answers are ours. Older ones, as Debian's 1.6.18, had another parser: what they answer to lines that lack
something or have too much is not compared, and that of RIGHT stands in the file RECORDED.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading

import pytest

PROGRAM = os.environ.get("MEMCACHED", "memcached")
MEMCACHED = (PROGRAM, "-U", "0", *(("-u", "root") if os.geteuid() == 0 else ()))
RIGHT = (1, 6, 45)
RECORDED = pathlib.Path(__file__).with_name("memcached-1.6.45.json")


def version():
    """The judge's version, or (0,) if there is no judge."""
    if not shutil.which(PROGRAM):
        return (0,)
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    return tuple(int(number) for number in re.search(r"(\d+)\.(\d+)\.(\d+)", said.stdout).groups())


VERSION = version()
needs_memcached = pytest.mark.skipif(VERSION == (0,), reason=f"{PROGRAM} is not installed")
needs_right = pytest.mark.skipif(
    VERSION < RIGHT,
    reason=f"{PROGRAM} is older than 1.6.45, whose parser says other things of lines that are not well formed",
)


def converse(address, text):
    """All that is answered to a text and its end."""
    with socket.create_connection(address) as connection:

        def say():
            try:
                connection.sendall(text)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # The server closed first: its answers tell.

        speaker = threading.Thread(daemon=True, target=say)
        speaker.start()
        answers = connection.makefile("rb").read()
        speaker.join()
    return answers


CAS = re.compile(rb"(?m)(^VALUE \S+ \d+ \d+ |^(?:VA|HD|EX|NS|NF)\b.* c|^ME .* cas=)(\d+)")
SECONDS = re.compile(rb"(?m)(^(?:VA|HD)\b.* t|^ME .* exp=)-?(\d+)")
UNLIKE = re.compile(rb"(?m)(^(?:VA|HD)\b.* l|^ME | la=| fetch=| cls=| size=)\S+")
# Ours reach no further than 8 years.
FAR = 200_000_000


def rounded(found):
    seconds = int(found[2])
    return found[1] + (b"far" if seconds > FAR else b"%d" % round(seconds, -1))


def comparable(answers):
    """The same for both: cas numbers by their order of appearance, seconds rounded (me of 1.6.18 tells them
    with the wrong sign), and without what only a server knows."""
    names = {b"0": b"0"}
    for _, cas in CAS.findall(answers):
        names.setdefault(cas, b"#%d" % len(names))
    answers = CAS.sub(lambda found: found[1] + names[found[2]], answers)
    answers = SECONDS.sub(rounded, answers)
    return UNLIKE.sub(rb"\1_", answers)


def answers_to(server, text):
    """The answers of an empty server. {cas} in a line is the cas that was told last before it."""
    converse(server.address, b"flush_all\r\n")
    answers = b""
    # Most of them have none, and some are megabytes long.
    parts = re.split(rb"(?m)^(?=.*\{cas\})", text) if b"{cas}" in text else [text]
    for part in parts:
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
    # Twice: a second may have begun in between.
    if differ(pair, commands) and differ(pair, commands):
        commands = least(pair, commands)
        memcached, ours = (answers_to(server, b"".join(commands)) for server in pair)
        assert ours == memcached, commands
