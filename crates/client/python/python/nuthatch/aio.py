"""The client for asyncio. Calls of many tasks travel as one pipeline, without being told."""

import asyncio
import itertools
import os
import types

from . import _nuthatch
from .addresses import address
from .client import number_of, prefix_of
from .exceptions import Error
from .serde import Packing, chosen
from .statistics import stats as told_stats, version as told_version


class _Bridge:
    """What goes to the client's thread and what comes back, for one loop."""

    def __init__(self, loop, core):
        self.loop, self.core, self.process = loop, core, os.getpid()
        self.futures = {}
        self.computing = {}
        self.numbers = itertools.count()
        self.is_flushed = True
        loop.add_reader(core.fileno(), self._drain)

    def call(self, name, *words):
        """Begins a call; its future has what comes of it."""
        number = next(self.numbers)
        getattr(self.core, name)(number, *words)
        future = self.futures[number] = self.loop.create_future()
        self._flush_soon()
        return number, future

    def cancel(self, number):
        """Its task has ended before the call has."""
        if self.futures.pop(number, None) is not None and self.process == os.getpid():
            task = self.computing.pop(number, (None, None))[1]
            if task is not None:
                task.cancel()
            self.core.cancel(number)
            self._flush_soon()

    def compute(self, number, function):
        """Says by what a call's value is computed, if it has to be."""
        self.computing[number] = (function, None)

    def _flush_soon(self):
        """What all tasks of this turn of the loop ask for goes together."""
        if self.is_flushed:
            self.is_flushed = False
            self.loop.call_soon(self._flush)

    def _flush(self):
        self.is_flushed = True
        if self.core is not None:
            self.core.flush()

    def _drain(self):
        for number, what, found in self.core.drain():
            if what == "compute":
                self._compute(number)
                continue
            future = self.futures.pop(number, None)
            if future is None or future.done():
                continue
            if what == "failed":
                future.set_exception(found)
            elif what == "done":
                future.set_result(found)

    def _compute(self, number):
        function, _ = self.computing.get(number, (None, None))
        if function is not None:
            task = self.loop.create_task(self._computed(number, function))
            self.computing[number] = (function, task)

    async def _computed(self, number, function):
        try:
            self.core.computed(number, await function())
        except BaseException as error:
            self.core.computed(number, None)
            future = self.futures.pop(number, None)
            if future is None or future.done():
                raise
            if isinstance(error, Exception):
                future.set_exception(error)
            else:
                future.cancel()
                raise
        finally:
            self.computing.pop(number, None)
            self._flush_soon()

    def close(self):
        """Ends the thread. Calls under way fail."""
        core, self.core = self.core, None
        if not self.loop.is_closed() and self.process == os.getpid():
            self.loop.remove_reader(core.fileno())
        core.close()
        for future in self.futures.values():
            if not future.done() and not self.loop.is_closed():
                future.set_exception(Error("the client was closed"))
        self.futures.clear()


