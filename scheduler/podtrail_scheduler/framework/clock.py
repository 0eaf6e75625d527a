"""The scheduler's time, which a simulation may let run faster than the wall's."""

from typing import Protocol


class Clock(Protocol):
    """Where the scheduler is in time."""

    def now(self) -> int:
        """Unix nanoseconds."""
        ...

    def sleep(self, duration: int) -> None:
        """Lets `duration` nanoseconds pass, for a plugin that waits for something outside."""
        ...

    def charge(self, plugin: str, point: str, calls: int) -> None:
        """Told after each run of a plugin; a simulated clock moves on by what that costs, a real one has moved."""
        ...
