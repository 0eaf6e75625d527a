"""Decompression that stops as soon as too much comes out, so that a bomb costs no more than the limit."""

import zlib
from collections.abc import Callable, Iterator

import cramjam
import zstandard

_STEP = 1 << 18
"""Bytes that zlib puts out at a time."""
_TAKEN = 1 << 12
"""Bytes that zlib takes in at a time: what it leaves at the end of a member is copied."""
_MOST_MEMBERS = 10_000
"""gzip members or zstd frames in a row. An empty one takes few bytes and much time; real ones hold 64 KiB and more."""
_ZSTD_STEP = 256
"""Bytes that zstd takes in at a time. Each of its blocks (at least 4 bytes) yields up to 128 KiB: 8 MiB a step."""
_ZSTD_WINDOW = 1 << 23
"""What RFC 8878 asks every decoder to support; a larger window would be memory that a sender makes us take."""

_LARGEST_RATIO = 256
"""Bytes that a byte of lz4 or snappy can become."""

ENCODINGS = ("gzip", "deflate", "zstd", "snappy", "x-snappy-framed", "lz4")
_ZLIB_WRAPPER = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class TooLarge(Exception):
    """More than the limit comes out."""


class Undecodable(ValueError):
    """Not compressed as said, damaged, or cut off."""


def decompress(raw: bytes, encoding: str, limit: int) -> bytes:
    """Return what `raw` holds, at most `limit` bytes.

    Raises:
        TooLarge: more would come out.
        Undecodable: damaged, cut off, or not of this encoding (one of `ENCODINGS`).
    """
    return b"".join(decompressed(raw, encoding, limit))


def decompressed(raw: bytes, encoding: str, limit: int) -> Iterator[bytes]:
    """Yield what `raw` holds in pieces, `limit` bytes in all: all its gzip members, all its zstd or lz4 frames.

    Raises:
        TooLarge: more would come out; no more than `limit` and a few MiB were ever held.
        Undecodable: damaged, cut off, or not of this encoding (one of `ENCODINGS`).
    """
    total = 0
    for piece in _pieces(raw, encoding, limit):
        total += len(piece)
        if total > limit:
            raise TooLarge
        yield piece


def _pieces(raw: bytes, encoding: str, limit: int) -> Iterator[bytes]:
    match encoding:
        case "zstd":
            return _unzstd(raw)
        case "snappy":
            return _unsnappy(raw, limit)
        case "x-snappy-framed":
            return _whole(raw, "snappy", cramjam.snappy.decompress_into, limit)
        case "lz4":
            return _whole(raw, "lz4", cramjam.lz4.decompress_into, limit)
        case _:
            return _inflate(raw, encoding)


def _unsnappy(raw: bytes, limit: int) -> Iterator[bytes]:
    """Yield what one block holds. Its first bytes say how much that is."""
    try:
        if cramjam.snappy.decompress_raw_len(raw) > limit:
            raise TooLarge
        yield bytes(cramjam.snappy.decompress_raw(raw))
    except cramjam.DecompressionError as error:
        raise Undecodable(f"the snappy data is damaged: {error}") from error


def _whole(raw: bytes, name: str, into: Callable[[bytes, bytearray], int], limit: int) -> Iterator[bytes]:
    """Yield what is decompressed into a buffer that is no larger than the limit allows."""
    if not raw:
        raise Undecodable(f"the {name} data is cut off")
    buffer = bytearray(min(limit, _LARGEST_RATIO * len(raw)) + 1)
    try:
        size = into(raw, buffer)
    except cramjam.DecompressionError as error:
        if "failed to write whole buffer" in str(error):
            raise TooLarge from error
        raise Undecodable(f"the {name} data is damaged: {error}") from error
    for at in range(0, size, _STEP):
        yield bytes(buffer[at : min(at + _STEP, size)])


def _inflate(raw: bytes, encoding: str) -> Iterator[bytes]:
    at = 0
    for _ in range(_MOST_MEMBERS):
        member = zlib.decompressobj(_ZLIB_WRAPPER[encoding])
        try:
            while not member.eof:
                step = member.unconsumed_tail
                if not step:
                    step = raw[at : at + _TAKEN]
                    at += len(step)
                piece = member.decompress(step, _STEP)
                if not piece and not step and not member.eof:
                    raise Undecodable(f"the {encoding} data is cut off")
                yield piece
        except zlib.error as error:
            raise Undecodable(f"the {encoding} data is damaged: {error}") from error
        at -= len(member.unused_data)
        if at == len(raw):
            return
        if encoding != "gzip":
            raise Undecodable(f"{len(raw) - at} bytes follow the {encoding} data")
    raise Undecodable(f"the gzip data has more than {_MOST_MEMBERS:,} members")


def _unzstd(raw: bytes) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    frame = decompressor.decompressobj()
    at = 0
    frames = 1
    try:
        while at < len(raw):
            if frame.eof:
                frame = decompressor.decompressobj()
                frames += 1
                if frames > _MOST_MEMBERS:
                    raise Undecodable(f"the zstd data has more than {_MOST_MEMBERS:,} frames")
            step = raw[at : at + _ZSTD_STEP]
            yield frame.decompress(step)
            at += len(step) - len(frame.unused_data)
    except zstandard.ZstdError as error:
        raise Undecodable(f"the zstd data is damaged: {error}") from error
    if not frame.eof:
        raise Undecodable("the zstd data is cut off")
