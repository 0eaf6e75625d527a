"""Derives the offset of a log's local times from UTC by a watch of the same Pods."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from podtrail.reconstruction.calendar import OFFSETS, SECOND
from podtrail.reconstruction.scheduler_log import LineMeaning
from podtrail.reconstruction.vocabulary import Kind
from podtrail.reconstruction.watch import PRINTED, EventSeen, LeaderSeen, PodSeen, Seen

_FAILURES: Final = frozenset({Kind.NO_FIT, Kind.NO_NODES, Kind.FAILED})
_BEFORE: Final = 2 * SECOND
_AFTER: Final = 10 * SECOND
"""A watch shows the end of an attempt within these."""
_MOST_MOMENTS: Final = 200_000


def offset_by_watch(lines: Iterable[LineMeaning], seen: Iterable[Seen]) -> int | None:
    """Return the offset in nanoseconds at which most ends of attempts have an Event or a change of their Pod.

    Args:
        lines: Lines of a log, read as if their times were UTC.
        seen: What watches show of Pods and Events.

    Returns:
        None if no offset explains more ends than all others.
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
    found = _best(bound, moments)
    return found if found is not None else _best(failed.values(), moments)


def _best(lines: Iterable[LineMeaning], moments: Mapping[str, Sequence[int]]) -> int | None:
    matched: Counter[int] = Counter()
    for line in lines:
        if known := moments.get(line.pod):
            matched.update({offset for offset in OFFSETS if _is_near(line.time - offset, known)})
    if not matched:
        return None
    most = max(matched.values())
    best = [offset for offset, count in matched.items() if count == most]
    return best[0] if len(best) == 1 else 0 if 0 in best else None


def _moments(seen: EventSeen | PodSeen) -> list[int]:
    if isinstance(seen, EventSeen):
        return [seen.at]
    moments = [seen.time] if seen.change not in ("LISTED", PRINTED) and (seen.node or seen.reason) else []
    return [*moments, seen.since] if seen.since else moments


def _is_near(time: int, known: Iterable[int]) -> bool:
    return any(-_BEFORE <= moment - time <= _AFTER for moment in known)
