"""How messages stand in a file: framing, compression, and where the last whole one ends."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

import zstandard

_CHUNK = 1 << 17
_LONGEST = 1 << 30
"""Bytes that a length-prefixed message may claim before it is taken for something else."""
_GZIP = 16 + zlib.MAX_WBITS
_FAST = 1
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_FIRST_TAG = b"\x0a"
"""What a serialized request begins with: the tag of its resource spans."""


class Foreign(ValueError):
    """The file holds something else."""


class Damaged(ValueError):
    """The file holds what it should up to some byte, then something that can't be read."""


def may_be_ours(start: bytes) -> bool:
    """Say whether a file that begins so may have been written by this exporter, in whatever form."""
    if not start or start.startswith((b"{", _GZIP_MAGIC, _ZSTD_MAGIC)):
        return True
    return len(start) > 4 and int.from_bytes(start[:4], "big") <= _LONGEST and start[4:5] == _FIRST_TAG


@dataclass(frozen=True, slots=True)
class Form:
    """A file's form: what is written, and how its end is found again."""

    format: Literal["json", "proto"]
    compression: Literal["none", "gzip", "zstd", ""] = "none"

    def write(self, message: bytes) -> bytes:
        """Return the bytes to append for a message."""
        framed = message + b"\n" if self.format == "json" else len(message).to_bytes(4, "big") + message
        match self.compression:
            case "gzip":
                return gzip.compress(framed, _FAST, mtime=0)
            case "zstd":
                return zstandard.ZstdCompressor().compress(framed)
            case _:
                return framed

    def end(self, file: BinaryIO) -> tuple[int, bytes]:
        """Return where the last whole message of a file ends, and what must be put there before the next.

        Raises:
            Foreign: this is no such file.
            Damaged: a compressed file can't be read from some point on, and not because it ends there.
        """
        match self.compression:
            case "gzip":
                return _end_of_frames(file, _GZIP_MAGIC, lambda: zlib.decompressobj(_GZIP)), b""
            case "zstd":
                decompressor = zstandard.ZstdDecompressor()
                return _end_of_frames(file, _ZSTD_MAGIC, decompressor.decompressobj), b""
        return _end_of_lines(file) if self.format == "json" else (_end_of_messages(file), b"")


def _end_of_lines(file: BinaryIO) -> tuple[int, bytes]:
    size = at = file.seek(0, 2)
    tail = b""
    while at and b"\n" not in tail:
        start = max(0, at - _CHUNK)
        file.seek(start)
        tail = file.read(at - start) + tail
        at = start
    whole = at + tail.rfind(b"\n") + 1
    unfinished = tail[whole - at :]
    if unfinished and _is_json(unfinished):
        return size, b"\n"
    return whole, b""


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


def _end_of_messages(file: BinaryIO) -> int:
    size = file.seek(0, 2)
    at = 0
    while at + 4 <= size:
        file.seek(at)
        length = int.from_bytes(file.read(4), "big")
        if length > _LONGEST:
            raise Foreign("it holds no length-prefixed protobuf")
        if at + 4 + length > size:
            break
        at += 4 + length
    return at


def _end_of_frames(file: BinaryIO, magic: bytes, new: Callable[[], Any]) -> int:
    file.seek(0)
    start = file.read(len(magic))
    if not magic.startswith(start):
        raise Foreign("it is not compressed that way")
    whole = at = 0
    frame = new()
    for chunk in _chunks(file):
        rest = chunk
        while rest:
            try:
                frame.decompress(rest)
            except (zlib.error, zstandard.ZstdError) as error:
                raise Damaged(f"it can't be decompressed from byte {whole} on: {error}") from error
            at += len(rest) - len(frame.unused_data)
            rest = frame.unused_data
            if frame.eof:
                whole, frame = at, new()
    return whole


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(_CHUNK):
        yield chunk
