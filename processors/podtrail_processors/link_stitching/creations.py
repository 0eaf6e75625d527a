"""Which requests created what: requests and writes to etcd brought together by their audit id, in any order."""

from collections.abc import Callable
from typing import Final, NamedTuple

from podtrail.recent import Reason, Recent, first
from podtrail_processors.link_stitching.neighbours import CreatingRequest, EtcdWrite, NamedCreation

_REFUSED: Final = 300


class SavedCreations(NamedTuple):
    """Requests and writes in a saved state."""

    asked: tuple[tuple[str, int, CreatingRequest], ...]
    written: tuple[tuple[str, int, EtcdWrite], ...]


class CreationMemory:
    """Requests and writes by audit id; bounded."""

    def __init__(self, most: int, ttl: int, forgotten: Callable[[str, object, Reason], None]) -> None:
        """Remember at most so many of each, for `ttl` nanoseconds; `forgotten` is told of the others."""
        self._asked: Recent[str, CreatingRequest] = Recent(most, ttl, forgotten)
        self._written: Recent[str, EtcdWrite] = Recent(most, ttl, forgotten)

    def __len__(self) -> int:
        return len(self._asked) + len(self._written)

    def expire(self, now: int) -> None:
        """Forget what is too old."""
        self._asked.expire(now)
        self._written.expire(now)

    def deadline(self) -> int | None:
        """Return when the first entry is too old; None if there is none."""
        return first((self._asked.deadline(), self._written.deadline()))

    def shrink(self, parts: int) -> None:
        """Forget the oldest of so many equal parts."""
        self._asked.shrink(parts)
        self._written.shrink(parts)

    def saved(self) -> "SavedCreations":
        """Return requests and writes."""
        return SavedCreations(self._asked.saved(), self._written.saved())

    def restore(self, saved: "SavedCreations") -> None:
        """Remember requests and writes that were saved."""
        self._asked.restore(saved.asked)
        self._written.restore(saved.written)

    def take_over(self, other: "CreationMemory") -> None:
        """Take what another knows; meant for an empty one."""
        self._asked.move_in(other._asked)
        self._written.move_in(other._written)

    def wrote(self, write: EtcdWrite, now: int) -> NamedCreation | None:
        """Learn of a write; return what was created, None if the request was refused."""
        if not write.audit_id:
            return _named(write, None)
        self._written.put(write.audit_id, write, now)
        asked = self._asked.get(write.audit_id)
        return None if asked and _is_refused(asked) else _named(write, asked)

    def asked(self, request: CreatingRequest, now: int) -> tuple[NamedCreation | None, NamedCreation | None]:
        """Learn of a request; return what stood for it until now, and what it created, as far as its write is known."""
        self._asked.put(request.audit_id, request, now)
        write = self._written.get(request.audit_id)
        if write is None:
            return None, None
        return _named(write, None), None if _is_refused(request) else _named(write, request)

    def of(self, audit_id: str) -> NamedCreation | None:
        """Return what the request with an audit id created; None where it was refused, or is not all known."""
        write, asked = self._written.get(audit_id), self._asked.get(audit_id)
        return _named(write, asked) if write and asked and not _is_refused(asked) else None


def _is_refused(request: CreatingRequest) -> bool:
    return (request.code or 0) >= _REFUSED


def _named(write: EtcdWrite, asked: CreatingRequest | None) -> NamedCreation:
    if asked is None:
        return NamedCreation(write.resource, write.place, write.start, write.end, write.span, "", b"")
    return NamedCreation(write.resource, write.place, asked.start, asked.end, asked.span, asked.agent, asked.context)
