"""What is learned from a group that comes in: its attempts, what its spans say of Pods, what they created."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from podtrail.otlp import Group, SpanView, attempts_in, split
from podtrail.pod_identity import (
    CLUE_MARK,
    ClockTime,
    PodClues,
    PodCreation,
    SpanSource,
    in_cluster,
    read_clues,
)
from podtrail_processors.link_stitching.memory import StitchingMemory
from podtrail_processors.link_stitching.neighbours import NamedCreation, creating_request, write_in
from podtrail_processors.link_stitching.numbering import NumberedAttempt
from podtrail_processors.link_stitching.prefilter import COLLECTION_MARK, CREATION_MARK, POST_MARK
from podtrail_processors.link_stitching.trace_fate import TraceFate


class GroupTold(NamedTuple):
    """What a group told."""

    clues: Mapping[bytes, PodClues]
    """By span id."""
    creating: Mapping[bytes, str]
    """The audit ids of its requests that are to create something, by span id."""
    attempts: Sequence[NumberedAttempt]

    @property
    def stitchable(self) -> bool:
        """Whether there is a span that may get a link of ours."""
        return bool(self.creating) or any(clues.stands_for_all for clues in self.clues.values())


class GroupReader:
    """Teaches the memory what groups tell."""

    def __init__(self, memory: StitchingMemory) -> None:
        self._memory = memory

    def learn(self, group: Group, now: int) -> GroupTold:
        """Learn from a group, and return what it told."""
        source = self._memory.directory.source(group.resource)
        clues: dict[bytes, PodClues] = {}
        creating: dict[bytes, str] = {}
        posts = POST_MARK in group.spans
        for raw in split(group.spans):
            view: SpanView | None = None
            if CLUE_MARK.search(raw):
                view = SpanView(raw)
                if (told := read_clues(view)) is not None:
                    clues[told.span_id] = told = told.within(source.cluster)
                    self._memory.directory.learn(told, source, now)
            if CREATION_MARK in raw:
                self._wrote(view or SpanView(raw), source, now)
            elif posts and COLLECTION_MARK.search(raw):
                view = view or SpanView(raw)
                if audit_id := self._asked(view, source, now):
                    creating[view.span_id] = audit_id
        fate = self._memory.fate(group.trace_id) or TraceFate(kept=True)
        learned = [self._memory.learn(attempt, fate, source, now) for attempt in attempts_in(group.spans)]
        return GroupTold(clues, creating, [attempt for attempt in learned if attempt])

    def _wrote(self, view: SpanView, source: SpanSource, now: int) -> None:
        write = write_in(view)
        if write:
            write = write._replace(place=in_cluster(source.cluster, write.place))
        created = self._memory.creations.wrote(write, now) if write else None
        if created:
            self._created(created, source, now)

    def _asked(self, view: SpanView, source: SpanSource, now: int) -> str:
        request = creating_request(view)
        if request is None:
            return ""
        before, created = self._memory.creations.asked(request, now)
        if before and before.is_pod:
            self._memory.directory.forget_creation(before.place, before.span)
        elif before:
            self._memory.owners.take_back(before)
        if created:
            self._created(created, source, now)
        return request.audit_id

    def _created(self, created: NamedCreation, source: SpanSource, now: int) -> None:
        if created.is_pod:
            start, end = ClockTime(created.start, source.clock), ClockTime(created.end, source.clock)
            made = PodCreation(start, end, created.span, created.context)
            self._memory.directory.learn_creation(created.place, made, now)
        else:
            self._memory.owners.note(created, now)
