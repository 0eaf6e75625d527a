"""Which of the Pods that had a name one after the other is meant: what is known of their lives, by whose clock.

The API server never has two Pods of one name at a time. So a Pod that was seen later than another was there only after
it, and a creation begins a life of its own. Moments of one clock are in order as they stand; those of two clocks only
when they are further apart than clocks may be (`CLOCKS_APART`).
"""

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

CLOCKS_APART: Final = 6_000_000_000
"""How far the clocks of two components may be apart before a name is joined with a wrong Pod, nanoseconds."""

_MOST_LIVES: Final = 8
_MOST_CREATIONS: Final = 8
_MOST_CLOCKS: Final = 4
_GENERATED: Final = re.compile(r".*-[bcdfghjklmnpqrstvwxz2456789]{5}", re.DOTALL)
"""What `generateName` makes (apimachinery's `rand.SafeEncodeString`): there is one such name in 14 million."""


class ClockTime(NamedTuple):
    """A time, Unix nanoseconds, by a clock."""

    time: int
    clock: int

    def before(self, other: "ClockTime") -> bool:
        """Say whether this was surely before another."""
        apart = 0 if self.clock == other.clock else CLOCKS_APART
        return self.time + apart < other.time


class PodCreation(NamedTuple):
    """A request that created a Pod."""

    start: ClockTime
    end: ClockTime
    span: bytes
    """Trace and span id."""
    context: bytes = b""
    """Trace and span id of the client that asked for it."""


@dataclass(slots=True)
class PodLife:
    """When a Pod was seen, by each clock: first and last."""

    uid: str
    first: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)

    def seen(self, start: int, end: int, clock: int) -> bool:
        """Note that the Pod was there from `start` to `end`; return whether that was news of its beginning."""
        known = self.first.get(clock)
        if known is None and len(self.first) >= _MOST_CLOCKS:
            return False
        self.first[clock] = start if known is None else min(known, start)
        self.last[clock] = max(self.last.get(clock, end), end)
        return known is None or start < known

    def began_before(self, moment: ClockTime) -> bool:
        """Say whether the Pod was surely there before a moment."""
        return any(ClockTime(time, clock).before(moment) for clock, time in self.first.items())

    def seen_after(self, moment: ClockTime) -> bool:
        """Say whether the Pod was surely still there after a moment."""
        return any(moment.before(ClockTime(time, clock)) for clock, time in self.last.items())

    def preceded(self, other: "PodLife") -> bool:
        """Say whether this Pod was there before another, and not after: what was seen of them is in that order."""
        return any(
            ClockTime(time, clock).before(ClockTime(first, theirs))
            for clock, time in self.last.items()
            for theirs, first in other.first.items()
        ) and not any(other.began_before(ClockTime(time, clock)) for clock, time in self.last.items())


_Moments = tuple[tuple[int, int], ...]
"""Clocks, each with a time."""


class SavedPlace(NamedTuple):
    """A name in a saved state: uids with when each was seen first and last."""

    unique: bool
    lives: tuple[tuple[str, _Moments, _Moments], ...]
    creations: tuple[PodCreation, ...]
    deletions: tuple[ClockTime, ...]


