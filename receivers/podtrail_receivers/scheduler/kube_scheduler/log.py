"""The log of kube-scheduler, followed through rotation, truncation and restarts of its container."""

import asyncio
import logging
import os
import re
import stat
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from podtrail.component import Context, StartError
from podtrail.config.types import SECOND
from podtrail.reconstruction import ClockReading
from podtrail_receivers.files.tail import Following, Tail
from podtrail_receivers.scheduler.kube_scheduler.config import STDIN, LogConfig

_PIECE = 1 << 16
_ROTATED = re.compile(r"(.+?\.log)[.-].*")
"""The name of a rotated log, and of the log it was."""


class LogPiece(NamedTuple):
    """Some bytes of a log, cut anywhere; None: its file was rotated, cut short or closed."""

    source: str
    bytes: bytes | None
    clock: ClockReading | None = None
    """The end of the file and when it was written."""


class _LogTail:
    """One file of a log."""

    def __init__(self, tail: Tail, log: logging.LoggerAdapter[logging.Logger]) -> None:
        self.tail = tail
        self._log = log
        rotated = _ROTATED.fullmatch(tail.path.name)
        self._source = str(tail.path.with_name(rotated[1]) if rotated else tail.path)
        self._clock: ClockReading | None = self._end()

    def _end(self) -> ClockReading:
        """Return the end of the file, and when it was written."""
        handle = self.tail.file.fileno()
        status = os.fstat(handle)
        return ClockReading(os.pread(handle, _PIECE, max(0, status.st_size - _PIECE)), status.st_mtime_ns, live=False)

    def read(self, *, live: bool) -> list[LogPiece]:
        """Return what is new; nothing when nothing is. It is `live` if it was written just now."""
        again = []
        if self.tail.begins_again():
            self._log.info("%s was truncated or rewritten; reading it from its beginning", self.tail.path)
            again.append(LogPiece(self._source, None))
        piece = self.tail.read()
        if not piece:
            return again
        clock, self._clock = self._clock, None
        if clock is None and live:
            clock = ClockReading(piece, time.time_ns(), live=True)
        return [*again, LogPiece(self._source, piece, clock)]

    def close(self) -> list[LogPiece]:
        """Return the rest of the file, and let go of it."""
        rest = [LogPiece(self._source, piece) for piece in iter(self.tail.read, b"")]
        self.tail.close()
        return [*rest, LogPiece(self._source, None)]


class LogSource:
    """Reads the files of one log, the oldest first."""

    def __init__(self, config: LogConfig, context: Context) -> None:
        self.caught_up = asyncio.Event()
        """Set when everything that was written at the start has been read."""
        self.behind = True
        """Whether the last look found more to read."""
        self.read_until: int | None = None
        """When the last look began that found all of it read, Unix nanoseconds: what was written since is not known.

        None: nobody can say, of standard input.
        """
        self._config = config
        self._log = context.log
        # kubelet compresses what it rotated long ago.
        self._following: Following[_LogTail] = Following(
            config.include, (*config.exclude, "*.gz"), partial(_LogTail, log=context.log), self._unreadable
        )

    async def open(self) -> None:
        """Look for the files.

        Raises:
            StartError: none is there and none is waited for.
        """
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

    async def pieces(self) -> AsyncIterator[LogPiece]:
        """Yield what is written; end when it is read and not followed."""
        if STDIN in self._config.include:
            self.behind = False
            self.caught_up.set()
            async for read in _standard_input():
                yield LogPiece("stdin", read)
            return
        self.read_until = 0
        while True:
            found, live, began = False, not self.behind, time.time_ns()
            for tail in [*self._following.readers.values()]:
                while pieces := await asyncio.to_thread(tail.read, live=live):
                    found = self.behind = True
                    for piece in pieces:
                        yield piece
            self.behind = found
            if not found:
                self.read_until = began
                self.caught_up.set()
                if not self._config.follow:
                    return
                await asyncio.sleep(self._config.poll_interval / SECOND)
            for gone in await asyncio.to_thread(self._following.look, at_end=False):
                for piece in await asyncio.to_thread(gone.close):
                    yield piece

    def _unreadable(self, path: Path, error: OSError) -> None:
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
