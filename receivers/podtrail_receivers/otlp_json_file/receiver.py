"""The receiver: reads in threads, waits while the pipelines refuse, so that nothing read is lost."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from heapq import merge
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Self

from podtrail.component import Context, StartError
from podtrail.component.contracts import Consumer
from podtrail.config.types import SECOND
from podtrail.otlp import Batch
from podtrail.recording import (
    Damage,
    OtherSignal,
    Record,
    RecordingPosition,
    read_recording,
)
from podtrail.storage import StorageError, StorageProvider
from podtrail_receivers.files.matching import matching
from podtrail_receivers.files.offsets import ReadOffsets
from podtrail_receivers.files.tail import Following, Tail
from podtrail_receivers.handing_over import HandingOver
from podtrail_receivers.intake_counters import IntakeCounters
from podtrail_receivers.otlp_json_file.config import Config
from podtrail_receivers.otlp_json_file.recording_tail import RecordingTail

_AHEAD = 4_096
"""Spans that are read ahead of the pipelines, give or take a request."""
_REPORTED = 20
"""Damages that are logged one by one; the rest is only counted."""
_TRANSPORT = "file"


class FileReceiver:
    """Feeds the pipelines from files; a request keeps its recorded arrival.

    What is read once comes in the order of arrival across all files, what is followed as it is found.
    """

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self.finite = not config.follow
        self._log = context.log
        self._files: list[Path] = []
        self._name = f"receiver_{context.id}"
        self._storage: StorageProvider | None = None
        self._offsets: ReadOffsets | None = None
        self._following = Following(config.include, config.exclude, self._opened, self._unreadable)
        self._damages = 0
        self._others: Counter[str] = Counter()
        self._hand_over = HandingOver(context, _TRANSPORT)
        self._counters = IntakeCounters(context)

    def keep_in(self, storage: StorageProvider) -> None:
        """Keep how far files were handed over."""
        self._storage = storage

    async def __aenter__(self) -> Self:
        """Find the files. StartError when one can't be read, or a pattern finds none and none is waited for."""
        self._files = await asyncio.to_thread(self._found)
        if self._config.follow:
            at_end = self._config.start_at == "end"
            if self._storage is not None:
                self._offsets = await self._open_offsets(self._storage)
                at_end = at_end and self._offsets.empty  # what appeared meanwhile is read whole, as in the Collector
            await asyncio.to_thread(self._following.look, at_end=at_end)
        return self

    async def _open_offsets(self, storage: StorageProvider) -> ReadOffsets:
        try:
            offsets = ReadOffsets(await storage.open(self._name))
        except StorageError as error:
            raise StartError(f"storage: {error.reason}") from error
        if unread := await asyncio.to_thread(offsets.load):
            self._log.warning("%d notes on how far files were read can't be used: those may be read again", unread)
        return offsets

    def _opened(self, tail: Tail) -> RecordingTail:
        known = self._offsets.find(tail) if self._offsets is not None else None
        originals = [reader.original for reader in self._following.readers.values()]
        return RecordingTail(tail, self._log, known, [original for original in originals if original is not None])

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._offsets is not None:
            await self._note()
            await self._offsets.close()
        self._following.abandon()

    async def run(self, consume: Consumer) -> None:
        """Read all files and end, or follow them until cancelled."""
        if self._config.follow:
            await self._follow(consume)
            return
        async for item in _ahead(_merged(self._files)):
            await self._take(item, consume)
        self._log.info("read %s", ", ".join(map(str, self._files)))
        if self._damages > _REPORTED:
            self._log.warning("damaged in %d more places", self._damages - _REPORTED)
        for signal, requests in self._others.items():
            self._log.info("skipped %d requests of %s", requests, signal)

    def _found(self) -> list[Path]:
        files = matching(self._config.include, self._config.exclude)
        if not self._config.follow:
            for pattern in self._config.include:
                if not matching([pattern], ()):
                    raise StartError(f"include: {_what_is(pattern)}")
        for path in files:
            try:
                path.open("rb").close()
            except OSError as error:
                raise StartError(f"include: can't read {path}: {error.strerror}") from error
        return files

    async def _take(self, item: Record | Damage, consume: Consumer) -> None:
        if isinstance(item, OtherSignal):
            self._others[item.signal] += 1
            self._counters.other_signal(_TRANSPORT, item.signal, str(item.position))
            return
        if isinstance(item, Damage):
            self._damages += 1
            if self._damages <= _REPORTED:
                self._log.warning("damaged, read on behind it: %s", item)
            self._counters.failed(_TRANSPORT, "malformed")
            return
        self._counters.read(_TRANSPORT, item.intake)
        if item.intake.rejected:
            self._log.warning("%s: rejected %s", item.position, item.intake.reason)
        batch = Batch(item.intake.groups, arrived=item.arrival)
        if batch.groups:
            await self._hand_over(batch, consume)

    async def _follow(self, consume: Consumer) -> None:
        await self._finish_renamed(consume)
        while True:
            busy = False
            for recording in self._following.readers.values():
                async for item in _ahead(recording.read()):
                    busy = True
                    await self._take(item, consume)
                    recording.handed_over(item)
                await self._note(recording)
            if not busy:
                await asyncio.sleep(self._config.poll_interval / SECOND)
            for gone in await asyncio.to_thread(self._following.look, at_end=False):
                await self._finish(gone, consume)

    async def _finish(self, gone: RecordingTail, consume: Consumer) -> None:
        async for item in _ahead(gone.close()):
            await self._take(item, consume)
        if self._offsets is not None:
            await self._offsets.forget(gone.tail.identity)

    async def _finish_renamed(self, consume: Consumer) -> None:
        """Read on to the end of files that were renamed while nobody followed them, and are no longer meant."""
        if self._offsets is None:
            return
        for file, path in await asyncio.to_thread(self._offsets.elsewhere, {*self._following.readers}):
            try:
                tail = Tail(path, at_end=False) if path is not None else None
            except OSError as error:
                self._unreadable(path or Path(file.path), error)
                continue
            if tail is not None and file.is_in(tail):
                await self._finish(RecordingTail(tail, self._log, file), consume)
                continue
            if tail is not None:
                tail.close()
            self._log.warning("%s is gone: what was written behind byte %d of it is lost, if any", file.path, file.end)
            await self._offsets.forget(file.identity)

    async def _note(self, only: RecordingTail | None = None) -> None:
        """Keep how far files were handed over."""
        if self._offsets is None:
            return
        for recording in [only] if only is not None else [*self._following.readers.values()]:
            if (place := recording.place()) is not None:
                await self._offsets.note(place)

    def _unreadable(self, path: Path, error: OSError) -> None:
        self._log.warning("can't read %s: %s", path, error.strerror)


