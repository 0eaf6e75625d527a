"""The log of kube-scheduler, followed through rotation, truncation and restarts of its container."""

import asyncio
import os
import re
import stat
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from podtrail.component import Context, StartError
from podtrail.config.types import SECOND
from podtrail.reconstruction import Census, Heard, SchedulerLog
from podtrail.reconstruction.lines import LineSplitter
from podtrail_receivers.files.tail import Following, Tail
from podtrail_receivers.scheduler.kube_scheduler.config import STDIN, LogConfig

_PIECE = 1 << 16
_ROTATED = re.compile(r"(.+?\.log)[.-].*")
"""The name of a rotated log, and of the log it was."""


class _LogTail:
    """One file of a log."""

    def __init__(self, tail: Tail, census: Census) -> None:
        self.tail = tail
        rotated = _ROTATED.fullmatch(tail.path.name)
        source = tail.path.with_name(rotated[1]) if rotated else tail.path
        self.reader = _Reader(str(source), census)

    def read(self) -> tuple[bool, list[Heard]]:
        """Return whether there was something new, and what it tells."""
        told: list[Heard] = []
        if self.tail.begins_again():
            told += self.reader.end()
        piece = self.tail.read()
        told += self.reader.take(piece) if piece else self.reader.pause()
        return bool(piece), told

    def close(self) -> list[Heard]:
        """Return what the rest of the file tells, and let go of it."""
        told = [heard for piece in iter(self.tail.read, b"") for heard in self.reader.take(piece)]
        self.tail.close()
        return told + self.reader.end()


class _Reader:
    """Pieces of a log to what they tell."""

    def __init__(self, source: str, census: Census) -> None:
        self._lines = LineSplitter()
        self._log = SchedulerLog(source, time.time_ns(), census)

    def take(self, piece: bytes) -> list[Heard]:
        return [*self._log.read(self._lines.take(piece))]

    def pause(self) -> list[Heard]:
        """Return what a line of several lines tells whose end shows only in that nothing follows."""
        return [*self._log.end()] if self._log.holds else []

    def end(self) -> list[Heard]:
        return [*self._log.read(self._lines.end()), *self._log.end()]


class LogSource:
    """Reads the files of one log, the oldest first."""

    def __init__(self, config: LogConfig, context: Context) -> None:
        self.census = Census()
        self.caught_up = False
        """Whether everything that is written has been read."""
        self._config = config
        self._log = context.log
        self._told_of: set[Path] = set()
        # kubelet compresses what it rotated long ago.
        self._following: Following[_LogTail] = Following(
            config.include, (*config.exclude, "*.gz"), lambda tail: _LogTail(tail, self.census), self._unreadable
        )

    async def open(self) -> None:
        """Look for the files. StartError when none is there and none is waited for."""
        if STDIN in self._config.include:
            return
        await asyncio.to_thread(self._following.look, at_end=self._config.follow and self._config.start_at == "end")
        if not self._following.readers:
            patterns = ", ".join(self._config.include)
            if not self._config.follow:
                raise StartError(f"kube_scheduler::log::include: no file matches {patterns}")
            self._log.warning("no log of kube-scheduler yet: no file matches %s", patterns)

    def close(self) -> None:
        """Let go of the files."""
        self._following.abandon()

    async def told(self) -> AsyncIterator[Sequence[Heard]]:
        """Yield what the log tells; end when it is read and not followed."""
        if STDIN in self._config.include:
            async for told in self._standard_input():
                yield told
            return
        while True:
            busy = False
            for tail in [*self._following.readers.values()]:
                while True:
                    more, told = await asyncio.to_thread(tail.read)
                    if told:
                        yield told
                    if not more:
                        break
                    busy = True
            self.caught_up = self.caught_up or not busy
            if not busy:
                if not self._config.follow:
                    break
                await asyncio.sleep(self._config.poll_interval / SECOND)
            for gone in await asyncio.to_thread(self._following.look, at_end=False):
                yield await asyncio.to_thread(gone.close)
        for tail in self._following.readers.values():
            yield tail.reader.end()

    async def _standard_input(self) -> AsyncIterator[Sequence[Heard]]:
        reader = _Reader("stdin", self.census)
        self.caught_up = True
        async for piece in _standard_input():
            yield reader.take(piece)
        yield reader.end()

    def _unreadable(self, path: Path, error: OSError) -> None:
        if path not in self._told_of:
            self._told_of.add(path)
            self._log.warning("can't read %s: %s", path, error.strerror)


async def _standard_input() -> AsyncIterator[bytes]:
    """Yield what comes; a thread that waits for it would keep the process from ending."""
    if stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
        while piece := await asyncio.to_thread(sys.stdin.buffer.read, _PIECE):
            yield piece
        return
    stream = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), sys.stdin)
    try:
        while piece := await stream.read(_PIECE):
            yield piece
    finally:
        transport.close()
