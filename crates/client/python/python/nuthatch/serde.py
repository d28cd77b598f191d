"""How values become bytes and flags, and objects again: pymemcache's protocol, and two that know types.

Without a serde a value is `bytes`, `str` or `int`, and comes back as `bytes`.
"""

import json
import pickle

FLAG_BYTES = 0
# The flags of pymemcache's own pickle serde.
FLAG_PICKLE = 1 << 0
FLAG_INTEGER = 1 << 1
FLAG_LONG = 1 << 2
FLAG_TEXT = 1 << 4
FLAG_JSON = 1 << 5


def _plain(value):
    """A value that needs no form of its own, and its flags. None: it is another one."""
    kind = type(value)
    if kind is bytes:
        return value, FLAG_BYTES
    if kind is str:
        return value.encode(), FLAG_TEXT
    if kind is int:
        return b"%d" % value, FLAG_INTEGER
    return None


class Packing:
    """What a client does with its `serde`, which may be None."""

    def _packed(self, key, value, flags):
        """The value as it is sent, and its flags."""
        made = 0
        if self.serde is not None:
            value, made = self.serde.serialize(key, value)
        return value, made if flags is None else flags

    def _unpacked(self, key, value, flags):
        return value if self.serde is None else self.serde.deserialize(key, value, flags)


class PickleSerde:
    """Any object, by pickle; `bytes`, `str` and `int` as they are. Its values are those of pymemcache's PickleSerde.

    Who can write to the server can make its readers run code: use it where only your own programs can.
    """

    def __init__(self, pickle_version=pickle.DEFAULT_PROTOCOL):
        self._version = pickle_version

    def serialize(self, key, value):
        return _plain(value) or (pickle.dumps(value, self._version), FLAG_PICKLE)

    def deserialize(self, key, value, flags):
        if flags == FLAG_BYTES:
            return value
        if flags & FLAG_TEXT:
            return value.decode()
        if flags & (FLAG_INTEGER | FLAG_LONG):
            return int(value)
        if flags & FLAG_PICKLE:
            return pickle.loads(value)
        return value


class JsonSerde:
    """What JSON has, as text; `bytes`, `str` and `int` as they are."""

    def serialize(self, key, value):
        return _plain(value) or (json.dumps(value, separators=(",", ":")).encode(), FLAG_JSON)

    def deserialize(self, key, value, flags):
        if flags & FLAG_JSON:
            return json.loads(value)
        if flags & FLAG_TEXT:
            return value.decode()
        if flags & FLAG_INTEGER:
            return int(value)
        return value


class _Functions:
    def __init__(self, serializer, deserializer):
        self._serializer, self._deserializer = serializer, deserializer

    def serialize(self, key, value):
        return self._serializer(key, value) if self._serializer else (value, 0)

    def deserialize(self, key, value, flags):
        return self._deserializer(key, value, flags) if self._deserializer else value


pickle_serde = PickleSerde()
json_serde = JsonSerde()


def chosen(serde, serializer=None, deserializer=None):
    """The serde that is meant: an object, or "pickle" or "json"; or pymemcache's older two functions."""
    if serde is None and (serializer or deserializer):
        return _Functions(serializer, deserializer)
    if isinstance(serde, str):
        try:
            return {"pickle": pickle_serde, "json": json_serde}[serde]
        except KeyError:
            raise ValueError(f"no serde is named {serde!r}: 'pickle' and 'json' are") from None
    return serde
