"""Decompression of what a server received, with its protocol's error when that fails."""

import asyncio
from collections.abc import Iterator

from podtrail.transport.compression import TooLarge, Undecodable, decompressed
from podtrail.transport.incoming_request import IncomingRequest
from podtrail.transport.status import RequestError

_OFF_LOOP = 1 << 14
"""Compressed bytes from which this is done in a thread: a bomb of this size takes 10 ms or so."""
_STEP = 1 << 20
"""Bytes that come out before they are counted, and before it is seen that the client is gone."""


async def inflate(raw: bytes, encoding: str, limit: int, receiving: IncomingRequest) -> bytes:
    """Return what `raw` holds, at most `limit` bytes.

    Raises:
        RequestError: it is more, damaged or of another encoding.
    """
    pieces = decompressed(raw, encoding, limit)
    steps: list[bytes] = []
    try:
        while not steps or len(steps[-1]) >= _STEP:
            steps.append(_step(pieces) if len(raw) < _OFF_LOOP else await asyncio.to_thread(_step, pieces))
            receiving.add(len(steps[-1]))
    except TooLarge as error:
        raise RequestError.too_large(limit) from error
    except Undecodable as error:
        raise RequestError.malformed(str(error)) from error
    return b"".join(steps)


def _step(pieces: Iterator[bytes]) -> bytes:
    """Return at least a step's bytes, less at the end."""
    step = bytearray()
    for piece in pieces:
        step += piece
        if len(step) >= _STEP:
            break
    return bytes(step)
