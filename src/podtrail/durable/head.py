"""The head of a checkpoint: JSON behind its size, with the version of its format."""

import json
import struct
from collections.abc import Mapping
from typing import Any

_SIZE = struct.Struct("<Q")


def write_head(version: int, head: Mapping[str, object]) -> bytes:
    """Return it in bytes, of this version."""
    written = json.dumps({"format": version, **head}).encode()
    return _SIZE.pack(len(written)) + written


def read_head(version: int, data: bytes) -> tuple[Any, int]:
    """Return what `data` begins with, and where that ends.

    Raises:
        ValueError: it is no JSON, or of another version.
        struct.error: it ends before its size.
        LookupError, RecursionError, TypeError: it is no head.
    """
    (size,) = _SIZE.unpack_from(data)
    end = _SIZE.size + size
    head = json.loads(data[_SIZE.size : end])
    if head["format"] != version:
        raise ValueError(f"its format is {head['format']}, not {version}")
    return head, end
