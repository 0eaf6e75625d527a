"""The memory that the container of this process may use."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

_CGROUP_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Of version 2 and 1. Without a limit version 2 has a word there, version 1 a number beyond all memory."""
_UNLIMITED: Final = 1 << 60


def container_limit(paths: Sequence[str] = _CGROUP_LIMITS) -> int:
    """Return the bytes of memory that the container may use; 0 if nothing limits it."""
    for path in paths:
        try:
            limit = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if limit.isdecimal() and int(limit) < _UNLIMITED:
            return int(limit)
    return 0
