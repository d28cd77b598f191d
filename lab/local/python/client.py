"""A client's process of `nuthatch-lab bench local`, in Python. It connects, says that it is ready, waits for a line, measures,
and answers with one line of JSON.

    client.py client --means NAME --target ADDRESS ...     NAME: one of CLIENTS
    client.py serve PATH                                   the manager of `multiprocessing`
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from multiprocessing.managers import BaseManager, DictProxy

# Where a call takes about as long as a look at the clock, so many are timed together.
TOGETHER = {"dict": 100, "nuthatch.Cache": 100, "nuthatch.Direct": 100}

# Keys in random order that are made before the clock starts, and used again and again.
DRAWN = 100_000


def key(number):
    """As in `items.rs`."""
    return "item:key" + "".join(chr(ord("a") + (number >> shift & 15)) for shift in range(28, -4, -4))


def value(key, size):
    return (key.encode() * (size // len(key) + 1))[:size]


class Manager(BaseManager):
    """A dictionary in a process of its own."""


def serve(path):
    shared = {}
    Manager.register("items", lambda: shared, DictProxy)
    Manager(path, b"local").get_server().serve_forever()


def place(target):
    """A path, or host and port."""
    kind, _, rest = target.partition("://")
    if kind == "unix":
        return rest
    host, _, port = rest.rpartition(":")
    return host, int(port)


def of_dict(target):
    items = {}
    return items.get, items.__setitem__, True


def of_cache(target):
    import nuthatch

    cache = nuthatch.Cache()
    return cache.get, cache.set, True


def of_direct(target):
    import nuthatch

    return nuthatch.Direct(target).get, None, False


def of_nuthatch(target):
    import nuthatch

    client = nuthatch.Client(target)
    return client.get, client.set, False


def of_pymemcache(target):
    from pymemcache.client.base import Client

    client = Client(place(target), no_delay=True)
    return client.get, lambda key, value: client.set(key, value, noreply=False), False


def of_pylibmc(target):
    import pylibmc

    where = place(target)
    server = where if isinstance(where, str) else "%s:%d" % where
    client = pylibmc.Client([server], behaviors={"tcp_nodelay": True})
    return client.get, client.set, False


def of_redis(target):
    import redis

    host, port = place(target)
    client = redis.Redis(host, port)
    return client.get, client.set, False


def of_diskcache(target):
    import diskcache

    cache = diskcache.Cache(target)
    return cache.get, cache.set, True


def of_multiprocessing(target):
    Manager.register("items", proxytype=DictProxy)
    manager = Manager(target, b"local")
    manager.connect()
    items = manager.items()
    return items.get, lambda key, value: items.update({key: value}), True


CLIENTS = {
    "dict": of_dict,
    "nuthatch.Cache": of_cache,
    "nuthatch.Direct": of_direct,
    "nuthatch.Client": of_nuthatch,
    "pymemcache": of_pymemcache,
    "pylibmc": of_pylibmc,
    "redis-py": of_redis,
    "diskcache": of_diskcache,
    "multiprocessing": of_multiprocessing,
}


def measure(call, drawn, together, seconds):
    """Makes calls until the time is over. The last answer of those that were timed together is checked."""
    times = Counter()
    rounds = [drawn[first : first + together] for first in range(0, len(drawn), together)]
    clock = time.perf_counter_ns
    begun_cpu, begun = time.process_time(), clock()
    last, end = begun, begun + int(seconds * 1e9)
    while last < end:
        for some in rounds:
            for words, expected in some:
                got = call(*words)
            now = clock()
            times[(now - last) // together] += 1
            if expected is not None and got != expected:
                raise ValueError("a wrong value")
            last = clock()
            if last >= end:
                break
    return {
        "operations": sum(times.values()) * together,
        "seconds": (clock() - begun) / 1e9,
        "cpu_seconds": time.process_time() - begun_cpu,
        "together": together,
        "times": sorted(times.items()),
    }


def client(options):
    try:
        get, store, is_empty = CLIENTS[options.means](options.target)
        is_get = options.operation == "get"
        if not is_get and store is None:
            raise NotImplementedError("it has no sets")
        keys = [key(number) for number in range(options.keys)]
        if is_empty:
            for name in keys:
                store(name, value(name, options.value_size))
        get(keys[0])
    except Exception as error:
        # Whatever it is that this interpreter or this client lacks.
        print("cannot: %s: %s" % (type(error).__name__, " ".join(str(error).split())), flush=True)
        return
    order = random.Random(options.seed)
    together = TOGETHER.get(options.means, 1)
    values = {name: value(name, options.value_size) for name in keys}
    chosen = [order.choice(keys) for _ in range(DRAWN)]
    if is_get:
        calls = [((name,), values[name]) for name in chosen]
    else:
        calls = [((name, values[name]), None) for name in chosen]

    print("ready", flush=True)
    if not sys.stdin.readline():
        return
    call = get if is_get else store
    print(json.dumps(measure(call, calls, together, options.seconds)), flush=True)


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve").add_argument("path")
    one = commands.add_parser("client")
    one.add_argument("--means", choices=CLIENTS, required=True)
    one.add_argument("--target", required=True)
    one.add_argument("--operation", choices=["get", "set"], required=True)
    one.add_argument("--keys", type=int, required=True)
    one.add_argument("--value-size", type=int, required=True)
    one.add_argument("--seconds", type=float, required=True)
    one.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    if options.command == "serve":
        serve(options.path)
    else:
        client(options)


main()
