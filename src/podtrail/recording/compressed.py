"""Files to plain bytes, a piece at a time: plain, gzip with any number of members, zstd with any number of frames.

A damaged member or frame costs itself from the damage on: reading resumes where the next one begins.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import zstandard

GZIP_MAGIC = b"\x1f\x8b\x08"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

_PIECE = 1 << 18
_ZSTD_STEP = 512
"""Bytes that zstd takes in at a time: what comes out of so many is at most 16 MiB."""
_ZSTD_WINDOW = 1 << 27
_GZIP_RESERVED_FLAGS = 0xE0


class Seekable(Protocol):
    """A file, or what reads one."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        ...

    def seek(self, position: int, /) -> int:
        """Go to a position from the file's beginning."""
        ...


class Gap(NamedTuple):
    """Bytes are missing between the piece ahead and the one behind."""

    reason: str


def pieces(file: Seekable, name: str = "") -> Iterator[bytes | Gap]:
    """Yield the uncompressed content of a seekable file, from its first byte on.

    The first bytes say how it is compressed; `name` does when they are damaged.
    """
    coding = _coding(file, name)
    if coding is None:
        file.seek(0)
        while piece := file.read(_PIECE):
            yield piece
    else:
        yield from _members(file, coding)


def growing_pieces(file: Seekable, growing: Callable[[], bool], begin: int) -> Iterator[bytes | Gap]:
    """Yield the uncompressed content of a compressed file from a member on, and an empty piece where it ends by now.

    While it is `growing`, reading goes on behind that: with the rest of the member, or with the next one.
    """
    file.seek(0)
    if coding := _coding(file, ""):
        yield from _members(file, coding, growing, begin)


def is_compressed(file: Seekable) -> bool:
    """Say whether a file, read from its beginning, is compressed."""
    file.seek(0)
    return file.read(len(ZSTD_MAGIC)).startswith((GZIP_MAGIC, ZSTD_MAGIC))


def _coding(file: Seekable, name: str) -> "_Gzip | _Zstd | None":
    head = file.read(len(ZSTD_MAGIC))
    if head.startswith(GZIP_MAGIC):
        return _Gzip()
    if head.startswith(ZSTD_MAGIC):
        return _Zstd()
    for suffix, coding in ((".gz", _Gzip()), (".zst", _Zstd())):
        if name.endswith(suffix) and _find(file, coding, 0) >= 0:
            return coding
    return None


def _never() -> bool:
    return False


def _members(
    file: Seekable, coding: "_Gzip | _Zstd", growing: Callable[[], bool] = _never, begin: int = 0
) -> Iterator[bytes | Gap]:
    while True:
        while not _more(file, begin):
            if not growing():
                return
            yield b""
        file.seek(begin)
        end = begin
        try:
            for piece, consumed in coding.member(file, growing):
                end = begin + consumed
                if piece is not None:
                    yield piece
        except _Damaged as error:
            yield Gap(f"{error} (in the compressed file behind byte {end})")
            behind, begin = begin + 1, _find(file, coding, begin + 1)
            while begin < 0 and growing():
                yield b""
                begin = _find(file, coding, behind)
        else:
            begin = end
        if begin < 0:
            return


def _more(file: Seekable, at: int) -> bool:
    file.seek(at)
    return bool(file.read(1))


def _find(file: Seekable, coding: "_Gzip | _Zstd", at: int) -> int:
    """Return where the next member begins at or behind `at`, -1 when none does."""
    kept = b""
    file.seek(at)
    while piece := file.read(_PIECE):
        window = kept + piece
        start = at - len(kept)
        found = window.find(coding.magic)
        while found >= 0 and not coding.is_begin(window[found : found + 10]):
            found = window.find(coding.magic, found + 1)
        if found >= 0:
            return start + found
        at += len(piece)
        kept = window[-9:]
    return -1


class _Damaged(Exception):
    """A member can't be read on."""


class _Gzip:
    magic = GZIP_MAGIC

    def is_begin(self, head: bytes) -> bool:
        """Say whether this is the header of a member, and not the same bytes by chance."""
        return (
            len(head) == 10
            and not head[3] & _GZIP_RESERVED_FLAGS
            and head[8] in (0, 2, 4)
            and (head[9] in (*range(14), 255))
        )

    def member(self, file: Seekable, growing: Callable[[], bool]) -> Iterator[tuple[bytes | None, int]]:
        """Yield what a member holds, with the number of compressed bytes read so far; b"" where it grows."""
        member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        consumed = 0
        rest = b""
        try:
            while not member.eof:
                if not rest:
                    rest = file.read(_PIECE)
                    consumed += len(rest)
                piece = member.decompress(rest, _PIECE)
                at_end = not piece and not rest and not member.eof
                if at_end and not growing():
                    raise _Damaged("the gzip data is cut off")
                rest = b"" if member.eof else member.unconsumed_tail  # behind its end that is in unused_data as well
                yield piece if piece or at_end else None, consumed - len(rest) - len(member.unused_data)
        except zlib.error as error:
            raise _Damaged(f"the gzip data is damaged: {error}") from error


class _Zstd:
    magic = ZSTD_MAGIC

    def is_begin(self, head: bytes) -> bool:
        """Say whether a frame may begin so; a bit of its descriptor is reserved."""
        return len(head) > len(ZSTD_MAGIC) and not head[len(ZSTD_MAGIC)] & 0x08

    def member(self, file: Seekable, growing: Callable[[], bool]) -> Iterator[tuple[bytes | None, int]]:
        """Yield what a frame holds, with the number of compressed bytes read so far; b"" where it grows."""
        frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        consumed = 0
        try:
            while not frame.eof:
                step = file.read(_ZSTD_STEP)
                if not step and not growing():
                    raise _Damaged("the zstd data is cut off")
                if not step:
                    yield b"", consumed
                    continue
                piece = frame.decompress(step)
                consumed += len(step) - len(frame.unused_data)
                yield piece or None, consumed
        except zstandard.ZstdError as error:
            raise _Damaged(f"the zstd data is damaged: {error}") from error
