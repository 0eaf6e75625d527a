"""What is known of the spans that a lifecycle's parts stand for."""

from collections.abc import Mapping

from podtrail.otlp import Value
from podtrail_processors.link_stitching import links
from podtrail_processors.link_stitching.memory import StitchingMemory


class Originals:
    """Answers from what stitching remembers."""

    def __init__(self, memory: StitchingMemory) -> None:
        self._memory = memory

    def number(self, original: bytes) -> int:
        """Return the number of an attempt; 0 when it is not known."""
        known = self._memory.attempt(original)
        return known.number if known else 0

    def outcome(self, original: bytes) -> Mapping[str, Value]:
        """Return the attributes that say whether a link to a span leads anywhere."""
        return links.outcome(self._memory.fate_of(original))
