"""An event loop in virtual time: when nothing is left to do it jumps to the next timer. No clock, no socket.

The same calls give the same order of events, in every process: tasks hash by their number, not by their address.
"""

import asyncio
import contextvars
import itertools
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

_MOST_ROUNDS = 200_000


class NothingLeft(Exception):
    """Nobody will ever do anything again: everything waits, and no timer is armed."""


class NeverQuiet(Exception):
    """Something goes round in circles, in a story of some hundred events."""


class NumberedTask(asyncio.Task[Any]):
    """A task whose hash, and so its place in a set, is the same in every run."""

    def __init__(self, number: int, *args: Any, **kwargs: Any) -> None:
        self._number = number
        super().__init__(*args, **kwargs)

    def __hash__(self) -> int:
        return self._number


class _Timers:
    """What the loop takes for its selector: waiting is jumping."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop

    def select(self, seconds: float | None) -> Iterable[Any]:
        if seconds is None:
            raise NothingLeft
        if seconds > 0:
            self._loop.jump(seconds)
        return ()


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs until it is stopped; work that others give to threads is done at once."""

    def __init__(self, now: float, before_jump: Callable[[], None], most_rounds: int = _MOST_ROUNDS) -> None:
        """Begin at `now` seconds; `before_jump` is called whenever all that was to be done at one time is done."""
        super().__init__()
        self._now = now
        self._before_jump = before_jump
        self._selector = _Timers(self)
        self._rounds = 0
        self._most_rounds = most_rounds
        numbers = itertools.count()

        def numbered(
            loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T], **more: Any
        ) -> asyncio.Task[T]:
            return NumberedTask(next(numbers), coroutine, loop=loop, **more)

        self.set_task_factory(numbered)  # type: ignore[arg-type]  # typeshed has it stricter

    def _run_once(self) -> None:
        self._rounds += 1
        if self._rounds > self._most_rounds:
            raise NeverQuiet(f"still busy after {self._most_rounds} rounds of the event loop, {self._now:.3f} s")
        super()._run_once()  # type: ignore[misc]

    def time(self) -> float:
        """Return the virtual time, seconds."""
        return self._now

    def jump(self, seconds: float) -> None:
        """Let time pass."""
        self._before_jump()
        self._now += seconds

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":  # type: ignore[override]
        """Do it at once, in virtual time it takes none."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(contextvars.copy_context().run(func, *args))
        except Exception as error:  # noqa: BLE001 - whatever it is, who waits for the result gets it
            done.set_exception(error)
        return done

    def _process_events(self, event_list: Iterable[Any]) -> None:
        """Nothing: there are no sockets."""

    def _write_to_self(self) -> None:
        """Nothing: there are no threads that would wake it."""
