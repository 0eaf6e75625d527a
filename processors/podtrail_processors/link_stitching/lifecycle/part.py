"""A part of a Pod's life, and what becomes of two tellings of the same part."""

from collections.abc import Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from podtrail.otlp import Value
from podtrail_processors.link_stitching.lifecycle.saved_values import restored_attributes

CREATED: Final = "created"
GATED: Final = "gated"
QUEUED: Final = "queued"
ATTEMPT: Final = "attempt"
BOUND: Final = "bound"
SANDBOX: Final = "sandbox"
IMAGE: Final = "image pull"
CONTAINER_CREATED: Final = "container created"
CONTAINER_STARTED: Final = "container started"
CONTAINER_EXITED: Final = "container exited"
FAILED_START: Final = "failed start"
READY: Final = "ready"
FINISHED: Final = "finished"
TERMINATING: Final = "terminating"
TERMINATED: Final = "terminated"
DELETED: Final = "deleted"

RESOLUTION: Final = "podtrail.time.resolution_ns"
"""The attribute of a time that is no more exact than this."""

_LONGEST: Final = 1000
_MOST_TEXTS: Final = 16

NOTHING: Final[Mapping[str, Value]] = MappingProxyType({})

BY_CALLER: Final = 0
BY_CALLED: Final = 1
BY_ATTEMPT: Final = 2
BY_WATCH: Final = 3
"""Who tells a part, from whom knows best when it was to who knows worst."""

_SPREAD: Final = frozenset({FAILED_START})
"""What is told again and again, and is one part from its first telling to its last."""


class Part(NamedTuple):
    """Something that happened to a Pod; `start` and `end` in Unix nanoseconds."""

    kind: str
    """Also the name of its span."""
    which: bytes
    """Tells it from others of its kind; b"" where a Pod has one at most."""
    start: int
    end: int
    original: bytes
    """Trace and span id of the span that it stands for, 24 bytes."""
    evidence: str
    """How it is known whose Pod it is."""
    rank: int = BY_CALLER
    """Of several spans that tell it, the one with the lowest is linked to."""
    attributes: Mapping[str, Value] = NOTHING
    error: str = ""
    """Why it failed; "" when it didn't."""

    @property
    def key(self) -> tuple[str, bytes]:
        """What it is told apart by."""
        return self.kind, self.which


class SavedPart(NamedTuple):
    """The fields of a `Part`, in a saved state."""

    kind: str
    which: bytes
    start: int
    end: int
    original: bytes
    evidence: str
    rank: int
    attributes: dict[str, Any]
    error: str


def saved_part(part: Part) -> SavedPart:
    """Return a part as it is saved."""
    return SavedPart(*part._replace(attributes=dict(part.attributes)))  # type: ignore[arg-type]


def restored_part(saved: SavedPart) -> Part:
    """Return a part that was saved."""
    return Part(*saved._replace(attributes=restored_attributes(saved.attributes)))


def bounded(part: Part) -> Part:
    """Return a part as it is remembered: what it says is cut off where nobody who means it says as much."""
    which = part.which if len(part.which) <= _LONGEST else blake2b(part.which, digest_size=32).digest()
    attributes = {key: _short(value) for key, value in part.attributes.items()}
    return part._replace(which=which, attributes=attributes, error=part.error[:_LONGEST])


def _short(value: Value) -> Value:
    if isinstance(value, str | bytes):
        return value[:_LONGEST]
    if isinstance(value, list):
        return [one[:_LONGEST] for one in value[:_MOST_TEXTS] if isinstance(one, str)]
    return None if isinstance(value, dict) else value


def combined(one: Part, other: Part) -> Part:
    """Return what two tellings of a part come to, in whichever order they came."""
    first, second = sorted((one, other), key=lambda part: (part.rank, part.start, part.original))
    spread = first.kind in _SPREAD
    return first._replace(
        start=min(first.start, second.start) if spread else first.start,
        end=max(first.end, second.end) if spread else first.end,
        attributes={**second.attributes, **first.attributes},
        error=first.error or second.error,
    )