class PlaceHistory:
    """The Pods that had one name, and the requests that created them; of both the latest eight."""

    def __init__(self, place: str) -> None:
        self.unique = _GENERATED.fullmatch(place) is not None
        """Whether no second Pod ever gets this name."""
        self.lives: dict[str, PodLife] = {}
        self.creations: tuple[PodCreation, ...] = ()
        self.deletions: tuple[ClockTime, ...] = ()

    def saved(self) -> "SavedPlace":
        """Return what is known of the name."""
        lives = [(life.uid, tuple(life.first.items()), tuple(life.last.items())) for life in self.lives.values()]
        return SavedPlace(self.unique, tuple(lives), self.creations, self.deletions)

    @classmethod
    def restored(cls, saved: "SavedPlace") -> "PlaceHistory":
        """Return what was saved."""
        history = cls("")
        history.unique, history.creations, history.deletions = saved.unique, saved.creations, saved.deletions
        for uid, first, last in saved.lives[:_MOST_LIVES]:
            history.lives[uid] = PodLife(uid, dict(first[:_MOST_CLOCKS]), dict(last[:_MOST_CLOCKS]))
        return history

    def life(self, uid: str) -> PodLife:
        """Return the life of a Pod, a new one if it was not known."""
        life = self.lives.get(uid)
        if life is None:
            if len(self.lives) >= _MOST_LIVES:
                del self.lives[next(iter(self.lives))]
                self.unique = False
            life = self.lives[uid] = PodLife(uid)
            self.unique = self.unique and len(self.lives) == 1
        return life

    def created(self, creation: PodCreation) -> None:
        """Note a request that created a Pod of this name."""
        if all(creation.span != known.span for known in self.creations):
            ordered = sorted((*self.creations, creation), key=lambda one: one.start.time)
            self.creations = tuple(ordered[-_MOST_CREATIONS:])

    def deleted(self, moment: ClockTime) -> None:
        """Note a request that deleted a Pod of this name, with whatever grace period."""
        if moment not in self.deletions:
            self.deletions = tuple(sorted((*self.deletions, moment))[-_MOST_CREATIONS:])

    def not_created(self, span: bytes) -> None:
        """Take back a creation."""
        self.creations = tuple(one for one in self.creations if one.span != span)

    def creation_of(self, uid: str) -> PodCreation | None:
        """Return the request that created a Pod; None where there is none, or where it may be that of another."""
        mine = self._creations_of(uid)
        if len(mine) != 1 or sum(self._may_be_of(mine[0], other) for other in self.lives.values()) != 1:
            return None
        return mine[0]

    def creation_in(self, uid: str, contexts: Container[bytes]) -> PodCreation | None:
        """Return the only request of some clients' spans that may have created a Pod."""
        mine = [one for one in self._creations_of(uid) if one.context in contexts]
        return mine[0] if len(mine) == 1 else None

    def _creations_of(self, uid: str) -> Sequence[PodCreation]:
        life = self.lives.get(uid)
        return [one for one in self.creations if self._may_be_of(one, life)] if life else ()

    def creations_possible(self, uid: str) -> int:
        """Return how many requests may have created a Pod."""
        return len(self._creations_of(uid))

    def _may_be_of(self, creation: PodCreation, life: PodLife) -> bool:
        if not life.first or life.began_before(creation.start):
            return False
        # Between a Pod's creation and when it was first seen no other was there, nor was another created.
        return not any(
            other.seen_after(creation.end) and other.preceded(life)
            for other in self.lives.values()
            if other is not life
        ) and not any(self._between(creation, other, life) for other in self.creations if other.span != creation.span)

    def _between(self, creation: PodCreation, other: PodCreation, life: PodLife) -> bool:
        return creation.end.before(other.start) and life.seen_after(other.end)

    def meant(self, start: ClockTime, end: ClockTime) -> tuple[str, int]:
        """Return the uid of the Pod that a request from `start` to `end` is about, or "", and how many it may be."""
        if self.unique and len(self.creations) <= 1:
            return (next(iter(self.lives)), 1) if self.lives else ("", 0)
        possible = list(self.possible(start, end))
        unseen = len(self._reigning(start, end)) - len(self.lives)
        if len(possible) != 1 or unseen > 0:
            return "", len(possible) + max(unseen, 0)
        return (possible[0], 1) if self._surely_there(self.lives[possible[0]], start) else ("", 2)

    def told_of(self, first: ClockTime, end: ClockTime) -> tuple[str, int]:
        """Return the uid of the Pod that an Event is about, or "", and how many it may be.

        An Event may be written when its Pod is gone, and another has the name. So all Pods that had it are possible,
        also one of which only the deletion was seen.

        Args:
            first: When the first Event of its series happened.
            end: When it was written.
        """
        if self.unique and len(self.creations) <= 1:
            return self.meant(first, end)
        lives = [life for life in self.lives.values() if not self._begun_after(life, first)]
        creations = [one for one in self.creations if not end.before(one.start)]
        if len(lives) != 1 or len(creations) > 1:
            return "", max(len(lives), len(creations), 2) if self.lives or self.creations else 0
        if any(not self._had_begun(lives[0], moment) for moment in self.deletions):
            return "", 2
        return (lives[0].uid, 1) if self._surely_there(lives[0], first) else ("", 2)

    def _begun_after(self, life: PodLife, moment: ClockTime) -> bool:
        """Say whether a Pod was surely created after a moment."""
        creation = self.creation_of(life.uid)
        return creation is not None and moment.before(creation.start)

    def _had_begun(self, life: PodLife, moment: ClockTime) -> bool:
        """Say whether a Pod was surely there at a moment, so that a deletion may be its own."""
        creation = self.creation_of(life.uid)
        return life.began_before(moment) or (creation is not None and creation.start.before(moment))

    def created_by(self, start: ClockTime, end: ClockTime) -> tuple[str, int]:
        """Return the uid of the Pod that a request from `start` to `end` created, or "", and how many it may be."""
        made = [one for one in self.creations if one.start.clock == start.clock]
        spans = {one.span for one in made if one.start.time <= end.time and start.time <= one.end.time}
        if len(spans) != 1:
            return "", len(spans)
        uids = [uid for uid in self.lives if (known := self.creation_of(uid)) and known.span in spans]
        if len(uids) == 1:
            return uids[0], 1
        return "", 2 if self.lives else 0

    def possible(self, start: ClockTime, end: ClockTime) -> Iterable[str]:
        """Return the uids of all Pods that a request may be about."""
        reigning = self._reigning(start, end)
        return [uid for uid, life in self.lives.items() if not self._excluded(life, start, end, reigning)]

    def _reigning(self, start: ClockTime, end: ClockTime) -> Sequence[PodCreation]:
        """Return the creations that may have been the latest when a request was made."""
        before = [one for one in self.creations if not end.before(one.start)]
        return [
            one
            for one in before
            if not any(one.end.before(other.start) and other.end.before(start) for other in before)
        ]

    def _excluded(self, life: PodLife, start: ClockTime, end: ClockTime, reigning: Sequence[PodCreation]) -> bool:
        others = [other for other in self.lives.values() if other is not life]
        if any(other.began_before(start) and life.preceded(other) for other in others):
            return True
        if any(other.seen_after(end) and other.preceded(life) for other in others):
            return True
        creation = self.creation_of(life.uid)
        if creation is not None:
            return creation not in reigning
        # What was created after this Pod had begun is another, and ended it.
        return bool(reigning) and all(life.began_before(one.start) for one in reigning)

    def _surely_there(self, life: PodLife, start: ClockTime) -> bool:
        creation = self.creation_of(life.uid)
        if creation is not None and (
            creation.start.before(start) or (creation.start.clock == start.clock and creation.start.time <= start.time)
        ):
            return True
        # One whose creation nobody saw may have had a predecessor just as unseen.
        known = life.first.get(start.clock)
        return life.began_before(start) or (known is not None and known <= start.time)
