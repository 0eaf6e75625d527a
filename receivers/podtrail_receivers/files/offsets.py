"""How far files were handed over, kept across restarts as the Collector's file receivers keep their offsets.

A file is known again by its first bytes and those in front of where reading ended, so also when it was renamed or
copied meanwhile; one that was cut short, or written anew, is not. What is noted last about a file counts. Now and then
all is written anew, and what was written before is forgotten.
"""

import json
import os
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final, Self

from podtrail.recording import RecordingProgress
from podtrail.storage import Entry, Journal, StorageError
from podtrail_receivers.files.tail import MARK, FileIdentity, Tail

_NOTED: Final = 1
"""Kind of an entry: how far a file was handed over."""
_FORGOTTEN: Final = 2
"""Kind of an entry: a file that is read to its end and gone."""
_COMPACT_AT: Final = 1 << 20
"""Bytes of notes after which all is written anew."""
_MOST_FILES: Final = 10_000
"""Files that are remembered; of more, those that were noted last."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file, and how far it was handed over."""

    path: str
    identity: FileIdentity
    end: int
    """Bytes of the file in front of the place; of a compressed one all."""
    mark: str
    """Tells the first bytes and those in front of `end` from others."""
    progress: RecordingProgress
    items: int
    """Of a compressed one, which is read from its beginning: requests and damages that were handed over."""

    @classmethod
    def of(cls, tail: Tail, end: int, progress: RecordingProgress, items: int) -> Self:
        """Note how far a file was handed over."""
        return cls(str(tail.path), tail.identity, end, _mark(tail, end), progress, items)

    def is_in(self, tail: Tail) -> bool:
        """Say whether a file is this one, up to the place."""
        return os.fstat(tail.file.fileno()).st_size >= self.end and _mark(tail, self.end) == self.mark

    def written(self) -> bytes:
        """Return it as JSON."""
        return json.dumps([self.path, self.identity, self.end, self.mark, self.progress, self.items]).encode()

    @classmethod
    def read(cls, raw: bytes) -> Self:
        """Return what was written.

        Raises:
            ValueError: it is something else.
        """
        try:
            path, identity, end, mark, progress, items = json.loads(raw)
            return cls(str(path), FileIdentity(*identity), int(end), mark, RecordingProgress(*progress), int(items))
        except (TypeError, RecursionError) as error:
            raise ValueError(f"not how far a file was read: {error}") from error


def _mark(tail: Tail, end: int) -> str:
    handle, length = tail.file.fileno(), min(end, MARK)
    read = os.pread(handle, length, 0) + os.pread(handle, length, end - length)
    return blake2b(read, digest_size=16).hexdigest()


class ReadOffsets:
    """What is known of files, in memory and in a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[FileIdentity, ReadFile] = {}
        self._unwritten: dict[FileIdentity, None] = {}

    def load(self) -> int:
        """Read the journal; return how many of its notes can't be used. Blocks."""
        unread, first = 0, 0
        for segment, state in self._journal.saved():
            first = segment
            unread += sum(not self._learned(_NOTED, line) for line in state.splitlines())
            break
        for position, entry in self._journal.entries():
            if position.segment >= first and entry.kind:
                unread += not self._learned(entry.kind, entry.note)
        return unread

    def _learned(self, kind: int, note: bytes) -> bool:
        try:
            file = ReadFile.read(note)
        except ValueError:
            return False
        self._known.pop(file.identity, None)
        if kind == _NOTED:
            self._known[file.identity] = file
        return True

    @property
    def empty(self) -> bool:
        """Whether nothing is known."""
        return not self._known

    def find(self, tail: Tail) -> ReadFile | None:
        """Return what is known of a file; it may have been renamed or copied."""
        same = self._known.get(tail.identity)
        others = (file for file in reversed(self._known.values()) if file is not same and file.end >= MARK)
        return next((file for file in (same, *others) if file is not None and file.is_in(tail)), None)

    def elsewhere(self, following: set[FileIdentity]) -> list[tuple[ReadFile, Path | None]]:
        """Return files that nobody follows and that are not where they were, and where in their folders they are."""
        away = [file for file in self._known.values() if file.identity not in following and not _is_there(file)]
        return [(file, _found_again(file)) for file in away]

    async def note(self, file: ReadFile) -> None:
        """Keep how far a file was handed over. While the disk takes nothing it is kept in memory."""
        self._known.pop(file.identity, None)
        self._known[file.identity] = file
        self._unwritten[file.identity] = None
        while len(self._known) > _MOST_FILES:
            self._known.pop(next(iter(self._known)))
        await self._write([self._known[identity] for identity in self._unwritten if identity in self._known], _NOTED)

    async def forget(self, identity: FileIdentity) -> None:
        """Forget a file that is read to its end and gone."""
        if file := self._known.pop(identity, None):
            await self._write([file], _FORGOTTEN)

    async def _write(self, files: list[ReadFile], kind: int) -> None:
        try:
            await self._journal.commit([Entry(kind=kind, note=file.written()) for file in files])
            if kind == _NOTED:
                self._unwritten.clear()
            if self._journal.since_cut >= _COMPACT_AT:
                segment = self._journal.cut()
                lines = b"\n".join(file.written() for file in self._known.values())
                await self._journal.save(segment, [lines])
                self._journal.forget(segment)
        except StorageError:
            return  # the journal has said and counted it; the next note has this one in it

    async def close(self) -> None:
        """Close the journal."""
        await self._journal.close()


def _is_there(file: ReadFile) -> bool:
    try:
        return FileIdentity.of(Path(file.path)) == file.identity
    except OSError:
        return False


def _found_again(file: ReadFile) -> Path | None:
    """Return where in its folder a file is that was renamed."""
    try:
        with os.scandir(Path(file.path).parent) as entries:
            names = [Path(entry.path) for entry in entries if entry.inode() == file.identity.inode]
    except OSError:
        return None
    return next((path for path in names if path.is_file() and FileIdentity.of(path) == file.identity), None)
