"""A page of a process of its own, as a terminal's commands find it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple


class RunningPage(NamedTuple):
    """Where it is, and what its process reads."""

    address: str
    told: IO[str]


@contextmanager
def running_page(program: str) -> Iterator[RunningPage]:
    """Run a program in Python that prints a page's address, and serves it until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout
        assert running.stdin
        yield RunningPage(running.stdout.readline().strip(), running.stdin)
        running.stdin.close()
