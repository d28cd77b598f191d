"""What type checkers are to find: test_types.py has mypy read this. It is not run."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Optional

from typing_extensions import assert_type

import nuthatch
from nuthatch import aio, exceptions
from nuthatch.serde import PickleSerde


def threads(keys: list[str]) -> None:
    client = nuthatch.Client("tcp://127.0.0.1:11211", timeout=1, key_prefix="p:", login=("n", "p"), eject_after=3)
    assert_type(client, nuthatch.Client[bytes])
    assert_type(client.get("k"), Optional[bytes])
    assert_type(client.get(b"k", 5), bytes | int)
    assert_type(client.get_many(keys), dict[str, bytes])
    assert_type(client.gets_many([b"k"]), dict[bytes, tuple[bytes, bytes]])
    assert_type(client.gets("k"), tuple[Optional[bytes], Optional[bytes]])
    assert_type(client.gats("k", 60, "", b""), tuple[bytes | str, bytes])
    assert_type(client.set_many({"k": "v"}, timedelta(seconds=5)), list[str])
    assert_type(client.cas("k", "v", b"5"), Optional[bool])
    assert_type(client.incr("k", 2), Optional[int])
    assert_type(client.get_or_compute("k", lambda: "v", 60, lease=2, early=timedelta(seconds=5)), bytes)
    assert_type(client["k"], bytes)
    client["k"] = "v"
    del client["k"]
    with nuthatch.Client([("a", 11211), ("b", 11211)], serde="pickle") as objects:
        assert_type(objects, nuthatch.Client[Any])
        objects.set("k", {"a": 1})
    assert_type(nuthatch.Client("a:11211", serde=PickleSerde()).get("k"), Optional[Any])
    nuthatch.Client("a:11211", serde="yaml")  # type: ignore[call-overload]
    client.get(5)  # type: ignore[call-overload]
    client.set("k", "v", "soon")  # type: ignore[arg-type]
    try:
        client.delete("k")
    except (exceptions.TimeoutError, ConnectionError) as error:
        assert_type(error, exceptions.TimeoutError | ConnectionError)


async def tasks(keys: list[bytes]) -> None:
    async with aio.Client("tcp://127.0.0.1:11211") as client:
        assert_type(client, aio.Client[bytes])
        assert_type(await client.get("k"), Optional[bytes])
        assert_type(await client.get("k", ""), bytes | str)
        assert_type(await client.get_many(keys), dict[bytes, bytes])
        assert_type(await client.set("k", "v", 60), bool)

        async def compute() -> str:
            return "v"

        assert_type(await client.get_or_compute("k", compute, 60), bytes)
        await client.get_or_compute("k", lambda: "v")  # type: ignore[arg-type, return-value]


def others(path: str, keys: list[str]) -> None:
    direct, cache = nuthatch.Direct(path), nuthatch.Cache(1 << 20, ttl=60)
    assert_type(direct.get_many(keys), list[Optional[bytes]])
    assert_type(direct.get("k", 0), bytes | int)
    assert_type(cache.get_many(keys), dict[str, bytes])


@nuthatch.cached(nuthatch.Client("tcp://127.0.0.1:11211"), 300, early=30)
def page(number: int, *, brief: bool = False) -> list[str]:
    return [str(number)]


class Pages:
    @nuthatch.cached(aio.Client("tcp://127.0.0.1:11211"), 300, key=lambda pages, number: f"page:{number}")
    async def of(self, number: int) -> str:
        return str(number)


def decorated() -> None:
    assert_type(page(5, brief=True), list[str])
    assert_type(page.key_of(5), bytes | str)
    page("5")  # type: ignore[arg-type]
    kept: Callable[[Pages, int], Awaitable[str]] = Pages.of
    called: Awaitable[str] = Pages().of(5)
    print(kept, called)
