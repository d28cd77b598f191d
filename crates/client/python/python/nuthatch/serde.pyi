"""Types of serdes."""

from typing import Any, Protocol, type_check_only

FLAG_BYTES: int
FLAG_PICKLE: int
FLAG_INTEGER: int
FLAG_LONG: int
FLAG_TEXT: int
FLAG_JSON: int

@type_check_only
class Serde(Protocol):
    """What makes bytes and flags of objects, and objects again. Keys come as the caller has them."""

    def serialize(self, key: Any, value: Any, /) -> tuple[Any, int]: ...
    def deserialize(self, key: Any, value: bytes, flags: int, /) -> Any: ...

class Packing:
    serde: Serde | None

class PickleSerde:
    def __init__(self, pickle_version: int = ...) -> None: ...
    def serialize(self, key: Any, value: Any) -> tuple[bytes, int]: ...
    def deserialize(self, key: Any, value: bytes, flags: int) -> Any: ...

class JsonSerde:
    def serialize(self, key: Any, value: Any) -> tuple[bytes, int]: ...
    def deserialize(self, key: Any, value: bytes, flags: int) -> Any: ...

pickle_serde: PickleSerde
json_serde: JsonSerde

def chosen(serde: Serde | str | None, serializer: Any = None, deserializer: Any = None) -> Serde | None: ...
