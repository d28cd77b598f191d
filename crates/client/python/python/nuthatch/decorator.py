"""A function's results in a cache: of all processes that miss one, one computes."""

import functools
import hashlib
import inspect
import io
import pickle

from .client import lasting


def _ordered(value):
    """A value whose sets and dictionaries come in an order that does not depend on the process, or on who was added first."""
    kind = type(value)
    if kind in (tuple, list):
        return kind(map(_ordered, value))
    if kind in (set, frozenset):
        return _ordered, kind, sorted(map(_pickled, value))
    if kind is dict:
        return _ordered, kind, sorted((_pickled(key), _pickled(item)) for key, item in value.items())
    return value


def _pickled(value):
    """The same bytes for equal values."""
    out = io.BytesIO()
    pickler = pickle.Pickler(out, 4)
    # Without its memo, which tells an object that comes twice from two that are equal.
    pickler.fast = True
    try:
        pickler.dump(_ordered(value))
    except (RecursionError, ValueError):
        # Something contains itself.
        return pickle.dumps(value, 4)
    return out.getvalue()


# Of these `repr` tells all that differ, and none that are equal and of one type.
_PLAIN = frozenset([str, int, float, bool, bytes, type(None)])


def _key(function, args, kwargs):
    """A key of the function's name and its arguments: their pickled bytes' hash, so that it is short enough."""
    name = f"{function.__module__}.{function.__qualname__}"
    parts = name, args, sorted(kwargs.items())
    if _PLAIN.issuperset(map(type, args)) and _PLAIN.issuperset(map(type, kwargs.values())):
        # In half of the time.
        words = repr(parts).encode()
    else:
        words = _pickled(parts)
    # The name is for people. In bytes, a key has 250 at most.
    shown = name.encode("ascii", "replace").decode()
    return f"{shown[:180]}:{hashlib.blake2b(words, digest_size=16).hexdigest()}"


def cached(client, ttl=0, *, early=None, lease=None, key=None, dumps=pickle.dumps, loads=pickle.loads):
    """A decorator for functions, with a `nuthatch.Client`, and for coroutines, with a `nuthatch.aio.Client`.

    A result is kept for `ttl` seconds. If it is missing, one caller computes it, in whatever process or machine, and the
    others wait for it, for `lease` seconds at most (10). With `early` one caller computes anew when no more than so many
    seconds are left, and the others get the old result meanwhile. If the server cannot be asked, it is computed.

    `key` makes a key of the arguments; otherwise it is a hash of their pickled bytes, which are the same in all processes unless
    an object of your own holds sets. `dumps` and `loads` make bytes of a
    result, and the result again: by pickle, so that only your own programs may be able to write to the server.

    The decorated function has `key_of(...)`, which gives the key of a call, to delete it by.
    """

    ttl = lasting(ttl)

    def decorate(function):
        if key is None:
            key_of = functools.partial(_key, function)
        else:

            def key_of(args, kwargs):
                return key(*args, **kwargs)

        is_async = inspect.iscoroutinefunction(function)
        if is_async != inspect.iscoroutinefunction(client.get_or_compute):
            raise TypeError("a coroutine needs a nuthatch.aio.Client, and another function a nuthatch.Client")
        if is_async:

            @functools.wraps(function)
            async def call(*args, **kwargs):
                async def compute():
                    return dumps(await function(*args, **kwargs))

                found = await client.get_or_compute(key_of(args, kwargs), compute, ttl, lease=lease, early=early)
                return loads(found)

        else:

            @functools.wraps(function)
            def call(*args, **kwargs):
                def compute():
                    return dumps(function(*args, **kwargs))

                return loads(client.get_or_compute(key_of(args, kwargs), compute, ttl, lease=lease, early=early))

        call.key_of = lambda *args, **kwargs: key_of(args, kwargs)
        return call

    return decorate
