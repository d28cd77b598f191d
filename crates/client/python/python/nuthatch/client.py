"""The client for threads, with pymemcache's interface."""

import datetime
import types

from . import _nuthatch
from .addresses import address
from .exceptions import Error, IllegalInputError
from .serde import Packing, chosen
from .statistics import stats as told_stats, version as told_version


# What pymemcache's clients are told of their sockets, pools and servers' keys, and is not asked here.
_THEIRS = {
    "allow_unicode_keys",
    "encoding",
    "lock_generator",
    "max_pool_size",
    "no_delay",
    "pool_idle_timeout",
    "socket_keepalive",
    "socket_module",
    "use_pooling",
}


def own(options):
    """The options without those that say nothing here."""
    return {name: value for name, value in options.items() if name not in _THEIRS}


def prefix_of(prefix):
    """A key's prefix, as bytes."""
    if isinstance(prefix, str):
        return prefix.encode()
    if isinstance(prefix, bytes):
        return prefix
    raise TypeError(f"a key prefix is bytes or str, not {type(prefix).__name__}")


# The protocol takes longer lifetimes than 30 days for dates, but never a timedelta.
_LIFETIME_MAX = 100 * 365 * 24 * 3600


def lasting(seconds):
    """A lifetime of so many seconds, however many. 0 and None are without an end."""
    is_number = isinstance(seconds, (int, float))
    return datetime.timedelta(seconds=min(seconds, _LIFETIME_MAX)) if is_number and seconds > 0 else seconds


def number_of(cas):
    """The number that `gets` gave, which is bytes of digits."""
    try:
        number = int(cas)
    except (TypeError, ValueError):
        raise IllegalInputError(f"cas is the number that gets returned, not {cas!r}") from None
    if not 0 <= number < 1 << 64:
        raise IllegalInputError(f"cas is a number under 2**64, not {cas!r}")
    return number


