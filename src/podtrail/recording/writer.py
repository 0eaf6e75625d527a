"""Writing recordings: `.jsonl` or `.otlp`, either with `.gz` or `.zst`."""

import gzip
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

import zstandard

from podtrail.otlp import Group
from podtrail.recording.form import RecordingForm

_BLOCK = 1 << 18
"""Uncompressed bytes that become one gzip member or zstd frame: what damage costs at most."""


class RecordingWriter:
    """Writes requests with their arrivals to a new file. A crash leaves whole requests and at most one half."""

    def __init__(self, path: str | PathLike[str]) -> None:
        """Take format and compression from the name.

        Raises:
            ValueError: it ends in none of them.
        """
        self.path = Path(path)
        self._form = RecordingForm.of(path)
        self._block: list[bytes] = []
        self._size = 0

    def __enter__(self) -> Self:
        """Open the file anew. OSError when that is not possible."""
        self._file = self.path.open("wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            self.flush()

    def write(self, groups: Iterable[Group], arrival: int) -> None:
        """Write one request that arrived at `arrival`, Unix nanoseconds."""
        record = self._form.framed(self._form.message(groups, arrival))
        self._block.append(record)
        self._size += len(record)
        if self._size >= _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Hand everything to the system; what is compressed ends a member or frame here."""
        if not self._block:
            return
        block = b"".join(self._block)
        self._block, self._size = [], 0
        match self._form.compression:
            case "gzip":
                block = gzip.compress(block, mtime=0)
            case "zstd":
                block = zstandard.ZstdCompressor(write_checksum=True).compress(block)
        self._file.write(block)
        self._file.flush()
