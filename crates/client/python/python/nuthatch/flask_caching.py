"""Flask-Caching's backend.

    cache = Cache(app, config={"CACHE_TYPE": "nuthatch.flask_caching.Backend", "CACHE_NUTHATCH_URL": "tcp://127.0.0.1:11211"})

CACHE_KEY_PREFIX and CACHE_DEFAULT_TIMEOUT are taken, and CACHE_OPTIONS, which are `nuthatch.Client`'s arguments. Values are
pickled: only your own programs may be able to write to the server.
"""

from flask_caching.backends.base import BaseCache

from . import Client
from .client import lasting
from .exceptions import ServerError


class Backend(BaseCache):
    """A cache on Nuthatch or memcached."""

    def __init__(self, server="tcp://127.0.0.1:11211", default_timeout=300, **options):
        super().__init__(default_timeout=default_timeout)
        self._client = Client(server, **{"serde": "pickle", **options})

    @classmethod
    def factory(cls, app, config, args, kwargs):
        options = {"key_prefix": config.get("CACHE_KEY_PREFIX") or b"", **(config.get("CACHE_OPTIONS") or {})}
        server = config.get("CACHE_NUTHATCH_URL", "tcp://127.0.0.1:11211")
        return cls(server, config["CACHE_DEFAULT_TIMEOUT"], **options)

    def _expire(self, timeout):
        """A lifetime. There as here 0 is without an end."""
        return lasting(self.default_timeout if timeout is None else timeout)

    def get(self, key):
        return self._client.get(key)

    def get_many(self, *keys):
        found = self._client.get_many(keys)
        return [found.get(key) for key in keys]

    def get_dict(self, *keys):
        return dict(zip(keys, self.get_many(*keys)))

    def has(self, key):
        return self._client.gets(key)[1] is not None

    def set(self, key, value, timeout=None):
        try:
            return self._client.set(key, value, self._expire(timeout))
        except ServerError:
            # It is too large, say.
            return False

    def add(self, key, value, timeout=None):
        return self._client.add(key, value, self._expire(timeout))

    def set_many(self, mapping, timeout=None):
        failed = set(self._client.set_many(mapping, self._expire(timeout)))
        return [key for key in mapping if key not in failed]

    def delete(self, key):
        return self._client.delete(key)

    def delete_many(self, *keys):
        return [key for key in keys if self._client.delete(key)]

    def inc(self, key, delta=1):
        return self._client.incr(key, delta)

    def dec(self, key, delta=1):
        return self._client.decr(key, delta)

    def clear(self):
        return self._client.flush_all()
