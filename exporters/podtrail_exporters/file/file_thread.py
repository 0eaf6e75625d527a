"""The thread in which files are opened, written, forced onto the disk and closed.

A slow disk stops no event loop, and one that hangs does not keep the process from ending.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from podtrail.component import StartError
from podtrail.config.types import SECOND
from podtrail_exporters.file.log_file import LogFile

T = TypeVar("T")

_LONGEST_CLOSING = 3.0
"""Seconds that a disk gets at the end."""


class FileThread:
    """Does the work on some files, one thing after the other."""

    def __init__(
        self, name: str, files: Sequence[LogFile], flush_interval: int, log: logging.LoggerAdapter[logging.Logger]
    ) -> None:
        """Make it; `flush_interval` in nanoseconds, 0: the system decides when what is written reaches the disk."""
        self._files = files
        self._flush_interval = flush_interval / SECOND
        self._log = log
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        # A daemon, since a thread that writes to what hangs can't be ended: that of an executor would be waited for.
        self._thread = Thread(target=self._do_all, name=name, daemon=True)
        self._syncing: asyncio.Task[None] | None = None

    async def open(self, *, append: bool, create_directory: bool) -> None:
        """Open all files.

        Raises:
            StartError: one can't be opened.
        """

        def work() -> None:
            for file in self._files:
                file.open(append=append, create_directory=create_directory)

        self._thread.start()
        try:
            await self.do(work)
        except StartError:
            await self._end()
            raise
        if self._flush_interval:
            self._syncing = asyncio.create_task(self._sync_for_ever())

    async def do(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, done in the thread."""
        done: Future[T] = Future()
        self._work.put((done, work))
        return await asyncio.wrap_future(done)

    async def close(self) -> None:
        """Force everything onto the disk and close the files."""
        if self._syncing is not None:
            self._syncing.cancel()
            await asyncio.wait({self._syncing})
        await self._end()

    async def _end(self) -> None:
        try:
            async with asyncio.timeout(_LONGEST_CLOSING):
                await self.do(self._close)
        except TimeoutError:
            self._log.error("%s hangs, and is left as it is", ", ".join(str(file.path) for file in self._files))
        self._work.put(None)

    def _do_all(self) -> None:
        while (next_ := self._work.get()) is not None:
            done, work = next_
            if done.set_running_or_notify_cancel():
                try:
                    done.set_result(work())
                except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                    done.set_exception(error)

    def _close(self) -> None:
        for file in self._files:
            try:
                file.close()
            except OSError as error:
                self._log.error("can't force %s onto the disk: %s", file.path, error.strerror)

    async def _sync_for_ever(self) -> None:
        failing: set[Path] = set()
        while True:
            await asyncio.sleep(self._flush_interval)
            for file in self._files:
                try:
                    await self.do(file.sync)
                    failing.discard(file.path)
                except OSError as error:
                    if file.path not in failing:
                        self._log.error("can't force %s onto the disk: %s", file.path, error.strerror)
                    failing.add(file.path)
