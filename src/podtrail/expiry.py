"""Memories outside of pipelines end with their time though nothing comes: by a timer of the event loop."""

import asyncio
from collections.abc import Callable


class ExpiryTimer:
    """Has a memory forget at the right time. Nothing is scheduled while it is empty."""

    def __init__(self, forget: Callable[[], float | None]) -> None:
        """Make it without a timer.

        Args:
            forget: forgets what is too old, and returns in how many seconds something will be; None: it is empty.
        """
        self._forget = forget
        self._timer: asyncio.TimerHandle | None = None

    def arm(self) -> None:
        """Take note that the memory may have learnt something; to be called in the event loop."""
        if self._timer is None:
            self._look()

    def cancel(self) -> None:
        """Look no more until it is armed again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        seconds = self._forget()
        if seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(max(seconds, 0.001), self._look)
