"""What can go wrong. The names that begin with Memcache are pymemcache's for the same."""

import builtins


class Error(Exception):
    """Any of these."""


class ClientError(Error):
    """The call is wrong: a value that is no number was to be incremented, say."""


class IllegalInputError(ClientError, ValueError):
    """The key, the value or the address is not one. Nothing was sent."""


class ServerError(Error):
    """The server refused the call, in its words."""


class UnknownError(Error):
    """The server said what is no reply."""


class DownError(Error, ConnectionError):
    """There is no connection, and none is attempted for a while. Nothing was sent."""


class ConnectionLostError(Error, ConnectionError):
    """The connection ended before the reply came. The call may have been carried out."""


class TimeoutError(Error, builtins.TimeoutError):  # noqa: A001
    """The reply did not come in time. The call may have been carried out."""


class FullError(Error):
    """Too many calls wait already."""


MemcacheError = Error
MemcacheClientError = ClientError
MemcacheIllegalInputError = IllegalInputError
MemcacheServerError = ServerError
MemcacheUnknownError = UnknownError
MemcacheUnexpectedCloseError = ConnectionLostError
