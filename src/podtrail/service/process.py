"""The process itself: its memory and what of it is given back, what it costs as metrics, how many files it may open."""

import ctypes
import gc
import os
import re
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from podtrail.component import Metrics

_STATM = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_FRESH_SECONDS = 0.02
_FREE = re.compile(rb"(?:bytes in available blocks|unused pools \* \d+ bytes) *= *([\d,]+)")
# mallopt(3), glibc
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 32 << 20
_MAPPED = 4 << 20


class ResidentMemory:
    """Tells the resident memory in bytes, read at most fifty times a second."""

    def __init__(self) -> None:
        self._read_at = -_FRESH_SECONDS
        self._bytes = 0

    def __call__(self) -> int:
        """Return what is used, as of a moment ago."""
        if time.monotonic() - self._read_at > _FRESH_SECONDS:
            self._read()
        return self._bytes

    def reclaim(self, *, collect: bool) -> int:
        """Give freed memory back to the system, after a collection of garbage if `collect`; return what is used then.

        The C library keeps what was freed; of 400 MiB in requests it gives all back within 30 ms when it is asked.
        Python's own allocator gives back only arenas of 1 MiB in which nothing lives any more: one object that stays
        keeps the rest of its arena resident. That rest is free for new objects, so it does not count as used.
        """
        if collect:
            gc.collect()
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
        self._read()
        return max(0, self._bytes - free_in_arenas())

    def _read(self) -> None:
        self._read_at = time.monotonic()
        self._bytes = int(_STATM.read_text().split()[1]) * _PAGE


def free_in_arenas() -> int:
    """Return the bytes that Python's allocator has and that are free for new objects; 0 where that is not known.

    CPython prints its allocator's statistics and has no other way to ask for them; about 1 ms for 200 MiB.
    """
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.open_memstream.restype = ctypes.c_void_p
        written, size = ctypes.c_void_p(), ctypes.c_size_t()
        stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(written), ctypes.byref(size)))
        if not stream:
            return 0
        ctypes.pythonapi._PyObject_DebugMallocStats(stream)
        libc.fclose(stream)
        statistics = ctypes.string_at(written, size.value) if written.value else b""
        libc.free(written)
        return sum(int(found.replace(b",", b"")) for found in _FREE.findall(statistics))
    return 0


def settle_garbage_collector() -> None:
    """Take what was loaded at the start out of the collector's way, and let it look at everything hardly ever.

    Held spans are bytes in lists of long-lived objects: full collections over them would be pauses that find nothing.
    What is young is looked at in small helpings, at most 9,000 objects: 30,000, among them lists of chunks, take up to
    25 ms. What is old by the time that it is garbage, as the processors that a reload has replaced, is found when this
    is called again.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(3_000, 2, 130_000)


def settle_allocator() -> None:
    """Have freed memory of up to 32 MiB stay with the process, where the C library is one that can be told.

    Requests are read and forgotten thousands of times a second: to give their pages back to the system and to fault
    them in again takes longer than to read what is in them.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_TRIM_THRESHOLD, _KEPT)
    mallopt(_MMAP_THRESHOLD, _MAPPED)


def publish(metrics: Metrics, memory_used: Callable[[], int]) -> None:
    """Make uptime, CPU seconds and resident memory readable under the Collector's names."""
    started = time.monotonic()

    def cpu() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    metrics.gauge("otelcol_process_uptime", "Uptime of the process in seconds.").read_from(
        lambda: time.monotonic() - started
    )
    metrics.gauge("otelcol_process_cpu_seconds", "Total CPU user and system time in seconds.").read_from(cpu)
    metrics.gauge("otelcol_process_memory_rss", "Total physical memory in bytes.").read_from(memory_used)


def allow_many_files() -> None:
    """Use as many file descriptors as the system lets this process have, for connections are made of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):  # a system that says infinite and means less
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