class Client(Packing):
    """A client of one server or several, for threads. All threads share it: their calls travel on one connection.

    `server` is "tcp://HOST:PORT,HOST:PORT", "unix:///PATH", "tls://HOST:PORT?ca=FILE" or, on Linux, "shm:///PATH"; or, as
    pymemcache has it, (HOST, PORT), "HOST:PORT", a path, or a list of servers. Nothing is connected before the first call. Times are in seconds.
    `options` are those that an address can have behind "?"; pymemcache's for its sockets and pools are passed over.

    A call waits for its reply also where pymemcache would not (`noreply`): calls of other threads go on meanwhile, and
    failures are told. With `noreply` a store returns True also where it stored nothing, as there.

    A child of the process that made the client has connections of its own.
    """

    def __init__(
        self,
        server,
        serde=None,
        serializer=None,
        deserializer=None,
        connect_timeout=None,
        timeout=None,
        ignore_exc=False,
        key_prefix=b"",
        default_noreply=False,
        login=None,
        **options,
    ):
        self.serde = chosen(serde, serializer, deserializer)
        self.ignore_exc = ignore_exc
        self.default_noreply = default_noreply
        self._core = _nuthatch.Client(
            address(server, own(options)), timeout, connect_timeout, login, list(prefix_of(key_prefix))
        )

    def _noreply(self, noreply):
        return self.default_noreply if noreply is None else noreply

    def _store(self, way, key, value, expire, noreply, flags):
        value, flags = self._packed(key, value, flags)
        return self._core.store(way, key, value, expire, flags) or self._noreply(noreply)

    def get(self, key, default=None):
        """The value under a key, or `default`."""
        try:
            if self.serde is None:
                return self._core.get(key, default)
            found = self._core.get_with_flags(key)
            return default if found is None else self.serde.deserialize(key, *found)
        except Error:
            if not self.ignore_exc:
                raise
            return default

    def get_many(self, keys):
        """The values of those keys that have one. All servers are asked at once."""
        return {key: value for key, (value, _) in self.gets_many(keys).items()}

    def gets(self, key, default=None, cas_default=None):
        """The value under a key, and its number for `cas`."""
        try:
            found = self._core.get_item(key)
        except Error:
            if not self.ignore_exc:
                raise
            found = None
        return self._with_cas(key, found, default, cas_default)

    def _with_cas(self, key, found, default, cas_default):
        if found is None:
            return default, cas_default
        value, flags, cas = found
        return self._unpacked(key, value, flags), b"%d" % cas

    def gets_many(self, keys):
        """The values of those keys that have one, and their numbers for `cas`."""
        keys = list(keys)
        if not keys:
            return {}
        items, _, error = self._core.get_many(keys)
        if error is not None and not self.ignore_exc:
            raise error
        found = ((key, item) for key, item in zip(keys, items) if item is not None)
        return {key: (self._unpacked(key, value, flags), b"%d" % cas) for key, (value, flags, cas) in found}

    def gat(self, key, expire=0, default=None):
        """The value under a key, which from now on has this lifetime."""
        return self.gats(key, expire, default)[0]

    def gats(self, key, expire=0, default=None, cas_default=None):
        """The same, and its number for `cas`."""
        return self._with_cas(key, self._core.get_and_touch(key, expire), default, cas_default)

    def set(self, key, value, expire=0, noreply=None, flags=None):
        """Stores a value, for `expire` seconds; 0 is without an end.

        Here and everywhere, as memcached has it: below 0 it has expired already, and more than 30 days (2,592,000) are a date,
        in seconds since 1970. A `timedelta` of any length is a lifetime.
        """
        value, flags = self._packed(key, value, flags)
        self._core.set(key, value, expire, flags)
        return True

    def set_many(self, values, expire=0, noreply=None, flags=None):
        """Stores values by their keys. The keys that failed; an error if the call is wrong, or if all failed."""
        items = [(key, *self._packed(key, value, flags)) for key, value in values.items()]
        if not items:
            return []
        places, error = self._core.set_many(items, expire)
        if error is not None and (isinstance(error, IllegalInputError) or len(places) == len(items)):
            raise error
        return [items[place][0] for place in places]

    def add(self, key, value, expire=0, noreply=None, flags=None):
        """Stores a value if there is none. True if it was stored."""
        return self._store("add", key, value, expire, noreply, flags)

    def replace(self, key, value, expire=0, noreply=None, flags=None):
        """Stores a value if there is one. True if it was stored."""
        return self._store("replace", key, value, expire, noreply, flags)

    def append(self, key, value, expire=0, noreply=None, flags=None):
        """Adds bytes behind the value. Its lifetime and flags stay. True if there was one."""
        return self._store("append", key, value, expire, noreply, flags)

    def prepend(self, key, value, expire=0, noreply=None, flags=None):
        """Adds bytes in front of the value. Its lifetime and flags stay. True if there was one."""
        return self._store("prepend", key, value, expire, noreply, flags)

    def cas(self, key, value, cas, expire=0, noreply=False, flags=None):
        """Stores a value if nobody has changed the item since `gets`. False: somebody has. None: there is no item."""
        number = number_of(cas)
        value, flags = self._packed(key, value, flags)
        stored = self._core.cas(key, value, number, expire, flags)
        return True if noreply else stored

    def incr(self, key, value=1, noreply=False):
        """Adds to a number, and returns the sum. None: there is none."""
        found = self._core.incr(key, value)
        return None if noreply else found

    def decr(self, key, value=1, noreply=False):
        """Subtracts from a number, down to 0. None: there is none."""
        found = self._core.decr(key, value)
        return None if noreply else found

    def touch(self, key, expire=0, noreply=None):
        """Gives an item a lifetime. True if there is one."""
        return self._core.touch(key, expire) or self._noreply(noreply)

    def delete(self, key, noreply=None):
        """Removes an item. True if there was one."""
        return self._core.delete(key) or self._noreply(noreply)

    def delete_cas(self, key, cas):
        """Removes an item if nobody has changed it since `gets`. True if it was removed."""
        return self._core.delete_cas(key, number_of(cas))

    def delete_many(self, keys, noreply=None):
        """Removes items."""
        keys = list(keys)
        if keys:
            _, _, error = self._core.delete_many(keys)
            if error is not None:
                raise error
        return True

    def flush_all(self, delay=0, noreply=None):
        """Removes all items of all servers, after `delay` seconds."""
        self._core.flush_all(delay)
        return True

    def stats(self, *kinds):
        """A server's statistics, by their names; with several servers, by their addresses."""
        if not all(isinstance(kind, (str, bytes)) for kind in kinds) or len(kinds) > 1:
            raise TypeError("stats takes the name of one kind of statistics")
        kind = kinds[0] if kinds else ""
        return told_stats(self._core.stats(kind.decode() if isinstance(kind, bytes) else kind))

    def version(self):
        """A server's version, as bytes; with several servers, by their addresses."""
        return told_version(self._core.version())

    def get_or_compute(self, key, function, expire=0, *, lease=None, early=None):
        """The value under a key; if there is none, `function()`, which is stored. Of all that ask at a time, in this process
        and in others, one computes, and the others wait for it, for `lease` seconds at most (10); or, with `early`, get the
        old value, when no more than `early` seconds of its lifetime are left.

        It is kept as bytes: a serde is given no flags, as `cached` has it.
        """
        return self._core.get_or_compute(key, function, expire, lease, early)

    def close(self):
        """Ends the connections. The next call makes new ones."""
        self._core.close()

    quit = close
    disconnect_all = close
    get_multi = get_many
    set_multi = set_many
    delete_multi = delete_many

    # Client[bytes], in annotations.
    __class_getitem__ = classmethod(types.GenericAlias)

    def __reduce__(self):
        raise TypeError("a client cannot be pickled: it belongs to its process; make one in the other process")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    _NONE = object()

    def __getitem__(self, key):
        value = self.get(key, self._NONE)
        if value is self._NONE:
            raise KeyError(key)
        return value

    def __setitem__(self, key, value):
        self.set(key, value)

    def __delitem__(self, key):
        self.delete(key)
