"""The exceptions of requests to the API server.

RequestFailed
├── StatusError        the API server answered: code, reason, message, and when to come again
├── Unreachable    no answer, or half of one: connection, TLS, timeout
└── NotSent        whoever asked may not ask any more
RestConfigError    kubeconfig, token or certificates can't be used; nothing was sent
"""

import json
from collections.abc import Mapping
from typing import Any, Final

LONGEST_RETRY_AFTER: Final = 600
"""Seconds: an API server that wants to be left alone for longer is asked again nevertheless."""

_MOST_DIGITS: Final = 20


class RestConfigError(Exception):
    """Where the API server is, or who asks, can't be read; the text names the file or variable and what is missing."""


class RequestFailed(Exception):
    """A request to the API server did not succeed."""


class NotSent(RequestFailed):
    """The request was not sent: whoever asked may not ask any more."""


class Unreachable(RequestFailed):
    """There was no whole answer; what was asked for may have been done or not.

    Attributes:
        refused: Whether nobody listens: nothing was sent.
    """

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class StatusError(RequestFailed):
    """The API server's answer, a `Status` (meta/v1).

    Attributes:
        code: Of HTTP, 400 or more; 0 where a watch's Status names none.
        reason: One word, such as `Conflict`; empty from what is no API server.
        message: For people.
        retry_after: Seconds, at most LONGEST_RETRY_AFTER; None when it names no time.
    """

    def __init__(self, code: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def expired(self) -> bool:
        """Whether the resourceVersion or continue token asked for is no longer known: list again."""
        return self.code == 410 or self.reason in ("Expired", "Gone")

    @classmethod
    def from_status(cls, status: Mapping[str, Any], code: int = 0, retry_after: float | None = None) -> "StatusError":
        """Reads a Status object, also one inside a watch; `code` is used where it has none."""
        if retry_after is None:
            details = status.get("details")
            seconds = details.get("retryAfterSeconds") if isinstance(details, Mapping) else None
            retry_after = _decent(seconds) if isinstance(seconds, int) and seconds > 0 else None
        return cls(
            _integer(status.get("code")) or code,
            str(status.get("reason") or ""),
            str(status.get("message") or f"the server answered with code {code}"),
            retry_after,
        )

    @classmethod
    def from_answer(cls, code: int, headers: Mapping[str, str], body: bytes) -> "StatusError":
        """Reads an HTTP answer of 400 or more; proxies answer with texts of their own."""
        seconds = headers.get("Retry-After", "")
        retry_after = _decent(int(seconds)) if seconds.isdecimal() and len(seconds) < _MOST_DIGITS else None
        try:
            status = json.loads(body)
        except (ValueError, RecursionError):
            status = None
        if isinstance(status, Mapping) and status.get("kind") == "Status":
            return cls.from_status(status, code, retry_after)
        text = body[:1024].decode("utf-8", "replace").strip()
        return cls(code, "", f"the server answered with code {code}: {text}", retry_after)


def _decent(seconds: int) -> float:
    return float(min(seconds, LONGEST_RETRY_AFTER))


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0
