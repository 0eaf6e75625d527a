"""A page of a process of its own, as a terminal's commands find it."""

import os
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from tests import forks


class RunningPage(NamedTuple):
    """Where it is, and what its process reads."""

    address: str
    told: IO[str]


PROGRAM = """
import asyncio, sys
from podtrail_extensions.viewer import FACTORY
from podtrail.component import Context, GatedPod
from podtrail.testing.attempts import START, MadeAttempt, no_room

async def main():
    config = FACTORY.Config.model_validate({"endpoint": "localhost:0", "otlp_endpoint": "localhost:0"})
    async with FACTORY.create(config, Context(id="viewer")) as viewer:
        print(viewer.page, flush=True)
"""
END = """
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@contextmanager
def running_page(told: str) -> Iterator[RunningPage]:
    """Serve a page until the context ends; `told` is Python that gives the `viewer` what it is to show."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.py"
        path.write_text(PROGRAM + textwrap.indent(told, " " * 8) + END, encoding="utf-8")
        orders, answers = os.pipe(), os.pipe()
        fork = forks.Fork([str(path)], path.parent, forks.environment({}), (orders[0], answers[1], 2))
        os.close(orders[0])
        os.close(answers[1])
        with os.fdopen(answers[0], encoding="utf-8") as said, os.fdopen(orders[1], "w", encoding="utf-8") as telling:
            yield RunningPage(said.readline().strip(), telling)
        fork.wait()
