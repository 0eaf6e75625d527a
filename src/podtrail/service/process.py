"""What the process itself costs, as the Collector's process metrics, and what it needs of the system."""

import resource
import time
from collections.abc import Callable
from contextlib import suppress

from podtrail.component import Metrics


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
