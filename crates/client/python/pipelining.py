"""What a get of 32 bytes costs by aio.Client, of so many tasks on one connection: pipelining.py PORT, of a running server.

The median, the least and the greatest of nine rounds, in microseconds. `nuthatch-lab bench local --python` measures the others.
"""

import asyncio
import statistics
import sys
import time

from nuthatch import aio

ROUNDS = 9
GETS = 25_600


async def measure(port, number):
    """Microseconds a get, of so many tasks on one client."""
    async with aio.Client(f"tcp://127.0.0.1:{port}") as client:
        await client.set("key", b"x" * 32)

        async def work(count):
            for _ in range(count):
                if len(await client.get("key")) != 32:
                    raise ValueError("a wrong value")

        await work(100)
        began = time.perf_counter()
        await asyncio.gather(*(work(GETS // number) for _ in range(number)))
        return (time.perf_counter() - began) / GETS * 1e6


def main():
    for number in (1, 4, 16, 64, 256):
        took = [asyncio.run(measure(sys.argv[1], number)) for _ in range(ROUNDS)]
        print(f"{number} tasks: {statistics.median(took):.2f} ({min(took):.2f} to {max(took):.2f})")


main()
