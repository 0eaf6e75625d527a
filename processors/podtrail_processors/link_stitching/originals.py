"""What is known of the spans that a lifecycle's parts stand for."""

from collections.abc import Mapping

from podtrail.otlp import Value
from podtrail_processors.link_stitching import links
from podtrail_processors.link_stitching.lifecycle.merger import Merger
from podtrail_processors.link_stitching.lifecycle.part import BOUND, CREATED, Part
from podtrail_processors.link_stitching.memory import StitchingMemory


class Originals:
    """Answers from what stitching remembers."""

    def __init__(self, memory: StitchingMemory, merger: Merger | None) -> None:
        self._memory = memory
        self._merger = merger

    def number(self, original: bytes) -> int:
        """Return the number of an attempt; 0 when it is not known."""
        known = self._memory.attempt(original)
        return known.number if known else 0

    def creation(self, uid: str) -> Part | None:
        """Return the request that created a Pod as a part of its life; None where none is known for certain."""
        creation, evidence = self._memory.directory.creation_of(uid, frozenset())
        if creation is None:
            return None
        return Part(CREATED, b"", creation.start.time, creation.end.time, creation.span, evidence.value)

    def binding(self, attempt: bytes) -> Part | None:
        """Return the request by which an attempt bound its Pod as a part of its life; None where none is known."""
        known = self._memory.attempt(attempt)
        if known is None or known.binding is None:
            return None
        key, start, end, evidence = known.binding
        return Part(BOUND, b"", start, end, key, evidence.value)

    def moved(self, original: bytes) -> bool:
        """Say whether a span is moved into a life itself, so that nothing has to stand for it."""
        return self._merger is not None and bool(self._merger.moved_to(original[:16]))

    def outcome(self, original: bytes) -> Mapping[str, Value]:
        """Return the attributes that say whether a link to a span leads anywhere."""
        return links.outcome(self._memory.fate_of(original))
