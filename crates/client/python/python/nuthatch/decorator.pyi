"""Types of the decorator."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, type_check_only

from typing_extensions import ParamSpec

from . import aio, client
from ._nuthatch import _Key, _Time, _Value

_P = ParamSpec("_P")
_R = TypeVar("_R")

@type_check_only
class Cached(Generic[_P, _R]):
    """A function whose results are kept."""

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    # The key of a call.
    def key_of(self, *args: _P.args, **kwargs: _P.kwargs) -> _Key: ...
    # As a method of an instance.
    def __get__(self, instance: object, owner: type | None = None, /) -> Callable[..., _R]: ...

def cached(
    client: client.Client[Any] | aio.Client[Any],
    ttl: _Time | None = 0,
    *,
    early: _Time | None = None,
    lease: _Time | None = None,
    key: Callable[..., _Key] | None = None,
    dumps: Callable[[Any], _Value] = ...,
    loads: Callable[[bytes], Any] = ...,
) -> Callable[[Callable[_P, _R]], Cached[_P, _R]]: ...
