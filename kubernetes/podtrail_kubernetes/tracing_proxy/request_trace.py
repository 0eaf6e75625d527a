"""The trace context of each request (W3C Trace Context), and what is known of the request afterwards."""

import re
import secrets
from dataclasses import dataclass

_TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1


@dataclass(slots=True)
class RequestTrace:
    """A request that went through the proxy."""

    method: str
    path: str
    """Without its query, which may hold what is nobody's business, such as the command of an `exec`."""
    agent: str
    trace_id: str
    span_id: str
    own: bool
    """Whether the client traces itself: then both ids are the client's."""
    started_unix_nano: int
    ended_unix_nano: int = 0
    status: int | None = None
    """Of the answer; None: there was none."""
    error: str = ""
    """Why there was no whole answer, in a word."""
    reason: str = ""
    """The same in words, where there was none at all."""

    @property
    def traceparent(self) -> str:
        """The header to send: sampled, for that is what the user asks for."""
        return f"00-{self.trace_id}-{self.span_id}-{_SAMPLED:02x}"


def ended_well(request: RequestTrace) -> bool:
    """Whether the API server answered, and with no error."""
    return not request.error and request.status is not None and request.status < 400


def read_traceparent(header: str | None) -> tuple[str, str] | None:
    """Returns trace id and span id; None for a header that is missing or not valid."""
    found = _TRACEPARENT.fullmatch(header.strip()) if header else None
    if found is None or (found[1] == "00" and found[5]) or not int(found[2], 16) or not int(found[3], 16):
        return None
    return found[2], found[3]


def new_span_id() -> str:
    """A span id that is not zero."""
    return f"{secrets.randbelow((1 << 64) - 1) + 1:016x}"
