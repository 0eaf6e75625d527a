"""Progress on a terminal."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def shown(requests: Iterable[T], doing: str) -> Iterator[T]:
    """Pass requests on, with their number on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        yield from requests
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,} requests"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=None)
        for request in requests:
            yield request
            progress.advance(task)