def _what_is(pattern: str) -> str:
    path = Path(pattern)
    if not pattern:
        return "an empty path names no file"
    if path.is_dir():
        return f"{pattern} is a directory; write {pattern.rstrip('/')}/* for the files in it"
    if path.exists():
        return f"{pattern} is a device or pipe, not a file"
    return f"no file matches {pattern}" if any(sign in pattern for sign in "*?[{") else f"there is no file {pattern}"


def _merged(paths: Iterable[Path]) -> Iterator[Record | Damage]:
    """Yield what the files hold in order of arrival, of their names where that is equal."""

    def with_arrivals(path: Path) -> Iterator[tuple[int, Record | Damage]]:
        arrival, number, unit = 0, 0, "byte"
        try:
            for item in read_recording(path):
                number, unit = item.position.number, item.position.unit
                if isinstance(item, Record):
                    arrival = item.arrival
                yield arrival, item
        except OSError as error:
            position = RecordingPosition(str(path), number, unit)
            yield arrival, Damage(position, f"can't be read on from here: {error.strerror}")

    return map(itemgetter(1), merge(*map(with_arrivals, paths), key=itemgetter(0)))


async def _ahead(items: Iterator[Record | Damage]) -> AsyncIterator[Record | Damage]:
    """Yield items that are read and decoded in a thread, some at a time, so that the event loop is never held up."""
    while some := await asyncio.to_thread(_some, items):
        for item in some:
            yield item


def _some(items: Iterator[Record | Damage]) -> list[Record | Damage]:
    taken: list[Record | Damage] = []
    spans = 0
    for item in items:
        taken.append(item)
        spans += 1 if isinstance(item, Damage) else 1 + sum([group.span_count for group in item.intake.groups])
        if spans >= _AHEAD:
            break
    return taken
