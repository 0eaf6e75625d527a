"""The refusal of a request by a server: one exception that each transport translates to its own status."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from enum import IntEnum, StrEnum
from typing import Self


class Encoding(StrEnum):
    """How a request is written, and so its answer."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


WhileThere = Callable[[], AbstractAsyncContextManager[None]]
"""Around waiting for room: raises `Refused` in there when the client may have gone. Whose transport can tell that a
client has gone has the request cancelled instead."""

Export = Callable[[bytes, Encoding, WhileThere], Awaitable[bytes]]
"""Serves one decompressed request and returns the encoded response. Raises `RequestError`."""


Failed = Callable[["RequestError"], None]
"""Told of every request that is answered with an error."""


class RpcCode(IntEnum):
    """The canonical codes of gRPC (google.rpc.RpcCode) that a server here answers with."""

    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


class RequestError(Exception):
    """A request that is answered with an error."""

    def __init__(
        self,
        code: RpcCode,
        http_status: int,
        message: str,
        *,
        reason: str,
        retry_after: float | None = None,
        challenge: str | None = None,
        closes: bool = False,
    ) -> None:
        """Say what to answer.

        Args:
            code: in gRPC, and in the body of HTTP.
            http_status: over HTTP.
            message: what went wrong, for people.
            reason: the same in one word, for metrics.
            retry_after: seconds after which to try again, None where it is of no use.
            closes: the connection, over HTTP.
            challenge: which credentials are asked for, as `WWW-Authenticate`.
        """
        super().__init__(message)
        self.code = code
        self.http_status = http_status
        self.message = message
        self.reason = reason
        self.retry_after = retry_after
        self.challenge = challenge
        self.closes = closes

    @classmethod
    def malformed(cls, message: str) -> Self:
        """The content can't be decoded and never will be."""
        return cls(RpcCode.INVALID_ARGUMENT, 400, message, reason="malformed")

    @classmethod
    def too_large(cls, limit: int) -> Self:
        """Larger than `limit` bytes, before or after decompression: not to be tried again."""
        message = f"the request is larger than {limit} bytes, before or after decompression"
        return cls(RpcCode.RESOURCE_EXHAUSTED, 413, message, reason="too_large")

    @classmethod
    def overloaded(cls, message: str, retry_after: float) -> Self:
        """Nothing was taken; worth trying again after some seconds."""
        return cls(RpcCode.UNAVAILABLE, 503, message, reason="overloaded", retry_after=retry_after)

    @classmethod
    def failed(cls, message: str) -> Self:
        """Something broke here; not to be tried again, as OTLP has it for these codes."""
        return cls(RpcCode.INTERNAL, 500, message, reason="failed")

    @classmethod
    def unread(cls, message: str, retry_after: float) -> Self:
        """Overloaded as well, but nobody knows how many spans there would have been."""
        return cls(RpcCode.UNAVAILABLE, 503, message, reason="unread", retry_after=retry_after)

    @classmethod
    def cut_off(cls) -> Self:
        """The client has gone or fallen silent for good in the midst of a request."""
        return cls(RpcCode.INVALID_ARGUMENT, 400, "the connection ended before the request did", reason="cut_off")

    @classmethod
    def unsupported(cls, message: str) -> Self:
        """A content type or coding that nobody here reads."""
        return cls(RpcCode.INVALID_ARGUMENT, 415, message, reason="unsupported")

    @classmethod
    def unauthenticated(cls, message: str, challenge: str) -> Self:
        """Credentials are missing or wrong; the same ones are not to be tried again."""
        return cls(RpcCode.UNAUTHENTICATED, 401, message, reason="unauthenticated", challenge=challenge)

    @classmethod
    def forbidden(cls, message: str) -> Self:
        """It is known who the client is, and it may not send."""
        return cls(RpcCode.PERMISSION_DENIED, 403, message, reason="forbidden")

    @classmethod
    def limited(cls, limit: str, retry_after: float) -> Self:
        """A client has used its share; worth trying again after some seconds, as OTLP has it for these codes."""
        message, closes = f"too much of one client: {limit}", limit == "connections"
        return cls(RpcCode.RESOURCE_EXHAUSTED, 429, message, reason="limited", retry_after=retry_after, closes=closes)

    @classmethod
    def outdated(cls) -> Self:
        """The client's certificate was checked by authorities that are others now; to be tried on a new connection."""
        message = "who signs certificates has changed since this connection was made: connect again"
        return cls(RpcCode.UNAVAILABLE, 503, message, reason="outdated", retry_after=0.0, closes=True)
