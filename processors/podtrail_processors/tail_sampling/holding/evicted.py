"""Traces that were evicted before their decision: counted when they would have been decided, as the Collector does.

One that has come back by then is not counted, one that was evicted twice within a second is counted once.
"""

from collections.abc import Container, Iterable, Mapping

from podtrail.config.types import SECOND


class Evicted:
    """The ids of evicted traces until their time; bounded, the oldest are counted when there is no more room."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._due: dict[tuple[int, bytes], int] = {}

    def add(self, trace_id: bytes, due: int, present: Container[bytes]) -> int:
        """Remember a trace that would have been decided at `due`; return how many are counted to make room for it."""
        self._due.setdefault((due // SECOND, trace_id), due)
        if len(self._due) <= self._most:
            return 0
        oldest = next(iter(self._due))
        del self._due[oldest]
        return int(oldest[1] not in present)

    def deadline(self) -> int | None:
        """Return when the next of them is to be counted."""
        return next(iter(self._due.values()), None)

    def settle(self, now: int, present: Container[bytes]) -> int | None:
        """Forget those whose time has come; return how many of them have not come back. None when none was due."""
        due: list[tuple[int, bytes]] = []
        for key, at in self._due.items():
            if at > now:
                break
            due.append(key)
        for key in due:
            del self._due[key]
        return sum(trace_id not in present for _, trace_id in due) if due else None

    def settle_all(self, present: Container[bytes]) -> int:
        """Forget all; return how many have not come back."""
        missing = sum(trace_id not in present for _, trace_id in self._due)
        self._due.clear()
        return missing

    def release(self) -> Mapping[tuple[int, bytes], int]:
        """Part with all."""
        due, self._due = self._due, {}
        return due

    def inherit(self, due: Mapping[tuple[int, bytes], int]) -> None:
        """Take what others have parted with."""
        self._due = dict(sorted({**self._due, **due}.items(), key=lambda one: one[1]))

    def saved(self) -> tuple[tuple[bytes, int], ...]:
        """Return them, each with its time."""
        return tuple([(trace_id, due) for (_, trace_id), due in self._due.items()])

    def restore(self, saved: Iterable[tuple[bytes, int]]) -> None:
        """Remember those that were saved."""
        self._due = {(due // SECOND, trace_id): due for trace_id, due in saved}

    def __bool__(self) -> bool:
        """Say whether any are remembered."""
        return bool(self._due)
