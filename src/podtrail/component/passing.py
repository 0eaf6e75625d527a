"""The base of processors that hold nothing: whatever comes in leaves at once, or not at all."""

from collections.abc import Sequence
from typing import Self

from podtrail.otlp import Batch


class PassingProcessor:
    """The part of `Processor` that is about holding spans, for processors that hold none: they add `add`."""

    passes_on = True

    def expire(self, now: int, limit: int) -> Sequence[Batch]:  # noqa: ARG002 - as every processor
        """Return nothing: nothing is held."""
        return ()

    def deadline(self) -> int | None:
        """Return None: nothing is held."""
        return None

    def held(self) -> int:
        """Return 0: nothing is held."""
        return 0

    def held_since(self) -> int | None:
        """Return None: nothing is held."""
        return None

    def take_over(self, predecessor: Self, now: int) -> None:
        """Take nothing: nothing is held."""

    def drain(self, now: int) -> Sequence[Batch]:  # noqa: ARG002 - as every processor
        """Return nothing: nothing is held."""
        return ()
