"""dogpile.cache's backend.

    import nuthatch.dogpile
    region = make_region().configure("nuthatch", arguments={"url": "tcp://127.0.0.1:11211", "expire": 3600})

`expire` is how long the server keeps a value, in seconds. With `distributed_lock` the lock that lets one of all processes
compute is an item of the server, for `lock_timeout` seconds at most (30). Other arguments are `nuthatch.Client`'s. dogpile
pickles values: only your own programs may be able to write to the server.
"""

import secrets
import time

from dogpile.cache import register_backend
from dogpile.cache.api import NO_VALUE, BytesBackend

from . import Client
from .client import lasting


class _Lock:
    """A lock of all processes: an item that one of them has added. Who holds it for too long has lost it."""

    def __init__(self, client, key, timeout):
        self._client, self._key, self._timeout = client, key, timeout
        self._mine = None

    def acquire(self, wait=True):
        pause, mine = 0.002, secrets.token_bytes(16)
        while not self._client.add(self._key, mine, self._timeout):
            if not wait:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
        self._mine = mine
        return True

    def release(self):
        value, cas = self._client.gets(self._key)
        if value is not None and value == self._mine:
            self._client.delete_cas(self._key, cas)

    def locked(self):
        return self._client.get(self._key) is not None


class Backend(BytesBackend):
    """A cache on Nuthatch or memcached."""

    def __init__(self, arguments):
        arguments = dict(arguments)
        self._expire = lasting(arguments.pop("expire", 0))
        self._has_lock = arguments.pop("distributed_lock", False)
        self._lock_timeout = arguments.pop("lock_timeout", 30)
        self._client = Client(arguments.pop("url", "tcp://127.0.0.1:11211"), **arguments)

    def get_mutex(self, key):
        return _Lock(self._client, f"_lock{key}", self._lock_timeout) if self._has_lock else None

    def get_serialized(self, key):
        return self._client.get(key, NO_VALUE)

    def get_serialized_multi(self, keys):
        found = self._client.get_many(keys)
        return [found.get(key, NO_VALUE) for key in keys]

    def set_serialized(self, key, value):
        self._client.set(key, value, self._expire)

    def set_serialized_multi(self, mapping):
        self._client.set_many(mapping, self._expire)

    def delete(self, key):
        self._client.delete(key)

    def delete_multi(self, keys):
        self._client.delete_many(keys)


register_backend("nuthatch", __name__, "Backend")
