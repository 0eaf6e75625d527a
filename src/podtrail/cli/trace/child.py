"""The traced command as a process: it has this one's terminal and streams, and gets its signals."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_OF_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
"""A terminal sends them to the whole foreground group: who is in it has them already."""
_BY_SIGNAL = 128
_FIRST = asyncio.FIRST_COMPLETED


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Cancel the current task at a signal to end, as long as no command runs that gets it: what was made is removed."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in _ENDING:
        loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        for number in _ENDING:
            loop.remove_signal_handler(number)


class NotRun(Exception):
    """The command can't be run; the text says why."""


class Child:
    """One process. Signals to this process reach it as long as it runs; afterwards they end what is waited for."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Take a process that was started."""
        self._process = process
        self._interrupted = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def started(cls, command: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[Self]:
        """Start the command; what is still running at the end is ended.

        Raises:
            NotRun: It is no program, or too much was given to it.
        """
        loop = asyncio.get_running_loop()
        child: Self | None = None
        early: list[signal.Signals] = []

        def signalled(number: signal.Signals) -> None:
            if child is None:
                early.append(number)  # it may run already, and no one know of it yet
            else:
                child._signalled(number)

        for number in _PASSED_ON:
            loop.add_signal_handler(number, signalled, number)
        try:
            try:
                process = await asyncio.create_subprocess_exec(*command, env=environment)
            except OSError as error:
                raise NotRun(f"{command[0]}: can't be run: {error.strerror}") from error
            child = cls(process)
            for number in early:
                child._signalled(number)
            yield child
        finally:
            for number in _PASSED_ON:
                loop.remove_signal_handler(number)
            if child is not None and child._process.returncode is None:
                child._process.terminate()
            task = asyncio.current_task()
            assert task is not None
            for number in _ENDING:
                loop.add_signal_handler(number, task.cancel)

    @property
    def interrupted(self) -> bool:
        """Whether a signal came after its end."""
        return self._interrupted.is_set()

    async def ended(self) -> int:
        """Wait for its end; return the exit code as a shell has it: 128 and the signal's number for a signal."""
        code = await self._process.wait()
        return code if code >= 0 else _BY_SIGNAL - code

    async def unless_interrupted(self, *waiting: Coroutine[Any, Any, None]) -> None:
        """Wait for all of that, until a signal comes."""
        over = asyncio.create_task(self._interrupted.wait())
        tasks = [asyncio.create_task(each) for each in waiting]
        try:
            while not over.done() and not all(task.done() for task in tasks):
                await asyncio.wait([over, *(task for task in tasks if not task.done())], return_when=_FIRST)
        finally:
            for task in (over, *tasks):
                task.cancel()
            await asyncio.gather(over, *tasks, return_exceptions=True)
        for task in tasks:
            if not task.cancelled():
                task.result()

    def _signalled(self, number: signal.Signals) -> None:
        if self._process.returncode is not None:
            self._interrupted.set()
        elif number not in _OF_THE_TERMINAL or not _in_foreground():
            self._process.send_signal(number)


def _in_foreground() -> bool:
    """Whether a terminal's signals come to this process's group."""
    try:
        descriptor = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(descriptor)
