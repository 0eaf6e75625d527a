"""How long attempts usually take, and how long a plugin does: what makes one of them slow."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podtrail.otlp import Group, SpanView, split
from podtrail.story.values import number

_RECENT = 2_000
_CALLS = 50
_LOOKED_AT = 400
"""Traces looked at for a plugin's calls: one that is seldom asked is not searched for without end."""


class UsualPace(NamedTuple):
    """How long attempts took that found a node."""

    attempts: int
    median: int | None
    """Nanoseconds; None without an attempt."""


class AttemptPace:
    """Remembers how long the latest successful attempts took."""

    __slots__ = ("_took",)

    def __init__(self) -> None:
        self._took: deque[int] = deque(maxlen=_RECENT)

    def note(self, result: str, took: int | None) -> None:
        """Take note of an attempt."""
        if result == "Success" and took is not None:
            self._took.append(took)

    def usual(self) -> UsualPace:
        """Return what is usual."""
        return UsualPace(len(self._took), _median(self._took) if self._took else None)


class PluginPace(NamedTuple):
    """What the latest calls of one plugin took, at one extension point."""

    calls: int
    median: int
    """Nanoseconds."""
    slow: int
    """Calls that took at least half of what is compared with."""
    first_slow: int
    """When the first of these began, Unix nanoseconds; 0 for none."""


def plugin_pace(traces: Iterable[Sequence[Group]], point: str, plugin: str, took: int) -> PluginPace | None:
    """Return the pace of a plugin in traces given the latest first, beside a call that `took` nanoseconds."""
    name = f"plugin: {plugin}"
    mark = name.encode("utf-8", "surrogatepass")
    calls: list[tuple[int, int]] = []
    for _, groups in zip(range(_LOOKED_AT), traces, strict=False):
        calls += [call for group in groups if mark in group.spans for call in _calls(group.spans, mark, name, point)]
        if len(calls) >= _CALLS:
            break
    if not calls:
        return None
    slow = [start for start, length in calls if 2 * length >= took]
    return PluginPace(len(calls), _median(length for _, length in calls), len(slow), min(slow, default=0))


def _median(lengths: Iterable[int]) -> int:
    ordered = sorted(lengths)
    return ordered[len(ordered) // 2]


def _calls(spans: bytes, mark: bytes, name: str, point: str) -> Iterable[tuple[int, int]]:
    for raw in split(spans):
        if mark in raw:
            span = SpanView(raw)
            if span.name == name and span.attributes.get("scheduler.plugin.extension_point") == point:
                yield span.start, plugin_time(span)


def plugin_time(span: SpanView) -> int:
    """Return the nanoseconds in a plugin: summed over nodes where its span says so, else from start to end."""
    return number(span.attributes.get("scheduler.duration_ns")) or span.duration or 0
