"""The critical path of a trace: the spans that, had they been shorter, would have let it end sooner."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class SpanTime(NamedTuple):
    """When a span began and ended, Unix nanoseconds."""

    start: int
    end: int


def critical_path(root: bytes, times: Mapping[bytes, SpanTime], below: Mapping[bytes, Sequence[bytes]]) -> set[bytes]:
    """Return the spans on the critical path under a root.

    From a span's end backwards: it waits for the child that ended last, before that for the one that ended before.

    Args:
        root: Its id.
        times: Of each span.
        below: The children of each span that has some.
    """
    path: set[bytes] = set()
    stack = [(root, times[root].end)]
    while stack:
        span, until = stack.pop()
        if span in path:
            continue
        path.add(span)
        end = min(until, times[span].end)
        children = sorted(
            ((min(times[child].end, end), times[child].start, child) for child in below.get(span, ())), reverse=True
        )
        cursor = end
        for over, begun, child in children:
            if over <= cursor and begun < over:
                stack.append((child, over))
                cursor = begun
    return path
