"""Values of spans and scheduling attempts in sentences: short, however long they are.

Whoever shows a sentence escapes it.
"""

import json

from podtrail.config.types import HOUR, MINUTE, SECOND
from podtrail.otlp import Attempt, Rejection, SpanFields, Value

NO_ATTEMPT = "it is no scheduling attempt"
_MANY = 120

LONGEST = 200
"""Characters of one value."""
_MOST_VALUES = 4
_BYTES_A_CHARACTER = 4


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text of at most so many characters, that shows if it was longer."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def decoded(text: bytes) -> str:
    """Return the text of a span's field, cut."""
    return cut(text[: LONGEST * _BYTES_A_CHARACTER].decode("utf-8", "replace"))


def name_of(span: SpanFields) -> str:
    """Return a span's name, cut."""
    return decoded(span.name) or "(no name)"


def shown(value: Value) -> str:
    """Return an attribute's value, cut."""
    match value:
        case str():
            return cut(value) or '""'
        case bytes():
            return cut("0x" + value[:LONGEST].hex())
        case _:
            return cut(json.dumps(value, default=repr, ensure_ascii=False))


def some(parts: list[str], between: str = ", ") -> str:
    """Return the first few of several parts, and how many more there are."""
    more = len(parts) - _MOST_VALUES
    return between.join(parts[:_MOST_VALUES]) + (f" and {more} more" if more > 0 else "")


def milliseconds(nanoseconds: int) -> str:
    """Return a time span for people: `1234 ms`, `0.04 ms`."""
    whole = nanoseconds / 1_000_000
    return f"{whole:.0f} ms" if abs(whole) >= _MOST_VALUES or not nanoseconds else f"{whole:.2g} ms"


def pod_of(attempt: Attempt) -> str:
    """Return which Pod an attempt is for: `Pod default/web-0`."""
    place = f"{cut(attempt.namespace)}/{cut(attempt.name)}" if attempt.name else cut(attempt.pod_uid)
    return f"Pod {place}" if place else "a Pod without a name"


def lasting(nanoseconds: int) -> str:
    """Return a length of time for people: `0.04 ms`, `340 ms`, `12.3 s`, `5.5 min`, `3 h`."""
    if nanoseconds < SECOND:
        return milliseconds(nanoseconds)
    for unit, name in ((SECOND, "s"), (MINUTE, "min")):
        if nanoseconds < _MANY * unit:
            return f"{nanoseconds / unit:.3g} {name}"
    return f"{nanoseconds / HOUR:.3g} h"


def times(number: int, what: str) -> str:
    """Return how many: `1 failed attempt`, `3 failed attempts`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def refusals(told: list[Rejection]) -> str:
    """Return who said no and why: `NodeAffinity: no match; NodeResourcesFit: Insufficient cpu`."""
    said = dict.fromkeys(f"{cut(one.plugin)}: {cut(one.reason)}" if one.plugin else cut(one.reason) for one in told)
    return some(list(said), "; ")
