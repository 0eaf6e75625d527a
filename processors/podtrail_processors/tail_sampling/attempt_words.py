"""Scheduling attempts in sentences: short, however long the texts that they bring."""

from podtrail.config.types import HOUR, MINUTE, SECOND
from podtrail.otlp import Attempt, Rejection
from podtrail_processors.tail_sampling.words import cut, milliseconds, some

NO_ATTEMPT = "it is no scheduling attempt"
_MANY = 120


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
