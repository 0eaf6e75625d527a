"""One life of podtrail: from its start until it is killed, loses its power or has stopped."""

from collections.abc import Callable

from tests.reliability.simulation.virtual_loop import VirtualLoop


class Life:
    """What outlives the process asks it whether it is still there."""

    def __init__(self, number: int, loop: VirtualLoop, tell: Callable[[float, str], None]) -> None:
        self.number = number
        self.loop = loop
        self.over = False
        self._tell = tell

    def now(self) -> float:
        """Return the virtual time, seconds."""
        return self.loop.time()

    def tell(self, line: str) -> None:
        """Add a line to the story."""
        self._tell(self.now(), line)

    def end(self) -> None:
        """Nothing that this life does has any effect from here on, and it does nothing after the present callback."""
        self.over = True
        self.loop.stop()
