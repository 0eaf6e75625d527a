"""Progress on a terminal, and its end by Ctrl-C."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

T = TypeVar("T")


def shown(requests: Iterable[T], doing: str, *, after: float = 2.0) -> Iterator[T]:
    """Pass requests on; what takes longer than `after` seconds shows its progress on standard error, if a terminal."""
    if not sys.stderr.isatty():
        yield from requests
        return
    began = time.monotonic()
    with ExitStack() as stack:
        passed = None
        for number, request in enumerate(requests, 1):
            if passed is None and time.monotonic() - began >= after:
                passed = stack.enter_context(_progress(doing, began))
            yield request
            if passed is not None:
                passed(number)


@contextmanager
def _progress(doing: str, began: float) -> Iterator[Callable[[int], None]]:
    """Draw a line until the end; yield what is told how many requests are through."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}: {task.completed:,} requests"), TimeElapsedColumn())
    console = Console(stderr=True, no_color="NO_COLOR" in os.environ or None)
    with Progress(*columns, console=console, transient=True, get_time=time.monotonic) as progress:
        task = progress.add_task(doing, total=None)
        progress.tasks[0].start_time = began
        yield lambda through: progress.update(task, completed=through)


@contextmanager
def interrupted() -> Iterator[threading.Event]:
    """Yield what is set by the first Ctrl-C or SIGTERM; a second one ends the process."""
    event = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def once(*_: object) -> None:
        event.set()
        for number, handler in before.items():
            removes_files = callable(handler) and handler is not signal.default_int_handler
            signal.signal(number, handler if removes_files else signal.SIG_DFL)

    for number in numbers:
        signal.signal(number, once)
    try:
        yield event
    finally:
        for number in numbers:
            signal.signal(number, before[number])
