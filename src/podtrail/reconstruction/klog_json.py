"""Lines of klog as JSON: times in milliseconds, references as objects, keys that stand twice."""

import json
import re
from collections.abc import Mapping
from typing import Any

from podtrail.reconstruction.klog import LONGEST_VALUE, writable

_MESSAGE = re.compile(rb'"msg": ?"((?:[^"\\]|\\.)*)"')
_TIME = re.compile(rb'"ts": ?(\d{1,13})(?:\.(\d{1,9}))?')
_MILLISECOND = 1_000_000
_LATEST = 1 << 63


def message_of(line: bytes) -> bytes | None:
    """Return the message of a line, still escaped; None when the line has none."""
    found = _MESSAGE.search(line)
    return found[1] if found else None


def time_of(line: bytes) -> int | None:
    """Return when the line was written, Unix nanoseconds; None when it does not say."""
    found = _TIME.search(line)
    if found is None:
        return None
    time = int(found[1]) * _MILLISECOND + int((found[2] or b"").ljust(9, b"0")) // 1_000
    return time if time < _LATEST else None


def pairs_of(line: bytes) -> dict[str, str] | None:
    """Return the line's values as text, references as `namespace/name`; None when it is no JSON object.

    Of several of one key the last counts: the ones ahead are the context's.
    """
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    return {key[:LONGEST_VALUE]: writable(_text(value)) for key, value in told.items()}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value[:LONGEST_VALUE]
    if isinstance(value, Mapping) and isinstance(name := value.get("name"), str) and len(value) <= 2:
        namespace = value.get("namespace")
        return f"{namespace}/{name}"[:LONGEST_VALUE] if isinstance(namespace, str) else name[:LONGEST_VALUE]
    return json.dumps(value, separators=(",", ":"))[:LONGEST_VALUE]
