"""Progress on a terminal, and its end by Ctrl-C."""

import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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


@contextmanager
def interrupted() -> Iterator[threading.Event]:
    """Yield what is set by the first Ctrl-C or SIGTERM; a second one ends the process."""
    event = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def once(*_: object) -> None:
        event.set()
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        signal.signal(number, once)
    try:
        yield event
    finally:
        for number in numbers:
            signal.signal(number, before[number])
