"""A lock around cache and queue: one scheduling cycle holds it, changes of the cluster wait and follow in their order.

A cycle that waits for a plugin must find the cluster as it was when it began. What the watch shows, and what becomes of
Pods that are being bound, is worked in when it is over: at once if there is none.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from podtrail_scheduler.framework.aside import IN_PLACE, Aside
from podtrail_scheduler.framework.clock import SchedulerClock, Signal

Answer = TypeVar("Answer")


class Turns:
    """A lock that each scheduling cycle holds, and the changes that wait for it."""

    def __init__(self, clock: SchedulerClock, aside: Aside = IN_PLACE) -> None:
        """Changes that ask plugins of others (PreEnqueue, QueueSort, hints) are made through `aside`."""
        self._clock = clock
        self._aside = aside
        self._taken = False
        self._free: Signal | None = None
        self._changes: deque[Callable[[], object]] = deque()

    def use(self, aside: Aside) -> None:
        """Makes changes through `aside` from now on; to be called as one."""
        self._aside = aside

    def soon(self, change: Callable[..., object], *args: Any) -> None:
        """Makes a change of cache or queue, now or when the cycle under way is over."""
        if self._taken:
            self._changes.append(partial(change, *args))
        elif self._aside is IN_PLACE:
            change(*args)
        else:
            self._taken = True
            self._changes.append(partial(change, *args))
            self._clock.spawn(self._catch_up())

    def do(self, function: Callable[..., Answer], *args: Any) -> Awaitable[Answer]:
        """What `function` returns, which touches the queue, in a cycle's own turn."""
        return self._aside.work("", function, *args)

    async def __aenter__(self) -> None:
        while self._taken:
            self._free = self._clock.signal()
            await self._free.wait()
        self._taken = True

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self._catch_up()

    async def _catch_up(self) -> None:
        try:
            while self._changes:
                await self._aside.work("", self._changes.popleft())
        finally:  # a change that fails is told by whoever runs this, and takes nobody's turn
            self._taken = False
            if self._free is not None:
                self._free.set()
                self._free = None
