"""CPServer's protocol: what its page shows is what happens, beside memcached's clients."""

import re
import struct

from conftest import IN_LAB, ROOT
from pymemcache.client.base import Client

PAGE = (ROOT / "docs/cpserver.md").read_text()


def test_the_example(start):
    memcached = Client(start("--cpserver", "127.0.0.1:0", "-t", "2", program=IN_LAB).address)
    address = memcached.stats("settings")[b"cpserver"].decode()
    [block] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    exec(block.replace("2117", address.rsplit(":", 1)[1]), names)
    # The same items: any key of 8 bytes is a number.
    memcached.set("nuthatch", b"seed", noreply=False)
    [number] = struct.unpack("<Q", b"nuthatch")
    assert f"{number:#x}" in PAGE
    assert names["lookup"](number) == b"seed"
    for key in range(2000):
        names["insert"](key, str(key).encode())
    assert [names["lookup"](key) for key in range(2000)] == [str(key).encode() for key in range(2000)]
    names["connection"].close()
