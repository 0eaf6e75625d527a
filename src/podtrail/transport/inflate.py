"""Decompression of what a server received, with its protocol's error when that fails."""

import asyncio

from podtrail.transport.compression import TooLarge, Undecodable, decompress
from podtrail.transport.status import RequestError

_OFF_LOOP = 1 << 14
"""Compressed bytes from which this is done in a thread: a bomb of this size takes 10 ms or so."""


async def inflate(raw: bytes, encoding: str, limit: int) -> bytes:
    """Return what `raw` holds, at most `limit` bytes. RequestError when it is more, damaged or of another encoding."""
    try:
        if len(raw) < _OFF_LOOP:
            return decompress(raw, encoding, limit)
        return await asyncio.to_thread(decompress, raw, encoding, limit)
    except TooLarge as error:
        raise RequestError.too_large(limit) from error
    except Undecodable as error:
        raise RequestError.malformed(str(error)) from error
