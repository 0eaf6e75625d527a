"""Calls of the container runtime, and whose Pod they are about: the root of their trace says so, mostly last."""

from collections.abc import Callable
from typing import Final, NamedTuple

from podtrail.recent import Reason, Recent, first
from podtrail_processors.link_stitching.lifecycle.part import Part, SavedPart, restored_part, saved_part

_MOST_OF_A_TRACE: Final = 64
_DISPUTED: Final = "?"
"""In the place of a uid where a trace was said to be about two: it tells of neither."""
_AMBIGUOUS: Final = "ambiguous"
Forgotten = Callable[[str, str, int], None]
"""Told what was forgotten, why and how many."""


class SavedCalls(NamedTuple):
    """Pods by trace and calls that wait, in a saved state."""

    pods: tuple[tuple[bytes, int, str], ...]
    waiting: tuple[tuple[bytes, int, tuple[SavedPart, ...]], ...]


class RuntimeCalls:
    """Pods by trace, and calls that wait for the Pod of their trace to be told."""

    def __init__(self, most_traces: int, most_waiting: int, ttl: int, forgotten: Forgotten) -> None:
        """Remember so many, for `ttl` nanoseconds."""
        self._most_waiting = most_waiting
        self._forgotten = forgotten
        self._pods: Recent[bytes, str] = Recent(most_traces, ttl, lambda *_: None)
        self._waiting: Recent[bytes, list[Part]] = Recent(most_waiting, ttl, self._forget)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def pod_of(self, trace_id: bytes) -> str:
        """Return the uid of the Pod that a trace is about; "" when that is not known, or two were told."""
        uid = self._pods.get(trace_id) or ""
        return "" if uid == _DISPUTED else uid

    def note(self, trace_id: bytes, uid: str, now: int) -> list[Part]:
        """Remember whose Pod a trace is about; return the calls that waited for it."""
        known = self._pods.get(trace_id)
        self._pods.put(trace_id, uid if known in (None, uid) else _DISPUTED, now)
        calls = self._waiting.pop(trace_id) or []
        self._count -= len(calls)
        return calls

    def wait(self, trace_id: bytes, call: Part, now: int) -> None:
        """Keep a call until the Pod of its trace is told."""
        if self._pods.get(trace_id) == _DISPUTED:
            self._forgotten("call", _AMBIGUOUS, 1)
            return
        calls = self._waiting.get(trace_id) or []
        if len(calls) >= _MOST_OF_A_TRACE:
            self._forgotten("call", "full", 1)
            return
        calls.append(call)
        self._count += 1
        self._waiting.put(trace_id, calls, now)
        while self._count > self._most_waiting:
            self._waiting.forget_oldest()

    def expire(self, now: int) -> None:
        """Forget what is too old."""
        self._pods.expire(now)
        self._waiting.expire(now)

    def deadline(self) -> int | None:
        """Return when the first entry is too old; None if there is none."""
        return first((self._pods.deadline(), self._waiting.deadline()))

    def shrink(self, parts: int) -> None:
        """Forget the oldest of so many equal parts."""
        self._pods.shrink(parts)
        self._waiting.shrink(parts)

    def saved(self) -> "SavedCalls":
        """Return Pods by trace, and calls that wait."""
        waiting = [(trace, seen, tuple(map(saved_part, calls))) for trace, calls, seen in self._waiting.dated()]
        return SavedCalls(self._pods.saved(), tuple(waiting))

    def restore(self, saved: "SavedCalls") -> None:
        """Remember what was saved."""
        self._pods.restore(saved.pods)
        self._count = sum(len(calls) for _, _, calls in saved.waiting)
        self._waiting.restore([(trace, seen, [*map(restored_part, calls)]) for trace, seen, calls in saved.waiting])

    def move_in(self, other: "RuntimeCalls") -> None:
        """Take what another remembers; meant for an empty memory."""
        self._pods.move_in(other._pods)
        self._count = other._count
        self._waiting.move_in(other._waiting)

    def _forget(self, _trace: bytes, calls: list[Part], reason: Reason) -> None:
        self._count -= len(calls)
        self._forgotten("call", reason, len(calls))
