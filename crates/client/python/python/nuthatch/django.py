"""Django's cache backend.

    CACHES = {"default": {"BACKEND": "nuthatch.django.CacheBackend", "LOCATION": "tcp://127.0.0.1:11211"}}

LOCATION is an address, or servers as Django's own backends for memcached have them. OPTIONS are `nuthatch.Client`'s arguments.
Values are pickled, as Django's own backends do it: only your own programs may be able to write to the server.
"""

from django.core.cache.backends.memcached import BaseMemcachedCache

import nuthatch

from . import client, exceptions

# Django makes a backend for each thread. Their calls travel on one connection.
_clients: "dict[str, _Client]" = {}


class _Client(client.Client):
    """A client that says of a store what the others say: whether it was made."""

    def set(self, *words, **named):
        try:
            return super().set(*words, **named)
        except exceptions.ServerError:
            # It is too large, say.
            return False


class CacheBackend(BaseMemcachedCache):
    """A cache on Nuthatch or memcached."""

    def __init__(self, server, params):
        super().__init__(server, params, library=nuthatch, value_not_found_exception=KeyError)
        is_address = isinstance(server, str) and "://" in server
        if is_address:
            self._servers = server
        elif len(self._servers) == 1:
            self._servers = self._servers[0]
        self._options = {"serde": "pickle", **self._options}

    @property
    def _cache(self):
        words = repr((self._servers, sorted(self._options.items(), key=str)))
        if words not in _clients:
            # If two threads do this, one's client goes without having connected.
            _clients[words] = _Client(self._servers, **self._options)
        return _clients[words]

    def close(self, **kwargs):
        """Requests end, and connections stay."""