class Client(Packing):
    """A client of one server or several, for the tasks of one asyncio loop. Its arguments are those of `nuthatch.Client`.

    Its thread is started by the first call, in the loop in which that is made. When that loop is closed, or in a child of the
    process, the next call starts anew. A task that is cancelled leaves its call, which may be carried out.
    """

    def __init__(
        self,
        server,
        serde=None,
        connect_timeout=None,
        timeout=None,
        ignore_exc=False,
        key_prefix=b"",
        login=None,
        **options,
    ):
        self.serde = chosen(serde)
        self.ignore_exc = ignore_exc
        self._words = (address(server, options), timeout, connect_timeout, login, list(prefix_of(key_prefix)))
        self._bridge = None
        # What is wrong with the address is told now.
        _nuthatch.Client(*self._words)

    def _begun(self):
        """The bridge of this loop and process."""
        loop, bridge = asyncio.get_running_loop(), self._bridge
        if bridge is not None:
            if bridge.loop is loop and bridge.process == os.getpid():
                return bridge
            if bridge.process == os.getpid() and not bridge.loop.is_closed():
                raise RuntimeError("the client belongs to another loop, which is open: each loop needs a client of its own")
            bridge.close()
        self._bridge = _Bridge(loop, _nuthatch.Tasks(*self._words))
        return self._bridge

    async def _call(self, name, *words):
        bridge = self._begun()
        number, future = bridge.call(name, *words)
        try:
            return await future
        except asyncio.CancelledError:
            bridge.cancel(number)
            raise

    async def _asked(self, name, missing, *words):
        """A call that reads; with `ignore_exc` what fails is missing."""
        try:
            return await self._call(name, *words)
        except Error:
            if not self.ignore_exc:
                raise
            return missing

    async def _store(self, way, key, value, expire, flags):
        value, flags = self._packed(key, value, flags)
        return bool(await self._call("store", way, key, value, expire, flags))

    async def get(self, key, default=None):
        """The value under a key, or `default`."""
        found = await self._asked("get", None, key)
        return default if found is None else self._unpacked(key, found[0], found[1])

    async def gets(self, key, default=None, cas_default=None):
        """The value under a key, and its number for `cas`."""
        return self._with_cas(key, await self._asked("get", None, key), default, cas_default)

    def _with_cas(self, key, found, default, cas_default):
        if found is None:
            return default, cas_default
        value, flags, cas = found
        return self._unpacked(key, value, flags), b"%d" % cas

    async def gat(self, key, expire=0, default=None):
        """The value under a key, which from now on has this lifetime."""
        return (await self.gats(key, expire, default))[0]

    async def gats(self, key, expire=0, default=None, cas_default=None):
        """The same, and its number for `cas`."""
        return self._with_cas(key, await self._call("get_and_touch", key, expire), default, cas_default)

    async def get_many(self, keys):
        """The values of those keys that have one. All servers are asked at once."""
        keys = list(keys)
        items = await self._call("get_many", keys, self.ignore_exc) if keys else []
        found = ((key, item) for key, item in zip(keys, items) if item is not None)
        return {key: self._unpacked(key, item[0], item[1]) for key, item in found}

    async def set(self, key, value, expire=0, flags=None):
        """Stores a value, for `expire` seconds; 0 is without an end."""
        return await self._store("set", key, value, expire, flags)

    async def set_many(self, values, expire=0, flags=None):
        """Stores values by their keys."""
        items = [(key, *self._packed(key, value, flags)) for key, value in values.items()]
        if items:
            await self._call("set_many", items, expire)

    async def add(self, key, value, expire=0, flags=None):
        """Stores a value if there is none. True if it was stored."""
        return await self._store("add", key, value, expire, flags)

    async def replace(self, key, value, expire=0, flags=None):
        """Stores a value if there is one. True if it was stored."""
        return await self._store("replace", key, value, expire, flags)

    async def append(self, key, value):
        """Adds bytes behind the value. True if there was one."""
        return await self._store("append", key, value, 0, None)

    async def prepend(self, key, value):
        """Adds bytes in front of the value. True if there was one."""
        return await self._store("prepend", key, value, 0, None)

    async def cas(self, key, value, cas, expire=0, flags=None):
        """Stores a value if nobody has changed the item since `gets`. False: somebody has. None: there is no item."""
        value, flags = self._packed(key, value, flags)
        return await self._call("cas", key, value, number_of(cas), expire, flags)

    async def incr(self, key, value=1):
        """Adds to a number, and returns the sum. None: there is none."""
        return await self._call("count", key, value, False)

    async def decr(self, key, value=1):
        """Subtracts from a number, down to 0. None: there is none."""
        return await self._call("count", key, value, True)

    async def touch(self, key, expire=0):
        """Gives an item a lifetime. True if there is one."""
        return bool(await self._call("touch", key, expire))

    async def delete(self, key):
        """Removes an item. True if there was one."""
        return bool(await self._call("delete", key))

    async def delete_many(self, keys):
        """Removes items."""
        await self._call("delete_many", list(keys))

    async def flush_all(self, delay=0):
        """Removes all items of all servers, after `delay` seconds."""
        await self._call("flush_all", delay)

    async def stats(self, kind=""):
        """A server's statistics, by their names; with several servers, by their addresses."""
        return told_stats(await self._call("stats", kind))

    async def version(self):
        """A server's version, as bytes; with several servers, by their addresses."""
        servers = await self._call("version")
        return told_version([(server, said[0][1]) for server, said in servers])

    async def get_or_compute(self, key, function, expire=0, *, lease=None, early=None):
        """The value under a key; if there is none, `await function()`, which is stored: see `nuthatch.Client`."""
        bridge = self._begun()
        number, future = bridge.call("get_or_compute", key, expire, lease, early)
        bridge.compute(number, function)
        try:
            return await future
        except asyncio.CancelledError:
            bridge.cancel(number)
            raise
        finally:
            if future.done():
                bridge.computing.pop(number, None)

    async def close(self):
        """Ends the thread and its connections. Calls under way fail; the next call starts anew."""
        bridge, self._bridge = self._bridge, None
        if bridge is not None:
            bridge.close()

    # Client[bytes], in annotations.
    __class_getitem__ = classmethod(types.GenericAlias)

    def __reduce__(self):
        raise TypeError("a client cannot be pickled: it belongs to its process; make one in the other process")

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()
