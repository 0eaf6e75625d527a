"""A page of a process of its own, as a terminal's commands find it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from tests import forks


class RunningPage(NamedTuple):
    """Where it is, and what its process reads."""

    address: str
    told: IO[str]


@contextmanager
def running_page(program: str) -> Iterator[RunningPage]:
    """Run a program in Python that prints a page's address, and serves it until its input ends."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.py"
        path.write_text(program, encoding="utf-8")
        orders, answers = os.pipe(), os.pipe()
        fork = forks.Fork([str(path)], path.parent, forks.environment({}), (orders[0], answers[1], 2))
        os.close(orders[0])
        os.close(answers[1])
        with os.fdopen(answers[0], encoding="utf-8") as told, os.fdopen(orders[1], "w", encoding="utf-8") as telling:
            yield RunningPage(told.readline().strip(), telling)
        fork.wait()
