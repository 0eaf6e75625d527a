"""Derives the offsets of a log's local times from UTC by a watch of the same Pods."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from podtrail.reconstruction.calendar import OFFSETS, SECOND, OffsetStep
from podtrail.reconstruction.scheduler_log import LineMeaning
from podtrail.reconstruction.vocabulary import Kind
from podtrail.reconstruction.watch import PRINTED, EventSeen, LeaderSeen, PodSeen, Seen

_FAILURES: Final = frozenset({Kind.NO_FIT, Kind.NO_NODES, Kind.FAILED})
_BEFORE: Final = 2 * SECOND
_AFTER: Final = 10 * SECOND
"""A watch shows the end of an attempt within these."""
_MOST_MOMENTS: Final = 200_000
_CHANGE: Final = 3
"""Ends of attempts that a change of the offset must explain."""
_HALF_HOUR: Final = 1_800 * SECOND
_LARGEST_CHANGE: Final = 4 * _HALF_HOUR


class _End(NamedTuple):
    """The end of an attempt in a log."""

    local: int
    offsets: frozenset[int]
    """Those at which a watch shows it."""


def offsets_by_watch(lines: Iterable[LineMeaning], seen: Iterable[Seen]) -> list[OffsetStep]:
    """Return the offset at which most ends of attempts have an Event or a change of their Pod.

    Where summer time begins or ends within the log, there is a step for each offset.

    Args:
        lines: Lines of a log in their order, read as if their times were UTC.
        seen: What watches show of Pods and Events.

    Returns:
        An empty list if no offset explains more ends than all others.
    """
    moments: dict[str, list[int]] = {}
    for count, one in enumerate(seen):
        if count > _MOST_MOMENTS:
            break
        if isinstance(one, LeaderSeen):
            continue
        moments.setdefault(one.pod, []).extend(_moments(one))
    bound: list[LineMeaning] = []
    failed: dict[str, LineMeaning] = {}
    for line in lines:
        if line.kind is Kind.BOUND:
            bound.append(line)
        elif line.kind in _FAILURES:
            failed.setdefault(line.pod, line)
    # A Pod is bound once. Its failures repeat, at times that fit to several offsets: only the first one counts.
    return _steps(_ends(bound, moments)) or _steps(_ends(failed.values(), moments))


def _ends(lines: Iterable[LineMeaning], moments: Mapping[str, Sequence[int]]) -> list[_End]:
    ends = []
    for line in lines:
        if known := moments.get(line.pod):
            offsets = frozenset(offset for offset in OFFSETS if _is_near(line.time - offset, known))
            if offsets:
                ends.append(_End(line.time, offsets))
    return ends


def _steps(ends: Sequence[_End]) -> list[OffsetStep]:
    matched = Counter(offset for end in ends for offset in end.offsets)
    if not matched:
        return []
    most = max(matched.values())
    best = [offset for offset, count in matched.items() if count == most]
    if most + _CHANGE <= len(ends) and len(path := _path(ends, matched)) > 1:
        return path
    offset = best[0] if len(best) == 1 else 0 if 0 in best else None
    return [] if offset is None else [OffsetStep(0, offset)]


def _path(ends: Sequence[_End], offsets: Iterable[int]) -> list[OffsetStep]:
    """Return the steps that leave the fewest ends unexplained; a change counts as much as `_CHANGE` of them."""
    costs = dict.fromkeys(offsets, 0)
    came_from: list[dict[int, int]] = []
    for end in ends:
        before: dict[int, int] = {}
        after: dict[int, int] = {}
        for offset in costs:
            near = (other for other in costs if abs(other - offset) <= _LARGEST_CHANGE)
            before[offset] = min(near, key=lambda other: (costs[other] + _CHANGE * (other != offset), other != offset))
            changed = _CHANGE * (before[offset] != offset)
            after[offset] = costs[before[offset]] + changed + (offset not in end.offsets)
        came_from.append(before)
        costs = after
    offset = min(costs, key=lambda each: costs[each])
    steps: list[OffsetStep] = []
    for index in range(len(ends) - 1, -1, -1):
        earlier = came_from[index][offset]
        if earlier != offset and index:
            steps.append(
                OffsetStep(_change_between(ends[index - 1].local - earlier, ends[index].local - offset), offset)
            )
            offset = earlier
    return [OffsetStep(0, offset), *reversed(steps)]


def _change_between(last: int, first: int) -> int:
    """Return when clocks were set between two moments: at a full hour, or half an hour, if there is one."""
    for unit in (2 * _HALF_HOUR, _HALF_HOUR):
        if (moment := (last // unit + 1) * unit) <= first:
            return moment
    return first


def _moments(seen: EventSeen | PodSeen) -> list[int]:
    if isinstance(seen, EventSeen):
        return [seen.at]
    moments = [seen.time] if seen.change not in ("LISTED", PRINTED) and (seen.node or seen.reason) else []
    return [*moments, seen.since] if seen.since else moments


def _is_near(time: int, known: Iterable[int]) -> bool:
    return any(-_BEFORE <= moment - time <= _AFTER for moment in known)
