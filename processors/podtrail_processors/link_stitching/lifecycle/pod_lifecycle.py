"""One Pod's life as far as it is known: parts that wait to be told, those that were, and when it is due."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

from podtrail_processors.link_stitching.lifecycle.ids import part_id_of
from podtrail_processors.link_stitching.lifecycle.part import (
    ATTEMPT,
    BOUND,
    BY_WATCH,
    CONTAINER_EXITED,
    CONTAINER_STARTED,
    CREATED,
    DELETED,
    FINISHED,
    GATED,
    QUEUED,
    READY,
    RESOLUTION,
    TERMINATED,
    Part,
    SavedPart,
    combined,
    restored_part,
    saved_part,
)

_ENDS: Final = {READY: "ready", FINISHED: "finished", TERMINATED: "terminated", DELETED: "deleted"}
_STARTED: Final = "started"
"""The state of a Pod that nobody watches, once a container of it has been started."""
_FURTHER: Final = ("", _STARTED, *_ENDS.values())
"""States by how far a Pod has come with each."""
_AFTER_STARTS: Final = frozenset({CONTAINER_EXITED, FINISHED})
_QUEUED_AFTER: Final = frozenset({CREATED, GATED, ATTEMPT})
_MOST_MOMENTS: Final = 32
_MILLISECOND: Final = 1_000_000


class SavedLife(NamedTuple):
    """A Pod in a saved state: the fields of a `PodLifecycle`."""

    uid: str
    due: int
    namespace: str
    name: str
    node: str
    cluster: str
    parts: tuple[SavedPart, ...]
    told: tuple[bytes, ...]
    state: str
    rooted: bool
    watched: bool
    attempted: bool
    started: int
    moments: tuple[int, ...]


@dataclass(slots=True)
class PodLifecycle:
    """What is remembered of a Pod; times in Unix nanoseconds."""

    uid: str
    due: int
    """When it is told at the latest, or what is new of it; 0 when nothing waits."""
    namespace: str = ""
    name: str = ""
    node: str = ""
    cluster: str = ""
    parts: dict[tuple[str, bytes], Part] = field(default_factory=dict)
    """Not told yet."""
    told: set[bytes] = field(default_factory=set)
    """Ids of the spans that were sent."""
    state: str = ""
    """How far it has come: `ready`, `started`, `finished`, `terminated`, `deleted`; "" while it is on its way."""
    rooted: bool = False
    """Whether its root was sent."""
    watched: bool = False
    """Whether somebody watches the Pod, so that it will be told when it is ready."""
    attempted: bool = False
    """Whether attempts are told."""
    started: int = 0
    """When the last of its containers started that the runtime told of; 0 for none."""
    _moments: list[int] = field(default_factory=list)
    """Since when it may have waited for its next attempt."""

    def saved(self) -> "SavedLife":
        """Return all that is remembered."""
        return SavedLife(
            uid=self.uid,
            due=self.due,
            namespace=self.namespace,
            name=self.name,
            node=self.node,
            cluster=self.cluster,
            parts=tuple(map(saved_part, self.parts.values())),
            told=tuple(sorted(self.told)),
            state=self.state,
            rooted=self.rooted,
            watched=self.watched,
            attempted=self.attempted,
            started=self.started,
            moments=tuple(self._moments),
        )

    @classmethod
    def restored(cls, saved: "SavedLife") -> "PodLifecycle":
        """Return what was saved."""
        same = saved._asdict()
        parts, told, moments = same.pop("parts"), same.pop("told"), same.pop("moments")
        known = {part.key: part for part in map(restored_part, parts)}
        return cls(**same, parts=known, told=set(told), _moments=[*moments])

    def take(self, part: Part) -> bool:
        """Take a part; return whether that was news."""
        if part_id_of(self.uid, part.kind, part.which) in self.told:
            return False
        self.attempted = self.attempted or part.kind == ATTEMPT
        if part.kind == CONTAINER_STARTED and part.rank != BY_WATCH:
            self.started = max(self.started, part.end)
        known = self.parts.get(part.key)
        self.parts[part.key] = part if known is None else combined(known, part)
        return True

    def completed_by(self, part: Part) -> bool:
        """Say whether a part brings the Pod to where its life can be told, and note how far it has come."""
        started = part.kind == CONTAINER_STARTED and not part.error and not self.watched
        state = _ENDS.get(part.kind, _STARTED if started else "")
        self.state = max(self.state, state, key=_FURTHER.index)
        return bool(state)

    def tell(self, most: int) -> tuple[list[Part], int]:
        """Return the parts to be sent now, as they happened, and how many more there were than may be told of a Pod."""
        parts = [part for part in self.parts.values() if not self._is_told_better(part)]
        self.parts.clear()
        parts = [self._in_order(part, parts) for part in parts]
        self._moments += [part.end for part in parts if part.kind in _QUEUED_AFTER]
        # The scheduler may see a Pod before its client is answered.
        self._moments += [part.start for part in parts if part.kind == CREATED]
        parts += self._queued(parts)
        self._moments = sorted(self._moments)[-_MOST_MOMENTS:]
        parts.sort(key=attrgetter("start", "end", "kind", "which"))
        sent = parts[: max(0, most - len(self.told))]
        self.told.update([part_id_of(self.uid, part.kind, part.which) for part in sent])
        return sent, len(parts) - len(sent)

    def _is_told_better(self, part: Part) -> bool:
        """Say whether a watch saw what the runtime's own spans tell."""
        return part.kind == CONTAINER_STARTED and part.rank == BY_WATCH and self.started > 0

    def _in_order(self, part: Part, parts: Sequence[Part]) -> Part:
        """Return a part with what a watch can't tell exactly put in order, as far as its times leave that open."""
        if part.rank != BY_WATCH:
            return part
        if part.kind == CREATED:
            first = min([other.start for other in parts])
            return part._replace(start=first, end=first)
        if part.kind == READY and 0 < self.started < part.end:
            return part._replace(start=self.started)
        resolution = part.attributes.get(RESOLUTION)
        if part.kind not in _AFTER_STARTS or not isinstance(resolution, int):
            return part
        within = range(part.start, part.start + resolution)
        started = [other.end for other in parts if other.kind == CONTAINER_STARTED and other.end in within]
        ready = [other.end for other in parts if other.kind == READY and other.end in within]
        earliest = max([part.start, *sorted(started)[:1], *ready])
        return part._replace(start=earliest, end=earliest)

    def _queued(self, parts: Sequence[Part]) -> Iterator[Part]:
        """Yield the waits that ended with an attempt, or with the binding where nobody tells of attempts."""
        for part in parts:
            if part.kind == ATTEMPT:
                waited = part.attributes.get("scheduler.queue_wait_ms")
                since = part.start - (waited * _MILLISECOND if isinstance(waited, int) else 0)
                yield self._wait(part, max(0, since))
            elif part.kind == BOUND and not self.attempted and self._moments:
                yield self._wait(part, part.start)

    def _wait(self, until: Part, since: int) -> Part:
        earlier = [moment for moment in self._moments if moment <= until.start]
        begun = max(earlier) if earlier else since
        return Part(QUEUED, until.which, begun, until.start, until.original, until.evidence, until.rank)
