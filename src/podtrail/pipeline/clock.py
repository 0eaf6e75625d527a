"""Pipeline time: Unix nanoseconds that never go back."""

import time


class PipelineClock:
    """The monotonic clock, anchored once to the wall clock, so that a step of the wall clock moves no deadline."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        """Return the time, Unix nanoseconds."""
        return time.monotonic_ns() + self._offset

    def not_before(self, moment: int) -> None:
        """Go on from `moment` (Unix nanoseconds) if that is later: a predecessor has told it already."""
        self._offset = max(self._offset, moment - time.monotonic_ns())
