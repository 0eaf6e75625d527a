"""A bound for the memory that reading something may take, whatever is written in it."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_OWN_SIZE: Final = Path("/proc/self/statm")


@contextmanager
def at_most_so_much_more(size: int) -> Iterator[None]:
    """Have the process get no more than so many bytes in there: beyond it is a MemoryError.

    A few bytes of a pickle can ask for any amount. Where the system does not tell what is used there is no bound.
    """
    before = soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = _used()
    if used and (soft == resource.RLIM_INFINITY or soft > used + size):
        if hard != resource.RLIM_INFINITY:
            size = min(size, hard - used)
        resource.setrlimit(resource.RLIMIT_AS, (used + size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _used() -> int:
    """Return the bytes of the process's address space, 0 where that is not told."""
    if not _OWN_SIZE.exists():
        return 0
    return int(_OWN_SIZE.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
