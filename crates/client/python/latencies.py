"""What a get of 32 bytes costs from Python, by several clients in one run: latencies.py NUTHATCH.

The median, the least and the greatest of nine rounds, all subjects in turn. What is not installed is left out.
"""

import asyncio
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import timeit

import nuthatch
from nuthatch import aio

ROUNDS = 9


def start(program, folder):
    """A server, its port and its sockets."""
    ports = folder / "ports"
    words = [program, "-l", "127.0.0.1", "-p", "-1", "--redis-port", "0", "--shared", folder / "shared"]
    server = subprocess.Popen(words, env={**os.environ, "MEMCACHED_PORT_FILENAME": str(ports)}, stderr=subprocess.DEVNULL)
    while not (ports.exists() and ports.read_text().endswith("\n")):
        assert server.poll() is None
        time.sleep(0.01)
    told = dict(line.split(": ") for line in ports.read_text().splitlines())
    return server, int(told["TCP INET"]), int(told["REDIS INET"])


def subjects(port, redis_port, shared):
    """Gets, by their names, and how many of them a round has."""
    client = nuthatch.Client(f"tcp://127.0.0.1:{port}")
    client.set("key", b"x" * 32)
    cache = nuthatch.Cache()
    cache.set("key", b"x" * 32)
    found = {
        "a dictionary": ({"key": b"x" * 32}.get, 100_000),
        "nuthatch.Cache": (cache.get, 100_000),
        "nuthatch.Direct": (nuthatch.Direct(shared).get, 100_000),
        "nuthatch.Client": (client.get, 3000),
    }
    try:
        import pylibmc

        found["pylibmc"] = (pylibmc.Client([f"127.0.0.1:{port}"]).get, 3000)
    except ImportError:
        pass
    try:
        import pymemcache

        found["pymemcache"] = (pymemcache.Client(("127.0.0.1", port)).get, 3000)
    except ImportError:
        pass
    try:
        import redis

        by_redis = redis.Redis(port=redis_port)
        by_redis.set("key", b"x" * 32)
        found["redis-py"] = (by_redis.get, 3000)
    except ImportError:
        pass
    return found


async def tasks(port, number):
    """Microseconds a get, of so many tasks on one client."""
    async with aio.Client(f"tcp://127.0.0.1:{port}") as client:

        async def work(count):
            for _ in range(count):
                await client.get("key")

        count = 6400 // number
        await work(100)
        began = time.perf_counter()
        await asyncio.gather(*(work(count) for _ in range(number)))
        return (time.perf_counter() - began) / (count * number) * 1e6


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    server, port, redis_port = start(sys.argv[1], folder)
    try:
        all_of_them = subjects(port, redis_port, folder / "shared")
        rounds = {name: [] for name in all_of_them}
        for _ in range(ROUNDS):
            for name, (get, count) in all_of_them.items():
                rounds[name].append(timeit.timeit(lambda get=get: get("key"), number=count) / count * 1e6)
        print("| a get of 32 bytes | µs |\n|---|---|")
        for name, took in rounds.items():
            print(f"| {name} | {statistics.median(took):.2f} ({min(took):.2f} to {max(took):.2f}) |")
        for number in (1, 64):
            took = [asyncio.run(tasks(port, number)) for _ in range(ROUNDS)]
            print(f"| nuthatch.aio.Client, {number} tasks | {statistics.median(took):.2f} ({min(took):.2f} to {max(took):.2f}) |")
    finally:
        server.terminate()
        server.wait()


main()
