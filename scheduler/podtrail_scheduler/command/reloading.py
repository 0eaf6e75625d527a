"""Reads the configuration again: at SIGHUP and, if asked to, when the file has another content.

The file is compared, not its time: a ConfigMap's volume is swapped as a whole. A content counts once it was the same at
two looks, for an editor may be half through with writing it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from podtrail_scheduler.cluster.kubernetes.reconfiguration import Offered
from podtrail_scheduler.configuration.errors import ConfigurationError
from podtrail_scheduler.objects.durations import SECOND

_LARGEST = 4 << 20
"""Bytes that are compared, as many as are read."""


class ConfigurationFile:
    """A file with a configuration, and those that follow in it."""

    def __init__(self, path: Path, prepare: Callable[[], Offered], period: int) -> None:
        """`prepare` reads it, in a thread; `period` is nanoseconds between two looks, 0 for none."""
        self._path = path
        self._prepare = prepare
        self._period = period / SECOND
        self._asked = asyncio.Event()
        self._seen = self._taken = self._content()

    def ask(self) -> None:
        """Has it read again now, whatever is in it."""
        self._asked.set()

    async def offered(self) -> AsyncIterator[Offered]:
        """What is read, one after the other, for as long as somebody asks."""
        while True:
            if await self._wait():
                yield await asyncio.to_thread(self._read)

    async def _wait(self) -> bool:
        """Returns when it is time to look; whether there is something to read."""
        try:
            async with asyncio.timeout(self._period or None):
                await self._asked.wait()
        except TimeoutError:
            content = await asyncio.to_thread(self._content)
            settled, self._seen = content == self._seen, content
            return settled and content != self._taken
        self._asked.clear()
        return True

    def _read(self) -> Offered:
        self._taken = self._content()
        try:
            return self._prepare()
        except ConfigurationError as refused:
            return refused

    def _content(self) -> bytes | None:
        try:
            with self._path.open("rb") as file:
                return file.read(_LARGEST + 1)
        except OSError:  # is told by who reads the configuration
            return None
