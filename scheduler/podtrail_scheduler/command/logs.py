"""Logs as Kubernetes components write them: klog's text on stderr, `-v` says how much.

klog's V(n) is Python's level INFO - n here: V(0) is INFO, V(10) is DEBUG. A message in quotes with `key="value"` behind
it is klog's structured form.
"""

import logging
import os
import sys

from podtrail_instrumentation import KlogFormatter
from podtrail_instrumentation.klog import structured

__all__ = ["set_up", "structured", "verbosity"]


def verbosity(level: int) -> int:
    """Python's level for klog's V(`level`)."""
    return logging.INFO - level


def set_up(level: int) -> None:
    """Everything up to V(`level`) goes to stderr, and what libraries warn of."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its core writes in a form of its own, between our lines
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(KlogFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ("podtrail_scheduler", "podtrail_kubernetes", "podtrail_instrumentation"):
        logging.getLogger(name).setLevel(max(verbosity(level), logging.DEBUG))
