"""What is committed with the offset of a partition: how far its owner has come, in less than 4096 bytes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

from podtrail.component.partitions import Commit
from podtrail.durable.owed import Way
from podtrail.partitioned.delivered import DeliveredSteps, PartitionStep

_VERSION: Final = 1
_KEY: Final = "podtrail"
"""Says of a commit's metadata that it is ours; its value is the version."""
_MOST_BYTES: Final = 4096
"""What a broker takes unless told otherwise (`offset.metadata.max.bytes`)."""
_MOST: Final = 1 << 63


class CheckpointPlace(NamedTuple):
    """A checkpoint that can be read again."""

    at: str
    """Where, as who has written it says."""
    step: PartitionStep
    """When it was taken."""


@dataclass(frozen=True, slots=True)
class OwnersNote:
    """What the next owner of a partition has to know."""

    left: PartitionStep
    """Until when everything has left the processors that does."""
    begins: int
    """The time that the processors were told last before the record at the offset committed, Unix nanoseconds."""
    undelivered: Mapping[Way, DeliveredSteps] = field(default_factory=dict)
    """How far exporters are that owe something; the others are done with all that has left."""
    marks: tuple[PartitionStep, ...] = ()
    """At which positions time was let pass without a record, until when."""
    checkpoint: CheckpointPlace | None = None
    configured: str = ""
    """Tells the configuration by which it was decided from others; empty where that is not said."""
    topic_id: str = ""
    """Tells the topic from others of the same name, before and after it; empty where that is not said."""

    @property
    def end(self) -> PartitionStep:
        """The last step by which anything was delivered."""
        return max([self.left, *(delivered.until for delivered in self.undelivered.values())])

    def has(self, way: Way, step: PartitionStep) -> bool:
        """Say whether what left at a step is delivered on a way."""
        delivered = self.undelivered.get(way)
        return step <= self.left if delivered is None else delivered.has(step)

    def write(self) -> str:
        """Return it as metadata of a commit: what there is no room for is told less exactly, and marks go last."""
        written = self._json()
        if len(written) >= _MOST_BYTES:
            exact = {way: delivered.without_gaps() for way, delivered in self.undelivered.items()}
            note = replace(self, undelivered=exact)
            while len(written := note._json()) >= _MOST_BYTES and note.marks:
                note = replace(note, marks=note.marks[1 + len(note.marks) // 8 :])
            if len(written) >= _MOST_BYTES:  # names of pipelines and exporters alone take it
                least = min(delivered.until for delivered in exact.values())
                written = replace(note, left=min(note.left, least), undelivered={}).write()
        return written

    def _json(self) -> str:
        position, time = self.left

        def told(step: PartitionStep) -> tuple[int, int]:
            return step.position - position, step.time - time

        content: dict[str, Any] = {_KEY: _VERSION, "left": self.left, "begins": self.begins - time}
        ways: dict[str, dict[str, Any]] = {}
        for (pipeline, exporter), (until, gaps) in self.undelivered.items():
            between = [(*told(first), *told(last)) for first, last in gaps]
            ways.setdefault(pipeline, {})[exporter] = [*told(until), *between]
        if ways:
            content["undelivered"] = ways
        if self.marks:
            content["marks"] = [told(mark) for mark in self.marks]
        if self.checkpoint:
            content["checkpoint"] = [self.checkpoint.at, *told(self.checkpoint.step)]
        if self.configured:
            content["configured"] = self.configured
        if self.topic_id:
            content["topic_id"] = self.topic_id
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def read(cls, commit: Commit) -> Self | None:
        """Return what was committed; None when it is somebody else's.

        Raises:
            ValueError: it is ours and can't be read.
        """
        try:
            content = json.loads(commit.metadata)
        except (ValueError, RecursionError):  # nested too deeply: nothing that was ever written here
            return None
        if not isinstance(content, dict) or _KEY not in content:
            return None
        if content[_KEY] != _VERSION:
            raise ValueError(f"it is of version {content[_KEY]!r}, not {_VERSION}")
        try:
            return cls._of(content)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"it is damaged: {type(error).__name__}: {error}") from error

    @classmethod
    def _of(cls, content: Mapping[str, Any]) -> Self:
        position, time = map(_integer, content["left"])

        def step(of: tuple[Any, Any]) -> PartitionStep:
            return PartitionStep(_integer(position + _integer(of[0])), _integer(time + _integer(of[1])))

        undelivered: dict[Way, DeliveredSteps] = {}
        for pipeline, exporters in content.get("undelivered", {}).items():
            for exporter, (at, by, *between) in exporters.items():
                gaps = tuple((step(gap[:2]), step(gap[2:])) for gap in between)
                undelivered[pipeline, exporter] = DeliveredSteps(step((at, by)), gaps)
        place = content.get("checkpoint")
        return cls(
            PartitionStep(position, time),
            _integer(time + _integer(content["begins"])),
            undelivered,
            tuple(step(mark) for mark in content.get("marks", ())),
            CheckpointPlace(str(place[0]), step(place[1:])) if place else None,
            str(content.get("configured", "")),
            str(content.get("topic_id", "")),
        )


def _integer(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no number")
    if not -_MOST <= value < _MOST:
        raise ValueError("a number takes more than 64 bits")
    return value
