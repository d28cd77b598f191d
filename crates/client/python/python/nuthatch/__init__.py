"""Clients of Nuthatch and memcached, direct reads of a server's memory, and a cache in process."""

from . import exceptions
from ._nuthatch import Cache, version as __version__
from .client import Client
from .decorator import cached

__all__ = ["Cache", "Client", "cached", "exceptions", "__version__"]

try:
    from ._nuthatch import Direct  # noqa: F401
except ImportError:
    # The system has no such memory.
    pass
else:
    __all__.append("Direct")
