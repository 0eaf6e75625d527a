"""Attempts whose spans were not kept, told in full by those that they were decided on.

A hundred attempts in which hundreds of plugins said no take half a second to read: what was read is remembered for the
Pod that was asked for last, for a page that is watched asks again; and reading may be done in a thread, ahead.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from podtrail.otlp import Group
from podtrail.story.attempt import AttemptStory, SpanFindings


class DecidedAttempt(NamedTuple):
    """An attempt as it was noted, and the spans that it was decided on."""

    attempt: AttemptStory
    groups: Sequence[Group]

    @property
    def size(self) -> int:
        """Bytes of its spans."""
        return sum(len(group.spans) for group in self.groups)

    @property
    def place(self) -> tuple[bytes, bytes]:
        """Its trace and its span."""
        return self.attempt.trace_id, self.attempt.span_id

    def read(self) -> AttemptStory:
        """Return the attempt in full: of nothing but these spans, so that a thread may do it."""
        findings = SpanFindings()
        for group in self.groups:
            list(findings.read(group.spans))
        return replace(self.attempt.found(findings), kept=False)


class FullAttempts:
    """What was read of one Pod's attempts."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes], tuple[DecidedAttempt, AttemptStory]] = {}

    def unread(self, decided: Iterable[DecidedAttempt]) -> list[DecidedAttempt]:
        """Return those that are not known as they are now."""
        return [one for one in decided if self._known.get(one.place, (None,))[0] != one]

    def note(self, read: Iterable[tuple[DecidedAttempt, AttemptStory]]) -> None:
        """Remember what was read."""
        self._known |= {one.place: (one, full) for one, full in read}

    def all(self, decided: Sequence[DecidedAttempt]) -> dict[tuple[bytes, bytes], AttemptStory]:
        """Return a Pod's attempts in full, by trace and span; other Pods' are forgotten."""
        self.note((one, one.read()) for one in self.unread(decided))
        self._known = {one.place: self._known[one.place] for one in decided}
        return {place: full for place, (_, full) in self._known.items()}
